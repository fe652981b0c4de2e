"""Standing up from a seat without a plate: the force of the seat is known, and plates record the feet only.

The subject sits, leans forward and rises. The seat pushes straight up under the pelvis. As long as the center of
pressure of the whole body is behind the feet, seat and feet share the load like the ends of a beam:

    N = F_z (x_feet - x) / (x_feet - x_seat)

with x the point where the required wrench has no pitching moment. The seat is left where N becomes zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.model.model import Model
from borelli.synthetic.curves import minimum_jerk
from borelli.synthetic.jump_and_reach import COM_AHEAD, STANDING_KNEE, Stance, balancing_pitch

Array = NDArray[np.float64]

SIT_TO_STAND_DURATION = 4.0
SEATED_KNEE = 1.85
"""Knee flexion in sitting [rad]."""
SHANK_LEAN = 0.33
"""Forward lean of a shank per knee flexion: the feet are pulled back under the seat."""
LEAN = (0.1, 1.6)
"""Start and end of the forward lean of the trunk [s]."""
RISE = (1.25, 2.5)
"""Start and end of the extension of knees and hips [s]."""
TRUNK_LEAN = 0.85
"""Largest forward pitch of the pelvis [rad]."""
SEAT_BEHIND = 0.03
"""Distance of the seat's force behind the origin of the pelvis [m]."""


def sit_to_stand_coordinates(model: Model, time: Array) -> Array:
    """Return the coordinates (frames, coordinates) of a human that sits, leans forward and stands up."""
    t = np.asarray(time, float)
    knee = minimum_jerk([(RISE[0], SEATED_KNEE), (RISE[1], STANDING_KNEE)], t)
    lean = minimum_jerk([(LEAN[0], 0.0), (LEAN[1], 1.0), (RISE[1], 0.0)], t)
    others = {"sacral_flexion": 0.2 * lean, "lumbar_flexion": 0.35 * lean, "neck_flexion": -0.3 * lean}
    stance = Stance(model, np.zeros(len(t)), 0.4 * lean + 0.1, others, SHANK_LEAN)
    standing = float(balancing_pitch(stance, np.full(len(t), STANDING_KNEE), np.full(len(t), COM_AHEAD))[-1])
    pitch = minimum_jerk([(LEAN[0], -0.1), (LEAN[1], TRUNK_LEAN), (RISE[1] + 0.2, standing)], t)
    return stance.pose(knee, pitch)[0]


def seat_load(force: Array, moment: Array, pelvis: Array, under: Array) -> tuple[Array, Array]:
    """Return force [N] and point [m] of the seat on the pelvis, (frames, 3) each.

    Args:
        force: Required external force [N], (frames, 3).
        moment: Required external moment about the world's origin [N m], (frames, 3).
        pelvis: Origin of the pelvis [m], (frames, 3).
        under: Point between the feet where they are loaded as long as the subject sits [m], (frames, 3).
    """
    point = pelvis - (SEAT_BEHIND, 0.0, 0.0)
    pressure = -moment[:, 1] / np.maximum(force[:, 2], 1e-9)
    share = (under[:, 0] - pressure) / (under[:, 0] - point[:, 0])
    # once it is left, the seat is not touched again
    left = np.maximum.accumulate(share <= 0.0)
    seat = np.zeros_like(force)
    seat[:, 2] = np.where(left, 0.0, np.clip(share, 0.0, 1.0) * force[:, 2])
    return seat, point
