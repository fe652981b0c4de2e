"""Bodies that are no person: planks, chains, a four-bar, a net, and things to carry, to swing and to be hit by.

Bars and links lie along x of their own frames. A hinge turns about -y, so that growing angles lift what lies along x;
at angle nought a chain is level, at -90 degrees it hangs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import atan2, cos, hypot, pi, sin

import numpy as np

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.model.inertia import body_from_shapes
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Model, Quaternion, Shape, Vector
from borelli.model.transforms import compose, orientation_matrix, orientation_from_matrix, vector
from borelli.model.validate import validate

Z_TO_X: Quaternion = (cos(pi / 4), 0.0, sin(pi / 4), 0.0)
"""Turns z into x."""
UPWARD = (0.0, -1.0, 0.0)
"""The axis about which growing angles lift x."""
DOWNWARD = (0.0, 1.0, 0.0)
CHAIN_KINDS = ("hinge", "ball")


def hinge(name: str, parent: str, child: str, at_parent: Vector, at_child: Vector, *, axis: Vector = UPWARD) -> Joint:
    """A hinge whose coordinate has the joint's name."""
    frames = Frame(at_parent), Frame(at_child)
    return Joint(name, "hinge", parent, child, *frames, axes=(axis,), coordinates=(Coordinate(name),))


def point_joint(name: str, parent: str, child: str, at_parent: Vector, at_child: Vector) -> Joint:
    """A joint that only keeps two points together; its angles are `name_x`, `name_y`, `name_z`."""
    angles = tuple(Coordinate(f"{name}_{axis}") for axis in "xyz")
    return Joint(name, "ball", parent, child, Frame(at_parent), Frame(at_child), coordinates=angles)


def chain(links: int, link: Shape, length: float, *, kind: str = "ball", height: float | None = None) -> Model:
    """A chain held level at one end: bodies `link_1` on, joints `joint_1` on, the first to the ground.

    Args:
        links: How many.
        link: Shape of each, its middle in the body's origin.
        length: From joint to joint [m].
        kind: Of the joints, "hinge" or "ball".
        height: Of the chain over z = 0 [m]; its own length if not given.
    """
    if links < 1:
        raise SettingsError(f"a chain has at least 1 link; got {links}")
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
    """A chain of uniform planks, a tenth as broad and a hundredth as thick as long: one of them is a plank pendulum.

    About its hinge a plank has the moment m L^2 (1 + 1/40000) / 3: gravity turns it as a rod, 3 g cos(angle) / (2 L).

    Args:
        count: How many.
        kind: Of the joints, "hinge" or "ball".
        length: Of each [m].
        mass: Of each [kg].
    """
    half = (length / 2, length / 20, length / 200)
    density = mass / (8.0 * half[0] * half[1] * half[2])
    model = chain(count, Shape("box", half, density=density), length, kind=kind)
    return replace(model, name=f"{count} planks" if count > 1 else "plank")


def four_bar(
    crank: float = 0.2, coupler: float = 0.55, rocker: float = 0.45, base: float = 0.6, *, angle: float = 1.0
) -> tuple[Model, dict[str, float]]:
    """A crank that, through a coupler, rocks a lever, and the coordinates at which the loop is shut.

    It is shut where circles about the crank's end and the rocker's pivot cross. Lengths in metres, `angle` of the crank
    [rad]. Its hinges turn about y: growing angles turn x down.
    """
    height = 0.5
    x, z = crank * cos(angle), crank * sin(angle)
    to_pivot, reach = atan2(-z, base - x), hypot(base - x, z)
    nearest, farthest = abs(base - crank), base + crank
    if not (abs(coupler - rocker) < nearest and farthest < coupler + rocker):
        raise SettingsError(
            f"coupler ({coupler} m) and rocker ({rocker} m) cannot span {nearest:.3f} to {farthest:.3f} m, the gap "
            "that a turning crank leaves between them: their difference must be smaller, their sum larger"
        )
    coupler_angle = to_pivot + _triangle_angle(coupler, reach, rocker)
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
    """A net of stiff bars between knots, a point joint at each end of each bar; two corners stay where they are.

    Rows follow each other along x of the frame, knots of a row along y; the corners held are both ends of the first
    row. 16 by 16 knots have 480 bars, 960 joints and 225 loops: the net of Weinstein, Guendelman and Fedkiw 2008. As it
    is, it weighs 14.7 kg and is 2.25 m wide: a heavy cargo net. Knots float and bars hang on them by their first ends,
    so that the solver may take them in the order that fills least: with each row threaded knot by knot from its first,
    a step costs ten times as much.

    Args:
        rows: Of knots, 2 at least.
        columns: Of knots, 2 at least.
        spacing: From knot to knot [m].
        node_mass: Of a knot [kg].
        bar_mass: Of a bar [kg].
        arc: Angle [rad] that each row spans as it lies, hung between its ends like a hammock. At nought it is flat,
            and the row between the corners held so taut that its joints repeat each other: long steps leave them open
            by up to a millimetre.
        frame: Where it lies: its origin is in the middle of the held corners' height.
    """
    if min(rows, columns) < 2:
        raise SettingsError(f"a net has at least 2 by 2 knots; got {rows} by {columns}")
    knot = body_from_shapes("knot", (Shape("sphere", (0.07 * spacing,)),), mass=node_mass)
    rod = Shape("capsule", (0.03 * spacing, 0.47 * spacing), Frame(orientation=Z_TO_X))
    bar = body_from_shapes("bar", (rod,), mass=bar_mass)
    places, slopes = _hammock(rows, columns, spacing, arc)
    bodies, joints = [], []
    for row in range(rows):
        for column in range(columns):
            held = row == 0 and column in (0, columns - 1)
            at = compose(frame, Frame(vector(places[row, column])))
            bodies.append(replace(knot, name=_knot(row, column), frame=at, kinematic=held))
    half = spacing / 2.0
    for here, there in _bars(rows, columns):
        along = there[1] > here[1]
        turn = _along_row(slopes[here[1]]) if along else (1.0, 0.0, 0.0, 0.0)
        name = f"bar_{here[0]}_{here[1]}_{'y' if along else 'x'}"
        at = compose(frame, Frame(vector((places[here] + places[there]) / 2.0), turn))
        bodies.append(replace(bar, name=name, frame=at))
        # knots keep the net's axes and bars have their own: a joint's frames agree as the net lies
        start = point_joint(f"{name}_first", _knot(*here), name, (0.0, 0.0, 0.0), (-half, 0.0, 0.0))
        end = point_joint(f"{name}_last", name, _knot(*there), (half, 0.0, 0.0), (0.0, 0.0, 0.0))
        joints.append(replace(start, parent_frame=Frame(orientation=turn)))
        joints.append(replace(end, parent_frame=Frame((half, 0.0, 0.0), _conjugate(turn)), closes_loop=True))
    return Model(f"net of {rows} by {columns}", tuple(bodies), tuple(joints))


def with_mace(
    model: Model,
    hand: str,
    *,
    at: Frame = Frame(),
    links: int = 6,
    handle: float = 0.5,
    head_mass: float = 2.0,
) -> Model:
    """The model with a mace in a hand: a handle held fast, a chain of point joints that nothing drives, a heavy head.

    The handle is of wood, 3 cm thick; the links of steel, 5 cm long, 40 g each; the head a ball of iron. They hang down
    from the handle's end. Bodies are `mace_handle`, `mace_link_1` on and `mace_head`.

    Args:
        model: Who swings it.
        hand: The body that holds it.
        at: Where, in the body's frame: the handle goes along x of this frame, from it.
        links: Of the chain, 1 at least.
        handle: Its length [m].
        head_mass: [kg]
    """
    if links < 1:
        raise SettingsError(f"a mace has at least 1 link; got {links}")
    pitch, radius = 0.05, (3.0 * head_mass / (4.0 * pi * 7800.0)) ** (1.0 / 3.0)
    grip = compose(model.body(hand).frame, at)
    wood = Shape("capsule", (0.015, handle / 2), Frame((handle / 2, 0.0, 0.0), Z_TO_X), density=700.0)
    steel = Shape("capsule", (0.006, pitch / 2 - 0.006))
    ball = Shape("sphere", (radius,), density=7800.0)
    end = np.array(compose(grip, Frame((handle, 0.0, 0.0))).position)
    bodies = [body_from_shapes("mace_handle", (wood,), frame=grip)]
    joints = [Joint("mace_grip", "fixed", hand, "mace_handle", parent_frame=at)]
    # the chain hangs in the world's axes, so its first joint is turned against the handle
    upright = orientation_from_matrix(orientation_matrix(grip.orientation).T)
    parent, anchor = "mace_handle", Frame((handle, 0.0, 0.0), upright)
    for k in range(links):
        name = f"mace_link_{k + 1}"
        middle = Frame(vector(end - [0.0, 0.0, (k + 0.5) * pitch]))
        bodies.append(body_from_shapes(name, (steel,), mass=0.04, frame=middle))
        link = point_joint(name, parent, name, (0.0, 0.0, 0.0), (0.0, 0.0, pitch / 2))
        joints.append(replace(link, parent_frame=anchor))
        parent, anchor = name, Frame((0.0, 0.0, -pitch / 2))
    center = Frame(vector(end - [0.0, 0.0, links * pitch + radius]))
    bodies.append(body_from_shapes("mace_head", (ball,), mass=head_mass, frame=center))
    last = point_joint("mace_head", parent, "mace_head", (0.0, 0.0, 0.0), (0.0, 0.0, radius))
    joints.append(replace(last, parent_frame=anchor))
    return _extended(model, bodies, joints)


def with_block(
    model: Model, body: str, *, mass: float = 5.0, at: Frame = Frame(), size: float = 0.2, name: str = "block"
) -> Model:
    """The model carrying a cube, held fast: its middle is at a place of the body.

    Args:
        model: Who carries it.
        body: With what.
        mass: Of the cube [kg].
        at: Where, in the body's frame.
        size: Of its edges [m].
        name: Of the cube and of the joint that holds it.
    """
    cube = Shape("box", (size / 2, size / 2, size / 2))
    load = body_from_shapes(name, (cube,), mass=mass, frame=compose(model.body(body).frame, at))
    return _extended(model, [load], [Joint(name, "fixed", body, name, parent_frame=at)])


def with_ball(model: Model, at: Vector, *, mass: float = 10.0, radius: float = 0.15, name: str = "ball") -> Model:
    """The model and a ball that flies free, and may hit it: from now on its bodies touch each other."""
    ball = body_from_shapes(name, (Shape("sphere", (radius,)),), mass=mass, frame=Frame(at))
    return replace(_extended(model, [ball], []), self_collision=True)


def _extended(model: Model, bodies: list[Body], joints: list[Joint]) -> Model:
    known = {body.name for body in model.bodies}
    for body in bodies:
        if body.name in known:
            raise ModelError(f"model {model.name!r} already has a body {body.name!r}; give one of them another name")
    return validate(replace(model, bodies=(*model.bodies, *bodies), joints=(*model.joints, *joints)))


def _triangle_angle(a: float, b: float, opposite: float) -> float:
    """The angle [rad] between sides a and b of a triangle, by the law of cosines."""
    cosine = (a * a + b * b - opposite * opposite) / (2 * a * b)
    return atan2((1.0 - cosine * cosine) ** 0.5, cosine)


def _knot(row: int, column: int) -> str:
    return f"knot_{row}_{column}"


def _hammock(rows: int, columns: int, spacing: float, arc: float) -> tuple[np.ndarray, np.ndarray]:
    """Places (rows, columns, 3) of knots [m], and the slope of the bars after each column [rad], rows in an arc."""
    slopes = arc * ((np.arange(columns - 1) + 0.5) / (columns - 1) - 0.5)
    ends = spacing * np.cumsum(np.stack([np.cos(slopes), np.sin(slopes)], axis=1), axis=0)
    row = np.vstack([np.zeros(2), ends])
    row[:, 0] -= row[-1, 0] / 2.0
    places = np.zeros((rows, columns, 3))
    places[..., 0] = spacing * (np.arange(rows) - (rows - 1) / 2.0)[:, None]
    places[..., 1:] = row
    return places, slopes


def _along_row(slope: float) -> Quaternion:
    """Turns x into the direction of a bar of a row: y, sloping up."""
    y, z = cos(slope), sin(slope)
    return orientation_from_matrix(np.array([[0.0, -1.0, 0.0], [y, 0.0, -z], [z, 0.0, y]]))


def _conjugate(turn: Quaternion) -> Quaternion:
    w, x, y, z = turn
    return w, 0.0 - x, 0.0 - y, 0.0 - z


def _bars(rows: int, columns: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The knots at both ends of each bar."""
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns:
                yield (row, column), (row, column + 1)
            if row + 1 < rows:
                yield (row, column), (row + 1, column)
