"""Planar inchworms: chains of equal links with a hinge at each end but one, clamped at the tail, in lanes of a track.

x is along the track, y up, z across it. Angles are of each link relative to the one before, counterclockwise; the first
is relative to the ground.
"""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import with_default_frames
from borelli.model.model import GROUND, Coordinate, Frame, Joint, Marker, Model, Shape
from borelli.model.validate import validate
from borelli.optimal.symbolic_dynamics.tree_system import tree_system
from borelli.optimal.system import System

LINKS = 4
LENGTH = 0.25
"""[m] of a link. Size and mass are a choice: the report states none."""
RADIUS = 0.035
DENSITY = 1000.0
"""[kg/m^3]"""
LANE = 0.25
"""[m] between the worms of a race."""
ARCH = np.radians([70.0, -50.0, -40.0, -50.0])
"""Angles [rad] of a gathered worm with head and tail on the ground: links at 70, 20, -20 and -70 degrees."""
Y_UP_PLANE = Frame(orientation=(cos(pi / 4), -sin(pi / 4), 0.0, 0.0))
ALONG_X = (cos(pi / 4), 0.0, sin(pi / 4), 0.0)


def angle_names(worm: int = 1) -> tuple[str, ...]:
    """Return the names of a worm's angles."""
    return tuple(f"worm_{worm}_angle_{k + 1}" for k in range(LINKS))


def worm_model(count: int = 1, *, clamped: bool = True) -> Model:
    """Return worms side by side; those not clamped have coordinates `worm_<n>_x` and `worm_<n>_y` of the tail."""
    shape = Shape("capsule", (RADIUS, LENGTH / 2.0), Frame((LENGTH / 2.0, 0.0, 0.0), ALONG_X), DENSITY)
    bodies, joints, markers = [], [], []
    for worm in range(1, count + 1):
        parent, lane = GROUND, Frame((0.0, 0.0, LANE * (worm - 1)))
        for k, name in enumerate(angle_names(worm)):
            link = f"worm_{worm}_link_{k + 1}"
            bodies.append(body_from_shapes(link, (shape,)))
            angle = Coordinate(name, lower=-pi, upper=pi)
            if k == 0 and not clamped:
                tail = tuple(Coordinate(f"worm_{worm}_{axis}", rotational=False) for axis in "xy")
                joints.append(Joint(name, "planar", parent, link, lane, coordinates=(*tail, angle)))
            else:
                frame = lane if k == 0 else Frame((LENGTH, 0.0, 0.0))
                joints.append(Joint(name, "hinge", parent, link, frame, axes=((0.0, 0.0, 1.0),), coordinates=(angle,)))
            markers.append(Marker(f"worm_{worm}_end_{k + 1}", link, (LENGTH, 0.0, 0.0)))
            parent = link
    ground = (Shape("plane", frame=Frame((0.0, -RADIUS, 0.0), Y_UP_PLANE.orientation)),)
    model = Model("inchworms", tuple(bodies), tuple(joints), tuple(markers), ground=ground, gravity=(0.0, -9.81, 0.0))
    return validate(with_default_frames(model))


def worm_system() -> System:
    """Return the clamped worm with a torque at every hinge; the ends of links are outputs."""
    model = worm_model()
    return tree_system(model, points=[marker.name for marker in model.markers])


def link_ends(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends (frames, links, 2) [m] of links from angles (frames, links)."""
    absolute = np.cumsum(np.atleast_2d(angles), axis=1)
    return LENGTH * np.cumsum(np.stack([np.cos(absolute), np.sin(absolute)], axis=-1), axis=1)
