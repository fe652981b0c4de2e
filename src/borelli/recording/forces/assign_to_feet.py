"""Force plates and feet: zeroing, thresholding, assignment of loads to feet, swapped plates.

The center of pressure of a loaded plate lies under a foot, which is identified by the heel and toe markers of each
side. Two plates are swapped if their loads lie under feet only in each other's position.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from borelli.errors import SettingsError
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array, geometric_median
from borelli.recording.cleaning.wrench_filter import fill_points
from borelli.recording.forces.plate_area import resting_feet
from borelli.recording.formats.c3d.force_plates import channels_match_plates, plate_axes, plates_from_channels
from borelli.recording.landmarks import find_foot_markers, mean_position
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording, assign_values, check_names, with_layout

MIN_STEP_DURATION = 0.05
"""Least duration [s] of a step that neither begins nor ends with the recording."""
MIN_STEP_FORCE = 100.0
"""Least peak normal force [N] of a step."""
MAX_FOOT_DISTANCE = 0.2
"""Largest distance [m] of a center of pressure from the line between heel and toe of its foot."""
SUSPECT_DISTANCE = 0.1
"""Distance [m] of loads from the feet above which plates may be swapped; 0.03 to 0.08 m is usual."""
MAX_SWAPPED_RATIO = 0.5
"""Largest ratio of the distances of loads from feet after and before swapping two plates."""
MIN_UNLOADED_TIME = 0.1
"""Least unloaded time [s] of a plate that is zeroed."""
MAX_TIME_DIFFERENCE = 0.1
"""Difference [s] of the first or last times of markers and plates above which their files may not belong together."""
CHUNK_SAMPLES = 100_000
"""Samples processed together, to bound memory."""
SIDES = ("left", "right")
LOADS = ("plate_force", "plate_center_of_pressure", "plate_free_moment")


class Contact(NamedTuple):
    """Step on a plate from start to end [s]; side ("" if no foot is near), peak [N], distance [m] of foot and load."""

    plate: str
    side: str
    start: float
    end: float
    peak: float
    distance: float


class PlateSwap(NamedTuple):
    """Two plates with swapped loads: distances [m] of loads from feet as recorded and if swapped."""

    first: str
    second: str
    distance: float
    swapped_distance: float


def zero_plates(recording: Recording) -> Recording:
    """Return the recording with the offset of unloaded plates subtracted.

    Samples within 20 N of the least normal force count as unloaded, unless a foot rests on the plate; plates that are
    always loaded are not changed. In recordings of C3D files the loads are recomputed from the channels. In others the
    moments of an unloaded plate are unknown: the forces change, and the centers of pressure, which a few newtons move
    by millimeters, are kept.

    Args:
        recording: Recording with force plates.
    """
    if "plate_force" not in recording.data:
        return recording
    force = recording.data["plate_force"].values.copy()
    notes = []
    empty_samples = np.zeros(force.shape[:2], bool)
    resting = resting_feet(recording)
    frames = None if resting is None else _frames_at(recording, recording.data["analog_time"].values)
    for index, name in enumerate(recording.plates):
        normal = force[:, index, 2]
        if not np.isfinite(normal).any():
            continue
        low = np.nanpercentile(normal, 2)
        empty = np.abs(normal - low) < 20.0
        if resting is not None:
            empty &= ~resting[frames, index]
        offset = _offset(force[empty, index]) if empty.any() else np.zeros(3)
        if (
            abs(low) > 2.5 * MIN_PLATE_FORCE
            or empty.sum() < MIN_UNLOADED_TIME * recording.analog_rate
            or np.linalg.norm(offset) < 0.5
        ):
            continue
        force[:, index] -= offset
        empty_samples[:, index] = empty
        x, y, z = offset
        text = f"{name}: The offset of the unloaded plate, ({x:.1f}, {y:.1f}, {z:.1f}) N, is subtracted."
        notes.append(Note(text, "changed", "clean(plate_offsets=False)", code="plate_offset"))
    if not notes:
        return recording
    changed = {"plate_force": force}
    if channels_match_plates(recording) and (measured := plates_from_channels(recording, empty_samples)):
        zeroed = np.asarray(empty_samples.any(axis=0))[:, None]
        changed = {name: np.where(zeroed, measured[name], recording.data[name].values) for name in LOADS}
    else:
        text = "Centers of pressure are kept: the moments of the unloaded plates are unknown."
        notes.append(Note(text, "inferred", code="plate_offset"))
    return assign_values(recording, changed, *notes)


def _offset(force: Array) -> Array:
    """Return the typical force (3,) of samples (samples, 3) [N]; it turns with the horizontal axes of the lab."""
    return np.array([*geometric_median(force[:, :2], np.ones(len(force))), np.median(force[:, 2])])


def threshold_plates(recording: Recording, threshold: float = MIN_PLATE_FORCE) -> Recording:
    """Return the recording with plate loads below the threshold [N] set to zero and their COP to NaN.

    Args:
        recording: Recording with force plates.
        threshold: Vertical force [N] below which a plate counts as unloaded.
    """
    if not threshold >= 0.0:
        raise SettingsError(f"threshold: {threshold:g} N is negative.")
    if "plate_force" not in recording.data:
        return recording
    data = recording.data
    unloaded = ~(data["plate_force"].values[..., 2] >= threshold)
    fill = {"plate_force": 0.0, "plate_free_moment": 0.0, "plate_center_of_pressure": np.nan}
    changed = {n: np.where(unloaded[..., None], value, data[n].values) for n, value in fill.items() if n in data}
    text = f"Plate loads below {threshold:g} N are set to zero."
    return assign_values(recording, changed, Note(text, "changed", "clean(threshold=...)", code="plate_threshold"))


def plate_contacts(recording: Recording) -> tuple[Contact, ...]:
    """Return all steps on plates with their feet, in order of time.

    Args:
        recording: Recording with force plates and markers on the feet.
    """
    if "plate_force" not in recording.data or "plate_center_of_pressure" not in recording.data:
        return ()
    times = recording.data["analog_time"].values
    force = recording.data["plate_force"].values
    points = recording.data["plate_center_of_pressure"].values
    distance = _distances(recording, points, times)
    steps = []
    for index, name in enumerate(recording.plates):
        for start, stop in find_steps(force[:, index, 2], recording.analog_rate):
            side, near = _nearest(distance[:, start:stop, index])
            peak = float(np.max(force[start:stop, index, 2]))
            steps.append(Contact(name, side, float(times[start]), float(times[stop - 1]), peak, near))
    return tuple(sorted(steps, key=lambda contact: contact.start))


def find_steps(normal: Array, rate: float) -> list[tuple[int, int]]:
    """Return start and stop (exclusive) of each step in a normal force [N]."""
    cut = (0, len(normal))
    return [
        (a, b)
        for a, b in find_runs(np.nan_to_num(normal) >= MIN_PLATE_FORCE)
        if (b - a >= MIN_STEP_DURATION * rate or a in cut or b in cut) and np.nanmax(normal[a:b]) >= MIN_STEP_FORCE
    ]


def assign_plates(recording: Recording) -> Recording:
    """Return the recording with the ground reaction force, center of pressure and free moment of each foot.

    The force on a foot is the sum over the plates it stands on; its center of pressure and free moment are those of the
    sum. Loads that are not under a foot are omitted, with a note. Where a loaded plate has no center of pressure, as
    where only the correction of its offset made it a loaded one, the load acts at the nearest known one of the step.

    Args:
        recording: Recording with force plates and markers on the feet.
    """
    steps = plate_contacts(recording)
    assigned = [step for step in steps if step.side]
    lost = _unassigned_notes([step for step in steps if not step.side])
    if not assigned:
        return recording.with_notes(*lost) if lost else recording
    data = recording.data
    times = data["analog_time"].values
    shape = (len(times), 2, 3)
    force, moment_about_origin, free_moment = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    height = np.zeros((len(times), 2))
    increasing = bool((np.diff(times) > 0.0).all())
    for step in assigned:
        inside: Any = (
            slice(np.searchsorted(times, step.start), np.searchsorted(times, step.end, "right"))
            if increasing
            else (times >= step.start) & (times <= step.end)
        )
        plate, foot = recording.plates.index(step.plate), SIDES.index(step.side)
        load = data["plate_force"].values[inside, plate]
        point = fill_points(data["plate_center_of_pressure"].values[inside, plate, None])[:, 0]
        force[inside, foot] += load
        moment_about_origin[inside, foot] += np.cross(point, load)
        height[inside, foot] = point[:, 2]
        if "plate_free_moment" in data:
            free_moment[inside, foot] += data["plate_free_moment"].values[inside, plate]
    moment_about_origin += free_moment
    center, moment = _center_of_pressure(force, moment_about_origin, height)
    added = with_layout({"ground_reaction_force": force, "center_of_pressure": center, "free_moment": moment})
    shown = "; ".join(
        f"{step.plate}: {step.side} foot at {step.start:.2f} to {step.end:.2f} s" for step in assigned[:12]
    )
    text = f"Plate loads are assigned to the feet above them: {shown}."
    notes = [Note(text, "changed", "clean(feet=False)", code="plate_assignment"), *lost]
    return recording.with_data(data.assign(added).assign_coords(foot=list(SIDES)), *notes)


def _unassigned_notes(steps: list[Contact]) -> list[Note]:
    """Return a note on loads that are not under a foot, with their distance from the nearer one."""
    if not steps:
        return []
    parts = []
    for step in steps[:6]:
        far = f"{step.distance:.2f} m from the nearer foot" if np.isfinite(step.distance) else "no foot markers"
        parts.append(f"{step.plate} at {step.start:.2f} s ({step.peak:.0f} N, {far})")
    text = f"Loads that are not under a foot are ignored: {', '.join(parts)}."
    if len(steps) > len(parts):
        text = f"{text[:-1]} and {len(steps) - len(parts)} more."
    action = "check that plates and markers are of the same trial and in the same axes"
    return [Note(text, "problem", action, code="plate_omitted")]


def find_plate_swaps(recording: Recording) -> tuple[PlateSwap, ...]:
    """Return pairs of plates whose loads lie under feet only if the two are swapped.

    Args:
        recording: Recording with force plates and markers on the feet.
    """
    data = recording.data
    if "plate_corners" not in data or "plate_center_of_pressure" not in data or "marker_position" not in data:
        return ()
    names = recording.plates
    own = [_foot_distance(recording, i, i) for i in range(len(names))]
    swaps: list[PlateSwap] = []
    for i, j in combinations(range(len(names)), 2):
        if not (np.isfinite(own[i]) or np.isfinite(own[j])):
            continue
        swapped_distances = [_foot_distance(recording, i, j), _foot_distance(recording, j, i)]
        # unloaded plates give NaN
        as_is = np.nanmax([own[i], own[j]])
        swapped = np.nanmax(swapped_distances)
        if as_is > SUSPECT_DISTANCE and swapped < min(MAX_FOOT_DISTANCE, MAX_SWAPPED_RATIO * as_is):
            swaps.append(PlateSwap(names[i], names[j], float(as_is), float(swapped)))
    swaps.sort(key=lambda pair: pair.swapped_distance)
    # adjacent plates on stairs partly explain each other: each plate is swapped with the best one only
    best: list[PlateSwap] = []
    for pair in swaps:
        if not any({pair.first, pair.second} & {other.first, other.second} for other in best):
            best.append(pair)
    return tuple(best)


def swap_plates(recording: Recording, first: str, second: str) -> Recording:
    """Return the recording with the loads of two plates moved to each other's position.

    Args:
        recording: Recording with force plates.
        first: Name of one plate.
        second: Name of the other.
    """
    names = recording.plates
    check_names("plate", (first, second), names)
    i, j = names.index(first), names.index(second)
    data = recording.data
    changed = {name: data[name].values.copy() for name in LOADS if name in data}
    for a, b in ((i, j), (j, i)):
        rotation, translation = _plate_transform(data["plate_corners"].values, a, b)
        for name, values in changed.items():
            transformed = data[name].values[:, a] @ rotation.T
            values[:, b] = transformed + translation if name == "plate_center_of_pressure" else transformed
    note = Note(f"The loads of {first} and {second} are swapped.", "changed", "swap_plates again", code="plate_swap")
    return assign_values(recording, changed, note)


def add_plates(recording: Recording, forces: Recording) -> Recording:
    """Return the recording with the plates of another one, such as the .mot file that belongs to a .trc file.

    Args:
        recording: Recording of the markers.
        forces: Recording of the force plates, in the same lab frame and of the same time.
    """
    names = [name for name in forces.data.data_vars if str(name).startswith("plate_")]
    if not names:
        example = "a .mot with columns ground_force_vx, ground_force_px, ground_torque_x"
        text = f"{forces.name or 'The second recording'} has no plates."
        raise SettingsError(f"{text} Pass a file with plates, such as {example}.")
    clash = [name for name in names if name in recording.data]
    if clash:
        raise SettingsError(f"{recording.name or 'The recording'} already has plates: {', '.join(map(str, clash))}.")
    data = recording.data.merge(forces.data[names])
    if "analog_rate_hz" in forces.data.attrs:
        data.attrs["analog_rate_hz"] = forces.data.attrs["analog_rate_hz"]
    name = forces.name or "another recording"
    note = Note(f"Plates are added from {name}.", "changed", code="plates_added")
    return recording.with_data(data, note, *_time_notes(recording, forces, name), *_kept_problems(forces))


def _time_notes(recording: Recording, forces: Recording, name: str) -> list[Note]:
    """Return a note if plates of another file were recorded at other times than the markers."""
    markers, plates = recording.data["time"].values, forces.data["analog_time"].values
    if len(markers) < 2 or len(plates) < 2:
        return []
    (start, end), (first, last) = ((float(one[0]), float(one[-1])) for one in (markers, plates))
    step = max(end - start, last - first) / (min(len(markers), len(plates)) - 1)
    if max(abs(first - start), abs(last - end)) <= max(MAX_TIME_DIFFERENCE, 2.0 * step):
        return []
    text = (
        f"The plates of {name} were recorded from {first:.2f} to {last:.2f} s, the markers from {start:.2f} to "
        f"{end:.2f} s: the files may not belong together."
    )
    return [Note(text, "problem", "check --forces; elsewhere the force counts as not measured", code="plate_times")]


def _kept_problems(forces: Recording) -> list[Note]:
    """Return the notes on problems of the plates' own file."""
    return [note for note in forces.notes if note.kind == "problem"]


def _distances(recording: Recording, points: Array, times: Array) -> Array:
    """Return the distances [m] of points from each foot, shape (2, samples, plates), left foot first."""
    out = np.full((2, *points.shape[:2]), np.inf)
    if "marker_position" not in recording.data or not recording.frames:
        return out
    frames = _frames_at(recording, times)
    markers, labels = recording.data["marker_position"].values, recording.markers
    for foot, side in enumerate(SIDES):
        ends = [mean_position(markers, group) for group in find_foot_markers(labels, side) if group]
        if ends:
            for start in range(0, len(points), CHUNK_SAMPLES):
                part = slice(start, start + CHUNK_SAMPLES)
                heel, toe = (end[frames[part]][:, None] for end in (ends[0], ends[-1]))
                out[foot, part] = _distance_to_segment(points[part], heel, toe)
    return out


def _frames_at(recording: Recording, times: Array) -> Any:
    """Return the frames at these times [s]."""
    return np.clip(np.searchsorted(recording.data["time"].values, times - 1e-9), 0, max(recording.frames - 1, 0))


def _distance_to_segment(points: Array, start: Array, stop: Array) -> Array:
    line, offset = stop - start, points - start
    square = (line**2).sum(axis=-1)
    along = np.clip((offset * line).sum(axis=-1) / np.maximum(square, 1e-12), 0.0, 1.0)
    return np.linalg.norm(offset - along[..., None] * line, axis=-1)


def _nearest(distance: Array) -> tuple[str, float]:
    """Return the side of the nearer foot during a step ("" if neither is near), and its distance [m]."""
    near = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else np.inf for row in distance]
    foot = int(np.argmin(near))
    return (SIDES[foot] if near[foot] <= MAX_FOOT_DISTANCE else ""), near[foot]


def _foot_distance(recording: Recording, plate: int, target: int) -> float:
    """Return the median distance [m] of one plate's loads from the nearer foot, if moved to another plate."""
    data = recording.data
    rotation, translation = _plate_transform(data["plate_corners"].values, plate, target)
    normal = data["plate_force"].values[:, plate, 2]
    inside = np.zeros(len(normal), bool)
    for start, stop in find_steps(normal, recording.analog_rate):
        inside[start:stop] = True
    inside &= normal > MIN_STEP_FORCE
    if not inside.any():
        return float("nan")
    transformed = data["plate_center_of_pressure"].values[inside, plate] @ rotation.T + translation
    distance = _distances(recording, transformed[:, None], data["analog_time"].values[inside])[..., 0].min(axis=0)
    finite = distance[np.isfinite(distance)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _plate_transform(corners: Array, plate: int, target: int) -> tuple[Array, Array]:
    rotation = plate_axes(corners[target]) @ plate_axes(corners[plate]).T
    return rotation, corners[target].mean(axis=0) - rotation @ corners[plate].mean(axis=0)


def _center_of_pressure(force: Array, moment_about_origin: Array, height: Array) -> tuple[Array, Array]:
    """Return the point at a given height about which a wrench has a vertical moment only, and that moment."""
    normal = force[..., 2]
    loaded = normal >= MIN_PLATE_FORCE
    safe = np.where(loaded, normal, 1.0)
    x = (-moment_about_origin[..., 1] + height * force[..., 0]) / safe
    y = (moment_about_origin[..., 0] + height * force[..., 1]) / safe
    center = np.where(loaded[..., None], np.stack([x, y, height], axis=-1), np.nan)
    moment = np.zeros_like(force)
    moment[..., 2] = np.where(loaded, moment_about_origin[..., 2] - (x * force[..., 1] - y * force[..., 0]), 0.0)
    return center, moment
