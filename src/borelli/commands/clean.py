"""The subcommand `clean`."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from borelli.commands import options
from borelli.commands.console import err, note_lines, print_json, print_marked, reading_notes, show_title
from borelli.commands.options import check_target, option, read_with
from borelli.errors import SettingsError, unknown_name

if TYPE_CHECKING:
    from borelli.recording.recording import Recording


def clean(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Recording to clean.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="Output file: .c3d, .trc, .mot, .sto, .csv, .bvh or .nc.")
    ],
    cutoff: Annotated[
        float,
        option("Low-pass cutoff for markers [Hz] (4th order, zero lag); 0 turns the filter off. Default: 6 Hz.", "HZ"),
    ] = 6.0,
    max_spline_gap: Annotated[float, option("Longest gap filled by a cubic spline [s]. Default: 0.1 s.", "S")] = 0.1,
    max_rigid_gap: Annotated[
        float, option("Longest gap filled from other markers of the segment [s]. Default: 1 s.", "S")
    ] = 1.0,
    rate: Annotated[float | None, option("New frame rate [Hz]. Default: that of the recording.", "HZ")] = None,
    threshold: Annotated[float, option("Force below which a plate is unloaded [N]. Default: 20 N.", "N")] = 20.0,
    plate_cutoff: Annotated[
        float, option("Low-pass cutoff for plate forces [Hz]; 0 turns the filter off. Default: 0 Hz.", "HZ")
    ] = 0.0,
    swap_sides: Annotated[bool, option("Swap left and right in all marker names.", None, "--swap-sides")] = False,
    swap: Annotated[list[str] | None, option("Swap two markers or plates. Repeatable.", "A,B")] = None,
    events: Annotated[
        str | None, option("Detect gait events from plates, markers or auto. Default: events of the file.", "SOURCE")
    ] = None,
    start: options.Start = -inf,
    end: options.End = inf,
    fix_swaps: Annotated[bool, option("Repair swapped marker labels. Default: on.")] = True,
    remove_spikes: Annotated[bool, option("Remove marker spikes of up to three frames. Default: on.")] = True,
    zero_plates: Annotated[bool, option("Subtract the offset of unloaded force plates. Default: on.")] = True,
    assign_feet: Annotated[bool, option("Assign each plate load to a foot. Default: on.")] = True,
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
    """Clean a recording and list each change.

    Fills gaps, repairs swapped labels and spikes, filters, and zeroes plates.
    """
    check_target(target, (source, forces, skeleton, markers), force=force)
    from borelli.commands.conversion_losses import conversion_losses
    from borelli.recording.clean import changes
    from borelli.recording.clean import clean as clean_recording
    from borelli.recording.io import write_recording

    with err.status("reading and cleaning"):
        recording = read_with(
            source, units=units, up=up, forward=forward, skeleton=skeleton, markers=markers, marker_set=marker_set,
            forces=forces,
        )  # fmt: skip
        result = clean_recording(
            _swap_pairs(recording, swap or []),
            sides=swap_sides, label_swaps=fix_swaps, spikes=remove_spikes, max_spline_gap=max_spline_gap,
            max_rigid_gap=max_rigid_gap, cutoff=cutoff or None, rate=rate, plate_offsets=zero_plates,
            threshold=threshold, plate_cutoff=plate_cutoff or None, feet=assign_feet, events=events,
            start=start, end=end,
        )  # fmt: skip
        write_recording(result, target, overwrite=force)
        losses = conversion_losses(result, target)
    read = [note for note in reading_notes(recording) if note.kind != "changed"]
    if json:
        texts = {"changes": [note.text for note in changes(result)], "notes": [note.text for note in read]}
        print_json({"in": str(source), "out": str(target), **texts, "lost": losses})
        return
    show_title(target)
    print_marked(note_lines(read))
    print_marked([("changed", note.text) for note in changes(result)] or [("", "No changes.")])
    print_marked([("lost", text) for text in losses])


def _swap_pairs(recording: Recording, pairs: list[str]) -> Recording:
    from borelli.recording.cleaning.label_swaps import swap_markers
    from borelli.recording.forces.assign_to_feet import swap_plates

    for pair in pairs:
        names = [name.strip() for name in pair.split(",")]
        if len(names) != 2:
            raise SettingsError(f"--swap: Expected two names such as LKNE,RKNE, got {pair!r}.")
        known = (*recording.markers, *recording.plates)
        for name in names:
            if name not in known:
                raise SettingsError(f"--swap: {unknown_name('marker or plate', name, known)}")
        swap = swap_plates if names[0] in recording.plates else swap_markers
        recording = swap(recording, *names)
    return recording
