"""Inverse dynamics of a partial body: moments from the ground up, and nothing that needs the missing parts.

Moments of a leg need its own segments and the load on its foot, as gait laboratories compute them. The load is known
where a force plate carries the foot, and while the foot is in the air. Everything else is NaN: moments of a leg that
stands off the plates, the residual, and the force on a foot that no plate measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.ground.contact_detection import contact_confidence, ground_levels
from borelli.analysis.ground.predict_grf import find_ground
from borelli.analysis.ground.required_wrench import required_wrench
from borelli.analysis.motion import root_columns
from borelli.model.people.partial import subtree
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.recording import MIN_PLATE_FORCE, Note

Mask = NDArray[np.bool_]

MIN_CONTACT = 0.5
"""Confidence of contact above which a foot is on the ground."""
MIN_CARRIED_FRACTION = 0.8
"""Fraction of the frames of a step in which a plate must carry the foot; else the step is not, or half, on a plate."""
MIN_STEP_FORCE = 0.3
"""Mean vertical force of a step as a fraction of the weight, below which it is half on a plate; standing has 0.5."""


def leave_out_unknown(torques: Torques, kinematics: BodyKinematics) -> Torques:
    """Return the torques of a partial body with all that is not known as NaN."""
    model, data = torques.motion.model, torques.data.copy()
    for name in ("residual_force", "residual_moment"):
        data[name] = data[name].copy(data=np.full(data[name].shape, np.nan))
    names = [c.name for c in model.coordinates]
    unknown = np.zeros((data.sizes["time"], len(names)), bool)
    unknown[:, root_columns(model)] = True
    known = known_feet(torques, kinematics)
    joints = {joint.name: joint for joint in model.joints}
    unknown_joints = np.zeros((data.sizes["time"], data.sizes["joint"]), bool)
    reaction = [str(name) for name in data["joint"].values]
    unknown_joints[:, [reaction.index(name) for name in reaction if _leads_to_base(model, name)]] = True
    for foot, side in enumerate(("r", "l")):
        for joint in subtree(model, joints[f"hip_{side}"]):
            unknown_joints[:, reaction.index(joint.name)] |= ~known[:, foot]
            for c in joint.coordinates:
                unknown[:, names.index(c.name)] |= ~known[:, foot]
    for name in ("torque", "torque_inertial", "torque_gravity", "torque_ground"):
        data[name] = data[name].where(~unknown)
    return replace(torques, data=data)
