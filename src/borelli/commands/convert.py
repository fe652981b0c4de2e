"""The verb `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from borelli.commands.console import err, print_json, print_marked, show_title
from borelli.commands.options import Force, Forces, Forward, Json, Skeleton, Units, Up, check_target, read_with
from borelli.errors import SettingsError


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A recording or a model.")],
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="A recording: .c3d .trc .mot .sto .csv .bvh .nc; a model: .toml .osim .xml"),
    ],
    forces: Forces = None,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a recording or a model in another format, and say what that format could not hold."""
    check_target(target, (source, forces, skeleton), force=force)
    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton, "forces": forces}
    with err.status("converting"):
        kind, missing = _converted(source, target, reading)
    if json:
        print_json({"in": str(source), "out": str(target), "kind": kind, "lost": missing})
        return
    show_title(target)
    print_marked([("lost", what) for what in missing] or [("", "nothing was lost")])


def _converted(source: Path, target: Path, reading: dict[str, Any]) -> tuple[str, list[str]]:
    """The kind of what was written, and what was lost."""
    from borelli.commands.detect_file import kind_of

    kind = kind_of(source)
    if kind == "recording":
        from borelli.commands.conversion_losses import lost
        from borelli.recording.io import write_recording

        recording = read_with(source, **reading)
        write_recording(recording, target)
        return kind, lost(recording, target)
    said = [f"--{name}" for name, value in reading.items() if value is not None]
    if said:
        raise SettingsError(f"{source}: holds a {kind}; {', '.join(said)} concern recordings")
    if kind != "model":
        raise SettingsError(f"{source}: holds a {kind}; recordings and models can be converted")
    from borelli.model.io import read_model, write_model

    return kind, list(write_model(read_model(source), target))
