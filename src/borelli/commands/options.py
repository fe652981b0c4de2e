"""Options that several verbs share, and what guards a user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from borelli.errors import SettingsError

if TYPE_CHECKING:
    from borelli.recording.recording import Recording

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that exists; never the one that is read.")]
Units = Annotated[str | None, typer.Option(help="Unit of the file's lengths: m, cm, mm, in, or metres per unit.")]
Up = Annotated[str | None, typer.Option(help="The file's axis that points up: +Y, +Z, -X...")]
Forward = Annotated[str | None, typer.Option(help="The file's axis to be turned into x; auto: the way walked.")]
Forces = Annotated[Path | None, typer.Option(help="A second file with the plates, such as a .mot beside a .trc.")]
Skeleton = Annotated[Path | None, typer.Option(help="The .asf of an .amc, if it is not the one beside it.")]


def read_with(
    file: Path,
    *,
    units: str | None = None,
    up: str | None = None,
    forward: str | None = None,
    skeleton: Path | None = None,
    forces: Path | None = None,
) -> Recording:
    """The recording in a file, read as the user's options say; with the plates of a second file if one is given."""
    from borelli.recording.forces.assign_to_feet import add_plates
    from borelli.recording.io import read_recording

    options: dict[str, Any] = {} if skeleton is None else {"skeleton": skeleton}
    recording = read_recording(file, units=units, up=up, forward=forward, **options)
    return recording if forces is None else add_plates(recording, read_recording(forces))


def check_target(target: Path, sources: Sequence[Path | None], *, force: bool) -> None:
    """Refuse to write over a file that is read, over another without `force`, or into a folder that is not there.

    Raises:
        SettingsError: naming the file and what to do.
    """
    if not target.absolute().parent.is_dir():
        raise SettingsError(f"{target}: the folder {target.parent} does not exist; make it first")
    if target.is_dir():
        raise SettingsError(f"{target}: is a folder; give the name of a file")
    if not target.exists():
        return
    if any(source is not None and source.exists() and target.samefile(source) for source in sources):
        raise SettingsError(f"{target}: is the file that is read; write to another name")
    if not force:
        raise SettingsError(f"{target}: exists already; give another name, or --force to replace it")
