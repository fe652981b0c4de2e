"""Models other than people: planks, chains, a four-bar linkage, a net, and objects to carry, swing or be hit by.

Bars and links lie along x of their own frames. A hinge rotates about -y, so that increasing angles lift what lies along
x: a chain is level at zero and hangs at -90 degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import atan2, cos, hypot, pi, sin

import numpy as np

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Quaternion, Shape, Vector
from borelli.model.transforms import compose, orientation_from_matrix, orientation_matrix, vector
from borelli.model.validate import validate

Z_TO_X: Quaternion = (cos(pi / 4), 0.0, sin(pi / 4), 0.0)
"""Rotation of z to x."""
UPWARD = (0.0, -1.0, 0.0)
"""Axis about which increasing angles lift x."""
DOWNWARD = (0.0, 1.0, 0.0)
CHAIN_KINDS = ("hinge", "ball")


def hinge(name: str, parent: str, child: str, at_parent: Vector, at_child: Vector, *, axis: Vector = UPWARD) -> Joint:
    """Return a hinge whose coordinate has the joint's name."""
    frames = Frame(at_parent), Frame(at_child)
    return Joint(name, "hinge", parent, child, *frames, axes=(axis,), coordinates=(Coordinate(name),))


def point_joint(name: str, parent: str, child: str, at_parent: Vector, at_child: Vector) -> Joint:
    """Return a ball joint that connects two points; its angles are `name_x`, `name_y`, `name_z`."""
    angles = tuple(Coordinate(f"{name}_{axis}") for axis in "xyz")
    return Joint(name, "ball", parent, child, Frame(at_parent), Frame(at_child), coordinates=angles)


def chain(links: int, link: Shape, length: float, *, kind: str = "ball", height: float | None = None) -> Model:
    """Return a level chain fixed to the ground at one end: bodies `link_1` ..., joints `joint_1` ....

    Args:
        links: Number of links.
        link: Shape of each link, its center at the body's origin.
        length: Distance from joint to joint [m].
        kind: Kind of the joints, "hinge" or "ball".
        height: Height of the chain over z = 0 [m]. Default: its length.
    """
    if links < 1:
        raise SettingsError(f"links is {links}. A chain has at least 1 link.")
    if kind not in CHAIN_KINDS:
        raise SettingsError(unknown_name("kind of joint in a chain", kind, CHAIN_KINDS))
    joint_of = hinge if kind == "hinge" else point_joint
    body, bodies, joints = body_from_shapes("link", (link,)), [], []
    up = links * length if height is None else height
    for k in range(links):
        name, parent = f"link_{k + 1}", f"link_{k}" if k else GROUND
        bodies.append(replace(body, name=name, frame=Frame(((k + 0.5) * length, 0.0, up))))
        at = (length / 2, 0.0, 0.0) if k else (0.0, 0.0, up)
        joints.append(joint_of(f"joint_{k + 1}", parent, name, at, (-length / 2, 0.0, 0.0)))
    return Model(f"chain of {links}", tuple(bodies), tuple(joints))


def planks(count: int = 1, *, kind: str = "hinge", length: float = 1.0, mass: float = 1.0) -> Model:
    """Return a chain of uniform planks, with breadth 1/10 and thickness 1/100 of the length; one is a plank pendulum.

    A plank has the moment m L^2 (1 + 1/40000) / 3 about its hinge: gravity accelerates it like a rod, by
    3 g cos(angle) / (2 L).

    Args:
        count: Number of planks.
        kind: Kind of the joints, "hinge" or "ball".
        length: Length of each plank [m].
        mass: Mass of each plank [kg].
    """
    half = (length / 2, length / 20, length / 200)
    density = mass / (8.0 * half[0] * half[1] * half[2])
    model = chain(count, Shape("box", half, density=density), length, kind=kind)
    return replace(model, name=f"{count} planks" if count > 1 else "plank")


def four_bar(
    crank: float = 0.2, coupler: float = 0.55, rocker: float = 0.45, base: float = 0.6, *, angle: float = 1.0
) -> tuple[Model, dict[str, float]]:
    """Return a four-bar linkage (crank, coupler, rocker) and the coordinates at which its loop is closed.

    The loop is closed where circles about the crank's end and the rocker's pivot intersect. The hinges rotate about y:
    increasing angles lower x.

    Args:
        crank: Length of the crank [m].
        coupler: Length of the coupler [m].
        rocker: Length of the rocker [m].
        base: Distance between the pivots [m].
        angle: Angle of the crank [rad].

    Raises:
        SettingsError: if the crank cannot make a full revolution.
    """
    height = 0.5
    x, z = crank * cos(angle), crank * sin(angle)
    to_pivot, distance = atan2(-z, base - x), hypot(base - x, z)
    nearest, farthest = abs(base - crank), base + crank
    if not (abs(coupler - rocker) < nearest and farthest < coupler + rocker):
        raise SettingsError(
            f"Coupler ({coupler} m) and rocker ({rocker} m) cannot span {nearest:.3f} to {farthest:.3f} m, "
            "the distance from the crank's end to the rocker's pivot. Reduce their difference or increase their sum."
        )
    coupler_angle = to_pivot + _triangle_angle(coupler, distance, rocker)
    end_x, end_z = x + coupler * cos(coupler_angle), z + coupler * sin(coupler_angle)
    rocker_angle = atan2(end_z, end_x - base)
    bodies = tuple(
        body_from_shapes(name, (Shape("capsule", (0.015, length / 2), Frame(orientation=Z_TO_X)),))
        for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker))
    )
    ends = (coupler / 2, 0.0, 0.0), (rocker / 2, 0.0, 0.0)
    joints = (
        hinge("crank", GROUND, "crank", (0.0, 0.0, height), (-crank / 2, 0.0, 0.0), axis=DOWNWARD),
        hinge("wrist", "crank", "coupler", (crank / 2, 0.0, 0.0), (-coupler / 2, 0.0, 0.0), axis=DOWNWARD),
        hinge("rocker", GROUND, "rocker", (base, 0.0, height), (-rocker / 2, 0.0, 0.0), axis=DOWNWARD),
        replace(hinge("loop", "coupler", "rocker", *ends, axis=DOWNWARD), closes_loop=True),
    )
    start = {"crank": -angle, "wrist": -(coupler_angle - angle), "rocker": -rocker_angle}
    return Model("four-bar", bodies, joints), start


def net(
    rows: int = 16,
    columns: int = 16,
    *,
    spacing: float = 0.15,
    node_mass: float = 0.02,
    bar_mass: float = 0.02,
    arc: float = 1.0,
    frame: Frame = Frame((0.0, 0.0, 2.0)),
) -> Model:
    """Return a net of rigid bars between knots, with a point joint at each end of each bar and two fixed corners.

    Rows follow each other along x of the frame, knots of a row along y; the fixed corners are both ends of the first
    row. 16 by 16 knots have 480 bars, 960 joints and 225 loops: the net of Weinstein, Guendelman and Fedkiw 2008. With
    the default sizes it weighs 14.7 kg and is 2.25 m wide: a heavy cargo net. Knots have no joint and each bar is
    connected to one by its first end, so that the solver can choose the elimination order with the least fill-in: with
    each row as one chain of joints a step costs ten times as much.

    Args:
        rows: Number of rows of knots, at least 2.
        columns: Number of knots in a row, at least 2.
        spacing: Distance between knots [m].
        node_mass: Mass of a knot [kg].
        bar_mass: Mass of a bar [kg].
        arc: Angle [rad] that each row spans, hung between its ends like a hammock. At zero the net is flat, and the row
            between the fixed corners is so taut that its joints are redundant: long steps open them by up to a
            millimeter.
        frame: Pose of the net: the origin is midway between the fixed corners.
    """
    if min(rows, columns) < 2:
        raise SettingsError(f"rows and columns are {rows} and {columns}. A net has at least 2 by 2 knots.")
    knot = body_from_shapes("knot", (Shape("sphere", (0.07 * spacing,)),), mass=node_mass)
    rod = Shape("capsule", (0.03 * spacing, 0.47 * spacing), Frame(orientation=Z_TO_X))
    bar = body_from_shapes("bar", (rod,), mass=bar_mass)
    positions, slopes = _hammock(rows, columns, spacing, arc)
    bodies, joints = [], []
    for row, column in product(range(rows), range(columns)):
        fixed = row == 0 and column in (0, columns - 1)
        at = compose(frame, Frame(vector(positions[row, column])))
        bodies.append(replace(knot, name=_knot(row, column), frame=at, kinematic=fixed))
    half = spacing / 2.0
    for here, there in _bars(rows, columns):
        along = there[1] > here[1]
        rotation = _along_row(slopes[here[1]]) if along else (1.0, 0.0, 0.0, 0.0)
        name = f"bar_{here[0]}_{here[1]}_{'y' if along else 'x'}"
        at = compose(frame, Frame(vector((positions[here] + positions[there]) / 2.0), rotation))
        bodies.append(replace(bar, name=name, frame=at))
        # knots have the net's axes and bars their own: the frames of each joint agree in the initial pose
        start = point_joint(f"{name}_first", _knot(*here), name, (0.0, 0.0, 0.0), (-half, 0.0, 0.0))
        end = point_joint(f"{name}_last", name, _knot(*there), (half, 0.0, 0.0), (0.0, 0.0, 0.0))
        joints.append(replace(start, parent_frame=Frame(orientation=rotation)))
        joints.append(replace(end, parent_frame=Frame((half, 0.0, 0.0), _conjugate(rotation)), closes_loop=True))
    return Model(f"net of {rows} by {columns}", tuple(bodies), tuple(joints))


def with_mace(
    model: Model, hand: str, *, at: Frame = Frame(), links: int = 6, handle: float = 0.5, head_mass: float = 2.0
) -> Model:
    """Return the model with a mace in a hand: a handle fixed to the hand, a chain of passive joints, a heavy head.

    The handle is of wood, 3 cm thick; the links are of steel, 5 cm long, 40 g each; the head is an iron ball. They hang
    down from the handle's end. The bodies are `mace_handle`, `mace_link_1` ... and `mace_head`.

    Args:
        model: Model to extend.
        hand: Body to which the handle is fixed.
        at: Pose of the handle's end in the body's frame; the handle extends along x of this frame.
        links: Number of links of the chain, at least 1.
        handle: Length of the handle [m].
        head_mass: Mass of the head [kg].
    """
    if links < 1:
        raise SettingsError(f"links is {links}. A mace has at least 1 link.")
    pitch, radius = 0.05, (3.0 * head_mass / (4.0 * pi * 7800.0)) ** (1.0 / 3.0)
    grip = compose(model.body(hand).frame, at)
    wood = Shape("capsule", (0.015, handle / 2), Frame((handle / 2, 0.0, 0.0), Z_TO_X), density=700.0)
    steel = Shape("capsule", (0.006, pitch / 2 - 0.006))
    ball = Shape("sphere", (radius,), density=7800.0)
    end = np.array(compose(grip, Frame((handle, 0.0, 0.0))).position)
    bodies = [body_from_shapes("mace_handle", (wood,), frame=grip)]
    joints = [Joint("mace_grip", "fixed", hand, "mace_handle", parent_frame=at)]
    # the chain is parallel to the world, so its first joint undoes the handle's rotation
    upright = orientation_from_matrix(orientation_matrix(grip.orientation).T)
    parent, parent_frame = "mace_handle", Frame((handle, 0.0, 0.0), upright)
    for k in range(links):
        name = f"mace_link_{k + 1}"
        center_frame = Frame(vector(end - [0.0, 0.0, (k + 0.5) * pitch]))
        bodies.append(body_from_shapes(name, (steel,), mass=0.04, frame=center_frame))
        link = point_joint(name, parent, name, (0.0, 0.0, 0.0), (0.0, 0.0, pitch / 2))
        joints.append(replace(link, parent_frame=parent_frame))
        parent, parent_frame = name, Frame((0.0, 0.0, -pitch / 2))
    center = Frame(vector(end - [0.0, 0.0, links * pitch + radius]))
    bodies.append(body_from_shapes("mace_head", (ball,), mass=head_mass, frame=center))
    last = point_joint("mace_head", parent, "mace_head", (0.0, 0.0, 0.0), (0.0, 0.0, radius))
    joints.append(replace(last, parent_frame=parent_frame))
    return _extended(model, bodies, joints)


def with_block(
    model: Model, body: str, *, mass: float = 5.0, at: Frame = Frame(), size: float = 0.2, name: str = "block"
) -> Model:
    """Return the model with a cube fixed to a body.

    Args:
        model: Model to extend.
        body: Body that carries the cube.
        mass: Mass of the cube [kg].
        at: Pose of the cube's center in the body's frame.
        size: Length of its edges [m].
        name: Name of the cube and of its joint.
    """
    cube = Shape("box", (size / 2, size / 2, size / 2))
    load = body_from_shapes(name, (cube,), mass=mass, frame=compose(model.body(body).frame, at))
    return _extended(model, [load], [Joint(name, "fixed", body, name, parent_frame=at)])


def with_ball(model: Model, at: Vector, *, mass: float = 10.0, radius: float = 0.15, name: str = "ball") -> Model:
    """Return the model with a free ball (mass [kg], radius [m]) and with collisions between all bodies."""
    ball = body_from_shapes(name, (Shape("sphere", (radius,)),), mass=mass, frame=Frame(at))
    return replace(_extended(model, [ball], []), self_collision=True)


def _extended(model: Model, bodies: list[Body], joints: list[Joint]) -> Model:
    known = {body.name for body in model.bodies}
    for body in bodies:
        if body.name in known:
            raise ModelError(f"Model {model.name!r} already has a body {body.name!r}. Choose another name.")
    return validate(replace(model, bodies=(*model.bodies, *bodies), joints=(*model.joints, *joints)))


def _triangle_angle(a: float, b: float, opposite: float) -> float:
    """Return the angle [rad] between sides a and b of a triangle, by the law of cosines."""
    cosine = (a * a + b * b - opposite * opposite) / (2 * a * b)
    return atan2((1.0 - cosine * cosine) ** 0.5, cosine)


def _knot(row: int, column: int) -> str:
    return f"knot_{row}_{column}"


def _hammock(rows: int, columns: int, spacing: float, arc: float) -> tuple[np.ndarray, np.ndarray]:
    """Return positions (rows, columns, 3) of knots [m], and the slope of the bars after each column [rad]."""
    slopes = arc * ((np.arange(columns - 1) + 0.5) / (columns - 1) - 0.5)
    ends = spacing * np.cumsum(np.stack([np.cos(slopes), np.sin(slopes)], axis=1), axis=0)
    row = np.vstack([np.zeros(2), ends])
    row[:, 0] -= row[-1, 0] / 2.0
    positions = np.zeros((rows, columns, 3))
    positions[..., 0] = spacing * (np.arange(rows) - (rows - 1) / 2.0)[:, None]
    positions[..., 1:] = row
    return positions, slopes


def _along_row(slope: float) -> Quaternion:
    """Return the rotation from x to the direction of a bar of a row: y, sloping up."""
    y, z = cos(slope), sin(slope)
    return orientation_from_matrix(np.array([[0.0, -1.0, 0.0], [y, 0.0, -z], [z, 0.0, y]]))


def _conjugate(rotation: Quaternion) -> Quaternion:
    w, x, y, z = rotation
    return w, 0.0 - x, 0.0 - y, 0.0 - z


def _bars(rows: int, columns: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the knots at both ends of each bar."""
    for row, column in product(range(rows), range(columns)):
        if column + 1 < columns:
            yield (row, column), (row, column + 1)
        if row + 1 < rows:
            yield (row, column), (row + 1, column)
