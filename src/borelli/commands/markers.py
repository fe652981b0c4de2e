"""The subcommand `markers`: what the labels of a recording mean."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands import options
from borelli.commands.console import err, note_lines, out, print_json, print_line, print_marked, show_title
from borelli.commands.options import check_target, option, read_with

if TYPE_CHECKING:
    from borelli.recording.labels.interpret import LabelReadings


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
    from borelli.analysis.labeling.recording_labels import check_marker_labels, read_by_geometry
    from borelli.commands.compile_notice import compile_once
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
        notes = [note for note in check_marker_labels(recording).notes if note not in recording.notes]
    if write is not None:
        write_marker_map(result.readings, write, overwrite=force)
    if picture is not None:
        from borelli.view.marker_plot import marker_figure
        from borelli.view.plot_style import save_figure

        save_figure(marker_figure(recording, result.readings), picture, overwrite=force)
    if json:
        values = {
            "file": str(file), "markers": [asdict(reading) for reading in result.readings],
            "conventions": dict(result.conventions), "keypoints": result.keypoints,
            "notes": [asdict(note) for note in notes],
        }  # fmt: skip
        print_json(values)
        return
    _show(file, result)
    print_marked(note_lines(notes))
    for target in (write, picture):
        if target is not None:
            print_line(f"Written: {target}")


def _show(file: Path, result: LabelReadings) -> None:
    show_title(file)
    table = Table("label", "landmark", "side", "segment", "kind", "certainty", "evidence")
    for one in result.readings:
        cells = (one.label, one.landmark or "-", one.side if one.landmark else "-", one.segment or "-", one.kind)
        certainty = f"{one.certainty:.2f}" if one.landmark else "-"
        table.add_row(*map(escape, cells), certainty, escape(one.evidence))
    out.print(table)
    sure = sum(one.sure for one in result.known)
    best = ", ".join(f"{name} ({100.0 * fraction:.0f} %)" for name, fraction in result.conventions[:3])
    print_line(f"{len(result.known)} of {len(result.readings)} labels are read, {sure} of them with certainty.")
    if best:
        print_line(f"Conventions that contain most labels: {best}.")
    for group in result.duplicates:
        print_line(f"The labels {', '.join(group)} mean the same landmark.")
