"""Gallery: scenes by name, each of which shows one capability of the engine. Tests and benchmarks use them too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import cos, pi, radians, sin

from borelli.errors import SettingsError, unknown_name
from borelli.model import mechanisms
from borelli.model.inertia import body_from_shapes
from borelli.model.mechanisms import DOWNWARD, Z_TO_X, hinge, point_joint
from borelli.model.model import GROUND, Frame, Joint, Model, Quaternion, Shape, Surface
from borelli.model.transforms import compose
from borelli.people.human import human
from borelli.physics.inputs import Drive
from borelli.physics.solver_settings import SolverSettings
from borelli.scenes.scene import Scene

FLOOR = Shape("plane")


def pendulum(angle: float = 0.6) -> Scene:
    """Return a rod with a bob on a hinge, released at an angle [rad] from straight down."""
    shapes = (Shape("capsule", (0.012, 0.25)), Shape("sphere", (0.06,), Frame((0.0, 0.0, -0.3))))
    rod = body_from_shapes("rod", shapes, frame=Frame((0.0, 0.0, 0.7)))
    pivot = hinge("pivot", GROUND, "rod", (0.0, 0.0, 1.0), (0.0, 0.0, 0.3), axis=DOWNWARD)
    model = Model("pendulum", (rod,), (pivot,))
    return Scene("pendulum", model, "a rod and a bob on a hinge", 1 / 1000, 5.0, coordinates={"pivot": angle})


def double_pendulum(upper: float = 2.0, lower: float = 0.6) -> Scene:
    """Return two rods, hinge to hinge, released high: the motion is chaotic."""
    bar = (Shape("capsule", (0.02, 0.2)),)
    heights = {"upper": 0.9, "lower": 0.45}
    bodies = tuple(body_from_shapes(name, bar, frame=Frame((0.0, 0.0, z))) for name, z in heights.items())
    joints = (
        hinge("shoulder", GROUND, "upper", (0.0, 0.0, 1.1), (0.0, 0.0, 0.2), axis=DOWNWARD),
        hinge("elbow", "upper", "lower", (0.0, 0.0, -0.22), (0.0, 0.0, 0.23), axis=DOWNWARD),
    )
    model = Model("double pendulum", bodies, joints)
    start = {"shoulder": upper, "elbow": lower}
    return Scene("double_pendulum", model, "two rods, released high: chaos", 1 / 1000, 5.0, coordinates=start)


def chain(links: int = 20) -> Scene:
    """Return a chain of ball joints, fixed at one end and released level."""
    length, radius = 0.1, 0.02
    link = Shape("capsule", (radius, length / 2 - radius), Frame(orientation=Z_TO_X))
    model = mechanisms.chain(links, link, length)
    return Scene("chain", model, f"{links} links on ball joints, released level", 1 / 1000, 3.0)


def stack(boxes: int = 10) -> Scene:
    """Return boxes on top of each other, at rest."""
    half = 0.1
    shape = Shape("box", (half, half, half), density=500.0, surface=Surface(friction=0.6))
    heights = [half * (2 * k + 1) for k in range(boxes)]
    bodies = tuple(
        body_from_shapes(f"box_{k + 1}", (shape,), frame=Frame((0.0, 0.0, z))) for k, z in enumerate(heights)
    )
    model = Model(f"stack of {boxes}", bodies, ground=(FLOOR,), self_collision=True)
    return Scene("stack", model, f"{boxes} boxes at rest on each other", 1 / 240, 2.0)


def human_drop(height: float = 0.3) -> Scene:
    """Return a human of 21 bodies released above the floor [m], joints passive: it lands and collapses."""
    model = human()
    (default,) = (c.default for c in model.coordinates if c.name == "root_z")
    # slightly tilted: a symmetric body may balance on its knees for seconds
    start = {"root_z": default + height, "root_pitch": 0.15, "root_roll": 0.1}
    return Scene("human_drop", model, f"a limp human dropped {height:g} m", 1 / 240, 2.0, start)


def humans(count: int = 4) -> Scene:
    """Return several limp humans dropped onto each other."""
    one = human()
    parts = [_renamed(one, f"human_{k + 1}_") for k in range(count)]
    start: dict[str, float] = {}
    for k in range(count):
        # roll lays them down, pitch rotates them in the plane, yaw puts them on their faces and backs alternately
        root = {
            "root_x": 0.12 * (-1) ** k, "root_z": 0.5 + 0.5 * k, "root_roll": 1.5, "root_pitch": 1.1 * k,
            "root_yaw": 1.5 * (-1) ** k,
        }  # fmt: skip
        start |= {f"human_{k + 1}_{name}": value for name, value in root.items()}
    model = Model(
        f"{count} humans",
        tuple(body for part in parts for body in part.bodies),
        tuple(joint for part in parts for joint in part.joints),
        ground=one.ground,
    )
    # many contacts: friction bounds from the previous step are many times quicker and look the same
    quick = SolverSettings(friction_solves=1)
    description = f"{count} limp humans dropped onto each other"
    return Scene("humans", model, description, 1 / 240, 2.5, start, settings=quick)


def four_bar(crank: float = 0.2, coupler: float = 0.55, rocker: float = 0.45, base: float = 0.6) -> Scene:
    """Return a crank that rotates steadily and, through a coupler, rocks a lever: a closed loop."""
    model, start = mechanisms.four_bar(crank, coupler, rocker, base)
    motor = Drive("crank", velocity=-2 * pi, stiffness=0.0, damping=50.0, max_force=100.0)
    return Scene("four_bar", model, "a crank rocks a lever through a coupler", 1 / 500, 3.0, start, drives=(motor,))


def spinning_top(spin: float = 180.0, tilt: float = 0.35) -> Scene:
    """Return a top on its tip, tilted [rad], spinning [rad/s] about its own axis, that precesses without nutation.

    With moments A across and C along the axis about the tip, the rate p solves A p^2 cos(tilt) - C spin p + m g l = 0
    (Goldstein, Classical Mechanics, section 5.7); the slow root is used.
    """
    # the joint fixes the tip; friction with the floor would slow the spin
    shapes = (
        Shape("capsule", (0.006, 0.055), collides=False),
        Shape("cylinder", (0.05, 0.012), Frame((0.0, 0.0, 0.005)), collides=False),
        Shape("ellipsoid", (0.03, 0.03, 0.035), Frame((0.0, 0.0, -0.01)), collides=False),
    )
    tip = (0.0, 0.0, -0.061)
    top = body_from_shapes("top", shapes, frame=Frame((0.0, 0.0, 0.061)))
    model = Model("spinning top", (top,), (point_joint("tip", GROUND, "top", (0.0, 0.0, 0.0), tip),), ground=(FLOOR,))
    arm = top.center_of_mass[2] - tip[2]
    across, along = top.inertia[0][0] + top.mass * arm**2, top.inertia[2][2]
    a, b, c = across * cos(tilt), along * spin, top.mass * -model.gravity[2] * arm
    if b * b < 4 * a * c:
        slowest = 2 * (a * c) ** 0.5 / along
        raise SettingsError(f"spinning_top: At {spin} rad/s the top falls. Spin it above {slowest:.1f} rad/s.")
    rate = 2 * c / (b + (b * b - 4 * a * c) ** 0.5)
    axis = (0.0, -sin(tilt), cos(tilt))
    angular_velocity = (0.0, (spin - rate * cos(tilt)) * axis[1], (spin - rate * cos(tilt)) * axis[2] + rate)
    velocity = (-rate * arm * axis[1], 0.0, 0.0)
    return Scene(
        "spinning_top", model, "a top that precesses on its tip", 1 / 2000, 3.0, {"tip_x": tilt},
        twists={"top": (*velocity, *angular_velocity)},
    )  # fmt: skip


def ramp(slope: float = 25.0, friction: float = 0.3) -> Scene:
    """Return a box released on a slope [degrees]: it slides when the friction is below the slope's tangent."""
    half = 0.15
    orientation: Quaternion = (cos(radians(slope) / 2), 0.0, sin(radians(slope) / 2), 0.0)
    surface = Surface(friction=friction)
    ground = Shape("plane", frame=Frame((0.0, 0.0, 1.0), orientation), surface=surface)
    resting = compose(ground.frame, Frame((-1.0, 0.0, half)))
    box = replace(body_from_shapes("box", (Shape("box", (0.2, half, half), surface=surface),)), frame=resting)
    model = Model("ramp", (box,), ground=(ground,))
    return Scene("ramp", model, f"a box on a slope of {slope:g} degrees, friction {friction:g}", 1 / 240, 1.2)


def conveyor(speed: float = 0.8) -> Scene:
    """Return boxes dropped onto a belt that runs at a speed [m/s]; they move with it and fall off its end."""
    belt = Shape(
        "box", (1.2, 0.3, 0.2), Frame((0.0, 0.0, 0.2)), surface=Surface(friction=0.6, velocity=(speed, 0.0, 0.0))
    )
    box = body_from_shapes("box", (Shape("box", (0.1, 0.1, 0.1), density=300.0),))
    bodies = tuple(
        replace(box, name=f"box_{k + 1}", frame=Frame((-0.9 + 0.45 * k, 0.05 * (-1) ** k, 0.55 + 0.05 * k)))
        for k in range(4)
    )
    model = Model("conveyor", bodies, ground=(FLOOR, belt), self_collision=True)
    return Scene("conveyor", model, f"boxes on a belt at {speed:g} m/s", 1 / 240, 3.0)


def dominoes(count: int = 16) -> Scene:
    """Return a row of dominoes; the first is pushed."""
    size = (0.012, 0.05, 0.1)
    shape = Shape("box", size, density=700.0, surface=Surface(friction=0.5))
    domino = body_from_shapes("domino", (shape,))
    bodies = []
    for k in range(count):
        a = pi * k / (count - 1) if count > 1 else 0.0
        frame = Frame((0.6 * sin(a), -0.6 * cos(a), size[2]), (cos(a / 2), 0.0, 0.0, sin(a / 2)))
        bodies.append(replace(domino, name=f"domino_{k + 1}", frame=frame))
    model = Model(f"{count} dominoes", tuple(bodies), ground=(FLOOR,), self_collision=True)
    push = (0.3, 0.0, 0.0, 0.0, 3.0, 0.0)
    return Scene("dominoes", model, "a half circle of dominoes", 1 / 480, 2.0, twists={"domino_1": push})


def bouncing_balls(count: int = 6) -> Scene:
    """Return balls released from one height, each more elastic than the one before."""
    bodies = []
    for k in range(count):
        surface = Surface(restitution=k / (count - 1) if count > 1 else 0.5)
        ball = body_from_shapes(f"ball_{k + 1}", (Shape("sphere", (0.1,), surface=surface),))
        bodies.append(replace(ball, frame=Frame((0.3 * k, 0.0, 1.0))))
    model = Model("bouncing balls", tuple(bodies), ground=(FLOOR,))
    return Scene("bouncing_balls", model, "balls of rising restitution, 0 to 1", 1 / 480, 3.0)


GALLERY: dict[str, Callable[..., Scene]] = {
    make.__name__: make
    for make in (
        pendulum,
        double_pendulum,
        chain,
        stack,
        human_drop,
        humans,
        four_bar,
        spinning_top,
        ramp,
        conveyor,
        dominoes,
        bouncing_balls,
    )
}  # fmt: skip


def gallery_scene(name: str) -> Scene:
    """Return the gallery's scene of that name.

    Args:
        name: Name of a scene, as `borelli simulate --list` shows them.

    Examples:
        >>> scene = bo.gallery_scene("pendulum")
        >>> scene.duration
        5.0
    """
    if name not in GALLERY:
        raise SettingsError(unknown_name("scene", name, GALLERY))
    return GALLERY[name]()


def _renamed(model: Model, prefix: str) -> Model:
    """Prefix the names of bodies, joints and coordinates."""

    def body_name(name: str) -> str:
        return name if name == GROUND else prefix + name

    def joint(old: Joint) -> Joint:
        coordinates = tuple(replace(c, name=prefix + c.name) for c in old.coordinates)
        parent, child = body_name(old.parent), body_name(old.child)
        return replace(old, name=prefix + old.name, parent=parent, child=child, coordinates=coordinates)

    bodies = tuple(replace(body, name=prefix + body.name) for body in model.bodies)
    return replace(model, bodies=bodies, joints=tuple(map(joint, model.joints)))
