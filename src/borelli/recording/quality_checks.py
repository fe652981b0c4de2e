"""Quality checks: problems of a recording, with evidence and a remedy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from borelli.errors import list_names
from borelli.model.marker_sets import list_marker_sets
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import repair_time_stamps
from borelli.recording.cleaning.gaps import MAX_RIGID_GAP, MAX_SPLINE_GAP, Gap, find_gaps
from borelli.recording.cleaning.label_swaps import find_sides, find_swaps, list_swapped_frames, swaps_by_pair
from borelli.recording.cleaning.spikes import find_spikes
from borelli.recording.forces.assign_to_feet import MAX_FOOT_DISTANCE, find_plate_swaps, plate_contacts
from borelli.recording.identify_marker_set import identify_marker_set, normalize_label
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.length_unit import UNITS, decide_unit
from borelli.recording.recording import Recording
from borelli.recording.units_and_axes import UNIT_CONFLICT, UP_CONFLICT, Conversion, to_file_axis
from borelli.recording.up_axis import contradicts, up_evidence

SEVERITIES = ("error", "warning", "note")
MIN_MODEL_FRACTION = 0.5
"""Least fraction of a model's markers that a matching recording contains."""
MIN_CLIPPED_SAMPLES = 5
"""Least number of consecutive equal samples at the end of a channel's range that count as clipping."""
MIN_LEVELS = 32
"""Channels with fewer distinct values are idle or switches."""


@dataclass(frozen=True)
class Issue:
    """Problem or noteworthy property of a recording.

    Attributes:
        code: Subject of the issue: "gap", "spike", "label_swap", "length_unit", "up_axis", "marker_set"...
        text: One sentence.
        where: Marker, plate, channel, frames or times concerned.
        evidence: Values that support it.
        action: Command or function that fixes it; "" if none is needed.
        severity: "error" (results will be wrong), "warning" (they may be), "note" (good to know).
    """

    code: str
    text: str
    where: str
    evidence: str
    action: str
    severity: str = "warning"


def check_recording(recording: Recording, model: Model | None = None) -> tuple[Issue, ...]:
    """Return all issues of a recording, errors first.

    Args:
        recording: Recording to check.
        model: If given, check also that the recording contains its markers.

    Examples:
        >>> issues = bo.check_recording(bo.synthetic_recording("walk").recording)
        >>> sorted({issue.code for issue in issues})
        ['gap']
    """
    issues = [issue for check in _CHECKS for issue in check(recording)]
    if model is not None:
        issues += _check_model(recording, model)
    codes = {issue.code for issue in issues}
    issues += [issue for issue in _reader_issues(recording) if issue.code not in codes]
    return sort_issues(issues)


def sort_issues(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    """Return the issues, errors first, then warnings and notes."""
    return tuple(sorted(issues, key=lambda issue: SEVERITIES.index(issue.severity)))


def check_prepared(recording: Recording) -> tuple[Issue, ...]:
    """Return the issues of a recording that `clean` prepared for an analysis: those that it cannot repair."""
    return tuple(issue for check in _PREPARED_CHECKS for issue in check(recording) if issue.severity != "note")


def _check_units(recording: Recording) -> Iterator[Issue]:
    conflict = next((note for note in recording.notes if note.code == UNIT_CONFLICT), None)
    if conflict is not None:
        yield Issue("length_unit", conflict.text, "all markers", "found while reading", conflict.action, "error")
        return
    original = Conversion.from_attributes(recording.data.attrs, "m")
    decision = decide_unit(_sample(recording) / original.scale, recording.markers, stated=original.units)
    if not decision.evidence or decision.unit == original.units:
        return
    text = f"Lengths are not in {original.units}, as assumed."
    evidence = decision.reason(original.units)
    action = f"--units ({', '.join(UNITS)}, or meters per unit)"
    if decision.unit:
        evidence += f"; with {decision.unit}, {decision.reason(decision.unit)}"
        action = f"--units {decision.unit}"
    yield Issue("length_unit", text, "all markers", evidence, action, "error")


def _check_up_axis(recording: Recording) -> Iterator[Issue]:
    conflict = next((note for note in recording.notes if note.code == UP_CONFLICT), None)
    if conflict is not None:
        yield Issue("up_axis", conflict.text, "all markers", "found while reading", conflict.action, "error")
        return
    data, points = recording.data, _sample(recording)
    corners = data["plate_corners"].values if "plate_corners" in data else None
    force = data["plate_force"].values[:: max(1, data.sizes["analog_time"] // 400)] if corners is not None else None
    evidence = up_evidence(
        points, recording.markers, corners=corners, force=None if force is None else force.reshape(-1, 3)
    )
    against = next((one for one in evidence if one.kind != "floor" and one.axis != "+Z"), None)
    if against is None:
        return
    opposed = contradicts(evidence, "+Z")
    axis, reason = (opposed.axis, opposed.reason) if opposed is not None else (against.axis, against.text)
    original = Conversion.from_attributes(data.attrs, "m")
    named = to_file_axis(axis, original)
    wrong = f"{original.up} of the file is not up."
    text = wrong if opposed is not None else "The body lies on the floor, or another axis is up."
    severity = "warning" if opposed is None else "error"
    reason = reason.replace(axis, named) + " of the file"
    yield Issue("up_axis", text, "all markers", reason, f"--up {named}", severity)


def _check_sides(recording: Recording) -> Iterator[Issue]:
    sides = find_sides(recording)
    if sides is None or not sides.reversed:
        return
    shown = ", ".join(f"{left}/{right}" for left, right in sides.reversed[:6])
    evidence = f"relative to the facing direction, {shown} are {1000.0 * sides.distance:.0f} mm on the wrong side"
    if sides.all_reversed:
        text = "Left and right are swapped in all names, or the axes are mirrored."
        action = "borelli clean --swap-sides, or swap_sides(recording)"
        yield Issue("left_right_labels", text, "all markers", evidence, action, "error")
    elif len(sides.reversed) < len(sides.consistent):
        for left, right in sides.reversed:
            text = f"{left} and {right} are swapped throughout."
            action = f'swap_markers(recording, "{left}", "{right}")'
            yield Issue("left_right_labels", text, f"{left}, {right}", evidence, action, "error")


def _check_label_swaps(recording: Recording) -> Iterator[Issue]:
    for (first, second), swaps in swaps_by_pair(find_swaps(recording)).items():
        text = f"The labels {first} and {second} are swapped."
        evidence = f"both jump by at least {1000.0 * min(swap.jump for swap in swaps):.0f} mm onto each other's path"
        action = "borelli clean, or repair_label_swaps(recording)"
        yield Issue("label_swap", text, list_swapped_frames(swaps), evidence, action, "error")


def _check_gaps(recording: Recording) -> Iterator[Issue]:
    gaps = [gap for gap in find_gaps(recording) if not gap.marker.startswith("*")]
    rate, frames = recording.rate, recording.frames
    never_visible = [gap.marker for gap in gaps if gap.frames == frames]
    if never_visible:
        evidence = f"{len(never_visible)} of {len(recording.markers)} markers have no position in any frame"
        text = "Some markers are missing in all frames."
        yield Issue("gap", text, list_names(never_visible), evidence, "select_markers omits them")
    long: dict[str, list[Gap]] = {}
    for gap in gaps:
        if gap.inside and gap.frames > MAX_SPLINE_GAP * rate + 0.5:
            long.setdefault(gap.marker, []).append(gap)
    for marker, own in long.items():
        longest = max(own, key=lambda gap: gap.frames)
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        too_long = longest.frames > MAX_RIGID_GAP * rate + 0.5
        text = f"{marker} is missing for {longest.frames / rate:.2f} s."
        where = f"{marker}, frames {longest.start} to {longest.stop - 1}{more}"
        evidence = f"{sum(gap.frames for gap in own)} frames in gaps over {MAX_SPLINE_GAP:g} s"
        action = "clean(max_rigid_gap=...)" if too_long else "borelli clean fills it from markers of its segment"
        yield Issue("gap", text, where, evidence, action)
    short = [gap for gap in gaps if gap.inside and gap.frames <= MAX_SPLINE_GAP * rate + 0.5]
    if short:
        evidence = f"{len(short)} gaps, {sum(gap.frames for gap in short)} frames in all"
        names = list_names(list(dict.fromkeys(gap.marker for gap in short)))
        text = f"There are gaps of up to {MAX_SPLINE_GAP:g} s."
        yield Issue("gap", text, names, evidence, "borelli clean interpolates them", "note")
    ends = [gap for gap in gaps if not gap.inside and gap.frames < frames]
    if ends:
        names = list_names(list(dict.fromkeys(gap.marker for gap in ends)))
        evidence = f"{len(ends)} gaps at the start or the end, the longest {max(gap.frames for gap in ends)} frames"
        text = "Some markers are missing at the start or the end."
        yield Issue("gap_at_ends", text, names, evidence, "borelli clean --start --end crops the recording", "note")


def _check_spikes(recording: Recording) -> Iterator[Issue]:
    spikes = find_spikes(recording)
    for name in dict.fromkeys(spike.marker for spike in spikes):
        own = [spike for spike in spikes if spike.marker == name]
        where = f"{name}, frame" + ("s " if len(own) > 1 else " ") + list_names([str(spike.start) for spike in own])
        evidence = f"up to {1000.0 * max(spike.height for spike in own):.0f} mm off its path, for at most 3 frames"
        yield Issue("spike", f"{name} has spikes.", where, evidence, "borelli clean, or remove_spikes(recording)")


def _check_zeros(recording: Recording) -> Iterator[Issue]:
    if "marker_position" not in recording.data:
        return
    zero = (recording.data["marker_position"].values == 0.0).all(axis=2)
    if zero.any():
        names = [recording.markers[i] for i in np.flatnonzero(zero.any(axis=0))]
        evidence = f"{int(zero.sum())} positions are exactly (0, 0, 0)"
        text = "Missing markers are written as the origin."
        yield Issue("zero_positions", text, list_names(names), evidence, "borelli clean", "error")


def _check_time_stamps(recording: Recording) -> Iterator[Issue]:
    repaired = next((note for note in recording.notes if note.code == "time_stamps_repaired"), None)
    if repaired is not None:
        text = "The time stamps of the file are rounded."
        yield Issue("time_stamps", text, "all frames", repaired.text, "repaired while reading", "note")
        return
    if recording.frames < 3 or "time" not in recording.data:
        return
    steps = np.diff(recording.data["time"].values)
    if np.ptp(steps) <= 1e-6 * np.median(steps):
        return
    evidence = f"steps from {1000.0 * steps.min():.4g} to {1000.0 * steps.max():.4g} ms"
    if repair_time_stamps(recording) is not recording:
        action = "borelli clean, or repair_time_stamps(recording)"
        yield Issue("time_stamps", "Time stamps are rounded.", "all frames", evidence, action, "error")
    else:
        yield Issue("time_stamps", "Time steps are uneven.", "all frames", evidence, "resample(recording, rate)")


def _check_labels(recording: Recording) -> Iterator[Issue]:
    readings = interpret_labels(recording.markers)
    unlabeled = [one.label for one in readings.readings if one.kind == "unnamed"]
    if unlabeled:
        evidence = f"{len(unlabeled)} of {len(recording.markers)} points"
        text = "Some points have no label."
        yield Issue("unlabeled_points", text, list_names(unlabeled), evidence, "select_markers", "note")
    unread = [one.label for one in readings.readings if one.kind == "unknown"]
    unsure = [one.label for one in readings.known if not one.sure]
    file = shlex.quote(str(recording.path or "FILE"))
    action = f"borelli markers {file} --write map.toml, edit it, and use --markers map.toml"
    best = (
        f"; {readings.conventions[0][0]} has {100.0 * readings.conventions[0][1]:.0f} %" if readings.conventions else ""
    )
    if unread:
        evidence = f"{len(unread)} of {len(recording.markers)} labels are in no known convention{best}"
        yield Issue("unknown_labels", "Some labels are unknown.", list_names(unread), evidence, action, "note")
    if unsure:
        evidence = f"{len(unsure)} of {len(readings.known)} labels that are read{best}"
        text = "The landmarks of some labels are not certain."
        yield Issue("unsure_labels", text, list_names(unsure), evidence, action, "note")


def _check_plates(recording: Recording) -> Iterator[Issue]:
    swapped = find_plate_swaps(recording)
    for pair in swapped:
        text, where = f"{pair.first} and {pair.second} are swapped.", f"{pair.first}, {pair.second}"
        evidence = f"loads are {pair.distance:.2f} m from the feet, {pair.swapped_distance:.2f} m if swapped"
        action = f'swap_plates(recording, "{pair.first}", "{pair.second}")'
        yield Issue("plate_swap", text, where, evidence, action, "error")
    known = {name for pair in swapped for name in (pair.first, pair.second)}
    for step in plate_contacts(recording):
        called = re.search(r"(?:^|[_ .])(left|right|l|r)(?:$|[_ .])", step.plate.lower())
        if called and step.side and called[1][0] != step.side[0]:
            text = f"{step.plate} supports the {step.side} foot."
            evidence = f"from {step.start:.2f} to {step.end:.2f} s the {step.side} foot is {step.distance:.2f} m away"
            action = "rename the plates, or swap their columns"
            yield Issue("plate_assignment", text, step.plate, evidence, action, "error")
        elif np.isfinite(step.distance) and step.distance > MAX_FOOT_DISTANCE and step.plate not in known:
            text = f"{step.plate} is loaded away from the feet."
            load = f"{step.peak:.0f} N, {step.distance:.2f} m from the nearer foot"
            evidence = f"{step.start:.2f} to {step.end:.2f} s: {load}"
            action = "check the corners and channels of the plate, and that no other person or hand was on it"
            yield Issue("plate_assignment", text, step.plate, evidence, action)
    yield from _check_plate_sign(recording)


def _check_plate_sign(recording: Recording) -> Iterator[Issue]:
    if "plate_force" not in recording.data:
        return
    for index, name in enumerate(recording.plates):
        normal = recording.data["plate_force"].values[:, index, 2]
        normal = normal[np.isfinite(normal)]
        if len(normal) and normal.min() < -100.0 and abs(normal.min()) > normal.max():
            evidence = f"its normal force ranges from {normal.min():.0f} N to {normal.max():.0f} N"
            text = f"{name} pulls the subject down."
            yield Issue("plate_sign", text, name, evidence, "correct the sign or axis of its forces", "error")


def _check_channels(recording: Recording) -> Iterator[Issue]:
    if "analog" not in recording.data:
        return
    values = recording.data["analog"].values
    for index, name in enumerate(recording.channels):
        channel = values[:, index]
        channel = channel[np.isfinite(channel)]
        if not len(channel):
            continue
        low, median, high = (float(np.percentile(channel, p)) for p in (0, 50, 100))
        if low == high:
            if low != 0.0:
                text, evidence = f"Channel {name} is constant.", f"every sample is {low:.4g}"
                yield Issue("constant_channel", text, name, evidence, "it was not connected, or it saturated", "note")
            continue
        # the noise of an idle channel has few values, often including the extreme ones
        if len(np.unique(channel)) < MIN_LEVELS:
            continue
        for end in (low, high):
            # a channel at rest is not clipped: the end of its range must be far from its median
            if abs(end - median) < 0.25 * (high - low) or end == 0.0:
                continue
            flats = find_runs(channel == end)
            runs = [stop - start for start, stop in flats]
            if max(runs) >= MIN_CLIPPED_SAMPLES and _is_clipped(channel, flats):
                evidence = f"{sum(runs)} samples at {end:.4g}, at most {max(runs)} consecutive"
                action = "the amplifier range was too small: do not use those times"
                yield Issue("clipped_channel", f"Channel {name} is clipped.", name, evidence, action)
                break


def _is_clipped(channel: Array, flats: list[tuple[int, int]]) -> bool:
    """Return whether a channel runs into its plateaus steeply; a smooth peak is flat because of its resolution."""
    resolution = float(np.diff(np.unique(channel)).min())
    steps = [abs(channel[start] - channel[start - 1]) for start, stop in flats if start > 0 and stop - start > 1]
    return not steps or float(np.median(steps)) > 3.0 * resolution


def _check_model(recording: Recording, model: Model) -> Iterator[Issue]:
    if not model.markers:
        return
    present = {normalize_label(name) for name in recording.markers}
    missing = [m.name for m in model.markers if not {normalize_label(n) for n in (m.name, *m.aliases)} & present]
    if not missing:
        return
    count = len(model.markers)
    evidence = f"{count - len(missing)} of the {count} markers of {model.name} are in the recording"
    enough = len(missing) <= (1.0 - MIN_MODEL_FRACTION) * count
    match = identify_marker_set(recording.markers)
    action = "rename markers, or add the marker set of the recording to the model"
    if match is not None:
        stock = {normalize_label(name): name for name in list_marker_sets()}
        name = stock.get(normalize_label(match.set.name))
        call = f': add_marker_set(model, "{name}")' if name else "; add markers of those names to the model"
        action = f"the recording has the marker set {match.set.name}{call}"
    text = "Some markers of the model are missing." if enough else "The marker set does not match the model."
    yield Issue("model_markers", text, list_names(missing), evidence, action, "warning" if enough else "error")


def _reader_issues(recording: Recording) -> Iterator[Issue]:
    for note in recording.notes:
        if note.kind == "problem" and note.code not in (UNIT_CONFLICT, UP_CONFLICT):
            yield Issue(note.code, note.text, recording.name, "found while reading", note.action)


_CHECKS = (
    _check_units,
    _check_up_axis,
    _check_sides,
    _check_label_swaps,
    _check_zeros,
    _check_time_stamps,
    _check_plates,
    _check_gaps,
    _check_spikes,
    _check_channels,
    _check_labels,
)
_PREPARED_CHECKS = (_check_units, _check_up_axis, _check_sides, _check_plates, _check_channels)


def _sample(recording: Recording) -> Array:
    if "marker_position" not in recording.data:
        return np.empty((0, 0, 3))
    values: Array = recording.data["marker_position"].values[:: max(1, recording.frames // 400)]
    return np.where((values == 0.0).all(axis=2)[..., None], np.nan, values)
