"""Force plates and feet: plates zeroed and thresholded, each load given to the foot that stood there, plates exchanged.

A loaded plate's centre of pressure lies under a foot. Which foot is seen from the heel and toe markers of each side.
When it lies under no foot, but would under one if two plates had each other's places, those plates are exchanged.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from borelli.errors import SettingsError
from borelli.numerics.runs import find_runs
from borelli.recording.formats.c3d.recompute_plates import channels_still_tell, plates_from_channels
from borelli.recording.landmarks import mean_position, find_landmarks
from borelli.recording.recording import LAYOUT, MIN_PLATE_FORCE, Note, Recording

Array = npt.NDArray[np.float64]

SHORTEST = 0.05
"""Loads that last less [s] are knocks, not steps, unless the recording begins or ends with them."""
FIRM = 100.0
"""A load whose peak normal force [N] stays below this is no step."""
UNDERFOOT = 0.2
"""Farthest distance [m] of a centre of pressure from the line between heel and toe of the foot above it."""
ASTRAY = 0.1
"""Loads farther [m] than this from the feet make one look whether plates are exchanged; 0.03 to 0.08 is usual."""
EXCHANGED = 0.5
"""Exchanged plates bring centres of pressure to the feet within this part of the distance they had."""
EMPTY = 0.1
"""An empty plate must be seen for so long [s] to be zeroed."""
SIDES = ("left", "right")


class Contact(NamedTuple):
    """A foot on a plate from start to stop [s]; side "" where no foot is near; `distance` [m] from foot to load."""

    plate: str
    side: str
    start: float
    stop: float
    peak: float
    distance: float


class PlateSwap(NamedTuple):
    """Two plates that carry each other's loads: distances [m] of loads from feet as recorded and when exchanged."""

    first: str
    second: str
    distance: float
    exchanged: float


def zero_plates(recording: Recording) -> Recording:
    """The recording with what empty plates show taken off all their samples.

    Empty are the samples within 20 N of the least normal force; plates that are never empty are left alone. Recordings
    of C3D files are measured again from their channels, centres of pressure and all. Others do not tell the moments of
    an empty plate: their forces change, and centres of pressure, which a few newtons move by millimetres, stay.
    """
    if "plate_force" not in recording.data:
        return recording
    force = recording.data["plate_force"].values.copy()
    notes = []
    shown = np.zeros(force.shape[:2], bool)
    for index, name in enumerate(recording.plates):
        normal = force[:, index, 2]
        if not np.isfinite(normal).any():
            continue
        low = np.nanpercentile(normal, 2)
        empty = np.abs(normal - low) < 20.0
        offset = np.median(force[empty, index], axis=0)
        if abs(low) > 2.5 * MIN_PLATE_FORCE or empty.sum() < EMPTY * recording.analog_rate or np.linalg.norm(offset) < 0.5:
            continue
        force[:, index] -= offset
        shown[:, index] = empty
        x, y, z = offset
        said = f"{name} zeroed: ({x:.1f}, {y:.1f}, {z:.1f}) N shown while empty are taken off"
        notes.append(Note(said, "changed", "clean(zero=False)"))
    if not notes:
        return recording
    changed = {"plate_force": force}
    if channels_still_tell(recording) and (measured := plates_from_channels(recording, shown)):
        zeroed = np.asarray(shown.any(axis=0))[:, None]
        changed = {
            name: np.where(zeroed, measured[name], recording.data[name].values)
            for name in ("plate_force", "plate_center_of_pressure", "plate_free_moment")
        }
    else:
        notes.append(
            Note("centres of pressure are left as they were: the moments of the empty plates are not known", "inferred")
        )
    data = {name: recording.data[name].copy(data=values) for name, values in changed.items()}
    return recording.with_data(recording.data.assign(data), *notes)


def threshold_plates(recording: Recording, threshold: float = MIN_PLATE_FORCE) -> Recording:
    """The recording with plates that carry less than the threshold [N] carrying nothing, nowhere."""
    if not threshold >= 0.0:
        raise SettingsError(f"the threshold must be zero or more newtons, got {threshold:g}")
    if "plate_force" not in recording.data:
        return recording
    data = recording.data
    bare = ~(data["plate_force"].values[..., 2] >= threshold)
    changed = {}
    for name, value in (("plate_force", 0.0), ("plate_free_moment", 0.0), ("plate_center_of_pressure", np.nan)):
        if name in data:
            changed[name] = data[name].copy(data=np.where(bare[..., None], value, data[name].values))
    note = Note(f"plates that carry less than {threshold:g} N are taken as empty", "changed", "clean(threshold=...)")
    return recording.with_data(data.assign(changed), note)


def plate_contacts(recording: Recording) -> tuple[Contact, ...]:
    """Every step on a plate, with the foot it was, in order of time."""
    if "plate_force" not in recording.data or "plate_center_of_pressure" not in recording.data:
        return ()
    clock = recording.data["analog_time"].values
    force = recording.data["plate_force"].values
    places = recording.data["plate_center_of_pressure"].values
    distance = _distances(recording, places, clock)
    found = []
    for index, name in enumerate(recording.plates):
        for start, stop in loaded(force[:, index, 2], recording.analog_rate):
            side, near = _nearest(distance[:, start:stop, index])
            peak = float(np.max(force[start:stop, index, 2]))
            found.append(Contact(name, side, float(clock[start]), float(clock[stop - 1]), peak, near))
    return tuple(sorted(found, key=lambda contact: contact.start))


def loaded(normal: Array, rate: float, threshold: float = MIN_PLATE_FORCE) -> list[tuple[int, int]]:
    """Start and stop (exclusive) of each step in a normal force [N]: long and firm enough."""
    steps = find_runs(np.nan_to_num(normal) >= threshold)
    cut = (0, len(normal))
    return [
        (a, b)
        for a, b in steps
        if (b - a >= SHORTEST * rate or a in cut or b in cut) and np.nanmax(normal[a:b]) >= FIRM
    ]


def assign_plates(recording: Recording) -> Recording:
    """The recording with `foot_force`, `foot_center_of_pressure` and `foot_free_moment` (analog_time, foot, axis).

    A foot's force is the sum over the plates it stands on; its centre of pressure and free moment are those of the sum.
    Loads that no foot explains are left out, with a note.
    """
    steps = plate_contacts(recording)
    known = [step for step in steps if step.side]
    if not known:
        return recording
    data = recording.data
    clock = data["analog_time"].values
    shape = (len(clock), 2, 3)
    force, turning, spin = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    height = np.zeros((len(clock), 2))
    for step in known:
        inside = (clock >= step.start) & (clock <= step.stop)
        plate, foot = recording.plates.index(step.plate), SIDES.index(step.side)
        push = data["plate_force"].values[inside, plate]
        place = np.nan_to_num(data["plate_center_of_pressure"].values[inside, plate])
        force[inside, foot] += push
        turning[inside, foot] += np.cross(place, push)
        height[inside, foot] = place[:, 2]
        if "plate_free_moment" in data:
            spin[inside, foot] += data["plate_free_moment"].values[inside, plate]
    center, moment = _center(force, turning + spin, height)
    values = {"foot_force": force, "foot_center_of_pressure": center, "foot_free_moment": moment}
    added = {
        name: (layout.dims, array, {"units": layout.units, "frame": layout.frame})
        for name, array in values.items()
        if (layout := LAYOUT[name])
    }
    said = "; ".join(f"{step.plate}: {step.side} foot at {step.start:.2f} to {step.stop:.2f} s" for step in known[:12])
    notes = [Note(f"plates given to feet by where the feet are: {said}", "changed", "clean(feet=False)")]
    lost = [step for step in steps if not step.side]
    if lost:
        where_lost = ", ".join(f"{step.plate} at {step.start:.2f} s" for step in lost[:6])
        notes.append(Note(f"loads under no foot are given to none: {where_lost}", "inferred", "borelli doctor"))
    return recording.with_data(data.assign(added).assign_coords(foot=list(SIDES)), *notes)


def find_plate_swaps(recording: Recording) -> tuple[PlateSwap, ...]:
    """Pairs of plates whose loads lie under feet only if the two have each other's places."""
    data = recording.data
    if "plate_corners" not in data or "plate_center_of_pressure" not in data or "marker_position" not in data:
        return ()
    names = recording.plates
    own = [_underfoot(recording, i, i) for i in range(len(names))]
    found: list[PlateSwap] = []
    for i, j in combinations(range(len(names)), 2):
        if not (np.isfinite(own[i]) or np.isfinite(own[j])):
            continue
        there = [_underfoot(recording, i, j), _underfoot(recording, j, i)]
        # a plate that nobody stepped on has nothing to say
        as_is = np.nanmax([own[i], own[j]])
        swapped = np.nanmax(there)
        if as_is > ASTRAY and swapped < min(UNDERFOOT, EXCHANGED * as_is):
            found.append(PlateSwap(names[i], names[j], float(as_is), float(swapped)))
    found.sort(key=lambda pair: pair.exchanged)
    # neighbours on stairs explain each other a little: a plate is exchanged with the one that explains it best
    best: list[PlateSwap] = []
    for pair in found:
        if not any({pair.first, pair.second} & {other.first, other.second} for other in best):
            best.append(pair)
    return tuple(best)


def swap_plates(recording: Recording, first: str, second: str) -> Recording:
    """The recording with the loads of two plates carried to each other's places."""
    names = recording.plates
    for name in (first, second):
        if name not in names:
            raise SettingsError(f"unknown plate {name!r}; known: {', '.join(names) or 'none'}")
    i, j = names.index(first), names.index(second)
    data = recording.data
    changed = {}
    turns = {(a, b): _between(data["plate_corners"].values, a, b) for a, b in ((i, j), (j, i))}
    for name in ("plate_force", "plate_center_of_pressure", "plate_free_moment"):
        if name in data:
            values = data[name].values.copy()
            for a, b in ((i, j), (j, i)):
                turn, shift = turns[a, b]
                moved = data[name].values[:, a] @ turn.T
                values[:, b] = moved + shift if name == "plate_center_of_pressure" else moved
            changed[name] = data[name].copy(data=values)
    note = Note(f"the loads of {first} and {second} are exchanged", "changed", "swap_plates again")
    return recording.with_data(data.assign(changed), note)


def add_plates(recording: Recording, forces: Recording) -> Recording:
    """The recording with the plates of another one, such as a .mot of ground forces beside a .trc of markers."""
    names = [name for name in forces.data.data_vars if str(name).startswith("plate_")]
    if not names:
        raise SettingsError(
            f"{forces.name or 'the other recording'} has no plates: name the file that has, such as a .mot with "
            "columns ground_force_vx, ground_force_px, ground_torque_x"
        )
    clash = [name for name in names if name in recording.data]
    if clash:
        raise SettingsError(f"{recording.name or 'the recording'} has plates of its own: {', '.join(map(str, clash))}")
    data = recording.data.merge(forces.data[names])
    if "analog_rate" in forces.data.attrs:
        data.attrs["analog_rate"] = forces.data.attrs["analog_rate"]
    return recording.with_data(data, Note(f"plates taken from {forces.name or 'another recording'}", "changed"))


def _distances(recording: Recording, places: Array, clock: Array) -> Array:
    """Distances [m] of points from each foot, shape (2, samples, plates), left foot first."""
    out = np.full((2, *places.shape[:2]), np.inf)
    if "marker_position" not in recording.data or not recording.frames:
        return out
    frames = np.clip(np.searchsorted(recording.data["time"].values, clock - 1e-9), 0, recording.frames - 1)
    points, labels = recording.data["marker_position"].values, recording.markers
    for foot, side in enumerate(SIDES):
        heels = find_landmarks(labels, ("heel",), side) or find_landmarks(labels, ("ankle",), side)
        toes = find_landmarks(labels, ("toe",), side) or find_landmarks(labels, ("foot",), side)
        ends = [mean_position(points, group)[frames] for group in (heels, toes) if group]
        if ends:
            out[foot] = _to_segment(places, ends[0][:, None], ends[-1][:, None])
    return out


def _to_segment(places: Array, start: Array, stop: Array) -> Array:
    way, off = stop - start, places - start
    square = (way**2).sum(axis=-1)
    along = np.clip((off * way).sum(axis=-1) / np.maximum(square, 1e-12), 0.0, 1.0)
    return np.linalg.norm(off - along[..., None] * way, axis=-1)


def _nearest(distance: Array) -> tuple[str, float]:
    """The side of the nearer foot in most of a step, "" if neither is near, and its distance [m]."""
    near = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else np.inf for row in distance]
    foot = int(np.argmin(near))
    return (SIDES[foot] if near[foot] <= UNDERFOOT else ""), near[foot]


def _underfoot(recording: Recording, plate: int, place: int) -> float:
    """Median distance [m] of one plate's loads from the nearer foot, if they were at the place of another plate."""
    data = recording.data
    turn, shift = _between(data["plate_corners"].values, plate, place)
    normal = data["plate_force"].values[:, plate, 2]
    inside = np.zeros(len(normal), bool)
    for start, stop in loaded(normal, recording.analog_rate):
        inside[start:stop] = True
    inside &= normal > FIRM
    if not inside.any():
        return float("nan")
    moved = data["plate_center_of_pressure"].values[inside, plate] @ turn.T + shift
    distance = _distances(recording, moved[:, None], data["analog_time"].values[inside])[..., 0].min(axis=0)
    finite = distance[np.isfinite(distance)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _between(corners: Array, plate: int, place: int) -> tuple[Array, Array]:
    """Rotation and displacement that carry one plate onto another."""
    turn = _axes(corners[place]) @ _axes(corners[plate]).T
    return turn, corners[place].mean(axis=0) - turn @ corners[plate].mean(axis=0)


def _axes(corners: Array) -> Array:
    x = corners[0] + corners[3] - corners[1] - corners[2]
    z = np.cross(x, corners[0] + corners[1] - corners[2] - corners[3])
    y = np.cross(z, x)
    return np.stack([axis / max(np.linalg.norm(axis), 1e-12) for axis in (x, y, z)], axis=1)


def _center(force: Array, turning: Array, height: Array) -> tuple[Array, Array]:
    """Where at a given height a wrench about the origin has a vertical moment only, and that moment."""
    normal = force[..., 2]
    firm = normal >= MIN_PLATE_FORCE
    safe = np.where(firm, normal, 1.0)
    x = (-turning[..., 1] + height * force[..., 0]) / safe
    y = (turning[..., 0] + height * force[..., 1]) / safe
    center = np.where(firm[..., None], np.stack([x, y, height], axis=-1), np.nan)
    moment = np.zeros_like(force)
    moment[..., 2] = np.where(firm, turning[..., 2] - (x * force[..., 1] - y * force[..., 0]), 0.0)
    return center, moment
