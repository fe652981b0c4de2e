"""A recording cleaned: each step with a stated default, each change a note in the result."""

from __future__ import annotations

import numpy as np

from borelli.recording.cleaning.filtering import CUTOFF, crop, lowpass_filter, repair_time_stamps, resample
from borelli.recording.cleaning.gaps import RIGID_LIMIT, SPLINE_LIMIT, fill_gaps, zeros_as_missing
from borelli.recording.cleaning.label_swaps import repair_label_swaps, swap_sides
from borelli.recording.cleaning.spikes import remove_spikes
from borelli.recording.forces.assign_to_feet import assign_plates, threshold_plates, zero_plates
from borelli.recording.forces.gait_events import add_events
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording


def clean(
    recording: Recording,
    *,
    times: bool = True,
    zeros: bool = True,
    sides: bool = False,
    swaps: bool = True,
    spikes: bool = True,
    spline_limit: float = SPLINE_LIMIT,
    rigid_limit: float = RIGID_LIMIT,
    zero: bool = True,
    cutoff: float | None = CUTOFF,
    rate: float | None = None,
    threshold: float = MIN_PLATE_FORCE,
    plate_cutoff: float | None = None,
    feet: bool = True,
    events: str | None = None,
    start: float = -np.inf,
    stop: float = np.inf,
) -> Recording:
    """The recording after every step below, in this order; what was changed is in its notes, of kind "changed".

    Args:
        recording: What to clean; it is not changed itself.
        times: Restore rounded time stamps from the rate.
        zeros: Take markers at exactly the origin as not seen.
        sides: Exchange left and right in all names.
        swaps: Put back pairs of markers that trade places.
        spikes: Take out leaps of up to three frames.
        spline_limit: Longest gap [s] bridged by a cubic.
        rigid_limit: Longest gap [s] filled from the other markers of the segment; longer ones stay open.
        zero: Take off what plates show while empty.
        cutoff: Low-pass for markers [Hz], 4th order without lag; None for none.
        rate: New rate of the frames [Hz]; None keeps it.
        threshold: Normal force [N] below which a plate counts as empty.
        plate_cutoff: Low-pass for the forces of plates [Hz]; None for none.
        feet: Give the plates' loads to the feet that stood on them.
        events: "plates", "markers" or "auto" to find gait events in place of the file's; None keeps the file's.
        start: Time [s] to begin with; everything before is cut off.
        stop: Time [s] to end with.
    """
    result = repair_time_stamps(recording) if times else recording
    result = zeros_as_missing(result) if zeros else result
    result = swap_sides(result) if sides else result
    result = repair_label_swaps(result) if swaps else result
    result = remove_spikes(result) if spikes else result
    result = fill_gaps(result, spline_limit=spline_limit, rigid_limit=rigid_limit)
    result = zero_plates(result) if zero else result
    result = lowpass_filter(result, cutoff=cutoff, plate_cutoff=plate_cutoff)
    result = resample(result, rate) if rate is not None else result
    result = threshold_plates(result, threshold)
    result = assign_plates(result) if feet else result
    result = add_events(result, events) if events is not None else result
    if np.isfinite(start) or np.isfinite(stop):
        result = crop(result, start, stop)
    return result


def changes(recording: Recording) -> tuple[Note, ...]:
    """What was changed since the file was written, in order."""
    return tuple(note for note in recording.notes if note.kind == "changed")
