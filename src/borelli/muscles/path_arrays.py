"""Muscle paths of a model as arrays for kernels.

A *slot* is a body on the way from a body of the path up to the last one that all of them have in common: the joints
of these bodies are the ones that change the path's length. An *entry* is a coordinate that changes it: one moment arm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, unknown_name
from borelli.model.functions import Function
from borelli.model.model import GROUND, WRAP_KINDS, WRAP_METHODS, Model, Muscle, WrapObject
from borelli.model.model_cache import cached_per_model
from borelli.model.transforms import orientation_matrix
from borelli.tree.kinematic_tree import Tree, function_pieces, make_tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STRING_POINTS = 24
"""Points of the string that gives a first guess of a geodesic."""
KINDS = tuple(WRAP_KINDS)
"""Kinds of wrap objects in the order of the kernels' numbers; so are `WRAP_METHODS`."""


class PathArrays(NamedTuple):
    """Arrays by muscle, point, motion (part of a moving point), wrap, wrap object, slot and entry."""

    first_point: Integers
    """(muscles + 1,)"""
    first_wrap: Integers
    first_node: Integers
    """(muscles + 1,) index of the first node: a muscle has room for its points and two nodes per wrap."""
    first_slot: Integers
    first_entry: Integers
    point_body: Integers
    """-1: the ground."""
    point_position: Floats
    """(points, 3) in the frame of the body [m]."""
    point_slot: Integers
    point_branch: Integers
    """Number of the branch, between pulleys, to which a point belongs."""
    point_weight: Floats
    """Weight of lengths in the branch: one over the divisor of its pulley."""
    condition: Integers
    """(points,) coordinate of a conditional point; -1: always active."""
    condition_range: Floats
    """(points, 2) [rad or m]"""
    first_motion: Integers
    """(points + 1,)"""
    motion_axis: Floats
    """(motions, 3) in the frame of the body."""
    motion_coordinate: Integers
    """-1: the function is constant."""
    motion_function: Integers
    motion_entry: Integers
    """Entry of the coordinate that moves the point; -1: none."""
    wrap_object: Integers
    wrap_range: Integers
    """(wraps, 2) first and last point of the muscle between which it may wrap."""
    wrap_method: Integers
    wrap_slot: Integers
    side_body: Integers
    """(wraps,) body of the side point; -1: the ground; -2: there is none."""
    side_position: Floats
    object_kind: Integers
    object_body: Integers
    object_position: Floats
    object_rotation: Floats
    object_size: Floats
    """(objects, 3) [m]"""
    object_side: Integers
    """(objects, 2) axis and sign of the allowed half; sign 0: all of it."""
    object_active: Integers
    slot_parent: Integers
    """-1: the last common body. Children come before their parents."""
    first_slot_part: Integers
    """(slots + 1,)"""
    slot_part: Integers
    """Parts of the tree in the joint of a slot's body, and in `slot_entry` the entries of their variables."""
    slot_entry: Integers
    entry_coordinate: Integers
    first_piece: Integers
    start: Floats
    end: Floats
    coefficient: Floats


class PathWork(NamedTuple):
    """Paths of one frame, and what the next frame starts from."""

    node_count: Integers
    """(muscles,) points of the path that are in use, tangent points included."""
    node_position: Floats
    """(nodes, 3) in the world [m]."""
    node_force: Floats
    """(nodes, 3) force on the node per unit tension."""
    node_body: Integers
    node_slot: Integers
    node_point: Integers
    """Index of the path point; -1: a tangent point."""
    node_wrap: Integers
    """Index of the wrap of a tangent point; -1: a path point."""
    node_arc: Floats
    """Length [m] over the surface to the next node; -1: straight to it."""
    node_branch: Integers
    node_weight: Floats
    wrap_state: Integers
    """(wraps,) -1: an end is inside the surface; 0: straight; above: wrapped; 3: wrapped, and not converged."""
    wrap_side: Floats
    """(wraps,) side of the path around a cylinder or sphere, 1 or -1."""
    warm: Floats
    """(wraps, 8) geodesic of the last frame: start, tangent, length, valid."""
    touch: Floats
    """(wraps, 6) tangent points of the last pass in the world [m]."""
    object_position: Floats
    """(objects, 3) in the world [m]."""
    object_rotation: Floats
    wrench: Floats
    """(slots, 6) moment about the world's origin and force, per unit tension."""
    result: Floats
    """(2, 8) tangent points and length of a segment: tried, best."""
    ends: Floats
    """(3, 3) ends of a segment and the side point in the object's frame."""
    scratch: Floats
    """(9 + STRING_POINTS, 10) of the geodesic solver."""


@cached_per_model
def make_path_arrays(model: Model, muscles: tuple[str, ...] | None = None) -> PathArrays:
    """Return the arrays of the paths of a model's muscles, or of the named ones in their order.

    Raises:
        ModelError: if a muscle is unknown, or refers to an unknown body, coordinate or wrap object.
    """
    listed = model.muscles if muscles is None else tuple(model.muscle(name) for name in muscles)
    tables = _Tables(model)
    for muscle in listed:
        tables.add(muscle)
    return tables.arrays()


def make_path_work(arrays: PathArrays) -> PathWork:
    """Return arrays for the paths of a frame; no geodesic is known yet."""
    nodes, wraps, objects = int(arrays.first_node[-1]), len(arrays.wrap_object), len(arrays.object_kind)

    def integers(count: int) -> Integers:
        return np.zeros(count, np.int64)

    return PathWork(
        integers(len(arrays.first_point) - 1), np.zeros((nodes, 3)), np.zeros((nodes, 3)), integers(nodes),
        integers(nodes), integers(nodes), integers(nodes), np.zeros(nodes), integers(nodes), np.zeros(nodes),
        integers(wraps), np.zeros(wraps), np.zeros((wraps, 8)), np.zeros((wraps, 6)), np.zeros((objects, 3)),
        np.zeros((objects, 3, 3)), np.zeros((len(arrays.slot_parent), 6)), np.zeros((2, 8)), np.zeros((3, 3)),
        np.zeros((9 + STRING_POINTS, 10)),
    )  # fmt: skip


class _Tables:
    """Rows of the arrays while they are collected."""

    def __init__(self, model: Model) -> None:
        self.tree: Tree = make_tree(model)
        self.body = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
        self.coordinate = {c.name: i for i, c in enumerate(model.coordinates)}
        self.objects = {wrap.name: wrap for wrap in model.wrap_objects}
        self.link = {int(child): i for i, child in enumerate(self.tree.child)}
        self.object_index: dict[str, int] = {}
        self.functions: list[Function] = []
        self.rows: dict[str, list[object]] = {name: [] for name in PathArrays._fields}
        for name in ("first_point", "first_wrap", "first_node", "first_slot", "first_entry", "first_motion"):
            self.rows[name].append(0)
        self.rows["first_slot_part"].append(0)

    def put(self, **values: object) -> None:
        for name, value in values.items():
            self.rows[name].append(value)

    def count(self, name: str) -> int:
        return len(self.rows[name])

    def find(self, muscle: Muscle, kind: str, name: str) -> int:
        known = self.body if kind == "body" else self.coordinate
        if name not in known:
            raise ModelError(f"Muscle {muscle.name!r}: {unknown_name(kind, name, known)}")
        return known[name]

    def add(self, muscle: Muscle) -> None:
        """Add the path of a muscle."""
        wraps = [(wrap, self.wrap(muscle, wrap.wrap_object)) for wrap in muscle.wraps]
        bodies = {self.find(muscle, "body", point.body) for point in muscle.path}
        bodies |= {self.find(muscle, "body", wrap.body) for _, wrap in wraps}
        slots, entries = self.add_slots(bodies)
        branch, weight = 0, 1.0
        pulleys = {pulley.first: pulley.divisor for pulley in muscle.pulleys}
        for i, point in enumerate(muscle.path):
            if i in pulleys:
                branch, weight = branch + (i > 0), 1.0 / pulleys[i]
            span = point.only_within
            body = self.body[point.body]
            self.put(
                point_body=body, point_position=point.position, point_slot=slots[body],
                point_branch=branch, point_weight=weight,
                condition=-1 if span is None else self.find(muscle, "coordinate", span.coordinate),
                condition_range=(0.0, 0.0) if span is None else (span.lower, span.upper),
            )  # fmt: skip
            for part in point.motion:
                column = -1 if part.coordinate is None else self.find(muscle, "coordinate", part.coordinate)
                self.put(
                    motion_axis=part.axis, motion_coordinate=column, motion_function=len(self.functions),
                    motion_entry=self.entry(entries, column),
                )  # fmt: skip
                self.functions.append(part.function)
            self.put(first_motion=self.count("motion_axis"))
        last = len(muscle.path) - 1
        for wrap, surface in wraps:
            side = wrap.side_point
            tendon = wrap.method == "tendon" or side is not None
            self.put(
                wrap_object=self.object(surface), wrap_slot=slots[self.body[surface.body]],
                wrap_range=(wrap.first, wrap.last if wrap.last >= 0 else last),
                wrap_method=WRAP_METHODS.index("tendon" if tendon else wrap.method),
                side_body=-2 if side is None else self.find(muscle, "body", side.body),
                side_position=(0.0, 0.0, 0.0) if side is None else side.position,
            )  # fmt: skip
        self.put(
            first_point=self.count("point_body"), first_wrap=self.count("wrap_object"),
            first_node=self.count("point_body") + 2 * self.count("wrap_object"),
            first_slot=self.count("slot_parent"), first_entry=self.count("entry_coordinate"),
        )  # fmt: skip

    def wrap(self, muscle: Muscle, name: str) -> WrapObject:
        if name not in self.objects:
            raise ModelError(f"Muscle {muscle.name!r}: {unknown_name('wrap object', name, self.objects)}")
        return self.objects[name]

    def object(self, wrap: WrapObject) -> int:
        if wrap.name not in self.object_index:
            self.object_index[wrap.name] = len(self.object_index)
            side = (0, 0) if wrap.side == "all" else ("xyz".index(wrap.side[1]), 1 if wrap.side[0] == "+" else -1)
            self.put(
                object_kind=KINDS.index(wrap.kind), object_body=self.body[wrap.body],
                object_position=wrap.frame.position, object_rotation=orientation_matrix(wrap.frame.orientation),
                object_size=(*wrap.size, 0.0, 0.0)[:3], object_side=side, object_active=int(wrap.active),
            )  # fmt: skip
        return self.object_index[wrap.name]

    def chain(self, body: int) -> list[int]:
        """Return a body and its ancestors up to the ground."""
        chain = [body]
        while chain[-1] != -1:
            link = self.link.get(chain[-1])
            chain.append(-1 if link is None else int(self.tree.parent[link]))
        return chain

    def add_slots(self, bodies: set[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Add the slots between bodies; return the slot of each body and the entry of each coordinate."""
        chains = [self.chain(body) for body in bodies]
        common = set.intersection(*map(set, chains))
        depth = {body: len(chain) - i for chain in chains for i, body in enumerate(chain)}
        root = max(common, key=lambda body: depth[body])
        members = {body for body in depth if body not in common} | {root}
        ordered = sorted(members, key=lambda body: (-depth[body], body))
        base = self.count("slot_parent")
        slots = {body: base + i for i, body in enumerate(ordered)}
        entries: dict[int, int] = {}
        for body in ordered:
            parent = -1
            if body != root and (link := self.link.get(body)) is not None:
                parent = slots[int(self.tree.parent[link])]
                for part in range(self.tree.first[link], self.tree.first[link + 1]):
                    if self.tree.part_variable[part] >= 0:
                        column = int(self.tree.free[self.tree.part_variable[part]])
                        self.put(slot_part=part, slot_entry=self.entry(entries, column))
            self.put(slot_parent=parent, first_slot_part=self.count("slot_part"))
        return slots, entries

    def entry(self, entries: dict[int, int], column: int) -> int:
        """Return the entry of the variable that moves a coordinate; -1: none."""
        variable = self.tree.variable[column] if column >= 0 else -1
        if variable < 0:
            return -1
        driver = int(self.tree.free[variable])
        if driver not in entries:
            entries[driver] = self.count("entry_coordinate")
            self.put(entry_coordinate=driver)
        return entries[driver]

    def arrays(self) -> PathArrays:
        first_piece, start, end, coefficient = function_pieces(self.functions)
        shapes = {
            "point_position": (3,), "condition_range": (2,), "motion_axis": (3,), "wrap_range": (2,),
            "side_position": (3,), "object_position": (3,), "object_rotation": (3, 3), "object_size": (3,),
            "object_side": (2,), "point_weight": (),
        }  # fmt: skip
        whole = {"wrap_range", "object_side"}
        made: dict[str, Any] = {
            name: np.array(rows, np.float64 if name in shapes and name not in whole else np.int64).reshape(
                -1, *shapes.get(name, ())
            )
            for name, rows in self.rows.items()
        }
        made |= {"first_piece": first_piece, "start": start, "end": end, "coefficient": coefficient}
        return PathArrays(**made)
