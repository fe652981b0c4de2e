"""Stepped inverse dynamics of a motion: torques from the impulses of simulation steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.dynamics.external_loads import FEET, FOOT_VARIABLES, Feet, Loads, foot_bodies, plate_loads
from borelli.analysis.dynamics.plate_coverage import find_plate_coverage, write_plate_coverage
from borelli.analysis.dynamics.rnea import forward_kinematics, inertial_wrenches, weight_wrenches
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate, filter_settings
from borelli.analysis.motion import Motion, to_model_axes
from borelli.analysis.residual_reduction.kinematics import adjust_kinematics
from borelli.analysis.residual_reduction.loads import adjust_loads
from borelli.analysis.stepped.dataset import to_dataset
from borelli.analysis.stepped.rollout import Rollout, StepRecord
from borelli.analysis.stepped.soles_and_ground import SOLE_SOFTNESS, add_soles
from borelli.analysis.stepped.stepper import StepOptions, Stepper, prepare_stepper
from borelli.analysis.stepped.substeps import average_to_frames, subdivide
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Softness
from borelli.numerics.vectors import Array
from borelli.physics.inputs import Residual
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

SOURCES = ("contacts", "plates")
ZERO_WRENCH = 1e-6
"""Residual force and moment that count as zero [N, N m]."""
MAX_NUMERICAL_PERCENT = 0.1
"""Work of the scheme that is not reported [% of the positive work]."""


@dataclass(frozen=True, repr=False)
class SteppedTorques(Torques):
    """Torques with everything needed to replay them.

    Attributes:
        stepper: The stepped model, with its drives, residuals and loads.
        record: Poses, impulses and work of every row and step.
    """

    stepper: Stepper | None = None
    record: StepRecord | None = None

    @property
    def rms_error(self) -> float:
        """RMS tracking error of rotational coordinates [rad]."""
        rotational = self.data["coordinate_units"].values == "rad"
        return float(np.sqrt(np.mean(self.data["coordinate_error"].values[:, rotational] ** 2)))


def stepped_torques(
    motion: Motion,
    *,
    forces: str | Recording | Loads | None = None,
    filter: str = "default",
    cutoff: float | None = None,
    plate_cutoff: float | None = None,
    residual: Sequence[Residual] | float | None = None,
    max_force: Mapping[str, float] | float = inf,
    tolerance: Mapping[str, float] | float = 0.0,
    kinematic_tolerance: tuple[float, float] | None = None,
    root_tolerance: tuple[float, float] | None = None,
    load_sd: tuple[float, float] | None = None,
    ground: float | None = 0.0,
    sole_softness: Softness = SOLE_SOFTNESS,
    feet: Feet = None,
    substeps: int = 1,
) -> SteppedTorques:
    """Compute the torques with which a simulated model performs a motion, with one or several steps per frame.

    Args:
        motion: Motion of a model with masses.
        forces: Source of ground reaction forces. None: none; "contacts": simulated contact of the feet with the
            ground; "plates": the plates of the motion's recording; or a recording or loads.
        filter: Filter of the coordinates: "default", "strides", "opensim" or "none", as in `differentiate`.
        cutoff: Cutoff of the filter [Hz]. Default: 6.
        plate_cutoff: Cutoff of the same filter on measured forces [Hz]; 0: no filter. Default: `cutoff`.
        residual: Largest residual force and moment on the root [N, N m]; or rows: body, lab axis, limit. Default:
            unlimited; with contacts, a spring of 2000 N m/rad about each axis, limited to 100 N m, and no force.
        max_force: Largest torque or force of a drive [N m or N], for all or by coordinate.
        tolerance: Tracking error [rad or m] within which a drive does nothing, for all or by coordinate.
        kinematic_tolerance: Largest adjustment of the root's position [m] and of the trunk's angles [rad] to reduce
            the residual first; for measured forces. See `adjust_kinematics`.
        root_tolerance: Largest tracking error of the root along each axis [m] and of each angle [rad]: within it the
            residual is zero, at its edge it acts. Not with rows in `residual`.
        load_sd: Standard deviation of each measured force [N] and its center of pressure [m], within which they are
            adjusted to the motion. See `adjust_loads`. None: as measured.
        ground: Height of level ground [m] for contacts, with soles fitted to it (`add_soles`). None: the model's own
            shapes on its own ground.
        sole_softness: Softness of a corner of such a sole, and of the ground [N/m, N s/m]. The default suits walking;
            jumps need stiffer soles.
        feet: Bodies of the "right" and "left" foot. Default: by name.
        substeps: Physics steps per frame; numerical work falls as they increase.

    Returns:
        Torques, residuals, ground reaction and power, with the record of all steps.

    Raises:
        SettingsError: An option is not valid, or there are no forces.
        DivergedError: A step has no solution.
    """
    contacts, loads = forces == "contacts", _loads(motion, forces, feet)
    if loads is not None:
        loads = loads.matched(filter_settings(filter, cutoff), plate_cutoff)
    adjusted: tuple[Note, ...] = ()
    target = motion
    if kinematic_tolerance is not None:
        if contacts:
            raise SettingsError("kinematic_tolerance: It applies to measured forces. Use residual= with contacts.")
        translation, rotation = kinematic_tolerance
        result = adjust_kinematics(
            motion, loads, max_translation=translation, max_rotation=rotation, filter=filter, cutoff=cutoff
        )
        target, adjusted = result.motion, result.notes
    if contacts and root_tolerance is not None:
        raise SettingsError("root_tolerance: It applies to measured forces. Use residual= with contacts.")
    if load_sd is not None:
        if loads is None:
            raise SettingsError('load_sd: There are no measured forces. Pass forces="plates" or loads.')
        loads = adjust_loads(target, loads, force_sd=load_sd[0], point_sd=load_sd[1], filter=filter, cutoff=cutoff)
    curves = differentiate(target, filter=filter, cutoff=cutoff)
    notes = [*adjusted, *curves.notes, *(() if loads is None else loads.notes)]
    if contacts:
        text = "Simulated contacts supply the ground reaction force: the joint torques of the legs contain chatter."
        notes.append(Note(text, "problem", 'forces="predicted"', code="contact_chatter"))
        model = curves.model
        if ground is not None:
            model = add_soles(model, curves.coordinates, curves.rate, ground, feet, sole_softness)
            text = "Soles were fitted flat to the ground in the frames in which the feet are stationary."
            notes.append(Note(text, "inferred", "ground=None", code="soles"))
        curves = replace(curves, model=model)
    fine = subdivide(curves, substeps)
    options = StepOptions(residual, max_force, tolerance, root_tolerance)
    stepper = prepare_stepper(fine, loads, contacts, options, substeps)
    rollout = Rollout(stepper.compiled)
    record = rollout.run(stepper.initial_state(), stepper.inputs(), stepper.step_inputs(), stepper.frames)
    settings = {
        "method": "stepped", **curves.settings, "plate_cutoff_hz": None if loads is None else loads.cutoff,
        "step_s": stepper.compiled.step,
        "residuals": [f"{r.body} {'force' if r.axis < 3 else 'torque'} {'xyz'[r.axis % 3]} <= {r.max_force:g}"
                      for r in stepper.residuals],
    }  # fmt: skip
    source = "contacts" if contacts else ("none" if loads is None else loads.source)
    sides = foot_bodies(motion.model, feet) if contacts or loads else None
    data = average_to_frames(to_dataset(fine, stepper, record, source, sides), substeps)
    data.attrs["rate_hz"] = motion.rate
    if root_tolerance is not None:
        notes.append(_root_tolerance_note(data, root_tolerance))
    if data.attrs["numerical_percent"] > MAX_NUMERICAL_PERCENT:
        text = f"The steps added {data.attrs['numerical_percent']:.2f} % of the positive work numerically."
        notes.append(Note(text, "problem", "substeps", code="numerical_work"))
    if loads is not None and loads.source == "plates":
        cutoff_hz = curves.settings["cutoff_hz"]
        coverage = find_plate_coverage(target, curves.time, _vertical_force(curves), loads, cutoff_hz)
        write_plate_coverage(data, coverage)
        notes += coverage.notes(motion.model.mass)
    if contacts and sides is not None:
        force, point, moment = (np.asarray(data[name].values) for name in FOOT_VARIABLES)
        loads = Loads(FEET, tuple(sides.values()), curves.time, force, point, moment, "contacts")
    return SteppedTorques(target, data, settings, tuple(notes), None, loads, stepper, record)


def _root_tolerance_note(data: Dataset, root_tolerance: tuple[float, float]) -> Note:
    wrench = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    free = np.abs(wrench).max(axis=1) < ZERO_WRENCH
    acting = np.flatnonzero(~free)
    time = data["time"].values
    duration = time[acting[0]] - time[0] if len(acting) else time[-1] - time[0]
    text = (
        f"Within {root_tolerance[0]:g} m and {root_tolerance[1]:g} rad the root needs no residual for {duration:.2f} s "
        f"and in {100.0 * free.mean():.0f} % of all frames."
    )
    return Note(text, "changed", "root_tolerance=None", code="root_tolerance")


def _loads(motion: Motion, forces: str | Recording | Loads | None, feet: Feet) -> Loads | None:
    if forces is None or isinstance(forces, Loads) or forces == "contacts":
        return forces if isinstance(forces, Loads) else None
    if isinstance(forces, Recording):
        return plate_loads(motion.model, forces, feet)
    if forces not in SOURCES:
        raise SettingsError(unknown_name("source of forces", str(forces), SOURCES))
    if motion.recording is None:
        raise SettingsError("forces: The motion has no recording with plates. Pass a recording or loads.")
    return plate_loads(motion.model, motion.recording, feet)


def _vertical_force(curves: Derivatives) -> Array:
    """Return (frames,) m (g + a) upward [N]."""
    moved = forward_kinematics(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    force = (inertial_wrenches(moved) + weight_wrenches(moved))[:, 3:].sum(axis=0)
    return np.asarray((force.T @ to_model_axes(curves.model))[:, 2])
