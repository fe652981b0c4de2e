"""The verb `clean`."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from borelli.commands.console import err, print_json, print_marked, show_title
from borelli.commands.options import Force, Forces, Forward, Json, Skeleton, Units, Up, check_target, read_with
from borelli.errors import SettingsError, unknown_name

if TYPE_CHECKING:
    from borelli.recording.recording import Recording


def clean(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A recording.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write: .c3d .trc .mot .sto .csv .bvh .nc")],
    cutoff: Annotated[float, typer.Option(help="Low-pass of markers [Hz], 4th order, no lag; 0: none.")] = 6.0,
    gap: Annotated[float, typer.Option(help="Longest gap bridged by a cubic \\[s].")] = 0.1,
    rigid: Annotated[float, typer.Option(help="Longest gap filled from the segment's other markers \\[s].")] = 1.0,
    rate: Annotated[float | None, typer.Option(help="New rate of the frames [Hz].")] = None,
    threshold: Annotated[float, typer.Option(help="Force below which a plate counts as empty [N].")] = 20.0,
    plate_cutoff: Annotated[float, typer.Option("--plate-cutoff", help="Low-pass of plates [Hz]; 0: none.")] = 0.0,
    sides: Annotated[bool, typer.Option("--sides", help="Exchange left and right in all names.")] = False,
    swap: Annotated[list[str] | None, typer.Option(help="Two markers or plates to swap: A,B. May be repeated.")] = None,
    events: Annotated[str | None, typer.Option(help="Find gait events: plates, markers or auto.")] = None,
    start: Annotated[float, typer.Option(help="Cut off what is before \\[s].")] = -inf,
    stop: Annotated[float, typer.Option(help="Cut off what is after \\[s].")] = inf,
    swaps: Annotated[bool, typer.Option(help="Put back markers that trade places.")] = True,
    spikes: Annotated[bool, typer.Option(help="Take out leaps of up to three frames.")] = True,
    zero: Annotated[bool, typer.Option(help="Take off what plates show while empty.")] = True,
    feet: Annotated[bool, typer.Option(help="Give the plates' loads to the feet.")] = True,
    forces: Forces = None,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Fill gaps, undo swaps and spikes, smooth, zero plates; write the result and show each change."""
    check_target(target, (source, forces, skeleton), force=force)
    from borelli.commands.conversion_losses import lost
    from borelli.recording.clean import changes
    from borelli.recording.clean import clean as cleaned
    from borelli.recording.io import write_recording

    with err.status("reading and cleaning"):
        recording = read_with(source, units=units, up=up, forward=forward, skeleton=skeleton, forces=forces)
        result = cleaned(
            _exchanged(recording, swap or []),
            sides=sides, swaps=swaps, spikes=spikes, max_spline_gap=gap, max_rigid_gap=rigid, cutoff=cutoff or None,
            rate=rate, zero=zero, threshold=threshold, plate_cutoff=plate_cutoff or None, feet=feet, events=events,
            start=start, stop=stop,
        )  # fmt: skip
        write_recording(result, target)
        missing = lost(result, target)
    if json:
        done = [note.text for note in changes(result)]
        print_json({"in": str(source), "out": str(target), "changes": done, "lost": missing})
        return
    show_title(target)
    print_marked([("changed", note.text) for note in changes(result)] or [("", "nothing was changed")])
    print_marked([("lost", what) for what in missing])


def _exchanged(recording: Recording, pairs: list[str]) -> Recording:
    from borelli.recording.cleaning.label_swaps import swap_markers
    from borelli.recording.forces.assign_to_feet import swap_plates

    for pair in pairs:
        names = [name.strip() for name in pair.split(",")]
        if len(names) != 2:
            raise SettingsError(f"--swap takes two names with a comma between, such as LKNE,RKNE, not {pair!r}")
        known = (*recording.markers, *recording.plates)
        for name in names:
            if name not in known:
                raise SettingsError(f"--swap: {unknown_name('marker or plate', name, known)}")
        swap = swap_plates if names[0] in recording.plates else swap_markers
        recording = swap(recording, *names)
    return recording
