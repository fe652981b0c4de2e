"""The subcommand `optimize`: a recorded motion as an optimal control problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borelli.commands import options
from borelli.commands.console import (
    compile_once,
    err,
    finite,
    note_lines,
    print_json,
    print_line,
    print_marked,
    print_values,
)
from borelli.commands.options import option, output
from borelli.errors import BorelliError, SettingsError, unknown_name

if TYPE_CHECKING:
    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.optimal.tracking.tracked_motion import TrackedMotion
    from borelli.optimal.tracking.what_if import WhatIf
    from borelli.pipeline.analysis_settings import AnalysisSettings

TASKS = ("track", "inverse", "what-if")
"""What can be solved for a recorded motion."""
TENDONS = ("rigid", "elastic")
"""Values of --tendon."""
FILES = ("solution.nc", "motion.nc", "summary.json", "solution.png")
"""Files of `track` and `inverse`."""
WHAT_IF_FILES = ("original.nc", "changed.nc", "motion.nc", "what-if.nc", "summary.json", "what-if.png")
"""Files of `what-if`; the motion is that of the changed person."""


def optimize(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task: track, inverse or what-if.", show_default=False)],
    motion: Annotated[
        Path,
        typer.Argument(
            metavar="MOTION",
            help="Recording or stage file: .c3d, .trc, motion.nc, torques.nc, muscles.nc, or .mot with --model.",
            show_default=False,
        ),
    ],
    folder: Annotated[Path, output("Folder for the results. Default: optimization.", "FOLDER")] = Path("optimization"),
    model: options.ModelFile = None,
    muscles: Annotated[
        bool,
        option(
            "Actuate the model by muscles. With --no-muscles, by joint torques only. Default: on.",
            None,
            "--muscles/--no-muscles",
        ),
    ] = True,
    tendon: Annotated[str, option("Tendons: rigid or elastic. Default: rigid.", "KIND")] = "rigid",
    change: Annotated[
        list[str] | None,
        option(
            'Change the person of what-if: "soleus 50%", "torso 20kg" or "ankle_angle 60Nm/rad". Repeatable.', "TEXT"
        ),
    ] = None,
    interval: Annotated[float, option("Time between control nodes [s]. Default: 0.02 s.", "S")] = 0.02,
    tracking: Annotated[
        float | None,
        option("Weight of tracking relative to effort [1/rad^2]. Default: 10000 for track, 100 for what-if.", "WEIGHT"),
    ] = None,
    reserve: Annotated[
        float, option("Reserve torque that costs as much as a fully excited muscle [N m]. Default: 10 N m.", "NM")
    ] = 10.0,
    residual: Annotated[
        float, option("Residual force [N] or moment [N m] that costs as much; 0 excludes them. Default: 100.", "N")
    ] = 100.0,
    time_limit: Annotated[float, option("Time limit of the solver [s]. Default: 600 s.", "S")] = 600.0,
    external_loads: options.ExternalLoads = None,
    forces: options.Forces = None,
    cutoff: options.Cutoff = None,
    start: options.Start = -inf,
    end: options.End = inf,
    mass: options.FitMass = None,
    height: options.Height = None,
    sex: options.Sex = None,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    force: options.ForceFolder = False,
    json: options.Json = False,
) -> None:
    """Solve a recorded motion as an optimal control problem.

    track: motion and controls closest to the recording that obey the equations of motion. inverse: muscle excitations
    that produce the recorded motion. what-if: the same person with changes. Every solution is re-simulated.
    A solution that fails this check is reported as not solved, with exit code 1.
    """
    from borelli.files.inputs import protect_inputs
    from borelli.files.results_folder import results_folders
    from borelli.pipeline.analysis_settings import AnalysisSettings

    _check_task(task, muscles, tendon, change)
    settings = AnalysisSettings(
        model=model, mass=mass, height=height, sex=sex, start=start, end=end, forces=forces,
        external_loads=external_loads, cutoff=cutoff, muscles=muscles,
        reading={
            "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
            "marker_set": marker_set,
        },
    )  # fmt: skip
    names = WHAT_IF_FILES if task == "what-if" else FILES
    inputs = (motion, model, external_loads, forces, skeleton, markers)
    with protect_inputs(*inputs), results_folders({folder: names}, "optimize", overwrite=force):
        compile_once(*inputs, muscles=muscles)
        with err.status("analyzing the motion"):
            source = _load_source(motion, settings)
        result, values = _solve(
            task, source, list(change or ()), tendon=tendon if muscles else None, interval=interval,
            tracking=tracking, reserve=reserve, residual=residual, time_limit=time_limit,
        )  # fmt: skip
        summary = {"task": task, "motion": str(motion), **values, "notes": [note.text for note in source.notes]}
        _write(result, folder, summary)
    if json:
        print_json(summary)
    else:
        print_values(motion.name, {k: "none" if v is None else v for k, v in values.items() if k != "verdict"})
        print_marked(note_lines(source.notes))
        print_line(f"Results: {folder}")
    if not values["solved"]:
        raise BorelliError(f"{motion}: {values['verdict']}")


def _check_task(task: str, muscles: bool, tendon: str, change: list[str] | None) -> None:
    """Raise SettingsError for options that do not belong together."""
    if task not in TASKS:
        raise SettingsError(f"{unknown_name('task', task, TASKS)}.")
    if tendon not in TENDONS:
        raise SettingsError(f"--tendon: {unknown_name('kind of tendon', tendon, TENDONS)}.")
    if task == "inverse" and not muscles:
        raise SettingsError("inverse: The task solves for muscles. Leave out --no-muscles.")
    if (task == "what-if") != bool(change):
        raise SettingsError('--change belongs to what-if, which needs one at least, such as --change "soleus 50%".')


def _load_source(path: Path, settings: AnalysisSettings) -> Torques | MuscleForces:
    """Return the torques or muscle forces in a stage file, or those of a recording; generic humans get muscles."""
    from dataclasses import replace

    from borelli.analysis.dynamics.torques import Torques
    from borelli.analysis.muscle_forces import MuscleForces
    from borelli.commands.detect_file import detect_kind, open_file
    from borelli.commands.load_motion import load_motion
    from borelli.pipeline.opensim_recipe import apply_setups
    from borelli.pipeline.stages import compute_torques

    settings = apply_setups(settings)
    kind = detect_kind(path)
    if kind not in ("stage", "recording"):
        open_file(path)  # raises an error that names the file if it cannot be read
    if kind == "stage" and settings.model is None:
        stage = open_file(path).value
        for part in (getattr(stage, "muscles", None), stage, getattr(stage, "torques", None)):
            if isinstance(part, MuscleForces) and settings.muscles:
                return part
            if isinstance(part, Torques):
                return part
    motion = load_motion(path, replace(settings, start=-inf, end=inf))
    if settings.muscles and settings.model is None and not motion.model.muscles:
        from borelli.people.human_muscles import add_muscles

        motion = replace(motion, model=add_muscles(motion.model, height=settings.height))
    return compute_torques(motion, settings)


def _solve(
    task: str, source: Torques | MuscleForces, changes: list[str], *, tendon: str | None, interval: float,
    tracking: float | None, reserve: float, residual: float, time_limit: float,
) -> tuple[TrackedMotion | WhatIf, dict[str, Any]]:  # fmt: skip
    """Return the result of a task and its main figures."""
    from dataclasses import replace

    from borelli.optimal.tracking.inverse import solve_inverse
    from borelli.optimal.tracking.track import track_motion
    from borelli.optimal.tracking.tracking_problem import Actuation, TrackingWeights
    from borelli.optimal.tracking.what_if import WEIGHTS, what_if

    with _progress(task) as update:
        common: dict[str, Any] = {"interval": interval, "time_limit": time_limit, "progress": update}
        if task == "inverse":
            assert tendon is not None
            inverse = solve_inverse(source, tendon=tendon, reserve=reserve, **common)
            return inverse, inverse.summary()
        weights = TrackingWeights() if task == "track" else WEIGHTS
        common["weights"] = weights if tracking is None else replace(weights, tracking=tracking)
        common["actuation"] = Actuation(reserve=reserve, residual=residual)
        if task == "track":
            tracked = track_motion(source, tendon=tendon, **common)
            return tracked, tracked.summary()
        result = what_if(source, changes, tendon=tendon, **common)
    failed = next((part for part in (result.original, result.changed) if not part.solved), result.changed)
    figures = {
        "solved": result.solved, "verdict": failed.solution.certificate.verdict,
        "changes": ", ".join(map(str, result.changes)),
    }  # fmt: skip
    for name, (before, after) in result.compare().items():
        figures |= {f"original_{name}": before, f"changed_{name}": after}
    return result, figures


@contextmanager
def _progress(task: str) -> Iterator[Callable[[Any], None]]:
    """Show the solver's iterations on stderr; yields a function of an iterate."""
    with err.status(f"{task}: preparing") as status:

        def update(iterate: Any) -> None:
            status.update(
                f"{task}: iteration {iterate.iteration}, objective {iterate.objective:.5g}, "
                f"violation {iterate.violation:.1e}"
            )

        yield update


def _write(result: TrackedMotion | WhatIf, folder: Path, summary: dict[str, Any]) -> None:
    """Write solutions, motion, figures and plot."""
    import json

    from borelli.export.stage_files import write_stage
    from borelli.files.atomic import write_atomic
    from borelli.files.netcdf_writer import write_netcdf
    from borelli.optimal.tracking.tracked_motion import TrackedMotion

    if isinstance(result, TrackedMotion):
        result.solution.save(folder / "solution.nc")
        write_stage(result.motion(), folder / "motion.nc")
        result.plot(folder / "solution.png")
    else:
        result.original.solution.save(folder / "original.nc")
        result.changed.solution.save(folder / "changed.nc")
        write_stage(result.changed.motion(), folder / "motion.nc")
        write_netcdf(folder / "what-if.nc", {"/": result.dataset()})
        result.plot(folder / "what-if.png")
    write_atomic(json.dumps(finite(summary), indent=1, allow_nan=False) + "\n", folder / "summary.json")
