"""Inverse dynamics of a partial body: moments from the ground up, and nothing that needs the missing parts.

Moments of a leg need its own segments and the load on its foot, as gait laboratories compute them. The load is known
where a force plate carries the foot alone, and while the foot is in the air. Everything else is NaN: moments of a leg
that stands off the plates, the residual, and the force on a foot that no plate measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.ground.contact_detection import contact_confidence, ground_levels
from borelli.analysis.ground.predict_grf import find_ground
from borelli.analysis.ground.required_wrench import required_wrench
from borelli.analysis.ground.soles import FEET, POINTS
from borelli.analysis.motion import root_columns
from borelli.model.model import GROUND, Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.people.partial import LEGS, subtree, tracked_legs
from borelli.recording.recording import MIN_PLATE_FORCE, Note

if TYPE_CHECKING:
    from xarray import Dataset

Mask = NDArray[np.bool_]

MIN_CONTACT = 0.5
"""Confidence of contact above which a foot is on the ground."""
MIN_CARRIED_FRACTION = 0.8
"""Fraction of the frames of a step in which a plate must carry the foot; else the step is off the plates."""
MAX_PRESSURE_DISTANCE = 0.1
"""[m] of the center of pressure from the middle line of a sole, which is 0.1 m broad: beyond, the plate carries both
feet."""
MIN_STEP_FORCE = 0.3
"""Mean vertical force of a step, as a fraction of the weight, below which it is half on a plate; standing has 0.5."""


def leave_out_unknown(torques: Torques, kinematics: BodyKinematics) -> Torques:
    """Return the torques of a partial body with everything that is not known as NaN."""
    model = torques.motion.model
    data = torques.data.copy()
    known = known_feet(torques, kinematics)
    names = [c.name for c in model.coordinates]
    joints = [str(name) for name in data["joint"].values]
    base = {joint.name for joint in model.joints if joint.kind == "fixed" or joint.parent == GROUND}
    unknown = np.zeros((len(known), len(names)), bool)
    unknown[:, root_columns(model)] = True
    unknown_joints = np.tile([name in base for name in joints], (len(known), 1))
    for foot, leg in enumerate(LEGS):
        for joint in subtree(model, model.joint(leg)):
            unknown_joints[:, joints.index(joint.name)] |= ~known[:, foot]
            for coordinate in joint.coordinates:
                unknown[:, names.index(coordinate.name)] |= ~known[:, foot]
    _blank(data, ("residual_force", "residual_moment"), np.ones(len(known), bool))
    _blank(data, ("torque", "torque_inertial", "torque_gravity", "torque_ground"), unknown)
    _blank(data, ("joint_reaction_force", "joint_reaction_moment"), unknown_joints)
    if "ground_reaction_force" in data:
        _blank(data, ("ground_reaction_force", "center_of_pressure", "free_moment"), ~known)
    data["grf_known"] = (("time",), np.zeros(len(known), bool), {"units": "1"})  # of the whole body
    if "grf_complete" in data:
        data["grf_complete"] = data["grf_known"]
    return replace(torques, data=data, notes=(*_other_notes(torques.notes), _note(model, known)))


def known_feet(torques: Torques, kinematics: BodyKinematics) -> Mask:
    """Return whether the load on each foot (frames, feet) is known: it is on a plate of its own, or in the air."""
    ground = find_ground(kinematics)
    soles = required_wrench(kinematics, ground.soles)
    frames, shape = len(soles.position), (len(soles.position), len(FEET), len(POINTS))
    height = np.concatenate(
        [part[..., 2] - ground_levels(part) for part in np.split(soles.position, len(FEET), axis=1)], axis=1
    )
    contact = contact_confidence(height, soles.velocity, ground.velocity).reshape(shape).max(axis=2) > MIN_CONTACT
    force, away = np.zeros((frames, len(FEET))), np.zeros((frames, len(FEET)))
    if "ground_reaction_force" in torques.data:
        data = torques.data.sel(foot=list(FEET))
        force = data["ground_reaction_force"].values[..., 2]
        away = _distance_from_soles(data["center_of_pressure"].values, soles.position.reshape(*shape, 3))
    carried = force > MIN_PLATE_FORCE
    known = np.asarray(carried | ~contact)
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    for foot in range(len(FEET)):
        for start, stop in find_runs(contact[:, foot] | carried[:, foot]):
            step = slice(start, stop), foot
            shared = carried[step].any() and np.nanmedian(away[step][carried[step]]) > MAX_PRESSURE_DISTANCE
            if shared or carried[step].mean() < MIN_CARRIED_FRACTION or force[step].mean() < MIN_STEP_FORCE * weight:
                known[step] = False
    return known


def _distance_from_soles(center: Array, points: Array) -> Array:
    """Return how far centers of pressure (frames, feet, 3) are from the sole's middle line (points: ..., points, 3)."""
    heel, toe = points[..., :2, :2].mean(axis=2), points[..., 4, :2]
    line, to = toe - heel, center[..., :2] - heel
    along = np.clip((to * line).sum(axis=-1) / np.maximum((line**2).sum(axis=-1), 1e-12), 0.0, 1.0)
    return np.asarray(np.linalg.norm(to - along[..., None] * line, axis=-1))


def _blank(data: Dataset, names: Iterable[str], unknown: Mask) -> None:
    """Set variables of a dataset to NaN where `unknown` (time, or time and a second dimension) is true."""
    for name in names:
        mask = unknown.reshape(unknown.shape + (1,) * (data[name].ndim - unknown.ndim))
        data[name] = data[name].copy(data=np.where(mask, np.nan, data[name].values))


def _other_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes without those on the balance of the whole body."""
    return tuple(note for note in notes if note.code not in ("grf_incomplete", "grf_predicted"))


def _note(model: Model, known: Mask) -> Note:
    """Return a note on what is computed, and in how many frames."""
    legs = [
        f"{name} {100.0 * float(one.mean()):.0f} %"
        for name, tracked, one in zip(FEET, tracked_legs(model), known.T, strict=True)
        if tracked
    ]
    text = (
        "Leg moments are computed from the ground up, where a plate carries the foot or it is in the air (frames: "
        f"{', '.join(legs)})."
        if legs
        else "Moments are computed from the free ends of the limbs, without external loads."
    )
    text += " The residual, whole-body energy and predicted forces are not available."
    return Note(text, "problem", "Put markers on the whole body.", code="partial_body")
