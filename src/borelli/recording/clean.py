"""Cleaning of a recording: each step has a stated default, each change is a note."""

from __future__ import annotations

import numpy as np

from borelli.recording.cleaning.filtering import CUTOFF, crop, lowpass_filter, repair_time_stamps, resample
from borelli.recording.cleaning.gaps import MAX_RIGID_GAP, MAX_SPLINE_GAP, fill_gaps, zeros_as_missing
from borelli.recording.cleaning.label_swaps import repair_label_swaps, swap_sides
from borelli.recording.cleaning.spikes import remove_spikes
from borelli.recording.forces.assign_to_feet import assign_plates, threshold_plates, zero_plates
from borelli.recording.forces.gait_events import add_events
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording


def clean(
    recording: Recording,
    *,
    time_stamps: bool = True,
    zeros: bool = True,
    sides: bool = False,
    label_swaps: bool = True,
    spikes: bool = True,
    max_spline_gap: float = MAX_SPLINE_GAP,
    max_rigid_gap: float = MAX_RIGID_GAP,
    plate_offsets: bool = True,
    cutoff: float | None = CUTOFF,
    rate: float | None = None,
    threshold: float = MIN_PLATE_FORCE,
    plate_cutoff: float | None = None,
    feet: bool = True,
    events: str | None = None,
    start: float = -np.inf,
    end: float = np.inf,
) -> Recording:
    """Return the recording after the steps below, in this order; notes of kind "changed" list the changes.

    Args:
        recording: Recording to clean; it is not modified.
        time_stamps: Recompute rounded time stamps from the rate.
        zeros: Treat markers at exactly the origin as missing.
        sides: Swap left and right in all names.
        label_swaps: Repair swapped marker labels.
        spikes: Remove spikes of up to three frames.
        max_spline_gap: Longest gap [s] interpolated by a cubic.
        max_rigid_gap: Longest gap [s] filled from other markers of the segment; longer gaps stay open.
        plate_offsets: Subtract the offset of unloaded force plates.
        cutoff: Low-pass cutoff for markers [Hz], 4th order, zero lag; None for no filter.
        rate: New frame rate [Hz]; None keeps it.
        threshold: Normal force [N] below which a plate counts as unloaded.
        plate_cutoff: Low-pass cutoff for plate forces [Hz]; None for no filter.
        feet: Assign each plate load to a foot.
        events: "plates", "markers" or "auto" to replace the file's events by detected gait events; None keeps them.
        start: Discard frames before this time [s].
        end: Discard frames after this time [s].

    Examples:
        >>> recording = bo.clean(bo.synthetic_recording("walk").recording)
        >>> {note.kind for note in recording.notes} >= {"changed"}
        True
    """
    result = repair_time_stamps(recording) if time_stamps else recording
    del recording  # of a long one, so that no more than two copies of its markers exist at a time
    result = zeros_as_missing(result) if zeros else result
    result = swap_sides(result) if sides else result
    result = repair_label_swaps(result) if label_swaps else result
    result = remove_spikes(result) if spikes else result
    result = fill_gaps(result, max_spline_gap=max_spline_gap, max_rigid_gap=max_rigid_gap)
    result = zero_plates(result) if plate_offsets else result
    result = lowpass_filter(result, cutoff=cutoff, plate_cutoff=plate_cutoff)
    result = resample(result, rate) if rate is not None else result
    result = threshold_plates(result, threshold)
    result = assign_plates(result) if feet else result
    result = add_events(result, events) if events is not None else result
    if np.isfinite(start) or np.isfinite(end):
        result = crop(result, start, end)
    return result


def changes(recording: Recording) -> tuple[Note, ...]:
    """Return the notes on changes to the content of the file, in order.

    Args:
        recording: Recording that was read or cleaned.
    """
    return tuple(note for note in recording.notes if note.kind == "changed")
