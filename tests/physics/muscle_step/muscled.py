"""Small models that muscles move, and one call for both kinds of steps."""

from dataclasses import replace

from borelli.control.track_targets import track_targets
from borelli.model.functions import linear
from borelli.model.model import (
    Body,
    Coordinate,
    Frame,
    Joint,
    Ligament,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    WrapObject,
)
from borelli.physics.simulate import simulate

STEPPINGS = ("soft", "impulse")


def run(stepping, model, **options):
    """Simulate a model by one kind of steps."""
    options.setdefault("initial_coordinates", {})
    return simulate(model, **options) if stepping == "soft" else track_targets(model, (), **options)


def _box(name, mass, x, y, z):
    inertia = ((mass * x, 0.0, 0.0), (0.0, mass * y, 0.0), (0.0, 0.0, mass * z))
    return Body(name, mass, inertia=inertia)


def slider(mass=1.0, *, kind="Thelen2003Muscle", length=0.3, activation=0.05, rigid=False, ligament=False):
    """A mass that moves along x away from the ground, and a muscle between; the coordinate is the path length."""
    path = (PathPoint("ground", (0.0, 0.0, 0.0)), PathPoint("mass", (0.0, 0.0, 0.0)))
    muscle = Muscle(
        "muscle", path, 500.0, 0.1, 0.2, pennation_angle=0.1, kind=kind, default_activation=activation,
        parameters=(("ignore_tendon_compliance", float(rigid)),),
    )  # fmt: skip
    x = Coordinate("x", rotational=False, default=length)
    joint = Joint("slider", "slider", "ground", "mass", axes=((1.0, 0.0, 0.0),), coordinates=(x,))
    ligaments = (Ligament("ligament", path, length, 2000.0, linear(1.0, -1.0)),) if ligament else ()
    return Model(
        "slider", (_box("mass", mass, 0.01, 0.01, 0.01),), (joint,), muscles=(muscle,), ligaments=ligaments,
        gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip


def floating(planar=True, rigid=False):
    """Three bodies in free flight with a hinge and a ball joint, two muscles with wraps and a ligament.

    A planar model moves, and is pulled, in the plane z = 0 only.
    """
    z = 0.0 if planar else 0.02
    free = tuple(Coordinate(n, rotational=n[0] == "r") for n in ("tx", "ty", "tz", "rx", "ry", "rz"))
    ball = tuple(Coordinate(n) for n in ("b1", "b2", "b3"))
    joints = (
        Joint("free", "free", "ground", "a", coordinates=free),
        Joint(
            "hinge", "hinge", "a", "b", Frame((0.0, -0.2, 0.0)), Frame((0.0, 0.2, 0.0)), axes=((0.0, 0.0, 1.0),),
            coordinates=(Coordinate("h"),),
        ),
        Joint("ball", "ball", "b", "c", Frame((0.0, -0.2, 0.0)), Frame((0.0, 0.15, 0.0)), coordinates=ball),
    )  # fmt: skip
    wraps = (
        WrapObject("cylinder", "cylinder", "a", (0.03, 0.2), Frame((0.0, -0.2, 0.0))),
        WrapObject("ellipsoid", "ellipsoid", "b", (0.03, 0.04, 0.05), Frame((0.0, -0.2, 0.0))),
    )
    points = (
        (PathPoint("a", (0.05, 0.1, 0.0)), PathPoint("b", (0.05, 0.1, 0.0))),
        (PathPoint("a", (-0.05, 0.1, z)), PathPoint("b", (-0.05, 0.0, z)), PathPoint("c", (-0.04, 0.05, z / 2))),
    )
    stiff = (("ignore_tendon_compliance", float(rigid)),)
    muscles = (
        Muscle(
            "one", points[0], 300.0, 0.1, 0.3, kind="Millard2012EquilibriumMuscle", wraps=(PathWrap("cylinder"),),
            parameters=stiff,
        ),
        Muscle(
            "two", points[1], 300.0, 0.2, 0.6, kind="Thelen2003Muscle",
            wraps=() if planar else (PathWrap("ellipsoid"),), parameters=stiff,
        ),
    )  # fmt: skip
    tape = (PathPoint("b", (0.03, -0.1, 1.5 * z)), PathPoint("c", (0.03, 0.1, 1.5 * z)))
    bodies = (
        _box("a", 2.0, 0.013, 0.008, 0.013), _box("b", 1.5, 0.013, 0.008, 0.013), _box("c", 1.0, 0.0075, 0.004, 0.0075)
    )  # fmt: skip
    return Model(
        "floating", bodies, joints, muscles=muscles, wrap_objects=wraps, gravity=(0.0, 0.0, 0.0),
        ligaments=(Ligament("tape", tape, 0.05, 100.0, linear(1.0, -1.0)),),
    )  # fmt: skip


def with_sound_masses(model):
    """The model with a mass for bodies that have none; they must be fixed to the ground."""
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    bodies = (replace(body, mass=1.0, inertia=unit) if body.mass == 0.0 else body for body in model.bodies)
    return replace(model, bodies=tuple(bodies))
