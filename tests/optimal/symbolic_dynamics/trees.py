"""Models without data for tests of symbolic dynamics, random motions of any model, and functions of their dynamics."""

from functools import cache

import casadi as ca
import numpy as np

from borelli.model.functions import linear, natural_cubic_spline, polynomial, simm_spline
from borelli.model.io import read_model
from borelli.model.kinematics import coupled_motion, with_default_frames
from borelli.model.model import Body, Coordinate, Coupling, Frame, Joint, Marker, Model, TransformAxis
from borelli.optimal.symbolic_dynamics.tree_dynamics import make_tree_dynamics
from borelli.optimal.symbolic_dynamics.vectors import column
from borelli.people.human import human

from ...shared_data import SHARED_DATA

GAIT10 = "opensim/gait10dof18musc/gait10dof18musc.osim"
RAJAGOPAL = "opensim/rajagopal2016/Rajagopal2016.osim"
ROUNDING = 1e-12
"""Relative to the largest value: sums of a few thousand products."""


@cache
def stored(name: str) -> Model:
    """Return a model of the shared data, or the human."""
    return human() if name == "human" else read_model(SHARED_DATA / name)


def inertia(rng):
    """Return a positive definite inertia whose principal moments satisfy the triangle inequality [kg m^2]."""
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return tuple(map(tuple, basis @ np.diag(0.1 + 0.05 * rng.uniform(size=3)) @ basis.T))


def random_frame(rng):
    quaternion = rng.normal(size=4)
    return Frame(tuple(rng.normal(size=3) * 0.3), tuple(quaternion / np.linalg.norm(quaternion)))


def hinge_tree(seed=0) -> Model:
    """Return a branched tree of hinges about general axes, with rotated joint frames, fixed to the ground."""
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    for i, parent in enumerate(("ground", "b0", "b1", "b1", "b0", "b4")):  # depth first, as Pinocchio's CRBA assumes
        bodies.append(Body(f"b{i}", rng.uniform(0.5, 3.0), tuple(rng.normal(size=3) * 0.2), inertia(rng)))
        axis = tuple(rng.normal(size=3))
        frames = random_frame(rng), random_frame(rng)
        joints.append(Joint(f"j{i}", "hinge", parent, f"b{i}", *frames, (axis,), (Coordinate(f"q{i}"),)))
    return with_default_frames(Model("hinges", tuple(bodies), tuple(joints)))


def mixed_tree(seed=0) -> Model:
    """Return a tree with a free root, a ball, a planar, a universal and a coordinate joint, couplings and splines."""
    rng = np.random.default_rng(seed)
    names = ["root", "ball", "knee", "planar", "universal", "slider"]
    bodies = [Body(n, rng.uniform(0.5, 3.0), tuple(rng.normal(size=3) * 0.2), inertia(rng)) for n in names]
    root = tuple(Coordinate(f"r{i}", rotational=i > 2) for i in range(6))
    x = np.linspace(-1.0, 1.5, 6)
    bent, moving = natural_cubic_spline(x, 0.1 * x**2), simm_spline(x, 0.05 * np.sin(2.0 * x))
    motion = (
        TransformAxis((0.0, 0.0, 1.0), linear(1.0), "flexion"),
        TransformAxis((0.1, 1.0, 0.2), polynomial([0.1, -0.2, 0.3, 0.05]), "flexion"),
        TransformAxis((1.0, 0.0, 0.0), linear(1.0), "bending"),
        TransformAxis((1.0, 0.0, 0.0), bent, "flexion"),
        TransformAxis((0.0, 1.0, 0.0), moving, "flexion"),
        TransformAxis((0.0, 0.0, 1.0), linear(0.0, 0.02)),
    )
    joints = (
        Joint("root", "free", "ground", "root", random_frame(rng), random_frame(rng), coordinates=root),
        Joint(
            "ball", "ball", "root", "ball", random_frame(rng), random_frame(rng),
            coordinates=tuple(Coordinate(f"b{i}") for i in range(3)),
        ),
        Joint(
            "knee", "coordinate", "root", "knee", random_frame(rng), random_frame(rng),
            coordinates=(Coordinate("flexion"), Coordinate("bending")), motion=motion,
        ),
        Joint(
            "planar", "planar", "knee", "planar", random_frame(rng), random_frame(rng),
            coordinates=tuple(Coordinate(f"p{i}", rotational=i == 2) for i in range(3)),
        ),
        Joint(
            "universal", "universal", "ball", "universal", axes=((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
            coordinates=(Coordinate("u0"), Coordinate("u1", default=0.3, locked=True)),
        ),
        Joint(
            "slider", "slider", "knee", "slider", axes=((0.3, 1.0, 0.0),),
            coordinates=(Coordinate("s", rotational=False),),
        ),
    )  # fmt: skip
    couplings = (
        Coupling("first", "bending", "flexion", simm_spline(x, 0.2 * np.cos(x))),
        Coupling("second", "s", "bending", polynomial([0.0, 0.3, -0.5])),
    )
    markers = (Marker("tip", "planar", (0.1, -0.2, 0.05)),)
    return with_default_frames(Model("mixed", tuple(bodies), joints, markers, couplings, gravity=(0.0, -9.81, 0.0)))


def random_motion(model: Model, frames: int, seed: int = 0, still=()):
    """Return coordinates, speeds and accelerations (frames, coordinates) that satisfy the couplings, and free columns.

    Coordinates in the columns `still` have no speed.
    """
    free = list(make_tree_dynamics(model).variables.free)
    rng = np.random.default_rng(seed)
    q = np.tile([c.default for c in model.coordinates], (frames, 1)).astype(float)
    v, a = np.zeros_like(q), np.zeros_like(q)
    q[:, free] += rng.normal(size=(frames, len(free))) * 0.5
    v[:, free] = rng.normal(size=(frames, len(free))) * 3.0
    v[:, list(still)] = 0.0
    a[:, free] = rng.normal(size=(frames, len(free))) * 10.0
    return *coupled_motion(model, q, v, a), free


def required_forces(model: Model, held=None):
    """Return a function of q, v, a that gives the generalized forces of the free, then of the held coordinates."""
    tree = make_tree_dynamics(model, held)
    rows = tree.required_forces()
    values = column([rows[name] for name in (*tree.names, *tree.held_names)])
    return ca.Function("required_forces", [tree.q, tree.v, tree.a], [ca.cse(values)])


def at(function, *arguments):
    """Return the value of a CasADi function with one output as a flat array."""
    return np.array(function(*arguments)).ravel()
