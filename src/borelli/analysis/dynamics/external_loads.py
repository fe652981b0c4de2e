"""External loads: forces on bodies, interpolated to the times of a motion.

A load is a force [N], its point of application [m] and a moment about that point [N m], on one body. Force plates give
one per foot (`assign_plates`); OpenSim's external loads state which columns of a table act on which body. Between
samples all three are interpolated linearly. Where the point of application is unknown, because the plate is hardly
loaded, the nearest known one in time is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import fields_repr
from borelli.model.model import Model
from borelli.numerics.filters import OPENSIM_ORDER, ORDER, cutoff_of_both_passes, lowpass
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.wrench_filter import fill_points, filter_wrench
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.landmarks import identify_bodies
from borelli.recording.recording import Note, Recording

Feet = Mapping[str, str] | None
"""Bodies of the "right" and "left" foot, where their names do not identify them."""

FEET = ("right", "left")
FOOT_PARTS = ("heel", "foot", "toe", "ankle")
"""Body parts that identify the foot's body, in order of preference."""
FOOT_VARIABLES = ("ground_reaction_force", "center_of_pressure", "free_moment")
"""Dataset variables of the load on each foot."""
MAX_EXTRAPOLATION = 0.02
"""[s] Frames may lie this long before the first or after the last sample of the plates."""


@dataclass(frozen=True)
class Loads:
    """Forces on bodies, lab axes, z up.

    Attributes:
        name: Of each load, such as "right".
        body: Body that each load acts on.
        time: (samples,) [s].
        force: (samples, loads, 3) on the body [N].
        point: (samples, loads, 3) of application [m]; NaN where unknown.
        moment: (samples, loads, 3) about that point [N m].
        source: "plates", "predicted", "contacts" or "plates and predicted".
        notes: Assumptions and changes.
        belt: Velocity of the ground [m/s]; None: unknown.
        computed: (samples, loads) fraction that is predicted, 0 to 1; None: all loads have the same source.
        cutoff: Cutoff of the low-pass filter that `smoothed` applied [Hz]; None: the loads are as given.
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
    cutoff: float | None = None

    __repr__ = fields_repr

    @property
    def rate(self) -> float:
        """Mean number of samples per second [Hz]."""
        return float((len(self.time) - 1) / (self.time[-1] - self.time[0]))

    @check_arguments
    def at(self, time: Array) -> Loads:
        """Return the loads at other times [s]; they are zero before the first and after the last sample."""
        force, point, moment = self.force, fill_points(self.point), self.moment
        if not np.array_equal(time, self.time):
            force, point, moment = (_interpolate(time, self.time, values) for values in (force, point, moment))
        outside = (time < self.time[0] - MAX_EXTRAPOLATION) | (time > self.time[-1] + MAX_EXTRAPOLATION)
        force, moment = (np.where(outside[:, None, None], 0.0, values) for values in (force, moment))
        computed = self.computed
        if computed is not None:
            computed = _interpolate(time, self.time, computed[..., None])[..., 0]
        return replace(self, time=time, force=force, point=point, moment=moment, computed=computed)

    @check_arguments
    def moved(self, offset: ArrayLike) -> Loads:
        """Return measured loads at points displaced by a constant (3,) [m]; other loads as they are."""
        if self.source != "plates":
            return self
        return replace(self, point=self.point + np.asarray(offset, dtype=float))

    @check_arguments
    def smoothed(self, cutoff: float, order: int = ORDER) -> Loads:
        """Return the loads low-pass filtered as wrenches about a fixed point, like coordinates of a motion.

        Args:
            cutoff: Cutoff of each pass of the filter [Hz], as in `differentiate`.
            order: Filter order of both passes together.
        """
        if not 0.0 < cutoff < 0.5 * self.rate:
            raise SettingsError(
                f"plate cutoff: {cutoff:g} Hz is not between 0 and the Nyquist frequency of the plates "
                f"({0.5 * self.rate:g} Hz). Choose a lower cutoff."
            )
        both = cutoff_of_both_passes(cutoff, self.rate, order)
        force, point, moment = filter_wrench(
            self.force, self.point, self.moment, lambda values: lowpass(values, self.rate, both, order)
        )
        text = (
            f"Measured ground reaction forces are low-pass filtered at {cutoff:g} Hz, as wrenches about a fixed point. "
            "The recording has them unfiltered."
        )
        note = Note(text, "changed", "--plate-cutoff", code="plate_cutoff")
        return replace(self, force=force, point=point, moment=moment, notes=(*self.notes, note), cutoff=float(cutoff))

    @check_arguments
    def matched(self, settings: Mapping[str, Any], plate_cutoff: float | None = None) -> Loads:
        """Return measured loads with the low-pass filter of the motion; other loads, and filtered ones, as they are.

        Args:
            settings: Filter and cutoff of the motion, as in `Derivatives`.
            plate_cutoff: Cutoff [Hz]; 0: no filter; None: that of the motion. OpenSim filters coordinates only, and so
                does its preset.
        """
        if self.source != "plates" or self.cutoff is not None or plate_cutoff == 0.0:
            return self
        opensim = settings["filter"] == "opensim"
        if plate_cutoff is None:
            plate_cutoff = settings["cutoff_hz"]
            # slowly sampled loads have nothing above the cutoff
            if opensim or plate_cutoff is None or not plate_cutoff < 0.5 * self.rate:
                return self
        return self.smoothed(plate_cutoff, OPENSIM_ORDER if opensim else ORDER)


def foot_bodies(model: Model, feet: Feet = None) -> dict[str, str]:
    """Return the bodies of the "right" and "left" foot: those of `feet`, else those that their names identify."""
    names = [body.name for body in model.bodies]
    result = dict(feet or {})
    for side, name in result.items():
        if side not in FEET:
            raise SettingsError(unknown_name("foot", side, FEET))
        if name not in names:
            raise ModelError(unknown_name("body", name, names))
    landmarks = [(name, found) for name, found in zip(names, identify_bodies(names), strict=True) if found]
    for side in FEET:
        if side in result:
            continue
        candidates = [name for part in FOOT_PARTS for name, it in landmarks if (it.part, it.side) == (part, side)]
        if not candidates:
            raise ModelError(
                f"Model {model.name!r}: No body is recognized as the {side} foot (bodies: {', '.join(names)}). "
                f'Name the foot bodies with feet={{"right": ..., "left": ...}}.'
            )
        result[side] = candidates[0]
    return {side: result[side] for side in FEET}


def name_by_feet(loads: Loads) -> Loads:
    """Return the loads with those on feet named "right" and "left", unless several act on one foot."""
    found = identify_bodies(loads.body)
    sides = [it.side if it is not None and it.part in FOOT_PARTS and it.side in FEET else "" for it in found]
    names = tuple(
        side if side and sides.count(side) == 1 else name for side, name in zip(sides, loads.name, strict=True)
    )
    return replace(loads, name=names) if len(set(names)) == len(names) else loads


def plate_loads(model: Model, recording: Recording, feet: Feet = None) -> Loads:
    """Return the loads that force plates measured, one per foot on them; `feet` as in `foot_bodies`."""
    assigned = recording
    where = recording.name or "Recording"
    if "ground_reaction_force" not in assigned.data:
        if "plate_force" not in assigned.data:
            raise SettingsError(
                f'{where}: The recording has no force plates. Use forces="predicted" or forces=None, or pass a '
                "recording with plates."
            )
        assigned = assign_plates(recording)
    if "ground_reaction_force" not in assigned.data:
        raise SettingsError(
            f"{where}: No foot was on a force plate, judging by heel and toe markers. Check the recording with "
            "`borelli doctor`, or pass loads that name the body of each plate."
        )
    bodies = tuple(foot_bodies(model, feet).values())
    data = assigned.data.sel(foot=list(FEET))
    force, point, moment = (np.asarray(data[name].values, dtype=float) for name in FOOT_VARIABLES)
    notes = tuple(note for note in assigned.notes if note not in recording.notes)
    clock = np.asarray(data["analog_time"].values, dtype=float)
    return measured_loads(Loads(FEET, bodies, clock, force, point, moment, "plates", notes))


def measured_loads(loads: Loads) -> Loads:
    """Return loads measured by plates with samples that are NaN as zero load, which a note reports."""
    if len(loads.time) < 2:
        raise SettingsError(
            f"Ground reaction forces: At least 2 samples are needed, but there are {len(loads.time)}. Use a longer "
            "recording."
        )
    lost = np.asarray(~(np.isfinite(loads.force) & np.isfinite(loads.moment)).all(axis=-1))
    notes = loads.notes
    if lost.any():
        text = f"{int(lost.any(axis=1).sum())} of {len(lost)} force-plate samples are NaN and count as zero load."
        notes = (*notes, Note(text, "problem", "borelli doctor", code="plate_nan"))
    force, moment = (np.where(lost[..., None], 0.0, values) for values in (loads.force, loads.moment))
    return replace(loads, force=force, moment=moment, notes=notes)


def _interpolate(time: Array, clock: Array, values: Array) -> Array:
    """Return values (samples, loads, 3) at other times, linearly; the end values beyond the ends."""
    after = np.clip(np.searchsorted(clock, time), 1, len(clock) - 1)
    fraction = np.clip((time - clock[after - 1]) / (clock[after] - clock[after - 1]), 0.0, 1.0)[:, None, None]
    return np.asarray((1.0 - fraction) * values[after - 1] + fraction * values[after])
