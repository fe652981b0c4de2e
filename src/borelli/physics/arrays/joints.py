"""Joints as arrays: the tables of the kernels of joints, coordinates and drives.

The axes of the model are rotated to standard ones, so that kernels know one form of each joint. In the joint frames

    hinge, slider    the axis is x
    universal        the first axis (fixed in the parent) is x, the second (fixed in the child) y
    ball             Cardan angles are about x, y, z, each rotated by the ones before: Rx Ry Rz
    planar           translation along x and y of the parent, rotation about z; coordinates in this order
    free             translation along x, y, z of the parent, then Cardan angles x, y, z; coordinates in this order

A left-handed triple of axes becomes a right-handed one whose third coordinate has the opposite sign (`sign` -1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.model.functions import Function
from borelli.model.model import GROUND, JOINT_KINDS, Coordinate, Frame, Joint, Model
from borelli.model.transforms import orientation_matrix
from borelli.physics.arrays.indices import JOINT_ROWS, LIMIT_ROWS

FREE, BALL, UNIVERSAL, HINGE, SLIDER, PLANAR, FIXED, COORDINATE = range(8)
CODES = {kind: code for code, kind in enumerate(JOINT_KINDS)}

ROW_NAMES = {
    FREE: (),
    BALL: ("x", "y", "z"),
    UNIVERSAL: ("x", "y", "z", "perpendicular"),
    HINGE: ("x", "y", "z", "tilt y", "tilt z"),
    SLIDER: ("y", "z", "rotation x", "rotation y", "rotation z"),
    PLANAR: ("z", "tilt x", "tilt y"),
    FIXED: ("x", "y", "z", "rotation x", "rotation y", "rotation z"),
}
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Columns = dict[str, Any]
"""Columns of tables by name."""


class CustomJointTables(NamedTuple):
    """Custom joints: six axes each (rotations, then translations), functions, and scratch of `fit_custom_joint`."""

    joint: Integers
    """(m,) index of the joint."""
    coordinate: Integers
    """(m,) first coordinate of the joint."""
    freedom: Integers
    """(m,) number of its coordinates."""
    axis: Floats
    """(m, 6, 3)"""
    driver: Integers
    """(m, 6) coordinate of each axis, counted within the joint; -1: constant."""
    function: Integers
    """(m, 6)"""
    function_first: Integers
    """(f + 1,) first piece of each function."""
    function_end: Floats
    """(f,) last break of each function."""
    piece_start: Floats
    piece_coefficient: Floats
    """(pieces, order + 1) rising powers of the distance from the piece's start."""
    subspace: Floats
    """(m, 6, 6) columns: velocity per unit velocity of each coordinate, parent joint axes."""
    factor: Floats
    """(m, 6, 6) triangular factor of `subspace`."""
    basis: Floats
    """(m, 6, 6) orthonormal columns: a basis of `subspace`, then of its complement."""
    residual: Floats
    """(m, 6) pose error at the best coordinates, parent joint axes."""
    step: Floats
    """(6,) change of the coordinates in one iteration."""


class JointTables(NamedTuple):
    """Joints, their coordinates, couplings and custom joints."""

    # one per joint
    kind: Integers
    child: Integers
    parent: Integers
    """-1: ground."""
    anchor_child: Floats
    """(j, 3) from the center of mass, body axes [m]."""
    frame_child: Floats
    """(j, 3, 3) columns: axes of the joint frame in body axes."""
    anchor_parent: Floats
    frame_parent: Floats
    row_first: Integers
    """(j + 1,) first constraint row of each joint."""
    child_slot: Integers
    """Entry of the child in each of the joint's rows; -1 if its motion is prescribed."""
    parent_slot: Integers
    alpha: Floats
    beta: Floats
    coordinate_first: Integers
    """(j + 1,)"""
    rotation_driven: Flags
    """True for a ball driven on all three coordinates: its drive rows act on the angular velocity in child axes."""
    tree_order: Integers
    """Joints that do not close loops, parents before children."""
    # one per coordinate
    joint: Integers
    sign: Floats
    lower: Floats
    upper: Floats
    default: Floats
    rotational: Flags
    locked: Flags
    limit_alpha: Floats
    limit_beta: Floats
    limit_row: Integers
    """-1 if unlimited."""
    drive_row: Integers
    """-1 if neither driven nor locked."""
    # one per coupling
    coupling_row: Integers
    coupling_coordinate: Integers
    coupling_on: Integers
    coupling_function: Integers
    coupling_alpha: Floats
    coupling_beta: Floats
    coupling_slot: Integers
    """(c, 4) entries of child and parent of the coordinate, child and parent of `on`; -1 if motion is prescribed."""
    row_ranges: Integers
    """(5,) first joint, coupling, limit and drive row, and the end: JOINT_ROWS to ROWS_END of `indices`."""
    equation_row: Integers
    """(e,) rows of joints, couplings and locked coordinates."""
    hard_alpha: Floats
    """(persistent rows of joints,) fraction of their error that a step corrects of rows without compliance among
    those; 0 of all others. Empty if all have compliance."""
    # one per joint, limit or drive row of a body whose motion is prescribed
    prescribed_row: Integers
    prescribed_joint: Integers
    # scratch of `pose_joints`, world axes
    arm_child: Floats
    """(j, 3) from the child's center of mass to its anchor."""
    arm_parent: Floats
    """(j, 3) from the parent's center of mass, or the origin, to its anchor."""
    gap: Floats
    """(j, 3) from the parent's to the child's anchor."""
    axes_child: Floats
    """(j, 3, 3) axis, component."""
    axes_parent: Floats
    # scratch of `coordinates_from_poses`
    direction: Floats
    """(q, 6) velocity of a coordinate per relative velocity at the child's anchor and per relative angular velocity."""
    motion: CustomJointTables


SCRATCH = ("arm_child", "arm_parent", "gap", "axes_child", "axes_parent", "direction")
"""Arrays of `JointTables` that kernels write to."""
CUSTOM_SCRATCH = ("subspace", "factor", "basis", "residual", "step")
"""Arrays of `CustomJointTables` that kernels write to."""


def with_own_scratch(joints: JointTables) -> JointTables:
    """Return the tables with scratch arrays of their own, so that another thread can use the original."""
    motion = joints.motion._replace(**{name: getattr(joints.motion, name).copy() for name in CUSTOM_SCRATCH})
    return joints._replace(motion=motion, **{name: getattr(joints, name).copy() for name in SCRATCH})


class JointSide(NamedTuple):
    """Pose of the joint frame on one body."""

    body: int
    slot: int
    anchor: Floats
    axes: Floats


JointSides = tuple[JointSide, JointSide, float]
"""Child side, parent side and sign of the third coordinate of a joint."""


def canonical_axes(joint: Joint) -> tuple[Floats, float]:
    """Return the joint's x, y, z in its joint frames as columns, and the sign of the third coordinate."""
    if not joint.axes:
        return np.eye(3), 1.0
    axes = [np.asarray(axis) / np.linalg.norm(axis) for axis in joint.axes]
    x = axes[0]
    y = axes[1] if len(axes) > 1 else np.roll(np.eye(3)[np.argmax(np.abs(x))], 1)
    y = y - (y @ x) * x
    y = y / np.linalg.norm(y)
    z = np.cross(x, y)
    return np.column_stack([x, y, z]), -1.0 if len(axes) == 3 and z @ axes[2] < 0.0 else 1.0


class _Rows:
    """Rows in the order they are added: number of entries, name and unit of each."""

    def __init__(self) -> None:
        self.entries: list[int] = []
        self.names: list[str] = []
        self.units: list[str] = []

    @property
    def next(self) -> int:
        return len(self.entries)

    def add(self, entries: int, name: str, unit: str) -> int:
        self.entries.append(entries)
        self.names.append(name)
        self.units.append(unit)
        return self.next - 1


class _Functions:
    """Piecewise polynomials packed into arrays."""

    def __init__(self) -> None:
        self.functions: list[Function] = []

    def add(self, function: Function) -> int:
        self.functions.append(function)
        return len(self.functions) - 1

    def arrays(self) -> Columns:
        pieces = [piece for function in self.functions for piece in function.coefficients]
        coefficient = np.zeros((len(pieces), max((len(piece) for piece in pieces), default=1)))
        for row, piece in zip(coefficient, pieces, strict=True):
            row[: len(piece)] = piece
        counts = [len(function.coefficients) for function in self.functions]
        return {
            "function_first": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            "function_end": _floats([function.breaks[-1] for function in self.functions]),
            "piece_start": _floats([b for f in self.functions for b in f.breaks[: len(f.coefficients)]]),
            "piece_coefficient": coefficient,
        }


def compile_joints(
    model: Model,
    body_index: Mapping[str, int],
    body_com: Floats,
    kinematic: Flags,
    step: float,
    driven: Collection[str] = (),
    driven_as_one: Collection[str] = (),
) -> tuple[JointTables, list[int], list[str], list[str]]:
    """Return joint tables, and number of entries, name and unit of each row: joints, couplings, limits, drives.

    `body_com` (bodies, 3) are centers of mass in body frames [m]; coordinates that are `driven` get a drive row. The
    drives of a ball joint whose three coordinates are in `driven_as_one` act on its rotation, along the child's axes;
    all others act on the coordinates they name.
    """
    rows = _Rows()
    functions = _Functions()
    sides = [_joint_sides(joint, body_index, body_com, kinematic) for joint in model.joints]
    columns = _joint_columns(model, sides, rows, step)
    ranges = [0, rows.next]
    columns.update(_coupling_columns(model, sides, rows, functions, step))
    ranges.append(rows.next)
    columns.update(_coordinate_columns(model, sides, rows, step, driven, ranges))
    ranges.append(rows.next)
    columns["row_ranges"] = _integers(ranges)
    locked_row = columns["drive_row"][columns["locked"] & (columns["drive_row"] >= 0)]
    columns["equation_row"] = _integers([*range(ranges[JOINT_ROWS], ranges[LIMIT_ROWS]), *locked_row])
    columns["hard_alpha"] = _hard_alpha(columns, rows.next)
    columns["rotation_driven"] = _rotation_driven(model, columns, driven_as_one)
    columns.update(_prescribed_columns(sides, columns))
    count = len(sides)
    tables = JointTables(
        **columns,
        arm_child=np.zeros((count, 3)),
        arm_parent=np.zeros((count, 3)),
        gap=np.zeros((count, 3)),
        axes_child=np.zeros((count, 3, 3)),
        axes_parent=np.zeros((count, 3, 3)),
        direction=np.zeros((len(model.coordinates), 6)),
        motion=_custom_joint_tables(model, functions, columns["coordinate_first"]),
    )
    return tables, rows.entries, rows.names, rows.units


def _floats(values: Sequence[float] | Sequence[Floats]) -> Floats:
    return np.array(values, np.float64)


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _joint_sides(joint: Joint, body_index: Mapping[str, int], body_com: Floats, kinematic: Flags) -> JointSides:
    axes, sign = canonical_axes(joint)
    child, parent = (-1 if name == GROUND else body_index[name] for name in (joint.child, joint.parent))
    child_solved = child >= 0 and not kinematic[child]
    parent_solved = parent >= 0 and not kinematic[parent]

    def side(index: int, frame: Frame, slot: int) -> JointSide:
        com = body_com[index] if index >= 0 else np.zeros(3)
        return JointSide(index, slot, np.asarray(frame.position) - com, orientation_matrix(frame.orientation) @ axes)

    return (
        side(child, joint.child_frame, 0 if child_solved else -1),
        side(parent, joint.parent_frame, int(child_solved) if parent_solved else -1),
        sign,
    )


def _solved(side: JointSides) -> int:
    """Return the number of a joint's bodies that are solved for."""
    return int(side[0].slot >= 0) + int(side[1].slot >= 0)


def _joint_columns(model: Model, sides: Sequence[JointSides], rows: _Rows, step: float) -> Columns:
    row_first, coordinate_first = [0], [0]
    for joint, side in zip(model.joints, sides, strict=True):
        code = CODES[joint.kind]
        free = len(joint.coordinates)
        names = ROW_NAMES.get(code, tuple(f"constrained {i + 1}" for i in range(6 - free)))
        for name in names if _solved(side) else ():
            unit = "N or N m" if code == COORDINATE else ("N" if name in ("x", "y", "z") else "N m")
            rows.add(_solved(side), f"{joint.name}/{name}", unit)
        row_first.append(rows.next)
        coordinate_first.append(coordinate_first[-1] + free)
    softness = [joint.softness.at_step(step) for joint in model.joints]
    return {
        "kind": _integers([CODES[joint.kind] for joint in model.joints]),
        "child": _integers([child.body for child, _, _ in sides]),
        "parent": _integers([parent.body for _, parent, _ in sides]),
        "anchor_child": np.array([child.anchor for child, _, _ in sides]).reshape(-1, 3),
        "frame_child": np.array([child.axes for child, _, _ in sides]).reshape(-1, 3, 3),
        "anchor_parent": np.array([parent.anchor for _, parent, _ in sides]).reshape(-1, 3),
        "frame_parent": np.array([parent.axes for _, parent, _ in sides]).reshape(-1, 3, 3),
        "row_first": _integers(row_first),
        "child_slot": _integers([child.slot for child, _, _ in sides]),
        "parent_slot": _integers([parent.slot for _, parent, _ in sides]),
        "alpha": _floats([alpha for alpha, _ in softness]),
        "beta": _floats([beta for _, beta in softness]),
        "coordinate_first": _integers(coordinate_first),
        "tree_order": _tree_order(model),
    }


def _hard_alpha(columns: Columns, count: int) -> Floats:
    """Return alpha of the hard rows of joints, couplings and locked coordinates, which soft steps close; others 0.

    The result is empty if there are none.
    """
    first, beta, alpha = columns["row_first"], columns["beta"], columns["alpha"]
    rows = [(k, alpha[j], beta[j]) for j in range(len(beta)) for k in range(first[j], first[j + 1])]
    rows += zip(columns["coupling_row"], columns["coupling_alpha"], columns["coupling_beta"], strict=True)
    owner = columns["joint"]
    rows += [(k, alpha[owner[i]], beta[owner[i]]) for i, k in enumerate(columns["drive_row"]) if columns["locked"][i]]
    hard = np.zeros(count)
    for k, a, b in rows:
        if k >= 0 and b == 0.0:
            hard[int(k)] = a
    return hard if hard.any() else np.zeros(0)


def _tree_order(model: Model) -> Integers:
    """Return the joints that do not close loops, each after the joint of its parent."""
    inboard = {joint.child: i for i, joint in enumerate(model.joints) if not joint.closes_loop}
    bodies = TopologicalSorter({child: (model.joints[i].parent,) for child, i in inboard.items()}).static_order()
    return _integers([inboard[body] for body in bodies if body in inboard])


def _coordinate_columns(
    model: Model, sides: Sequence[JointSides], rows: _Rows, step: float, driven: Collection[str], ranges: list[int]
) -> Columns:
    owners = [(number, i) for number, joint in enumerate(model.joints) for i in range(len(joint.coordinates))]
    coordinates = model.coordinates
    _check_driven(coordinates, driven)
    limit_row, drive_row = [], []
    for (number, _), c in zip(owners, coordinates, strict=True):
        limited = (c.lower > -np.inf or c.upper < np.inf) and not c.locked and _solved(sides[number]) > 0
        limit_row.append(rows.add(_solved(sides[number]), f"{c.name}/limit", _unit_of(c)) if limited else -1)
    ranges.append(rows.next)
    for (number, _), c in zip(owners, coordinates, strict=True):
        has_row = (c.locked or c.name in driven) and _solved(sides[number]) > 0
        name = f"{c.name}/{'lock' if c.locked else 'drive'}"
        drive_row.append(rows.add(_solved(sides[number]), name, _unit_of(c)) if has_row else -1)
    limits = [c.limit_softness.at_step(step) for c in coordinates]
    return {
        "joint": _integers([number for number, _ in owners]),
        "sign": _floats([sides[number][2] if i % 3 == 2 else 1.0 for number, i in owners]),
        "lower": _floats([c.lower for c in coordinates]),
        "upper": _floats([c.upper for c in coordinates]),
        "default": _floats([c.default for c in coordinates]),
        "rotational": np.array([c.rotational for c in coordinates], np.bool_),
        "locked": np.array([c.locked for c in coordinates], np.bool_),
        "limit_alpha": _floats([alpha for alpha, _ in limits]),
        "limit_beta": _floats([beta for _, beta in limits]),
        "limit_row": _integers(limit_row),
        "drive_row": _integers(drive_row),
    }


def _unit_of(coordinate: Coordinate) -> str:
    return "N m" if coordinate.rotational else "N"


def _check_driven(coordinates: Sequence[Coordinate], driven: Collection[str]) -> None:
    known = {c.name: c for c in coordinates}
    for name in sorted(driven):
        if name not in known:
            raise SettingsError(f"drive: {unknown_name('coordinate', name, known)}")
        if known[name].locked:
            raise SettingsError(f"coordinate {name!r}: It is locked and cannot be driven. Unlock it in the model.")


def _rotation_driven(model: Model, columns: Columns, driven_as_one: Collection[str]) -> Flags:
    has_row, first = columns["drive_row"] >= 0, columns["coordinate_first"]

    def rotates(j: int, joint: Joint) -> bool:
        named = all(coordinate.name in driven_as_one for coordinate in joint.coordinates)
        return joint.kind == "ball" and named and bool(has_row[first[j] : first[j + 1]].all())

    return np.array([rotates(j, joint) for j, joint in enumerate(model.joints)], np.bool_)


def _prescribed_columns(sides: Sequence[JointSides], columns: Columns) -> Columns:
    """Return joint, limit and drive rows with one body solved for and one whose motion is prescribed."""
    pairs: list[tuple[int, int]] = []
    for j, side in enumerate(sides):
        if _solved(side) == 1 and min(side[0].body, side[1].body) >= 0:
            pairs += [(k, j) for k in range(int(columns["row_first"][j]), int(columns["row_first"][j + 1]))]
            for name in ("limit_row", "drive_row"):
                pairs += [(int(k), j) for k in columns[name][columns["joint"] == j] if k >= 0]
    return {"prescribed_row": _integers([k for k, _ in pairs]), "prescribed_joint": _integers([j for _, j in pairs])}


def _custom_joint_tables(model: Model, functions: _Functions, coordinate_first: Integers) -> CustomJointTables:
    numbers = [number for number, joint in enumerate(model.joints) if joint.kind == "coordinate"]
    axis, driver, function = [], [], []
    for joint in (model.joints[number] for number in numbers):
        names = [c.name for c in joint.coordinates]
        for transform in joint.motion:
            axis.append(np.asarray(transform.axis) / np.linalg.norm(transform.axis))
            driver.append(-1 if transform.coordinate is None else names.index(transform.coordinate))
            function.append(functions.add(transform.function))
    count = len(numbers)
    return CustomJointTables(
        joint=_integers(numbers),
        coordinate=_integers([int(coordinate_first[number]) for number in numbers]),
        freedom=_integers([len(model.joints[number].coordinates) for number in numbers]),
        axis=_floats(axis).reshape(count, 6, 3),
        driver=_integers(driver).reshape(count, 6),
        function=_integers(function).reshape(count, 6),
        **functions.arrays(),
        subspace=np.zeros((count, 6, 6)),
        factor=np.zeros((count, 6, 6)),
        basis=np.zeros((count, 6, 6)),
        residual=np.zeros((count, 6)),
        step=np.zeros(6),
    )


def _coupling_columns(
    model: Model, sides: Sequence[JointSides], rows: _Rows, functions: _Functions, step: float
) -> Columns:
    owner = {c.name: number for number, joint in enumerate(model.joints) for c in joint.coordinates}
    index = {c.name: i for i, c in enumerate(model.coordinates)}
    row, coordinate, on, function, slots = [], [], [], [], []
    softness = []
    for coupling in model.couplings:
        ends = [side for name in (coupling.coordinate, coupling.on) for side in sides[owner[name]][:2]]
        bodies = list(dict.fromkeys(side.body for side in ends if side.slot >= 0))
        if not bodies:
            continue
        coordinate.append(index[coupling.coordinate])
        unit = _unit_of(model.coordinates[coordinate[-1]])
        row.append(rows.add(len(bodies), f"{coupling.name}/coupling", unit))
        on.append(index[coupling.on])
        function.append(functions.add(coupling.function))
        slots.append([bodies.index(side.body) if side.slot >= 0 else -1 for side in ends])
        softness.append(coupling.softness.at_step(step))
    return {
        "coupling_row": _integers(row),
        "coupling_coordinate": _integers(coordinate),
        "coupling_on": _integers(on),
        "coupling_function": _integers(function),
        "coupling_alpha": _floats([alpha for alpha, _ in softness]),
        "coupling_beta": _floats([beta for _, beta in softness]),
        "coupling_slot": np.array(slots, np.int64).reshape(-1, 4),
    }
