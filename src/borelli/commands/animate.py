"""The subcommand `animate`: a simulated character that tracks a motion and can be pushed, loaded and weakened."""

from __future__ import annotations

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
    progress_bar,
)
from borelli.commands.options import option, output

if TYPE_CHECKING:
    from xarray import Dataset

FILES = ("animation.nc", "summary.json", "deviation.png", "animation.png", "animation.gif")
"""Files of an animation, the video last."""
IMAGE_POSES = 6
"""Number of poses in the image."""
MIN_POSE_SPACING = 0.9
"""Least distance between poses in the image [m]."""
VIDEO_ANGLE = 20.0
"""Rotation of the video's camera from the side view toward the front [degrees]."""


def animate(
    motion: Annotated[
        Path, typer.Argument(metavar="MOTION", help="Motion: .bvh, .amc, .c3d, .trc, motion.nc, or .mot with --model.")
    ],
    folder: Annotated[Path, output("Folder for the results. Default: animation.", "FOLDER")] = Path("animation"),
    model: options.ModelFile = None,
    push: Annotated[
        list[str] | None, option('Push a body: "pelvis 200N 0.1s left at 1.2s". Repeatable.', "TEXT")
    ] = None,
    carry: Annotated[
        list[str] | None, option('Attach a load: "hand_r 5kg", "hand_r 5kg hanging". Repeatable.', "TEXT")
    ] = None,
    weaken: Annotated[
        list[str] | None,
        option('Limit a joint to a fraction of its strength: "knee_flexion_r 30% at 1s". Repeatable.', "TEXT"),
    ] = None,
    obstacle: Annotated[
        list[str] | None, option('Add an obstacle: "box 0.4x0.4x0.2m on 1,0,0.1 from 0s to 2s". Repeatable.', "TEXT")
    ] = None,
    move_ground: Annotated[
        list[str] | None, option('Move the ground: "0.2m left 0.4s at 1s". Repeatable.', "TEXT")
    ] = None,
    ground: Annotated[
        bool, option("Enable ground contact. Without it, the ground is only drawn. Default: off.")
    ] = False,
    settling_time: Annotated[float, option("Settling time of the joints [s]. Default: 0.3 s.", "S")] = 0.3,
    root_settling_time: Annotated[float, option("Settling time of the root [s]. Default: 0.6 s.", "S")] = 0.6,
    max_root_force: Annotated[
        float, option("Maximum external force on the root [body weights]. Default: 3.", "BW")
    ] = 3.0,
    max_root_torque: Annotated[
        float, option("Maximum external torque on the root [body weights x m]. Default: 1.", "BWM")
    ] = 1.0,
    step: Annotated[float, option("Step length [s]. Default: 1/240 s.", "S")] = 1 / 240,
    cutoff: Annotated[float | None, option("Low-pass cutoff for joint coordinates [Hz]. Default: 6 Hz.", "HZ")] = None,
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
    write_video: Annotated[
        bool, option("Write a video, which takes most of the time. Default: on.", None, "--video/--no-video")
    ] = True,
    force: options.ForceFolder = False,
    json: options.Json = False,
) -> None:
    """Track a motion with a simulated character, which reacts to perturbations and recovers.

    A load is welded to the body; with `hanging` it is on a ball joint, with `outside` it is unknown to the controller.
    """
    from borelli.commands.load_motion import load_motion
    from borelli.control.animate import TrackingSettings
    from borelli.control.animate import animate as run_animation
    from borelli.control.parse_perturbations import parse_perturbation
    from borelli.files.inputs import protect_inputs
    from borelli.files.results_folder import results_folders
    from borelli.pipeline.analysis_settings import AnalysisSettings

    tracking = TrackingSettings(
        settling_time, root_settling_time, max_root_force, max_root_torque, ground or bool(move_ground)
    )
    reading = {
        "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
        "marker_set": marker_set,
    }  # fmt: skip
    settings = AnalysisSettings(model=model, mass=mass, height=height, sex=sex, start=start, end=end, reading=reading)
    texts = {"push": push, "carry": carry, "weaken": weaken, "obstacle": obstacle, "move-ground": move_ground}
    given = {kind: list(several) for kind, several in texts.items() if several}
    outputs = {folder: FILES if write_video else FILES[:-1]}
    with protect_inputs(motion, model, skeleton, markers), results_folders(outputs, "animate", overwrite=force):
        compile_once(motion, model, skeleton, markers, control=True)
        with err.status("reading the motion"):
            target = load_motion(motion, settings)
        parsed = [parse_perturbation(kind, text, target.model) for kind, several in given.items() for text in several]
        with progress_bar("simulating") as update:
            result = run_animation(target, parsed, tracking=tracking, step=step, cutoff=cutoff, progress=update)
        notes = (*target.notes, *result.notes)
        summary: dict[str, Any] = {
            "motion": str(motion), **given, **result.metrics, "notes": [note.text for note in notes],
        }  # fmt: skip
        _write(result.data, folder, summary, write_video)
    if json:
        print_json(summary)
        return
    print_values(motion.name, {name: "none" if value is None else value for name, value in result.metrics.items()})
    print_marked(note_lines(notes))
    print_line(f"Results: {folder}")


def _write(data: Dataset, folder: Path, summary: dict[str, Any], write_video: bool) -> None:
    import json

    from borelli.files.atomic import write_atomic
    from borelli.files.netcdf_writer import write_netcdf
    from borelli.view.picture import side_view, strobe
    from borelli.view.plots import plot
    from borelli.view.video import AZIMUTH, video

    write_netcdf(folder / "animation.nc", {"/": data})
    write_atomic(json.dumps(finite(summary), indent=1, allow_nan=False) + "\n", folder / "summary.json")
    plot(data, folder / "deviation.png")
    azimuth, distance = side_view(data)
    if distance < MIN_POSE_SPACING:
        strobe(data, folder / "animation.png", count=IMAGE_POSES)
        azimuth = AZIMUTH
    else:  # the poses of a walking subject are spread along its path
        spread = max(0.0, MIN_POSE_SPACING - distance / (IMAGE_POSES - 1))
        strobe(data, folder / "animation.png", count=IMAGE_POSES, spread=spread, azimuth=azimuth)
    if write_video:
        with progress_bar("drawing") as update:
            video(data, folder / "animation.gif", azimuth=azimuth + VIDEO_ANGLE, progress=update)
