"""The verb `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from borelli import __version__
from borelli.commands.console import COLORS, err, out, print_json, print_marked, print_pairs, show_title
from borelli.commands.options import Forces, Forward, Json, Skeleton, Units, Up, read_with
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from borelli.recording.quality_checks import Issue


def doctor(
    file: Annotated[Path | None, typer.Argument(help="A recording or a model; none: the installation.")] = None,
    model: Annotated[Path | None, typer.Option(help="A model whose markers the recording should have.")] = None,
    forces: Forces = None,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    json: Json = False,
) -> None:
    """Say what is wrong with a recording, with evidence and remedy; without FILE, check the installation.

    Exit code 1 if results would be wrong: a fault called an error, or a part of the installation that is missing.
    """
    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton, "forces": forces}
    if file is not None:
        sound = _examine_file(file, model, reading, json)
    elif model is not None or any(value is not None for value in reading.values()):
        raise SettingsError("no recording given: name the FILE that these options concern")
    else:
        sound = _examine_installation(json)
    if not sound:
        raise typer.Exit(1)


def _examine_file(file: Path, model_file: Path | None, reading: dict[str, Any], json: bool) -> bool:
    """Whether nothing in the file would make results wrong; what was found is printed."""
    from borelli.commands.detect_file import kind_of, open_file
    from borelli.model.io import read_model
    from borelli.recording.quality_checks import check_recording

    kind = kind_of(file)
    if kind != "recording":
        said = [f"--{name}" for name, value in (*reading.items(), ("model", model_file)) if value is not None]
        if said:
            raise SettingsError(f"{file}: holds a {kind}; {', '.join(said)} concern recordings")
        return _examine_model(file, kind, open_file(file).thing, json)
    with err.status("reading and looking"):
        model = None if model_file is None else read_model(model_file)
        faults = check_recording(read_with(file, **reading), model)
    if json:
        print_json({"file": str(file), "kind": kind, "faults": [asdict(fault) for fault in faults]})
    else:
        _show_faults(file, faults)
    return all(fault.severity != "error" for fault in faults)


def _examine_model(file: Path, kind: str, thing: Any, json: bool) -> bool:
    """Whether a model can be simulated; reading it has checked the rest. What its reader noticed is printed."""
    from borelli.commands.file_summary import why_not_simulated
    from borelli.model.model import Model

    model = getattr(thing, "model", thing)
    why = why_not_simulated(model) if isinstance(model, Model) else None
    notes = list(getattr(model, "notes", ()))
    if json:
        print_json({"file": str(file), "kind": kind, "why not simulated": why, "notes": notes})
        return why is None
    show_title(file, f": a {kind}, {'sound' if why is None else 'for inverse dynamics only'}")
    refused = [] if why is None else [("error", f"simulation refuses it: {why}")]
    print_marked(refused + [("note", note) for note in notes])
    return why is None


def _show_faults(file: Path, faults: tuple[Issue, ...]) -> None:
    counts = {word: sum(fault.severity == word for fault in faults) for word in ("error", "warning", "note")}
    said = ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for word, n in counts.items() if n) or "nothing found wrong"
    show_title(file, f": {said}")
    for fault in faults:
        color = COLORS[fault.severity]
        out.print(f"\n[bold {color}]{fault.severity}[/]  [bold]{escape(fault.text)}[/]", highlight=False)
        lines = {"where": fault.where, "evidence": fault.evidence, "action": fault.action}
        print_pairs({name: text for name, text in lines.items() if text}, indent=2)


def _examine_installation(json: bool) -> bool:
    from borelli.installation_check import examine

    with err.status("looking") as status:
        findings = examine(status.update)
    if json:
        print_json({finding.text: {"ok": finding.ok, "found": finding.found} for finding in findings})
    else:
        table = Table("", "", "found", title=f"borelli {__version__}", title_justify="left")
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.needed else "[yellow]--[/]"
            table.add_row(mark, finding.text, escape(finding.found))
        out.print(table)
    return all(finding.ok or not finding.needed for finding in findings)
