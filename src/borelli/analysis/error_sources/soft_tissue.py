"""Motion of the skin and its markers relative to bone, in step with the movement.

Skin slides over a segment because the joints at its ends bend. Its displacement is about linear in the angles of the
proximal and distal joint (Bonci et al. 2014), and all markers of the segment move mostly as one rigid piece (Andersen
et al. 2012): three translations and three rotations, each

    s sum_j a_j (angle_j - angle_j of the default pose),      a_j ~ N(0, 1)

over the angles of the joints of the segment: markers are put on, and calibrated, while the subject stands. The slope s
is the published RMS size in a walk (`fit.skin_motion`) over the RMS excursion of these angles in a walk. For segments
other than thigh and upper arm it is 11 mm/rad, about that of the back between flexion and extension of the trunk (9 to
11 mm: Zemp et al. 2014). A segment whose joints are as in standing has no skin motion.
"""

from __future__ import annotations

import numpy as np

from borelli.analysis.fit.skin_motion import skin_displacements
from borelli.analysis.motion import Motion, match_markers
from borelli.model.model import GROUND, Model
from borelli.numerics.quaternions import rotation_matrix
from borelli.numerics.vectors import Array

WALK_EXCURSION = {"thigh": 0.43, "upper_arm": 0.43}
OTHER_WALK_EXCURSION = 0.38
"""[rad] RMS excursion of the joint angles of a segment in a walk, by segment, and of others: hip and knee flexion, 14
and 20 degrees, for the thigh; knee and ankle flexion, 20 and 8 degrees, for the shank (Winter 2009).
"""


class SkinMotion:
    """Skin motion of a subject during a motion, to be drawn many times."""

    def __init__(self, motion: Motion, markers: tuple[str, ...]) -> None:
        """Prepare the displacements of the recording's markers, by name, that each motion of skin causes."""
        model = motion.model
        q = motion.coordinates
        posed = np.asarray(np.isfinite(q).all(axis=1))
        excursion = np.zeros_like(q)
        if posed.any():
            excursion[posed] = q[posed] - [coordinate.default for coordinate in model.coordinates]
        self._shape = (len(posed), len(markers), 3)
        columns = match_markers(model.markers, markers)
        orientation = motion.data["body_orientation"].values
        self._segments = []
        for index, body in enumerate(body.name for body in model.bodies):
            own = [i for i, one in enumerate(model.markers) if one.body == body and columns[i] >= 0]
            angles = _angles_at(model, body)
            if own and angles:
                local = skin_displacements(body, np.array([model.markers[i].position for i in own]))
                slope = 1.0 / WALK_EXCURSION.get(body[:-2], OTHER_WALK_EXCURSION)
                rotation = np.where(posed[:, None, None], rotation_matrix(orientation[:, index]), 0.0)
                self._segments.append(
                    (np.array([columns[i] for i in own]), local, rotation, slope * excursion[:, angles])
                )

    def draw(self, random: np.random.Generator) -> Array:
        """Draw displacements (frames, markers, 3) [m] in the lab."""
        result = np.zeros(self._shape)
        for columns, local, rotation, excursion in self._segments:
            in_time = excursion @ random.standard_normal((excursion.shape[1], len(local)))
            on_body = np.einsum("fc,cmk->fmk", in_time, local)
            result[:, columns] = np.einsum("fik,fmk->fmi", rotation, on_body)
        return result


def _angles_at(model: Model, body: str) -> list[int]:
    """Return the indices of the angles of the joints of a body, without that to the ground."""
    names = [coordinate.name for coordinate in model.coordinates]
    return [
        names.index(coordinate.name)
        for joint in model.joints
        if body in (joint.parent, joint.child) and joint.parent != GROUND and not joint.closes_loop
        for coordinate in joint.coordinates
        if coordinate.rotational
    ]
