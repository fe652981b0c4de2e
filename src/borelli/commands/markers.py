"""The subcommand `markers`: what the labels of a recording mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands import options
from borelli.commands.console import (
    compile_once,
    err,
    note_lines,
    out,
    print_json,
    print_line,
    print_marked,
    show_title,
)
from borelli.commands.options import check_target, option, read_with
from borelli.errors import list_names

if TYPE_CHECKING:
    from borelli.recording.labels.interpret import LabelReading, LabelReadings

SEGMENTS = ("head", "torso", "pelvis", "upper_arm", "forearm", "hand", "thigh", "shank", "foot")
"""Segments in the order of the table."""
NOT_USED = {
    "virtual center": "computed joint centers",
    "axis": "axes of segments",
    "quantity": "quantities",
    "unnamed": "points without a name",
    "unused": "labels that the map leaves out",
    "unknown": "unknown labels",
}
"""Kinds of labels that are not used as markers, in words."""
MAX_LISTED_LABELS = 24


def is_used(reading: LabelReading, *, keypoints: bool) -> bool:
    """Return whether a label names a landmark of the body; computed joint centers count in files of joints only."""
    return bool(reading.landmark) and (reading.kind != "virtual center" or keypoints)


def markers(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Recording whose labels are read.")],
    write: Annotated[Path | None, option("Write a marker map that can be edited (.toml).", "FILE")] = None,
    picture: Annotated[
        Path | None, option("Draw the markers with their landmarks: .png, .pdf or .svg.", "FILE")
    ] = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """List what the labels of a recording mean.

    Each label has a landmark, its side and segment, a certainty from 0 to 1, and the evidence for it. A map written
    with --write can be edited and passed to other commands with --markers. Labels such as `0001` and
    `*12` are read from the positions of their markers.
    """
    from borelli.analysis.labeling.recording_labels import find_label_problems, read_by_geometry
    from borelli.recording.joint_center_markers import use_joint_centers_as_markers
    from borelli.recording.labels.interpret import interpret_labels
    from borelli.recording.marker_map import write_marker_map

    for target in (write, picture):
        if target is not None:
            check_target(target, (file, markers, skeleton), force=force)
    compile_once(file, markers, skeleton)
    with err.status("reading and checking"):
        recording = use_joint_centers_as_markers(
            read_with(
                file, units=units, up=up, forward=forward, skeleton=skeleton, markers=markers, marker_set=marker_set
            )
        )
        result = interpret_labels(recording.markers)
        by_geometry = {one.label: one for one in read_by_geometry(recording)}
        result = replace(result, readings=tuple(by_geometry.get(one.label, one) for one in result.readings))
        problems = find_label_problems(recording)
    if write is not None:
        write_marker_map(result.readings, write, overwrite=force)
    if picture is not None:
        from borelli.view.marker_plot import marker_figure
        from borelli.view.plot_style import save_figure

        save_figure(marker_figure(recording, result), picture, overwrite=force)
    if json:
        values = {
            "file": str(file), "markers": [asdict(reading) for reading in result.readings],
            "conventions": dict(result.conventions), "keypoints": result.keypoints,
            "problems": [asdict(problem) for problem in problems],
            "notes": [asdict(note) for note in recording.notes],
        }  # fmt: skip
        print_json(values)
        return
    _show(file, result)
    print_marked([(one.severity, f"{one.evidence} [{one.action}]") for one in problems])
    print_marked(note_lines([note for note in recording.notes if note.kind == "problem"]))
    for target in (write, picture):
        if target is not None:
            print_line(f"Written: {target}")


def _show(file: Path, result: LabelReadings) -> None:
    """Print the labels that name landmarks by segment, evidence for those that are not certain, and other labels."""
    used = [one for one in result.readings if is_used(one, keypoints=result.keypoints)]
    sure = sum(one.sure for one in used)
    show_title(file, f": {len(used)} of {len(result.readings)} labels name landmarks, {sure} of them with certainty")
    if used:
        out.print()
        out.print(_table(used))
        out.print()
    uncertain: dict[str, list[str]] = {}
    for one in used:
        if not one.sure:
            uncertain.setdefault(_evidence(one), []).append(one.label)
    lines = [("not certain", f"{', '.join(labels)}: {text}.") for text, labels in uncertain.items()]
    lines += [("not certain", f"{', '.join(group)} mean the same landmark.") for group in result.duplicates]
    for kind, words in NOT_USED.items():
        others = [one.label for one in result.readings if one.kind == kind and one not in used]
        if others:
            lines.append(("not used", f"{len(others)} {words}: {list_names(others, MAX_LISTED_LABELS)}"))
    best = ", ".join(f"{name} ({100.0 * fraction:.0f} %)" for name, fraction in result.conventions[:3])
    if best:
        lines.append(("note", f"Conventions that contain most labels: {best}."))
    print_marked(lines)


def _table(used: Sequence[LabelReading]) -> Table:
    """Return a table with one line for each label, from the head to the feet."""
    table = Table("segment", "label", "side", "landmark", "certainty", box=None, padding=(0, 2, 0, 0))
    order = {name: i for i, name in enumerate(SEGMENTS)}
    sides = ("middle", "left", "right")
    ranked = sorted(used, key=lambda one: (order.get(one.segment, len(order)), one.landmark, sides.index(one.side)))
    before = ""
    for one in ranked:
        segment, before = one.segment if one.segment != before else "", one.segment
        kind = "" if one.kind == "landmark" else f" ({one.kind})"
        color = "green" if one.sure else "yellow"
        side = one.side if one.side != "middle" else ""
        table.add_row(
            segment, escape(one.label), side, escape(f"{one.landmark}{kind}"), f"[{color}]{one.certainty:.2f}[/]"
        )
    return table


def _evidence(one: LabelReading) -> str:
    """Return the evidence for a reading that is not certain, and the next reading."""
    if not one.others:
        return one.evidence
    other, certainty = one.others[0]
    side = "" if other.side == "middle" else f"{other.side} "
    return f"{one.evidence}; or {side}{other.landmark} ({certainty:.2f})"
