"""Shapes as arrays: the tables of the collision kernels, and the pairs of shapes that may be in contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.files.memory import check_memory
from borelli.model.model import GROUND, SHAPE_KINDS, Body, Model, Shape
from borelli.numerics.rotation_kernels import rotation_matrix

GROUND_BODY = "moving ground"
"""Name of a kinematic body that stands for the ground: contacts with it are ground reactions."""
PAIR_BYTES = 100.0
"""Memory [bytes] for each pair of shapes while candidates are found."""
KIND_CODES = {kind: code for code, kind in enumerate(SHAPE_KINDS)}
SPHERE, BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, MESH = range(len(SHAPE_KINDS))

# maximum number of contacts of a pair of kinds, the lower code first; pairs not listed have one
_SLOTS = {
    (BOX, PLANE): 8,
    (CAPSULE, PLANE): 2,
    (CYLINDER, PLANE): 4,
    (PLANE, MESH): 8,
    (BOX, BOX): 8,
    (BOX, CAPSULE): 2,
    (CAPSULE, CAPSULE): 2,
}


class ShapeTables(NamedTuple):
    """Colliding shapes and their candidate pairs: s shapes, p pairs. Constant while stepping."""

    kind: NDArray[np.int64]
    """(s,) index into `SHAPE_KINDS`."""
    body: NDArray[np.int64]
    """(s,) -1 = ground."""
    size: NDArray[np.float64]
    """(s, 3) as in the model, unused entries 0 [m]."""
    position: NDArray[np.float64]
    """(s, 3) origin of the shape frame from the center of mass, body axes; for ground shapes in the world [m]."""
    rotation: NDArray[np.float64]
    """(s, 3, 3) shape axes -> body axes (ground: world)."""
    bound: NDArray[np.float64]
    """(s,) bounding radius about the origin of the shape frame; inf for planes [m]."""
    friction: NDArray[np.float64]
    restitution: NDArray[np.float64]
    rolling: NDArray[np.float64]
    """(s,) rolling friction [m]."""
    soft: NDArray[np.float64]
    """(s, 4) stiffness [N/m], damping [N s/m], erp, cfm (NaN: not stated)."""
    velocity: NDArray[np.float64]
    """(s, 3) velocity of the surface in its body's frame [m/s]."""
    vertices: NDArray[np.float64]
    """(total, 3) vertices of all meshes, in the axes of their shape frames [m]."""
    first: NDArray[np.int64]
    """(s + 1,) vertices of shape i are first[i] to first[i + 1]."""
    pair_a: NDArray[np.int64]
    """(p,) a shape of a moving body, never a plane."""
    pair_b: NDArray[np.int64]
    """(p,) the other shape: ground, kinematic or moving."""
    pair_body: NDArray[np.int64]
    """(p, 2) their bodies, kinematic ones too; -1: the ground, or a body that stands for it."""
    pair_first: NDArray[np.int64]
    """(p + 1,) contact slots of pair k are pair_first[k] to pair_first[k + 1]."""
    pair_friction: NDArray[np.float64]
    """(p,) geometric mean of the two."""
    pair_restitution: NDArray[np.float64]
    """(p,) the larger of the two."""
    pair_rolling: NDArray[np.float64]
    """(p,) the larger of the two [m]."""


def compile_shapes(model: Model, body_index: Mapping[str, int]) -> ShapeTables:
    """Return the colliding shapes of a model and its candidate pairs.

    Pairs come in three groups, each in rising order of (a, b): with planes, with other ground shapes, between bodies.
    Every shape of a dynamic body collides with every ground shape. Two bodies collide if the model allows
    self-collision or if no chain of joints connects them, but never if a joint connects them directly (free joints do
    not count).
    """
    owners: list[tuple[Body | None, Shape]] = [(None, shape) for shape in model.ground if shape.collides]
    owners += [(body, shape) for body in model.bodies for shape in body.shapes if shape.collides]
    count = len(owners)
    kind = np.array([KIND_CODES[shape.kind] for _, shape in owners], np.int64)
    size = np.zeros((count, 3))
    position = np.zeros((count, 3))
    rotation = np.zeros((count, 3, 3))
    bound = np.zeros(count)
    corners: list[NDArray[np.float64]] = []
    for i, (owner, shape) in enumerate(owners):
        size[i, : len(shape.size)] = shape.size
        rotation[i] = np.reshape(rotation_matrix(*map(float, shape.frame.orientation)), (3, 3))
        position[i] = shape.frame.position
        if owner is not None:
            position[i] -= owner.center_of_mass
        hull = _hull(shape)
        if len(hull):
            midpoint = 0.5 * (hull.min(axis=0) + hull.max(axis=0))
            hull = hull - midpoint
            position[i] += rotation[i] @ midpoint
        corners.append(hull)
        bound[i] = _bounding_radius(kind[i], size[i], hull)
    body = np.array([-1 if b is None else body_index[b.name] for b, _ in owners], np.int64)
    fixed = np.array([b is None or b.kinematic for b, _ in owners], bool)
    counted = np.where([b is not None and b.kinematic and b.name == GROUND_BODY for b, _ in owners], -1, body)
    pair_a, pair_b = _pairs(model, body_index, kind, body, fixed)
    slots = [_SLOTS.get(_ordered(a, b), 1) for a in range(len(SHAPE_KINDS)) for b in range(len(SHAPE_KINDS))]
    per_pair = np.array(slots, np.int64).reshape(len(SHAPE_KINDS), -1)[kind[pair_a], kind[pair_b]]
    surfaces = [shape.surface for _, shape in owners]
    friction = np.array([s.friction for s in surfaces], np.float64)
    restitution = np.array([s.restitution for s in surfaces], np.float64)
    rolling = np.array([s.rolling_friction for s in surfaces], np.float64)
    soft = [(s.stiffness, s.damping, s.erp, np.nan if s.cfm is None else s.cfm) for s in (f.softness for f in surfaces)]
    return ShapeTables(
        kind=kind,
        body=body,
        size=size,
        position=position,
        rotation=rotation,
        bound=bound,
        friction=friction,
        restitution=restitution,
        rolling=rolling,
        soft=np.array(soft, np.float64).reshape(count, 4),
        velocity=np.array([s.velocity for s in surfaces], np.float64).reshape(count, 3),
        vertices=np.concatenate([np.zeros((0, 3)), *corners]),
        first=_starts([len(c) for c in corners]),
        pair_a=pair_a,
        pair_b=pair_b,
        pair_body=np.stack([counted[pair_a], counted[pair_b]], axis=1),
        pair_first=_starts(per_pair),
        pair_friction=np.sqrt(friction[pair_a] * friction[pair_b]),
        pair_restitution=np.maximum(restitution[pair_a], restitution[pair_b]),
        pair_rolling=np.maximum(rolling[pair_a], rolling[pair_b]),
    )


def _ordered(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a <= b else (b, a)


def _starts(counts: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
    """Return 0 followed by the cumulative sum."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64))])


def _hull(shape: Shape) -> NDArray[np.float64]:
    """Return the vertices of a mesh's convex hull, in the order given; inner points would only slow down the search."""
    points = np.array(shape.vertices, np.float64).reshape(-1, 3)
    if shape.kind != "mesh" or len(points) <= 4:
        return points if shape.kind == "mesh" else np.zeros((0, 3))
    from scipy.spatial import ConvexHull, QhullError

    try:
        return points[np.sort(ConvexHull(points).vertices)]
    except QhullError:  # flat or thin: all points are kept, which is correct but slower
        return points


def _bounding_radius(kind: int, size: NDArray[np.float64], hull: NDArray[np.float64]) -> float:
    """Return the radius about the origin of the shape frame [m]."""
    if kind == PLANE:
        return float("inf")
    if kind == MESH:
        return float(np.sqrt((hull**2).sum(axis=1).max()))
    if kind == CAPSULE:
        return float(size[0] + size[1])
    if kind in (BOX, CYLINDER):
        return float(np.linalg.norm(size))
    return float(size.max())


def _pairs(
    model: Model,
    body_index: Mapping[str, int],
    kind: NDArray[np.int64],
    body: NDArray[np.int64],
    fixed: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the shape indices of candidate pairs; see `compile_shapes`."""
    check_memory(
        PAIR_BYTES * 0.5 * len(kind) ** 2, f"{model.name!r}: A model of {len(kind)} shapes that may touch each other",
        "Use fewer shapes with contact.",
    )  # fmt: skip
    one, two = np.triu_indices(len(kind), 1)
    meets = (body[one] != body[two]) & ~(fixed[one] & fixed[two]) & ~((kind[one] == PLANE) & (kind[two] == PLANE))
    one, two = one[meets], two[meets]
    tree, joined = _joined(model, body_index)
    body_one, body_two = body[one], body[two]
    between = (body_one >= 0) & (body_two >= 0)
    allowed = ~np.isin(np.minimum(body_one, body_two) * len(tree) + np.maximum(body_one, body_two), joined)
    if not model.self_collision:
        allowed &= tree[body_one] != tree[body_two]
    keep = ~between | allowed
    one, two = one[keep], two[keep]
    swap = fixed[one] | (kind[one] == PLANE)
    swap &= kind[two] != PLANE
    pair_a, pair_b = np.where(swap, two, one), np.where(swap, one, two)
    run = np.where(kind[pair_b] == PLANE, 0, np.where(body[pair_b] < 0, 1, 2))
    order = np.lexsort((pair_b, pair_a, run))
    return pair_a[order], pair_b[order]


def _joined(model: Model, body_index: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tree of each body, and the codes low * n + high of bodies connected directly, not by the ground."""
    count = 1 + max(body_index.values(), default=-1)
    tree = np.arange(count)
    joined = []
    for joint in model.joints:
        if joint.kind == "free" or GROUND in (joint.parent, joint.child):
            continue
        low, high = _ordered(body_index[joint.parent], body_index[joint.child])
        joined.append(low * count + high)
        tree[tree == tree[high]] = tree[low]
    return tree, np.array(joined, np.int64)
