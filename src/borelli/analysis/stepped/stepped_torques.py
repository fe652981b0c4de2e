"""Stepped inverse dynamics of a whole motion: all is read from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import FEET, Loads, foot_bodies, plate_loads
from borelli.analysis.dynamics.plate_coverage import find_plate_coverage, write_plate_coverage
from borelli.analysis.dynamics.rnea import inertial_wrenches, forward_kinematics, weight_wrenches
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate
from borelli.analysis.motion import Motion, to_model_axes
from borelli.analysis.residual_reduction.kinematics import adjust_kinematics
from borelli.analysis.residual_reduction.loads import adjust_loads
from borelli.analysis.stepped.dataset import to_dataset
from borelli.analysis.stepped.rollout import Rollout, Trace
from borelli.analysis.stepped.soles_and_ground import SOLE, stand_on_soles
from borelli.analysis.stepped.stepper import Stepper, prepare
from borelli.analysis.stepped.substeps import at_frames, finer
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Softness
from borelli.physics.inputs import Residual
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

SOURCES = ("contacts", "plates")
ZERO = 1e-6
"""[N, N m] Rounding."""
NOTICED = 0.1
"""[%] of the positive work that the steps themselves may do before it is said."""


@dataclass(frozen=True)
class SteppedTorques(Torques):
    """Torques with all that is needed to step them again.

    Attributes:
        stepper: The model as it was stepped, with its drives, residuals and pushes.
        trace: What every step left: poses, impulses and work of every row.
    """

    stepper: Stepper | None = None
    trace: Trace | None = None

    @property
    def deviation_rms(self) -> float:
        """Root mean square deviation of turning coordinates from the motion asked for [rad]."""
        turning = self.data["coordinate_units"].values == "rad"
        return float(np.sqrt(np.mean(self.data["deviation"].values[:, turning] ** 2)))


def stepped_torques(
    motion: Motion,
    *,
    forces: str | Recording | Loads | None = None,
    filter: str = "default",
    cutoff: float | None = None,
    residual: Sequence[Residual] | float | None = None,
    limit: Mapping[str, float] | float = inf,
    tolerance: Mapping[str, float] | float = 0.0,
    trade: tuple[float, float] | None = None,
    slack: tuple[float, float] | None = None,
    doubt: tuple[float, float] | None = None,
    ground: float | None = 0.0,
    sole: Softness = SOLE,
    feet: Mapping[str, str] | None = None,
    substeps: int = 1,
) -> SteppedTorques:
    """The torques with which the model makes a motion in our own simulation, one step a frame or several.

    Args:
        motion: Of a model with masses.
        forces: What the ground supplies: None: nothing; "contacts": what the model's feet do on its ground in the
            simulation; "plates": what the plates of the motion's recording measured; or a recording or loads.
        filter: Of the coordinates: "default", "strides", "opensim" or "none", as in `derivatives`.
        cutoff: Of the filter [Hz].
        residual: Largest force and torque that hold the root body on its path although nature supplies none
            [N, N m]; or rows of one's own choice: body, lab axis, limit. By default unlimited; with contacts a spring
            of 2000 N m/rad about each axis that gives 100 N m at most, and no force.
        limit: Largest torque or force of a drive [N m or N], for all or by coordinate.
        tolerance: Deviation [rad or m] of a coordinate within which its drive does nothing, for all or by coordinate.
        trade: Deviation that is allowed to lower the residual beforehand: of the root's place [m] and of the trunk's
            angles [rad]; for measured forces. See `adjust_kinematics`.
        slack: How far the root may be from its path, along each axis [m] and by each angle [rad]: within, the residual
            is zero; at the edge it holds. Not with rows of one's own choice.
        doubt: In each measured force [N] and its centre of pressure [m]: within it they give way to what the motion
            asks for, see `adjust_loads`; None: they are as measured.
        ground: Height of level ground [m] that contacts stand on, soles made to fit it (`stand_on_soles`); None: the
            model's own shapes on its own ground.
        sole: How a corner of such a sole gives, and the ground under it [N/m, N s/m]: the default suits walking; jumps
            land on firmer ones.
        feet: Bodies of the "right" and "left" foot, where their names do not tell.
        substeps: Physics steps a frame; what the scheme adds to the energy falls as they rise.

    Raises:
        SettingsError: unknown source of forces, or there is none.
        DivergedError: a step has no solution.
    """
    contacts, loads = forces == "contacts", _loads(motion, forces, feet)
    traded: tuple[Note, ...] = ()
    asked = motion
    if trade is not None:
        if contacts:
            raise SettingsError("trade lowers the residual of measured forces; contacts have their own: see residual=")
        found = adjust_kinematics(motion, loads, shift=trade[0], turn=trade[1], filter=filter, cutoff=cutoff)
        asked, filter, traded = found.motion, "none", found.notes
    if contacts and slack is not None:
        raise SettingsError(
            "slack frees the root from measured forces; contacts hold it as residual= says: leave slack out"
        )
    if doubt is not None:
        if loads is None:
            raise SettingsError('doubt is that in measured forces, and there are none: give forces="plates" or loads')
        loads = adjust_loads(asked, loads, force=doubt[0], point=doubt[1], filter=filter, cutoff=cutoff)
    curves = differentiate(asked, filter=filter, cutoff=cutoff)
    notes = [*traded, *curves.notes, *(() if loads is None else loads.notes)]
    if contacts:
        model = curves.model
        if ground is not None:
            model = stand_on_soles(model, curves.coordinates, curves.rate, ground, feet, sole)
            notes.append(
                Note("soles were laid flat on the ground where the feet stand still", "inferred", "ground=None")
            )
        curves = replace(curves, model=model)
    fine = finer(curves, substeps)
    stepper = prepare(fine, loads, contacts, residual, limit, tolerance, substeps, slack)
    trace = Rollout(stepper.compiled).march(stepper.start(), stepper.inputs(), stepper.course(), stepper.frames)
    settings = {
        "method": "stepped", **curves.settings, "step_s": stepper.compiled.step,
        "residuals": [f"{r.body} {'force' if r.axis < 3 else 'torque'} {'xyz'[r.axis % 3]} <= {r.max_force:g}"
                      for r in stepper.residuals],
    }  # fmt: skip
    source = "contacts" if contacts else ("none" if loads is None else loads.source)
    sides = foot_bodies(motion.model, feet) if contacts or loads else None
    data = at_frames(to_dataset(fine, stepper, trace, source, sides), substeps)
    data.attrs["rate_hz"] = motion.rate
    if slack is not None:
        notes.append(_told_slack(data, slack))
    if data.attrs["numerical_percent"] > NOTICED:
        said = f"the steps themselves added {data.attrs['numerical_percent']:.2f} % of the positive work"
        notes.append(Note(said, "problem", "more substeps"))
    if loads is not None and loads.source == "plates":
        support = find_plate_coverage(asked, curves.time, _needed(curves), loads, curves.settings["cutoff_hz"])
        write_plate_coverage(data, support)
        notes += support.notes(motion.model.mass)
    if contacts and sides is not None:
        force, point, moment = (
            np.asarray(data[f"foot_{name}"].values) for name in ("force", "center_of_pressure", "free_moment")
        )
        on = tuple(sides[side] for side in FEET)
        loads = Loads(FEET, on, curves.time, force, point, moment, "contacts")
    return SteppedTorques(asked, data, settings, tuple(notes), None, loads, stepper, trace)


def _told_slack(data: Dataset, slack: tuple[float, float]) -> Note:
    """How often the residual was zero."""
    wrench = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    free = np.abs(wrench).max(axis=1) < ZERO
    acting = np.flatnonzero(~free)
    time = data["time"].values
    held = time[acting[0]] - time[0] if len(acting) else time[-1] - time[0]
    said = f"within {slack[0]:g} m and {slack[1]:g} rad the root needs no residual for {held:.2f} s, and in "
    return Note(f"{said}{100.0 * free.mean():.0f} % of all frames", "changed", "slack=None")


def _loads(motion: Motion, forces: str | Recording | Loads | None, feet: Mapping[str, str] | None) -> Loads | None:
    if forces is None or isinstance(forces, Loads) or forces == "contacts":
        return forces if isinstance(forces, Loads) else None
    if isinstance(forces, Recording):
        return plate_loads(motion.model, forces, feet)
    if forces not in SOURCES:
        raise SettingsError(unknown_name("source of forces", str(forces), SOURCES))
    if motion.recording is None:
        raise SettingsError("the motion has no recording, so there are no plates: give forces a recording or loads")
    return plate_loads(motion.model, motion.recording, feet)


def _needed(curves: Derivatives) -> Array:
    """(frames,) m (g + a) upward [N]: what must carry the body."""
    moved = forward_kinematics(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    force = (inertial_wrenches(moved) + weight_wrenches(moved))[:, 3:].sum(axis=0)
    return np.asarray((force.T @ to_model_axes(curves.model))[:, 2])
