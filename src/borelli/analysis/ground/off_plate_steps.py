"""Ground reaction of steps off the plates: predicted forces supply what plates miss.

A laboratory has two plates, or four, and a walk has more steps. In frames without complete ground reaction force
(`plate_coverage`) a foot stands off the plates, or half on one. Each step decides: over single support, plates that
carry much less than the motion requires did not support that step. The plate forces of the other foot are given; the
rest is predicted (`predict_grf`) under the feet that are off the plates. Each foot's predicted fraction s rises from 0
to 1 and falls again along a cosine outside the step, where forces are small:

    force = (1 - s) measured + predicted, which is solved with s as a factor of the confidence of contact.

Forces, centers of pressure and free moments of the two make one wrench. A foot whose sole is above a loaded plate is
not off it, however little the plate measures, and neither is a loaded foot that stays down without single support, as
in sitting: what plates measured there is kept, and the rest is an external contact (`external_contact`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import FEET, Feet, Loads
from borelli.analysis.dynamics.plate_coverage import MIN_DEFICIT, MIN_DEFICIT_DURATION, PlateCoverage, sustained_deficit
from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.dynamics.torques import Torques, newton_euler, newton_euler_torques
from borelli.analysis.ground.external_contact import (
    CONTACT,
    contact_frames,
    contact_notes,
    with_contact,
)
from borelli.analysis.ground.predict_grf import Ground, GroundReaction, PlateForces, solve_ground_reaction
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion
from borelli.model.transforms import vector
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.forces.plate_area import inside_plates
from borelli.recording.recording import MIN_PLATE_FORCE, Note

Mask = NDArray[np.bool_]

SOURCE = "plates and predicted"
MIN_STANCE_FORCE = 0.1
"""Fraction of the weight above which a predicted force counts as stance."""
MIN_INSIDE_FRACTION = 0.9
"""Fraction of a stance in which a sole must be above plates for the foot to be on them."""
BLEND_DURATION = 0.05
"""Time over which forces change from measured to predicted [s]."""


def torques_with_predicted_steps(
    motion: Motion,
    curves: Derivatives,
    moved: BodyKinematics,
    plates: Loads,
    settings: Mapping[str, Any],
    feet: Feet,
    *,
    coverage: PlateCoverage | None = None,
    ground: Ground | None = None,
    contact: str | None = None,
) -> Torques:
    """Compute torques with plate forces, and predicted forces under feet that stood off the plates.

    `grf_complete` is still that of the plates alone. `grf_source` is "plate" or "predicted" (where any part of the
    force is) for each foot and frame; `grf_known` is true where both together support the body. `coverage` and `ground`
    are those of the trial that the motion is a part of; by default they are found from the motion. `contact` is the
    body on which other support is estimated.
    """
    is_part = coverage is not None
    if coverage is None:
        alone = newton_euler_torques(motion, curves, plates, settings, moved)
        attrs = alone.data.attrs
        coverage = PlateCoverage(
            alone.data["grf_complete"].values, attrs["plate_mass_kg"], attrs["weighed_s"],
            bool(attrs["weighed_strides"]),
        )  # fmt: skip
        if coverage.grf_complete.all():
            notes = contact_notes(curves.time, ~coverage.grf_complete, curves.time, motion.model.mass, contact)
            return replace(alone, notes=(*alone.notes, *notes))
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    # plates of a subject heavier than the model carry more than the model requires
    scale = coverage.plate_mass / motion.model.mass if np.isfinite(coverage.plate_mass) else 1.0
    reaction = solve_ground_reaction(moved, curves, ground=ground)
    required = scale * reaction.on_feet()[0][..., 2]
    measured = plates.at(curves.time).force[..., 2]
    unit = scale * weight
    off = _off_plates(
        curves.time, coverage.grf_complete, required / unit, measured / unit, _inside(motion, reaction),
        MIN_PLATE_FORCE / unit,
    )  # fmt: skip
    free = np.stack([_ramps(one, curves.rate) for one in off.T], axis=1)
    loads = plates
    if free.any():
        loads = fill_loads(curves, moved, plates, free, feet, ground)
    elif is_part:  # loads of all parts of a trial have the same form
        measured_only = np.zeros(plates.force.shape[:2])
        loads = replace(plates, source=SOURCE, computed=measured_only, belt=vector(reaction.belt))
    torques = newton_euler_torques(motion, curves, loads, settings, moved, coverage)
    source = np.where(free > 0.0, "predicted", "plate")
    known = coverage.grf_complete | ~sustained_deficit(_deficit(torques) / weight, curves.time)
    frames, deficit = contact_frames(curves.time, known, off), _deficit(torques)
    if contact is not None:
        residual = torques.data["residual_force"].values, torques.data["residual_moment"].values
        near = _ramps(frames, curves.rate)
        loads = with_contact(loads, moved, curves.time, contact, residual, near)
        torques = newton_euler_torques(motion, curves, loads, settings, moved, coverage)
        source = np.column_stack([source, np.where(near > 0.0, CONTACT, "plate")])
        known = coverage.grf_complete | ~sustained_deficit(_deficit(torques) / weight, curves.time)
    torques.data["grf_known"] = (("time",), known, {"units": "1"})
    torques.data["grf_source"] = (("time", "foot"), source)
    supported = contact if frames.any() else None
    notes = (
        *coverage_notes(coverage, motion.model.mass, plates.name, off, known, supported),
        *contact_notes(curves.time, frames, deficit, motion.model.mass, contact),
    )
    return replace(torques, notes=(*torques.notes, *notes))


def _deficit(torques: Torques) -> Array:
    return np.asarray(torques.data["residual_force"].values[:, 2])


def _inside(motion: Motion, reaction: GroundReaction) -> Mask | None:
    """Return (frames, feet) where all of a sole is above plates; None if the positions of the plates are unknown."""
    if motion.recording is None or "plate_corners" not in motion.recording.data:
        return None
    inside = inside_plates(reaction.required.position, motion.recording.data["plate_corners"].values)
    return np.asarray(inside.reshape(len(inside), len(FEET), -1).all(axis=2))


def coverage_notes(
    coverage: PlateCoverage, mass: float, names: tuple[str, ...], off: Mask, known: Mask, contact: str | None = None
) -> tuple[Note, ...]:
    """Return notes on frames (frames, feet) off the plates, on the mass [kg], and on frames of unknown force.

    `contact` is the body whose external contact is estimated.
    """
    filled = [*_count_steps(names, off), *([f"the contact of {contact}"] if contact else [])]
    notes = coverage.notes(mass, " and ".join(filled) or None)
    if not known.all() and off.any():
        percent = 100.0 * float(1.0 - known.mean())
        text = (
            f"In {percent:.0f} % of frames the ground reaction force is incomplete. Leg torques in those frames are "
            "not reliable."
        )
        notes = (*notes, Note(text, "problem", "use frames with grf_known", code="grf_incomplete"))
    return notes


def fill_loads(
    curves: Derivatives,
    moved: BodyKinematics,
    plates: Loads,
    free: Array,
    feet: Feet = None,
    ground: Ground | None = None,
) -> Loads:
    """Return loads of plates where `free` (frames, loads) is 0, predicted ones where it is 1, at the plates' times."""
    now = plates.at(curves.time)
    kept = 1.0 - free[..., None]
    given = replace(now, force=kept * now.force, moment=kept * now.moment)
    balance = newton_euler(moved, given)
    reaction = solve_ground_reaction(moved, curves, PlateForces(-balance.torque[2], free), ground)
    predicted = reaction.loads(moved.model, feet)
    before, after = curves.time < plates.time[0], curves.time > plates.time[-1]
    clock = np.concatenate([curves.time[before], plates.time, curves.time[after]])
    fraction = np.stack([np.interp(clock, curves.time, one) for one in free.T], axis=1)
    first, second = plates.at(clock), predicted.at(clock)
    kept = 1.0 - fraction[..., None]
    first = replace(first, force=kept * first.force, moment=kept * first.moment)
    force, point, moment = _combine(first, second, fraction)
    return replace(
        plates, time=clock, force=force, point=point, moment=moment, source=SOURCE, computed=fraction,
        belt=predicted.belt,
    )  # fmt: skip


def _off_plates(
    time: Array, complete: Mask, required: Array, measured: Array, inside: Mask | None = None, loaded: float = 0.03
) -> Mask:
    """Return (frames, feet) where a foot stands without plate support; forces are vertical, fractions of the weight.

    `inside` (frames, feet): the sole is above plates, if that is known; `loaded`: least force of a loaded plate.
    """
    stance = required >= MIN_STANCE_FORCE
    alone = stance & (stance.sum(axis=1) == 1)[:, None]
    result, on = np.zeros_like(stance), np.zeros_like(stance)

    def lacks_support(frames: slice | NDArray[np.int64], foot: int) -> bool:
        return bool(measured[frames, foot].sum() < (1.0 - MIN_DEFICIT) * required[frames, foot].sum())

    for foot in range(stance.shape[1]):
        for start, stop in find_runs(stance[:, foot]):
            single = _lasting(alone[start:stop, foot], time[start:stop])
            stays = not single.any() if inside is None else inside[start:stop, foot].mean() >= MIN_INSIDE_FRACTION
            on[start:stop, foot] = stays and measured[start:stop, foot].max() >= loaded
            if complete[start:stop].all() or on[start, foot]:
                continue
            used = start + np.flatnonzero(single) if single.any() else slice(start, stop)
            result[start:stop, foot] = lacks_support(used, foot)
    # a foot in single support with a deficit midway leaves its plate there, or only then steps onto it
    left = ~complete & ~result.any(axis=1)
    for foot in range(stance.shape[1]):
        for start, stop in find_runs(left & alone[:, foot] & ~on[:, foot]):
            # the deficit may be deep in a few of these frames only, as at the ends of a motion, where accelerations err
            if time[stop - 1] - time[start] >= MIN_DEFICIT_DURATION and lacks_support(slice(start, stop), foot):
                first, last = next((a, b) for a, b in find_runs(stance[:, foot]) if a <= start < b)
                leaves = last - stop < start - first
                result[start if leaves else first : last if leaves else stop, foot] = True
    return result


def _lasting(on: Mask, time: Array) -> Mask:
    """Return where single support lasts: in a few frames, feet that land together differ by errors of prediction."""
    result = np.zeros_like(on)
    for start, stop in find_runs(on):
        result[start:stop] = time[stop - 1] - time[start] >= MIN_DEFICIT_DURATION
    return result


def _ramps(on: Mask, rate: float) -> Array:
    """Return 1 where it is on, falling to 0 on both sides along a cosine."""
    if not on.any():
        return np.zeros(len(on))
    index, where = np.arange(len(on)), np.flatnonzero(on)
    after = np.clip(np.searchsorted(where, index), 0, len(where) - 1)
    away = np.minimum(np.abs(where[after] - index), np.abs(where[np.maximum(after - 1, 0)] - index)) / rate
    return np.asarray(0.5 + 0.5 * np.cos(np.pi * np.clip(away / BLEND_DURATION, 0.0, 1.0)))


def _count_steps(names: tuple[str, ...], off: Mask) -> list[str]:
    counts = [(name, len(find_runs(one))) for name, one in zip(names, off.T, strict=True)]
    return [f"{n} {name} step{'s' * (n > 1)}" for name, n in counts if n]


def _combine(first: Loads, second: Loads, fraction: Array) -> tuple[Array, Array, Array]:
    """Return force, point and moment of two loads together: the same wrench, at the point between them."""
    weights = np.stack([np.maximum(one.force[..., 2], 0.0) for one in (first, second)])
    empty = weights.sum(axis=0) <= 0.0
    weights = np.where(empty, np.stack([1.0 - fraction, fraction]), weights)
    weights /= weights.sum(axis=0)
    point = weights[0][..., None] * first.point + weights[1][..., None] * second.point
    moment = sum(one.moment + np.cross(one.point - point, one.force) for one in (first, second))
    return first.force + second.force, point, np.asarray(moment)
