"""The subcommand `convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from borelli.commands import options
from borelli.commands.console import err, note_lines, print_json, print_marked, reading_notes, show_title
from borelli.commands.options import check_target, given_options, read_with
from borelli.errors import SettingsError


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Recording or model.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Recording (.c3d .trc .mot .sto .csv .bvh .nc) or model (.toml .osim .xml)."
        ),
    ],
    forces: options.Forces = None,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Convert a recording or a model to another format.

    What was inferred or repaired while reading, and content that the format cannot represent, are listed.
    """
    check_target(target, (source, forces, skeleton, markers), force=force)
    reading = {
        "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
        "marker_set": marker_set, "forces": forces,
    }  # fmt: skip
    with err.status("converting"):
        kind, notes, losses = _convert(source, target, reading, force)
    if json:
        values = {"in": str(source), "out": str(target), "kind": kind, "notes": [text for _, text in notes]}
        print_json(values | {"lost": losses})
        return
    show_title(target)
    print_marked(notes + ([("lost", text) for text in losses] or [("", "Nothing was lost.")]))


def _convert(
    source: Path, target: Path, reading: dict[str, Any], force: bool
) -> tuple[str, list[tuple[str, str]], list[str]]:
    """Write the target; return the kind of the content, how it was read, and what was lost."""
    from borelli.commands.detect_file import detect_kind

    kind = detect_kind(source)
    if kind == "recording":
        from borelli.commands.conversion_losses import conversion_losses
        from borelli.recording.io import write_recording

        recording = read_with(source, **reading)
        write_recording(recording, target, overwrite=force)
        return kind, note_lines(reading_notes(recording)), conversion_losses(recording, target)
    if given := given_options(reading):
        raise SettingsError(f"{source}: The file contains a {kind}; {given} apply to recordings only.")
    if kind != "model":
        raise SettingsError(f"{source}: The file contains a {kind}. Pass a recording or a model.")
    from borelli.commands.conversion_losses import model_losses
    from borelli.model.formats.parsing import LossNote
    from borelli.model.io import read_model, write_model

    model = read_model(source)
    stated = write_model(model, target, overwrite=force)
    notes = [("note", text) for text in model.notes if not isinstance(text, LossNote)]
    return kind, notes, model_losses(model, target, stated)
