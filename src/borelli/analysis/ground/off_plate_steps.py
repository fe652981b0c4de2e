"""Steps beside the plates: where plates do not carry the whole body, contact supplies what they miss.

A laboratory has two plates, or four, and a walk has more steps. In frames that are not covered (`support.py`) a foot
stands beside the plates, or half on one. Which one is told by its step: over single support, plates that carry much
less than the motion needs did not carry that step. What plates measured of the other foot is given; contact
(`ground.py`) finds the rest, under the feet that are free to push. Each foot's share s of computed force rises from 0
to 1 and falls again along a cosine outside the step, where hardly anything acts:

    force = (1 - s) measured + computed, which is found with s as its readiness to push.

Forces, centres of pressure and free moments of the two make one wrench.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads, predicted_loads
from borelli.analysis.dynamics.plate_coverage import MIN_DEFICIT_DURATION, MIN_DEFICIT, PlateCoverage, sustained_deficit
from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.dynamics.torques import Torques, newton_euler, newton_euler_torques
from borelli.analysis.ground.predict_grf import Given, solve_ground_reaction
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import Motion
from borelli.numerics.runs import find_runs
from borelli.recording.recording import Note

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SOURCE = "plates and predicted"
STANDS = 0.1
"""Share of the weight above which a computed force counts as standing."""
BLEND = 0.05
"""Time [s] over which forces change from measured to computed."""


def torques_with_predicted_steps(
    motion: Motion,
    curves: Derivatives,
    moved: BodyKinematics,
    plates: Loads,
    settings: Mapping[str, Any],
    feet: Mapping[str, str] | None,
) -> Torques:
    """Torques with what plates measured, and computed forces under feet that stood beside them.

    `covered` stays what the plates alone carried. `foot_source` tells of each foot and frame where its force is from:
    "plate", or "sole_contact" where any of it is computed; `known` is true where those two together carry the body.
    """
    alone = newton_euler_torques(motion, curves, plates, settings, moved)
    attrs = alone.data.attrs
    support = PlateCoverage(
        alone.data["grf_complete"].values, attrs["plate_mass_kg"], attrs["weighed_s"], bool(attrs["weighed_strides"])
    )
    if support.grf_complete.all():
        return alone
    weight = motion.model.mass * float(np.linalg.norm(motion.model.gravity))
    # plates of a subject heavier than the model carry more than the model needs
    scale = support.plate_mass / motion.model.mass if np.isfinite(support.plate_mass) else 1.0
    needed = scale * solve_ground_reaction(moved, curves).on_feet()[0][..., 2]
    measured = plates.at(curves.time).force[..., 2]
    beside = _off_plates(curves.time, support.grf_complete, needed / (scale * weight), measured / (scale * weight))
    free = np.stack([_ramps(one, curves.rate) for one in beside.T], axis=1)
    loads = fill(curves, moved, plates, free, feet)
    found = newton_euler_torques(motion, curves, loads, settings, moved, support)
    lack = found.data["residual_force"].values[:, 2] / weight
    known = support.grf_complete | ~sustained_deficit(lack, curves.time)
    found.data["grf_known"] = (("time",), known, {"units": "1"})
    found.data["grf_source"] = (("time", "foot"), np.where(free > 0.0, "predicted", "plate"))
    notes = (*found.notes, *support.notes(motion.model.mass, _steps(plates.name, beside)))
    if not known.all():
        share = 100.0 * float(1.0 - known.mean())
        said = f"in {share:.0f} % of the frames neither plates nor feet on the ground carry the body"
        notes = (
            *notes,
            Note(f"{said}: torques of the legs mean little there", "problem", "look at frames that are known"),
        )
    return replace(found, notes=notes)


def stepped_beside(motion: Motion, feet: Mapping[str, str] | None = None, **settings: Any) -> Torques:
    """The stepped torques with such loads; `settings` are those of `stepped_torques`."""
    from borelli.analysis.dynamics.torques import inverse_dynamics
    from borelli.analysis.stepped.marker_driven_ik import stepped_torques

    smooth = inverse_dynamics(motion, forces=SOURCE, filter=settings["filter"], cutoff=settings["cutoff"], feet=feet)
    found = stepped_torques(motion, forces=smooth.loads, feet=feet, **settings)
    told = [name for name in ("grf_complete", "grf_known", "grf_source") if name in smooth.data]
    at = smooth.data[told].sel(time=found.data["time"].values, method="nearest").assign_coords(time=found.data["time"])
    data = found.data.assign({name: at[name] for name in told})
    data.attrs["plate_mass_kg"] = smooth.data.attrs["plate_mass_kg"]
    return replace(found, data=data, notes=tuple(dict.fromkeys((*found.notes, *smooth.notes))))


def fill(curves: Derivatives, moved: BodyKinematics, plates: Loads, free: Array, feet: Mapping[str, str] | None = None) -> Loads:
    """Loads of plates where `free` (frames, loads) is 0, computed ones where it is 1, at the times of the plates."""
    now = plates.at(curves.time)
    kept = 1.0 - free[..., None]
    given = replace(now, force=kept * now.force, moment=kept * now.moment)
    balance = newton_euler(moved, given)
    ground = solve_ground_reaction(moved, curves, given=Given(-balance.torque[2], free))
    contacts = predicted_loads(moved.model, ground.time, *ground.on_feet(), ground.belt, feet)
    before, after = curves.time < plates.time[0], curves.time > plates.time[-1]
    clock = np.concatenate([curves.time[before], plates.time, curves.time[after]])
    share = np.stack([np.interp(clock, curves.time, one) for one in free.T], axis=1)
    first, second = plates.at(clock), contacts.at(clock)
    kept = 1.0 - share[..., None]
    first = replace(first, force=kept * first.force, moment=kept * first.moment)
    force, point, moment = _combine(first, second, share)
    return replace(
        plates, time=clock, force=force, point=point, moment=moment, source=SOURCE, computed=share, belt=contacts.belt
    )


def _off_plates(time: Array, covered: Mask, needed: Array, measured: Array) -> Mask:
    """(frames, feet) whether a foot stands where plates do not carry it; forces are vertical, parts of the weight."""
    stands = needed >= STANDS
    alone = stands & (stands.sum(axis=1) == 1)[:, None]
    result = np.zeros_like(stands)
    for foot in range(stands.shape[1]):
        for start, stop in find_runs(stands[:, foot]):
            if covered[start:stop].all():
                continue
            single = alone[start:stop, foot]
            told = single if single.any() else np.ones(stop - start, bool)
            carried, asked = (values[start:stop, foot][told].sum() for values in (measured, needed))
            result[start:stop, foot] = carried < (1.0 - MIN_DEFICIT) * asked
    # a foot that stands alone and yet lacks half-way leaves its plate there, or only then comes onto it
    left = ~covered & ~result.any(axis=1)
    for foot in range(stands.shape[1]):
        for start, stop in find_runs(left & alone[:, foot]):
            if time[stop - 1] - time[start] >= MIN_DEFICIT_DURATION:
                first, last = next((a, b) for a, b in find_runs(stands[:, foot]) if a <= start < b)
                leaves = last - stop < start - first
                result[start if leaves else first : last if leaves else stop, foot] = True
    return result


def _ramps(on: Mask, rate: float) -> Array:
    """1 where it is on, falling to 0 beside along a cosine."""
    if not on.any():
        return np.zeros(len(on))
    index, where = np.arange(len(on)), np.flatnonzero(on)
    after = np.clip(np.searchsorted(where, index), 0, len(where) - 1)
    away = np.minimum(np.abs(where[after] - index), np.abs(where[np.maximum(after - 1, 0)] - index)) / rate
    return np.asarray(0.5 + 0.5 * np.cos(np.pi * np.clip(away / BLEND, 0.0, 1.0)))


def _steps(names: tuple[str, ...], beside: Mask) -> str:
    """How many steps of each foot were filled in, in words."""
    counts = [(name, len(find_runs(one))) for name, one in zip(names, beside.T, strict=True)]
    return " and ".join(f"{n} {name} step{'s' * (n > 1)}" for name, n in counts if n) or "no foot"


def _combine(first: Loads, second: Loads, share: Array) -> tuple[Array, Array, Array]:
    """Force, point and moment of two loads at once: the same wrench, at the point between them."""
    weights = np.stack([np.maximum(one.force[..., 2], 0.0) for one in (first, second)])
    empty = weights.sum(axis=0) <= 0.0
    weights = np.where(empty, np.stack([1.0 - share, share]), weights)
    weights /= weights.sum(axis=0)
    point = weights[0][..., None] * first.point + weights[1][..., None] * second.point
    moment = sum(one.moment + np.cross(one.point - point, one.force) for one in (first, second))
    return first.force + second.force, point, np.asarray(moment)
