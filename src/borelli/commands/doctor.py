"""The subcommand `doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from borelli import __version__
from borelli.commands import options
from borelli.commands.console import COLORS, compile_once, err, out, print_json, print_marked, print_pairs, show_title
from borelli.commands.options import given_options, option, read_with
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from borelli.recording.quality_checks import Issue


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Recording or model to check. Default: the installation.", show_default=False
        ),
    ] = None,
    model: Annotated[Path | None, option("Model whose markers the recording must have.", "FILE")] = None,
    forces: options.Forces = None,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    json: options.Json = False,
) -> None:
    """Check a recording, a model or the installation.

    Each issue is listed with its evidence and what to do about it. Labels are compared with the positions of the
    markers. The exit code is 1 if results would be wrong: an issue of severity "error", or a required package that is
    missing.
    """
    reading = {
        "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
        "marker_set": marker_set, "forces": forces,
    }  # fmt: skip
    if file is not None:
        passed = _check_file(file, model, reading, json)
    elif given := given_options(reading | {"model": model}):
        raise SettingsError(f"{given}: No recording is given. Add the FILE to check.")
    else:
        passed = _check_installation(json)
    if not passed:
        raise typer.Exit(1)


def _check_file(file: Path, model_file: Path | None, reading: dict[str, Any], json: bool) -> bool:
    """Print the issues of a file; return whether there is no error."""
    from borelli.commands.detect_file import detect_kind, open_file
    from borelli.commands.label_issues import label_issues
    from borelli.model.io import read_model
    from borelli.recording.quality_checks import check_recording, sort_issues

    kind = detect_kind(file)
    if kind != "recording":
        if given := given_options(reading | {"model": model_file}):
            raise SettingsError(f"{file}: The file contains a {kind}; {given} apply to recordings only.")
        return _check_model(file, kind, open_file(file).value, json)
    with err.status("reading and checking"):
        model = None if model_file is None else read_model(model_file)
        recording = read_with(file, **reading)
        issues = check_recording(recording, model)
    if recording.markers:
        compile_once()
        with err.status("comparing labels with positions; points without names take up to half a minute"):
            issues = sort_issues((*issues, *label_issues(recording, issues)))
    if json:
        print_json({"file": str(file), "kind": kind, "issues": [asdict(issue) for issue in issues]})
    else:
        _show_issues(file, issues)
    return all(issue.severity != "error" for issue in issues)


def _check_model(file: Path, kind: str, value: Any, json: bool) -> bool:
    """Print whether a model can be simulated, and its notes; reading it has checked the rest."""
    from borelli.commands.file_summary import simulation_problem
    from borelli.model.model import Model

    model = getattr(value, "model", value)
    problem = simulation_problem(model) if isinstance(model, Model) else None
    notes = list(getattr(model, "notes", ()))
    if json:
        print_json({"file": str(file), "kind": kind, "simulation problem": problem, "notes": notes})
        return problem is None
    show_title(file, f": {kind}, {'no issues' if problem is None else 'inverse dynamics only'}")
    errors = [] if problem is None else [("error", f"The model cannot be simulated: {problem}")]
    print_marked(errors + [("note", note) for note in notes])
    return problem is None


def _show_issues(file: Path, issues: tuple[Issue, ...]) -> None:
    counts = {
        severity: sum(issue.severity == severity for issue in issues) for severity in ("error", "warning", "note")
    }
    text = ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for word, n in counts.items() if n) or "no issues"
    show_title(file, f": {text}")
    for issue in issues:
        color = COLORS[issue.severity]
        out.print(f"\n[bold {color}]{issue.severity}[/]  [bold]{escape(issue.text)}[/]", highlight=False)
        lines = {"where": issue.where, "evidence": issue.evidence, "action": issue.action}
        print_pairs({name: line for name, line in lines.items() if line}, indent=2)


def _check_installation(json: bool) -> bool:
    from borelli.installation_check import check_installation

    with err.status("checking") as status:
        findings = check_installation(status.update)
    if json:
        print_json({finding.name: {"ok": finding.ok, "found": finding.result} for finding in findings})
    else:
        table = Table("", "", "result", title=f"borelli {__version__}", title_justify="left")
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.required else "[yellow]--[/]"
            table.add_row(mark, finding.name, escape(finding.result))
        out.print(table)
    return all(finding.ok or not finding.required for finding in findings)
