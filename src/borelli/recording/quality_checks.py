"""What is wrong with a recording, with the evidence for it and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from borelli.errors import list_names
from borelli.model.marker_sets import list_marker_sets
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.recording.cleaning.filtering import repair_time_stamps
from borelli.recording.cleaning.gaps import RIGID_LIMIT, SPLINE_LIMIT, Gap, find_gaps
from borelli.recording.cleaning.label_swaps import find_sides, find_swaps
from borelli.recording.cleaning.spikes import find_spikes
from borelli.recording.forces.assign_to_feet import UNDERFOOT, plate_contacts, find_plate_swaps
from borelli.recording.identify_marker_set import normalize_label, identify_marker_set, rank_marker_sets
from borelli.recording.recording import Recording
from borelli.recording.units_and_axes import UNITS, Conversion, body_size, file_axis, infer_units, infer_up

Array = npt.NDArray[np.float64]

SEVERITIES = ("error", "warning", "note")
FITS = 0.5
"""A recording fits a model if it has at least this part of the model's markers."""
CLIPPED = 5
"""So many equal samples on end at the end of a channel's range are clipping."""
LEVELS = 32
"""Channels that take fewer values than this are idle or switches."""


@dataclass(frozen=True)
class Issue:
    """Something wrong, or worth knowing, in a recording.

    Attributes:
        kind: One word for it: "gap", "spike", "swap", "sides", "units", "up", "plates", "set", "model", "times"...
        text: One sentence.
        where: Marker, plate, channel, frames or times it concerns.
        evidence: The figures behind it.
        action: The command or function that mends it; empty where nothing need be done.
        severity: "error" (results will be wrong), "warning" (they may be), "note" (good to know).
    """

    kind: str
    text: str
    where: str
    evidence: str
    action: str
    severity: str = "warning"


def check_recording(recording: Recording, model: Model | None = None) -> tuple[Issue, ...]:
    """Everything found wrong with a recording, errors first; with a model, also whether its markers are there."""
    points = _sample(recording)
    found: list[Issue] = []
    for check in _CHECKS:
        found += check(recording, points)
    if model is not None:
        found += _model_faults(recording, model)
    kinds = {fault.kind for fault in found}
    found += [fault for fault in _reader_faults(recording) if fault.kind not in kinds]
    return tuple(sorted(found, key=lambda fault: SEVERITIES.index(fault.severity)))


def _unit_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    if not points.size:
        return
    size, (low, high), what = body_size(points, recording.markers)
    if not size > 0.0 or low <= size <= high:
        return
    back = Conversion.of_file(recording.data.attrs, "m")
    unit = infer_units(points / back.scale, recording.markers)
    yield Issue(
        kind="units",
        text=f"lengths are not in {back.units}, as they were taken",
        where="all markers",
        evidence=f"{what} would be {size:.4g} m" + (f"; {unit.evidence}" if unit.answer else ""),
        action=f"--units {unit.answer}" if unit.answer else f"--units ({', '.join(UNITS)}, or metres per unit)",
        severity="error",
    )


def _up_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    if not points.size:
        return
    corners = recording.data["plate_corners"].values if "plate_corners" in recording.data else None
    seen = infer_up(points, recording.markers)
    plates = infer_up(points, (), corners)
    if not seen.answer or seen.answer == "+Z":
        return
    back = Conversion.of_file(recording.data.attrs, "m")
    lying = "force plates" in plates.evidence and plates.answer == "+Z"
    yield Issue(
        kind="up",
        text="the body lies on the floor, or another axis is up" if lying else f"{back.up} of the file is not up",
        where="all markers",
        evidence=seen.evidence.replace(seen.answer, file_axis(seen.answer, back)) + " of the file",
        action=f"--up {file_axis(seen.answer, back)}",
        severity="warning" if lying else "error",
    )


def _side_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    sides = find_sides(recording)
    if sides is None or not sides.wrong:
        return
    millimetres = 1000.0 * sides.distance
    shown = ", ".join(f"{left}/{right}" for left, right in sides.wrong[:6])
    evidence = f"facing forward, {shown} lie {millimetres:.0f} mm on the other side"
    if sides.whole:
        what = "left and right are exchanged in all names, or the axes are mirrored"
        yield Issue("sides", what, "all markers", evidence, "borelli clean --sides, or swap_sides(recording)", "error")
    elif len(sides.wrong) < len(sides.right):
        for left, right in sides.wrong:
            what = f"{left} and {right} are exchanged throughout"
            remedy = f'exchange(recording, "{left}", "{right}")'
            yield Issue("sides", what, f"{left}, {right}", evidence, remedy, "error")


def _swap_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    for swap in find_swaps(recording):
        yield Issue(
            kind="swap",
            text=f"{swap.first} and {swap.second} trade places",
            where=f"frames {swap.start} to {swap.stop - 1}",
            evidence=f"both leap by at least {1000.0 * swap.leap:.0f} mm there, each onto the other's path",
            action="borelli clean, or repair_label_swaps(recording)",
            severity="error",
        )


def _gap_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    gaps = [gap for gap in find_gaps(recording) if not gap.marker.startswith("*")]
    rate, frames = recording.rate, recording.frames
    never = [gap.marker for gap in gaps if gap.frames == frames]
    if never:
        evidence = f"{len(never)} of {len(recording.markers)} markers have no position in any frame"
        yield Issue("gap", "markers that are never seen", list_names(never), evidence, "select_markers leaves them out")
    long: dict[str, list[Gap]] = {}
    for gap in gaps:
        if gap.inside and gap.frames > SPLINE_LIMIT * rate + 0.5:
            long.setdefault(gap.marker, []).append(gap)
    for marker, own in long.items():
        worst = max(own, key=lambda gap: gap.frames)
        more = f" and {len(own) - 1} more" if len(own) > 1 else ""
        open_ = worst.frames > RIGID_LIMIT * rate + 0.5
        yield Issue(
            kind="gap",
            text=f"{marker} is not seen for {worst.frames / rate:.2f} s",
            where=f"{marker}, frames {worst.start} to {worst.stop - 1}{more}",
            evidence=f"{sum(gap.frames for gap in own)} frames in gaps over {SPLINE_LIMIT:g} s",
            action="clean(rigid_limit=...)" if open_ else "borelli clean fills it from its segment's other markers",
        )
    short = [gap for gap in gaps if gap.inside and gap.frames <= SPLINE_LIMIT * rate + 0.5]
    if short:
        evidence = f"{len(short)} gaps, {sum(gap.frames for gap in short)} frames in all"
        names = list_names(list(dict.fromkeys(gap.marker for gap in short)))
        yield Issue("gap", f"gaps of up to {SPLINE_LIMIT:g} s", names, evidence, "borelli clean bridges them", "note")
    ends = [gap for gap in gaps if not gap.inside and gap.frames < frames]
    if ends:
        names = list_names(list(dict.fromkeys(gap.marker for gap in ends)))
        evidence = f"{len(ends)} gaps at the start or the end, the longest {max(gap.frames for gap in ends)} frames"
        what = "markers not seen from the first frame to the last"
        yield Issue("ends", what, names, evidence, "borelli clean --start --stop crops", "note")


def _spike_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    spikes = find_spikes(recording)
    for name in dict.fromkeys(spike.marker for spike in spikes):
        own = [spike for spike in spikes if spike.marker == name]
        yield Issue(
            kind="spike",
            text=f"{name} leaps off its path and back",
            where=f"{name}, frame" + ("s " if len(own) > 1 else " ") + list_names([str(spike.start) for spike in own]),
            evidence=f"up to {1000.0 * max(spike.height for spike in own):.0f} mm, for at most 3 frames",
            action="borelli clean, or remove_spikes(recording)",
        )


def _zero_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    if "marker_position" not in recording.data:
        return
    zero = (recording.data["marker_position"].values == 0.0).all(axis=2)
    if zero.any():
        names = [recording.markers[i] for i in np.flatnonzero(zero.any(axis=0))]
        evidence = f"{int(zero.sum())} positions are exactly (0, 0, 0)"
        yield Issue(
            "zeros", "markers not seen are written as the origin", list_names(names), evidence, "borelli clean", "error"
        )


def _time_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    for note in recording.notes:
        if note.kind == "changed" and "time stamps" in note.text:
            yield Issue(
                "times", "the file's time stamps are rounded", "all frames", note.text, "done while reading", "note"
            )
            return
    if recording.frames < 3 or "time" not in recording.data:
        return
    steps = np.diff(recording.data["time"].values)
    if np.ptp(steps) <= 1e-6 * np.median(steps):
        return
    evidence = f"steps from {1000.0 * steps.min():.4g} to {1000.0 * steps.max():.4g} ms"
    if repair_time_stamps(recording) is not recording:
        remedy = "borelli clean, or repair_time_stamps(recording)"
        yield Issue("times", "time stamps are rounded", "all frames", evidence, remedy, "error")
    else:
        yield Issue("times", "time steps differ", "all frames", evidence, "resample(recording, rate)")


def _label_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    nameless = [name for name in recording.markers if name.startswith("*") or re.fullmatch(r"[Uu]\d+", name)]
    if nameless:
        evidence = f"{len(nameless)} of {len(recording.markers)} points"
        yield Issue("unlabelled", "points without a label", list_names(nameless), evidence, "select_markers", "note")
    named = [name for name in recording.markers if name not in nameless]
    if len(named) >= 4 and identify_marker_set(named) is None:
        near = rank_marker_sets(named)[0]
        count = len(near.set.names)
        evidence = f"nearest is {near.set.name}: {count - len(near.missing)} of its {count} names are there"
        remedy = "put a list of the names into a folder and its path into BORELLI_MARKER_SETS"
        yield Issue("set", "the marker set is not one that is known", list_names(named), evidence, remedy, "note")


def _plate_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    exchanged = find_plate_swaps(recording)
    for pair in exchanged:
        yield Issue(
            kind="exchange",
            text=f"{pair.first} and {pair.second} are exchanged",
            where=f"{pair.first}, {pair.second}",
            evidence=f"loads lie {pair.distance:.2f} m from the feet, {pair.exchanged:.2f} m if exchanged",
            action=f'swap_plates(recording, "{pair.first}", "{pair.second}")',
            severity="error",
        )
    known = {name for pair in exchanged for name in (pair.first, pair.second)}
    for step in plate_contacts(recording):
        called = re.search(r"(?:^|[_ .])(left|right|l|r)(?:$|[_ .])", step.plate.lower())
        if called and step.side and called[1][0] != step.side[0]:
            what = f"{step.plate} carries the {step.side} foot"
            evidence = f"from {step.start:.2f} to {step.stop:.2f} s the {step.side} foot is {step.distance:.2f} m away"
            yield Issue("plates", what, step.plate, evidence, "rename the plates, or exchange their columns", "error")
        elif np.isfinite(step.distance) and step.distance > UNDERFOOT and step.plate not in known:
            what = f"{step.plate} is loaded where no foot is"
            evidence = (
                f"{step.start:.2f} to {step.stop:.2f} s: {step.peak:.0f} N, {step.distance:.2f} m from the nearer foot"
            )
            remedy = "check the corners and channels of the plate, and that another person or a hand was not on it"
            yield Issue("plates", what, step.plate, evidence, remedy)
    yield from _pulling(recording)


def _pulling(recording: Recording) -> Iterator[Issue]:
    if "plate_force" not in recording.data:
        return
    for index, name in enumerate(recording.plates):
        normal = recording.data["plate_force"].values[:, index, 2]
        normal = normal[np.isfinite(normal)]
        if len(normal) and normal.min() < -100.0 and abs(normal.min()) > normal.max():
            evidence = f"its normal force goes down to {normal.min():.0f} N, and up to {normal.max():.0f} N"
            yield Issue("plates", f"{name} pulls", name, evidence, "its forces have the wrong sign or axis", "error")


def _channel_faults(recording: Recording, points: Array) -> Iterator[Issue]:
    if "analog" not in recording.data:
        return
    values = recording.data["analog"].values
    for index, name in enumerate(recording.channels):
        channel = values[:, index]
        channel = channel[np.isfinite(channel)]
        if not len(channel):
            continue
        low, middle, high = (float(np.percentile(channel, p)) for p in (0, 50, 100))
        if low == high:
            if low != 0.0:
                what, evidence = f"channel {name} never changes", f"every sample is {low:.4g}"
                yield Issue("constant", what, name, evidence, "nothing was connected, or it saturated", "note")
            continue
        # the noise of an idle channel takes a few values only, and often its extreme ones
        if len(np.unique(channel)) < LEVELS:
            continue
        for end in (low, high):
            # a channel at rest is not clipped: its end of range must lie far from where it mostly is
            if abs(end - middle) < 0.25 * (high - low) or end == 0.0:
                continue
            flats = find_runs(channel == end)
            runs = [stop - start for start, stop in flats]
            if max(runs) >= CLIPPED and _cut_off(channel, flats):
                evidence = f"{sum(runs)} samples at {end:.4g}, {max(runs)} of them on end"
                remedy = "the amplifier's range was too small: leave out those times"
                yield Issue("clipped", f"channel {name} is clipped", name, evidence, remedy)
                break


def _cut_off(channel: Array, flats: list[tuple[int, int]]) -> bool:
    """Whether a channel runs into its flat tops steeply; a gentle peak is flat for a while because of its digits."""
    digit = float(np.diff(np.unique(channel)).min())
    steps = [abs(channel[start] - channel[start - 1]) for start, stop in flats if start > 0 and stop - start > 1]
    return not steps or float(np.median(steps)) > 3.0 * digit


def _model_faults(recording: Recording, model: Model) -> Iterator[Issue]:
    if not model.markers:
        return
    have = {normalize_label(name) for name in recording.markers}
    missing = [marker.name for marker in model.markers if not {normalize_label(n) for n in (marker.name, *marker.aliases)} & have]
    if not missing:
        return
    count = len(model.markers)
    evidence = f"{count - len(missing)} of the {count} markers of {model.name} are in the recording"
    fits = len(missing) <= (1.0 - FITS) * count
    known = identify_marker_set(recording.markers)
    remedy = "rename markers, or give the model the recording's marker set"
    if known is not None:
        stock = {normalize_label(name): name for name in list_marker_sets()}
        name = stock.get(normalize_label(known.set.name))
        worn = f': with_markers(model, "{name}")' if name else ""
        remedy = f"the recording wears {known.set.name}{worn or '; give the model markers of those names'}"
    what = "some markers of the model are missing" if fits else "the marker set does not fit the model"
    yield Issue("model", what, list_names(missing), evidence, remedy, "warning" if fits else "error")


def _reader_faults(recording: Recording) -> Iterator[Issue]:
    for note in recording.notes:
        if note.kind == "problem":
            kind = next((kind for kind, words in _READERS.items() if words in f"{note.text} {note.action}"), "file")
            yield Issue(kind, note.text, recording.name, "seen while reading", note.action)


_READERS = {"units": "--units", "up": "--up", "zeros": "exactly (0, 0, 0)", "unlabelled": "no label"}
"""What readers say of faults that are looked for here as well."""

_CHECKS: tuple[Callable[[Recording, Array], Iterator[Issue]], ...] = (
    _unit_faults,
    _up_faults,
    _side_faults,
    _swap_faults,
    _zero_faults,
    _time_faults,
    _plate_faults,
    _gap_faults,
    _spike_faults,
    _channel_faults,
    _label_faults,
)


def _sample(recording: Recording) -> Array:
    """Marker positions of a few hundred frames [m]."""
    if "marker_position" not in recording.data:
        return np.empty((0, 0, 3))
    values: Array = recording.data["marker_position"].values[:: max(1, recording.frames // 400)]
    return np.where((values == 0.0).all(axis=2)[..., None], np.nan, values)
