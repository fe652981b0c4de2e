"""Loads: measured forces on bodies, brought to the times and axes of a motion.

A load is a force [N], its point of application [m] and a moment about that point [N m], on one body. Plates give one
for each foot (`assign_plates`); OpenSim's external loads say which columns of a table act on which body. Between
samples all three are interpolated linearly. While a point of application is not known, because hardly anything is on
the plate, the nearest known one in time stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.model import Model
from borelli.model.transforms import vector
from borelli.numerics.filters import lowpass
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.landmarks import identify_landmark
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]

FEET = ("right", "left")
FOOT_PARTS = ("heel", "foot", "toe", "ankle")
"""Names by which a foot's body is known, the best first."""
MAX_EXTRAPOLATION = 0.02
"""Frames may lie this long [s] before the first or after the last sample of the plates."""


@dataclass(frozen=True)
class Loads:
    """Forces on bodies, lab axes, z up.

    Attributes:
        name: Of each load, such as "right".
        body: The body each acts on.
        time: (samples,) [s]
        force: (samples, loads, 3) on the body [N].
        point: (samples, loads, 3) of application [m]; not a number where unknown.
        moment: (samples, loads, 3) about that point [N m].
        source: "plates", "contacts" or "plates and predicted".
        notes: What was decided.
        belt: Velocity of the ground [m/s], where it is known.
        computed: (samples, loads) from 0, measured, to 1, computed; None: all of one source.
    """

    name: tuple[str, ...]
    body: tuple[str, ...]
    time: Array
    force: Array
    point: Array
    moment: Array
    source: str = "plates"
    notes: tuple[Note, ...] = ()
    belt: tuple[float, float, float] | None = None
    computed: Array | None = None

    def at(self, time: Array) -> Loads:
        """The loads at other times [s]; nothing acts before the first and after the last sample."""
        if np.array_equal(time, self.time):
            force, point, moment = self.force, _filled(self.point), self.moment
        else:
            force, point, moment = (
                _interpolated(time, self.time, values) for values in (self.force, _filled(self.point), self.moment)
            )
        outside = (time < self.time[0] - MAX_EXTRAPOLATION) | (time > self.time[-1] + MAX_EXTRAPOLATION)
        force, moment = (np.where(outside[:, None, None], 0.0, values) for values in (force, moment))
        computed = self.computed
        if computed is not None:
            computed = _interpolated(time, self.time, computed[..., None])[..., 0]
        return replace(self, time=time, force=force, point=point, moment=moment, computed=computed)

    def smoothed(self, cutoff: float) -> Loads:
        """The loads with forces and moments low-passed at the cutoff [Hz], points of application as they are."""
        rate = (len(self.time) - 1) / (self.time[-1] - self.time[0])
        force, moment = (lowpass(values, rate, cutoff) for values in (self.force, self.moment))
        said = Note(f"ground forces low-passed at {cutoff:g} Hz", "changed")
        return replace(self, force=force, point=_filled(self.point), moment=moment, notes=(*self.notes, said))


def foot_bodies(model: Model, feet: Mapping[str, str] | None = None) -> dict[str, str]:
    """The body that carries what the ground exerts on each foot: {"right": ..., "left": ...}.

    Args:
        model: The model.
        feet: Bodies by side, where their names do not tell.

    Raises:
        ModelError: a body is unknown, or the names of bodies do not tell which is a foot.
    """
    names = [body.name for body in model.bodies]
    found = dict(feet or {})
    for side, name in found.items():
        if side not in FEET:
            raise SettingsError(unknown_name("foot", side, FEET))
        if name not in names:
            raise ModelError(unknown_name("body", name, names))
    meanings = [(name, meaning) for name in names if (meaning := identify_landmark(name))]
    for side in FEET:
        if side in found:
            continue
        candidates = [
            name for part in FOOT_PARTS for name, meaning in meanings if (meaning.part, meaning.side) == (part, side)
        ]
        if not candidates:
            raise ModelError(
                f"model {model.name!r}: no body is known as the {side} foot; its bodies are {', '.join(names)}. "
                f'Say which: feet={{"right": ..., "left": ...}}'
            )
        found[side] = candidates[0]
    return {side: found[side] for side in FEET}


def plate_loads(model: Model, recording: Recording, feet: Mapping[str, str] | None = None) -> Loads:
    """What plates measured, given to the feet that stood on them.

    Raises:
        SettingsError: the recording has no plates, or no foot stood on them.
    """
    given = recording
    if "ground_reaction_force" not in given.data:
        if "plate_force" not in given.data:
            raise SettingsError(f"{recording.name or 'the recording'} has no plates; use forces=None or contacts")
        given = assign_plates(recording)
    if "ground_reaction_force" not in given.data:
        raise SettingsError(
            f"{recording.name or 'the recording'}: no foot stood on a plate, as far as heel and toe markers show; "
            f"see `borelli doctor`, or say which body each plate pushes"
        )
    bodies = foot_bodies(model, feet)
    data = given.data.sel(foot=list(FEET))
    force, point, moment = (
        np.asarray(data[f"foot_{name}"].values, dtype=float) for name in ("force", "center_of_pressure", "free_moment")
    )
    notes = tuple(note for note in given.notes if note not in recording.notes)
    clock = np.asarray(data["analog_time"].values, dtype=float)
    return measured_loads(FEET, tuple(bodies[side] for side in FEET), clock, force, point, moment, notes)


def measured_loads(
    name: tuple[str, ...],
    body: tuple[str, ...],
    time: Array,
    force: Array,
    point: Array,
    moment: Array,
    notes: tuple[Note, ...] = (),
) -> Loads:
    """Loads of plates; samples without a force carry none, which is told.

    Raises:
        SettingsError: there are fewer than two samples.
    """
    if len(time) < 2:
        raise SettingsError(f"ground forces have {len(time)} samples, but at least two are needed")
    lost = np.asarray(~(np.isfinite(force) & np.isfinite(moment)).all(axis=-1))
    if lost.any():
        said = f"{int(lost.any(axis=1).sum())} of {len(time)} samples of the plates are no numbers: taken as no load"
        notes = (*notes, Note(said, "problem", "borelli doctor"))
    force, moment = (np.where(lost[..., None], 0.0, values) for values in (force, moment))
    return Loads(name, body, time, force, point, moment, "plates", notes)


def predicted_loads(
    model: Model,
    time: Array,
    force: Array,
    point: Array,
    moment: Array,
    belt: Array,
    feet: Mapping[str, str] | None = None,
) -> Loads:
    """Ground forces computed from contact, on the bodies of the feet."""
    bodies = foot_bodies(model, feet)
    on = tuple(bodies[side] for side in FEET)
    return Loads(FEET, on, time, force, point, moment, "contacts", belt=vector(belt))


def _filled(point: Array) -> Array:
    """Points of application with the nearest known one in time where unknown; the origin where none is known."""
    result = point.copy()
    index = np.arange(len(point))
    for load in range(point.shape[1]):
        known = np.flatnonzero(np.isfinite(point[:, load]).all(axis=-1))
        if not len(known):
            result[:, load] = 0.0
        elif len(known) < len(point):
            after = np.clip(np.searchsorted(known, index), 0, len(known) - 1)
            before = np.clip(after - 1, 0, None)
            nearer = np.where(np.abs(known[after] - index) < np.abs(known[before] - index), after, before)
            result[:, load] = point[known[nearer], load]
    return result


def _interpolated(time: Array, clock: Array, values: Array) -> Array:
    """Values (samples, loads, 3) at other times, linearly; the end values beyond the ends."""
    after = np.clip(np.searchsorted(clock, time), 1, len(clock) - 1)
    share = np.clip((time - clock[after - 1]) / (clock[after] - clock[after - 1]), 0.0, 1.0)[:, None, None]
    return np.asarray((1.0 - share) * values[after - 1] + share * values[after])
