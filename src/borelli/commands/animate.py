"""The verb `animate`: a motion becomes a character that can be pushed, loaded and weakened."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borelli.commands.analyze import Cutoff, Height, Mass, ModelFile, Sex, Start, Stop
from borelli.commands.console import bar, err, finite, print_figures, print_json, print_marked, say
from borelli.commands.options import Forward, Json, Skeleton, Units, Up
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from xarray import Dataset

Pushes = Annotated[list[str] | None, typer.Option("--push", help='"pelvis 200N 0.1s left at 1.2s"')]
Loads = Annotated[list[str] | None, typer.Option("--carry", help='"hand_r 5kg", with hanging or outside')]
Weak = Annotated[list[str] | None, typer.Option("--weaken", help='"knee_flexion_r 30% at 1s": what is left of it')]
Obstacles = Annotated[list[str] | None, typer.Option("--obstacle", help='"box 0.4x0.4x0.2m on 1,0,0.1 from 0s to 2s"')]
Moves = Annotated[list[str] | None, typer.Option("--move-ground", help='"0.2m left 0.4s at 1s"')]

SHOWN = 6
"""Instants in the picture."""
APART = 0.9
"""How far figures are apart in it [m], at least."""
TURNED = 20.0
"""By how much the movie is seen from more ahead than from the side [degrees]."""


def animate(
    motion: Annotated[Path, typer.Argument(metavar="MOTION", help="A .bvh, .amc, .c3d, motion.nc, .mot with --model.")],
    folder: Annotated[Path, typer.Option("--out", "-o", help="Where the results go.")] = Path("animation"),
    model: ModelFile = None,
    push: Pushes = None,
    carry: Loads = None,
    weaken: Weak = None,
    obstacle: Obstacles = None,
    move_ground: Moves = None,
    ground: Annotated[bool, typer.Option(help="Let it touch the ground; else that is only drawn.")] = False,
    settle: Annotated[float, typer.Option(help="Settling time of joints \\[s].")] = 0.3,
    root_settle: Annotated[float, typer.Option(help="Settling time of the root \\[s].")] = 0.6,
    root_force: Annotated[float, typer.Option(help="Most that leads the root \\[body weights].")] = 3.0,
    root_torque: Annotated[float, typer.Option(help="Most that turns the root \\[body weights x m].")] = 1.0,
    step: Annotated[float, typer.Option(help="Length of a step \\[s].")] = 1 / 240,
    cutoff: Cutoff = None,
    start: Start = -inf,
    stop: Stop = inf,
    mass: Mass = None,
    height: Height = None,
    sex: Sex = None,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    movie: Annotated[bool, typer.Option("--video/--no-video", help="Write the movie, which takes longest.")] = True,
    json: Json = False,
) -> None:
    """Turn a motion into a character that follows it, gives way when disturbed, and comes back."""
    from borelli.commands.compile_notice import compile_once
    from borelli.commands.load_motion import motion_of
    from borelli.control.animate import TrackingSettings
    from borelli.control.animate import animate as play
    from borelli.control.parse_perturbations import parse_perturbation
    from borelli.pipeline.analysis_settings import AnalysisSettings

    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file, but results go into a folder: name another with --out")
    tracking = TrackingSettings(settle, root_settle, root_force, root_torque, ground or bool(move_ground))
    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton}
    plan = AnalysisSettings(model=model, mass=mass, height=height, sex=sex, start=start, stop=stop, reading=reading)
    compile_once(motion, model, skeleton, control=True)
    with err.status("reading the motion"):
        followed = motion_of(motion, plan)
    said = {"push": push, "carry": carry, "weaken": weaken, "obstacle": obstacle, "move-ground": move_ground}
    disturbances = [
        parse_perturbation(kind, text, followed.model) for kind, texts in said.items() for text in texts or ()
    ]
    with bar("animating") as move:
        found = play(followed, disturbances, tracking=tracking, step=step, cutoff=cutoff, progress=move)
    notes = (*followed.notes, *found.notes)
    texts = {kind: list(text) for kind, text in said.items() if text}
    about: dict[str, Any] = {"motion": str(motion), **texts, **found.metrics, "notes": [note.text for note in notes]}
    _write(found.data, folder, about, movie)
    if json:
        print_json(about)
        return
    shown = {name: "no" if value is None else value for name, value in found.metrics.items()}
    print_figures(motion.name, shown)
    print_marked([(note.kind if note.kind != "stated" else "note", note.text) for note in notes])
    say(f"results are in {folder}")


def _write(data: Dataset, folder: Path, about: dict[str, Any], movie: bool) -> None:
    import json

    from borelli.files.atomic import atomic_path, write_atomic
    from borelli.view.picture import beside, strobe, upright
    from borelli.view.plots import plot_deviation
    from borelli.view.video import AZIMUTH, video

    folder.mkdir(parents=True, exist_ok=True)
    with atomic_path(folder / "animation.nc") as temporary:
        data.to_netcdf(temporary, engine="h5netcdf")
    write_atomic(json.dumps(finite(about), indent=1, allow_nan=False) + "\n", folder / "summary.json")
    plot_deviation(data, folder / "deviation.png")
    data = upright(data)
    azimuth, way = beside(data)
    if way < APART:
        strobe(data, folder / "animation.png", count=SHOWN)
        azimuth = AZIMUTH
    else:  # who walks goes from figure to figure
        spread = max(0.0, APART - way / (SHOWN - 1))
        strobe(data, folder / "animation.png", count=SHOWN, spread=spread, azimuth=azimuth)
    if movie:
        with bar("drawing") as move:
            video(data, folder / "animation.gif", azimuth=azimuth + TURNED, progress=move)
