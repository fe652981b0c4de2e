"""Collision detection: pairs of shapes in contact, with position, normal and depth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import by_pointer, inline, kernel, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, MESH, PLANE, SPHERE, ShapeTables
from borelli.physics.collision.box_box import box_box
from borelli.physics.collision.gjk_epa import WORK_ROWS, convex_convex
from borelli.physics.collision.plane import (
    DEPTH,
    FEATURE,
    NORMAL,
    POINT,
    box_plane,
    capsule_plane,
    cylinder_plane,
    ellipsoid_plane,
    mesh_plane,
)
from borelli.physics.collision.sphere_capsule import capsule_box, capsule_capsule

BOUND = 3
"""Column of `center` with the bounding radius."""


class Contacts(NamedTuple):
    """Contacts of one step, the first `count` entries of each array, with scratch arrays."""

    pair: NDArray[np.int64]
    """(m,) index into the pairs of `ShapeTables`."""
    slot: NDArray[np.int64]
    """(m,) pair_first[pair] + feature: unchanged while the same features are in contact; rises along the list."""
    point: NDArray[np.float64]
    """(m, 3) midway between the two surfaces, world [m]."""
    normal: NDArray[np.float64]
    """(m, 3) unit, world, from B to A: direction of the force on A."""
    depth: NDArray[np.float64]
    """(m,) positive where the shapes overlap [m]."""
    center: NDArray[np.float64]
    """(s, 4) scratch: shape origins in the world, and their bounding radii (column BOUND) [m]."""
    axes: NDArray[np.float64]
    """(s, 3, 3) scratch: shape axes in the world, as columns."""
    fresh: NDArray[np.int64]
    """(s,) scratch: 1 if `axes` belongs to the present step."""
    patch: NDArray[np.float64]
    """(8, 8) scratch: contacts of one pair, see `plane`."""
    work: NDArray[np.float64]
    """(rows, 12) scratch of the narrow phases."""


def make_contacts(shapes: ShapeTables, capacity: int | None = None) -> Contacts:
    """Return empty contacts with capacity for every slot, or for `capacity` contacts."""
    capacity = int(shapes.pair_first[-1]) if capacity is None else capacity
    ground = shapes.body < 0
    return Contacts(
        pair=np.zeros(capacity, np.int64),
        slot=np.zeros(capacity, np.int64),
        point=np.zeros((capacity, 3)),
        normal=np.zeros((capacity, 3)),
        depth=np.zeros(capacity),
        center=np.column_stack([np.where(ground[:, None], shapes.position, 0.0), shapes.bound]),
        axes=np.where(ground[:, None, None], shapes.rotation, 0.0),
        fresh=ground.astype(np.int64),
        patch=np.zeros((8, 8)),
        work=np.zeros((WORK_ROWS, 12)),
    )


@kernel
def find_contacts(shapes_at, position, rotation, margin, contacts_at):
    """Write every contact of depth > -margin, slots rising; return their number.

    `position` (n, 3) and `rotation` (n, 3, 3) are the bodies' centers of mass and orientations. If there are more than
    fit, the first are kept and the number returned exceeds the capacity.
    """
    shapes, contacts = load_shared(shapes_at, contacts_at)
    center, axes, fresh, patch = contacts.center, contacts.axes, contacts.fresh, contacts.patch
    update_shape_poses(
        shapes.kind, shapes.body, shapes.position, shapes.rotation, position, rotation, center, axes, fresh
    )
    capacity = contacts.depth.shape[0]
    pairs = shapes.pair_a.shape[0]
    count, pair = 0, -1
    while pair + 1 < pairs:
        pair += 1
        plane = (0.0, 0.0, 0.0, 0.0)
        if shapes.kind[shapes.pair_b[pair]] == PLANE:
            a, b = shapes.pair_a[pair], shapes.pair_b[pair]
            nx, ny, nz = axes[b, 0, 2], axes[b, 1, 2], axes[b, 2, 2]
            w = nx * center[b, 0] + ny * center[b, 1] + nz * center[b, 2]
            if nx * center[a, 0] + ny * center[a, 1] + nz * center[a, 2] - w >= center[a, BOUND] + margin:
                continue
            plane = (nx, ny, nz, w)
        else:
            pair = next_close_pair(shapes.pair_a, shapes.pair_b, center, pair, margin)
            if pair == pairs:
                break
            a, b = shapes.pair_a[pair], shapes.pair_b[pair]
        kind_a, kind_b = shapes.kind[a], shapes.kind[b]
        for side in range(2):
            s = a if side == 0 else b
            if fresh[s] == 0:
                fresh[s] = 1
                rotate_shape_axes(shapes.rotation, rotation, axes, s, shapes.body[s])
        if kind_b != PLANE:
            found = collide_pair(shapes, contacts, a, b, margin)
        elif kind_a == BOX:
            # tested here, not in collide_with_plane: feet are boxes, and a call costs as much as the work
            found = box_plane(patch, center, axes, shapes.size, a, plane, margin)
        else:
            found = collide_with_plane(
                kind_a, patch, center, axes, shapes.size, shapes.vertices, shapes.first, a, plane, margin
            )
        for k in range(found):
            if count < capacity:
                contacts.pair[count] = pair
                contacts.slot[count] = shapes.pair_first[pair] + int(patch[k, FEATURE])
                contacts.depth[count] = patch[k, DEPTH]
                for m in range(3):
                    contacts.point[count, m] = patch[k, POINT + m]
                    contacts.normal[count, m] = patch[k, NORMAL + m]
            count += 1
    return count


find_contacts_by_pointer = by_pointer(find_contacts)


@kernel_function
def next_close_pair(pair_a, pair_b, center, start, margin):
    """Return the first pair from `start` on whose bounding spheres come within the margin, else the number of pairs.

    A function of its own so that the broad phase is a tight loop.
    """
    for pair in range(start, pair_a.shape[0]):
        a, b = pair_a[pair], pair_b[pair]
        dx, dy, dz = center[a, 0] - center[b, 0], center[a, 1] - center[b, 1], center[a, 2] - center[b, 2]
        limit = center[a, BOUND] + center[b, BOUND] + margin
        if dx * dx + dy * dy + dz * dz < limit * limit:
            return pair
    return pair_a.shape[0]


@inline
def update_shape_poses(kind, body, shape_position, shape_rotation, position, rotation, center, axes, fresh):
    """Write world origins of the moving shapes and world axes of planes; other axes follow when needed."""
    for i in range(body.shape[0]):
        b = body[i]
        if b >= 0:
            fresh[i] = 0
            x, y, z = shape_position[i, 0], shape_position[i, 1], shape_position[i, 2]
            for m in range(3):
                center[i, m] = position[b, m] + rotation[b, m, 0] * x + rotation[b, m, 1] * y + rotation[b, m, 2] * z
            if kind[i] == PLANE:
                fresh[i] = 1
                rotate_shape_axes(shape_rotation, rotation, axes, i, b)


@inline
def rotate_shape_axes(shape_rotation, rotation, axes, i, b):
    """Write the world axes of shape i of body b."""
    for m in range(3):
        x, y, z = rotation[b, m, 0], rotation[b, m, 1], rotation[b, m, 2]
        for k in range(3):
            axes[i, m, k] = x * shape_rotation[i, 0, k] + y * shape_rotation[i, 1, k] + z * shape_rotation[i, 2, k]


@kernel_function
def collide_with_plane(kind, patch, center, axes, size, vertices, first, i, plane, margin):
    """Write contacts of shape i, not a box, with a plane into `patch`; return their number."""
    if kind in (SPHERE, CAPSULE):
        return capsule_plane(patch, center, axes, size, i, plane, margin)
    if kind == CYLINDER:
        return cylinder_plane(patch, center, axes, size, i, plane, margin)
    if kind == ELLIPSOID:
        return ellipsoid_plane(patch, center, axes, size, i, plane, margin)
    if kind == MESH:
        return mesh_plane(patch, center, axes, vertices, first, i, plane, margin)
    return 0


@kernel_function
def collide_pair(shapes, contacts, a, b, margin):
    """Write contacts of two shapes that are not planes into `contacts.patch`; return their number."""
    patch, center, axes, size = contacts.patch, contacts.center, contacts.axes, shapes.size
    kind_a, kind_b = shapes.kind[a], shapes.kind[b]
    round_a, round_b = kind_a in (SPHERE, CAPSULE), kind_b in (SPHERE, CAPSULE)
    if kind_b == BOX and beyond_bound(center, axes, size, b, a, shapes.bound[a] + margin):
        return 0
    if kind_a == BOX and beyond_bound(center, axes, size, a, b, shapes.bound[b] + margin):
        return 0
    if round_a and round_b:
        return capsule_capsule(patch, center, axes, size, a, b, margin)
    if kind_a == BOX and kind_b == BOX:
        return box_box(patch, contacts.work, center, axes, size, a, b, margin)
    if round_a and kind_b == BOX:
        return capsule_box(patch, center, axes, size, a, b, margin)
    if kind_a == BOX and round_b:
        found = capsule_box(patch, center, axes, size, b, a, margin)
        for k in range(found):
            for m in range(NORMAL, NORMAL + 3):
                patch[k, m] = -patch[k, m]
        return found
    return convex_convex(
        patch, contacts.work, shapes.kind, center, axes, size, shapes.vertices, shapes.first, a, b,
        shapes.bound[a] + shapes.bound[b], margin,
    )


@inline
def beyond_bound(center, axes, size, box, i, limit):
    """Return True if the origin of shape i is farther than `limit` [m] from a box: quicker than the exact test."""
    dx, dy, dz = center[i, 0] - center[box, 0], center[i, 1] - center[box, 1], center[i, 2] - center[box, 2]
    square = 0.0
    for k in range(3):
        along = abs(axes[box, 0, k] * dx + axes[box, 1, k] * dy + axes[box, 2, k] * dz) - size[box, k]
        if along > 0.0:
            square += along * along
    return square >= limit * limit
