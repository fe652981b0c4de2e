"""Options shared by several subcommands, and checks that protect the user's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from borelli.recording.recording import Recording


def option(help: str, metavar: str | None = None, *flags: str, **more: Any) -> Any:
    """Return an option whose help text states its default in words."""
    return typer.Option(*flags, help=help, metavar=metavar, show_default=False, **more)


Json = Annotated[bool, option("Print one JSON object instead of tables.", None, "--json")]
Force = Annotated[
    bool, option("Overwrite an existing output file. Input files are never overwritten.", None, "--force")
]
ForceFolder = Annotated[
    bool,
    option(
        "Overwrite other or edited files that have names of results. Input files are never overwritten.",
        None,
        "--force",
    ),
]
Units = Annotated[
    str | None, option("Length unit of the file: m, cm, mm, in, or a number of meters. Default: inferred.", "UNIT")
]
Up = Annotated[str | None, option("Axis of the file that points up: +Y, +Z, -X, ... Default: inferred.", "AXIS")]
Forward = Annotated[
    str | None, option("Axis of the file that becomes lab x (forward); auto: direction of travel.", "AXIS")
]
Markers = Annotated[
    Path | None,
    option(
        "Marker map that states what the labels mean: see `borelli markers`. Default: read from the labels.", "FILE"
    ),
]
MarkerSet = Annotated[
    str | None,
    option("Convention of the labels, such as 'CMU 41'. Default: read from all labels together.", "NAME", "--set"),
]
Forces = Annotated[Path | None, option("Separate force-plate file, such as the .mot that belongs to a .trc.", "FILE")]
Contact = Annotated[
    str | None,
    option(
        "Body that a seat, rail or wall without a plate supports, such as pelvis: estimate that force. Default: only "
        "report it.",
        "BODY",
    ),
]
Skeleton = Annotated[Path | None, option("Skeleton (.asf) of an .amc file. Default: the .asf in its folder.", "FILE")]
Mass = Annotated[
    float | None,
    option("Body mass of the subject [kg]. Default: from the recording, else estimated from the force plates.", "KG"),
]
FitMass = Annotated[
    float | None, option("Body mass of the subject [kg]. Default: from the recording, else 75 kg.", "KG", "--mass")
]
Height = Annotated[
    float | None, option("Body height of the subject [m]. Default: from the recording, else 1.75 m.", "M")
]
Sex = Annotated[
    str | None,
    option(
        "Sex (male or female) that selects the anthropometric tables. Default: from the recording, else male.", "SEX"
    ),
]
ModelFile = Annotated[
    Path | None, option("Model to fit. Default: a generic human of the given mass and height.", "FILE", "--model")
]
Static = Annotated[Path | None, option("Static calibration trial: the subject stands still.", "FILE")]
Functional = Annotated[
    list[Path] | None,
    option("Functional trial: the hips move far in several directions (star-arc). Repeatable.", "FILE"),
]
HipRegression = Annotated[
    str,
    option("Regression of hip centers from the iliac spines: harrington or bell. Default: harrington.", "NAME"),
]
KneeWidth = Annotated[
    float | None, option("Width of the knee [mm]. Default: from the recording, else from height.", "MM")
]
AnkleWidth = Annotated[
    float | None, option("Width of the ankle [mm]. Default: from the recording, else from height.", "MM")
]
Plates = Annotated[
    bool, option("Use the force plates. With --no-plates, predict ground reaction forces from the motion. Default: on.")
]
Cutoff = Annotated[
    float | None,
    option(
        "Low-pass cutoff for joint coordinates and force plates [Hz]. Default: by task, 6 Hz for walking, 10 Hz or "
        "more for running and jumping.",
        "HZ",
    ),
]
PlateCutoff = Annotated[
    float | None,
    option("Another low-pass cutoff for force plates [Hz]; 0 turns the filter off. Default: that of --cutoff.", "HZ"),
]
Filter = Annotated[
    str | None,
    option(
        "Low-pass filter of coordinates: default, strides, opensim (as OpenSim's inverse dynamics, plates unfiltered) "
        "or none. Default: default with plates, strides without.",
        "PRESET",
        "--filter",
    ),
]
ScaleSetup = Annotated[
    Path | None, option("OpenSim scale setup: scale the model to the static trial by it instead of fitting it.", "FILE")
]
IkSetup = Annotated[
    Path | None,
    option("OpenSim inverse kinematics setup: marker weights, coordinate tasks and time range.", "FILE"),
]
IdSetup = Annotated[
    Path | None,
    option("OpenSim inverse dynamics setup: OpenSim's filter with its cutoff, external loads, time range.", "FILE"),
]
ExternalLoads = Annotated[
    Path | None,
    option("OpenSim external loads: the bodies on which forces of a table act (--forces, or next to it).", "FILE"),
]
ReduceResiduals = Annotated[
    bool,
    option(
        "Reduce residuals where plates record the full ground reaction force, by a plate offset of up to 10 mm, "
        "segment masses, and root and trunk kinematics within 2 mm and 0.5 degrees. Default: off.",
        None,
        "--reduce-residuals",
    ),
]
Start = Annotated[float, option("Discard frames before this time [s].", "S")]
End = Annotated[float, option("Discard frames after this time [s].", "S")]
Ignore = Annotated[
    list[str] | None,
    option("Analyze in spite of an error of `borelli doctor` with this code. Repeatable.", "CODE"),
]
IK_HELP = "Inverse kinematics method: framewise, smoothed or marker-driven. Default: framewise."
ID_HELP = "Inverse dynamics method: newton-euler or stepped. Default: newton-euler."


def given_options(options: Mapping[str, Any]) -> str:
    """Return the names of the options that were given, as they are typed."""
    flags = {"marker_set": "set"}
    return ", ".join(f"--{flags.get(name, name)}" for name, value in options.items() if value is not None)


def to_meters(width: float | None) -> float | None:
    """Return a width in m that was given in mm."""
    return None if width is None else 1e-3 * width


def output(help: str, metavar: str = "FILE") -> Any:
    """Return the option for the path of the results."""
    return option(help, metavar, "--out", "-o")


def read_with(file: Path, *, forces: Path | None = None, **reading: Any) -> Recording:
    """Read a recording with the options that are not None, and add the plates of a second file if one is given."""
    from borelli.recording.forces.assign_to_feet import add_plates
    from borelli.recording.io import read_recording

    recording = read_recording(file, **{name: value for name, value in reading.items() if value is not None})
    return recording if forces is None else add_plates(recording, read_recording(forces))


def check_target(target: Path, sources: Sequence[Path | None], *, force: bool) -> None:
    """Raise SettingsError if the output would overwrite an input, or another file without `force`.

    The inputs stay protected. The output is checked before a computation takes its time, and again when it is written.
    """
    from borelli.files.atomic import check_output
    from borelli.files.inputs import register_inputs

    register_inputs(*sources)
    check_output(target, overwrite=force, inputs=sources)
