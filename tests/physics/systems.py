"""Random row systems and driven chains for the tests of the solver.

A random system is built backward: a velocity v* and impulses p* are drawn first and every law is chosen so that
(u*, p*) lies on it, inside a piece or exactly on a break. The momentum r = M v* - J^T p* then makes (v*, p*) the
solution: feasible by construction, kinks exact to rounding, and v* known because it is unique. Half of the feasible
systems stay like that ("planted"); the others get an extra impulse, which leaves them feasible with an unknown
solution. "conflicting" systems get opposing stiff rows as well, which no velocity can obey together; only their
softness bounds the impulses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.numerics import vectors
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.rows.rows import Rows, make_rows

from .called import bounded_law, no_law, one_sided_law, soft_law
from .five_piece_laws import dead_zone_law, two_rate_law

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEP = 1 / 240
GRAVITY = 9.81
LOOP_BETA = (-8.0, -6.0)
HARDNESS_BETA = {"soft": (-6.0, -3.0), "mixed": (-10.0, -3.0), "hard": (-10.0, -10.0)}
"""Decades of beta of bounded and one-sided rows."""
BILATERAL_BETA = {"soft": (-6.0, -3.0), "mixed": (-10.0, -3.0), "hard": (-6.0, -3.0)}
"""Decades of beta of soft unbounded rows."""
WIDE = 1e10
"""Bound of the drives that conflict with limits [N s]; with beta 1e-10 a conflict of 1 m/s reaches it."""

JOINT, LOOP, LIMIT, DRIVE, ANCHOR, NORMAL, TANGENT, ABSENT = range(8)
BOUNDED, DEAD_ZONE, STIFFENING, SECONDARY, UNYIELDING = range(5)


@dataclass(frozen=True)
class System:
    """Problem of one step: M v = r + J^T p with (u, p) on the laws of the rows."""

    mass: Floats
    """(n, 6, 6) mass blocks, world frame, about the center of mass."""
    momentum: Floats
    """(n, 6) free momentum r = M v + h f."""
    parent: Ints
    """(n,) parent in the tree, smaller than the body's own index; -1 for a root."""
    rows: Rows
    hard: Ints
    """Rows with beta = 0."""
    velocity: Floats | None = None
    """(n, 6) the solution, where it is known."""
    impulse: Floats | None = None
    """(rows,) its impulses; not unique where hard rows are redundant."""

    @property
    def bodies(self) -> int:
        return len(self.parent)

    @property
    def row_count(self) -> int:
        return len(self.rows.offset)

    def jacobian(self) -> Floats:
        """Dense J (rows, 6 n)."""
        rows, dense = self.rows, np.zeros((self.row_count, self.bodies, 6))
        used = rows.body >= 0
        np.add.at(dense, (entry_rows(rows)[used], rows.body[used]), rows.jacobian[used])
        return dense.reshape(self.row_count, -1)

    def dense_mass(self) -> Floats:
        """Dense M (6 n, 6 n)."""
        dense = np.zeros((self.bodies, 6, self.bodies, 6))
        index = np.arange(self.bodies)
        dense[index, :, index, :] = self.mass
        return dense.reshape(6 * self.bodies, -1)


def entry_rows(rows: Rows) -> Ints:
    """Return the row of every entry."""
    return np.repeat(np.arange(len(rows.offset)), np.diff(rows.first))


class Tree(NamedTuple):
    """Bodies and joints before they become rows."""

    parent: Ints
    weight: Floats
    mass: Floats
    position: Floats
    anchor: Floats
    """(n, 3) the joint's point; of a root: where it is tied to the world."""
    axes: Floats
    """(n, 3, 3) the joint's axes, one a row."""
    freedoms: Ints
    """(n,) rotations the joint leaves: 3 ball, 2 universal, 1 hinge; -1 = no joint."""


class Directions(NamedTuple):
    """Rows without laws: arrays over rows."""

    child: Ints
    other: Ints
    child_jacobian: Floats
    other_jacobian: Floats
    role: Ints


def random_rotations(rng: np.random.Generator, count: int) -> Floats:
    """Return (count, 3, 3) rotation matrices, uniform."""
    q = rng.normal(size=(4, count))
    return rotation_matrix((q / np.linalg.norm(q, axis=0)).T)


def mass_blocks(weight: Floats, gyration: Floats, spread: Floats, rotation: Floats) -> Floats:
    """Return (n, 6, 6) blocks; principal moments are sums of two spreads: they obey the triangle inequality."""
    moments = (weight * gyration**2)[:, None] * (spread.sum(1)[:, None] - spread) / spread.max(1)[:, None]
    blocks = np.zeros((len(weight), 6, 6))
    blocks[:, :3, :3] = weight[:, None, None] * np.eye(3)
    blocks[:, 3:, 3:] = np.einsum("nij,nj,nkj->nik", rotation, moments, rotation)
    return 0.5 * (blocks + blocks.transpose(0, 2, 1))


def random_tree(rng: np.random.Generator, count: int) -> Tree:
    """Return bodies of 0.1 to 10 kg with moments in a ratio of at most 10, in a tree or sometimes a forest."""
    index = np.arange(count)
    branching = np.where(rng.random() < 0.5, 3, count)
    parent = np.maximum(0, index - 1 - (rng.random(count) * np.minimum(branching, index)).astype(np.int64))
    parent[(rng.random(count) < 0.05) | (index == 0)] = -1
    weight = 10 ** rng.uniform(-1, 1, count)
    spread = 10 ** rng.uniform(-1.27, 0, (count, 3))  # (1 + 0.054)/(2 * 0.054): ratio of moments up to 10
    mass = mass_blocks(weight, rng.uniform(0.05, 0.3, count), spread, random_rotations(rng, count))
    link = rng.normal(size=(count, 3))
    link *= (rng.uniform(0.1, 0.5, count) / np.linalg.norm(link, axis=1))[:, None]
    position = link.copy()
    for i in range(count):
        if parent[i] >= 0:
            position[i] += position[parent[i]]
    anchor = position - rng.uniform(0.2, 0.8, count)[:, None] * link + 0.03 * rng.normal(size=(count, 3))
    freedoms = rng.integers(1, 4, count)
    freedoms[(parent < 0) & (rng.random(count) < 0.5)] = -1
    return Tree(parent, weight, mass, position, anchor, random_rotations(rng, count), freedoms)


def cross(a: Floats, b: Floats) -> Floats:
    """Return row-wise cross products (np.cross is several times slower on small arrays)."""
    return vectors.cross(a.T, b.T).T


def point_rows(tree: Tree, child: Ints, other: Ints, point: Floats, direction: Floats, role: int) -> Directions:
    """Return rows of the velocity of the child's point relative to the other's, along a direction."""
    near = np.hstack([direction, cross(point - tree.position[child], direction)])
    far = -np.hstack([direction, cross(point - tree.position[other], direction)])
    return Directions(child, other, near, far, np.full(len(child), role))


def angular_rows(child: Ints, other: Ints, axis: Floats, role: int) -> Directions:
    """Return rows of the angular velocity of the child relative to the other, about an axis."""
    near = np.hstack([np.zeros_like(axis), axis])
    return Directions(child, other, near, -near, np.full(len(child), role))


def reversed_rows(rows: Directions, pick: NDArray[np.bool_]) -> Directions:
    """Return the picked rows in the opposite direction."""
    return Directions(
        rows.child[pick], rows.other[pick], -rows.child_jacobian[pick], -rows.other_jacobian[pick], rows.role[pick]
    )


def unconnected_pairs(rng: np.random.Generator, parent: Ints, count: int) -> tuple[Ints, Ints]:
    """Return random pairs of bodies that no joint of the tree connects."""
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count and len(parent) > 2:
        a, b = rng.choice(len(parent), 2, replace=False)
        if parent[a] != b and parent[b] != a:
            pairs.append((int(a), int(b)))
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def random_directions(rng: np.random.Generator, tree: Tree, loops: int, conflicting: bool) -> list[Directions]:
    """Return all rows of a system, in the order joints, loops, limits, drives, marker springs, contacts."""
    parent, count = tree.parent, len(tree.parent)
    body, k = (grid.ravel() for grid in np.mgrid[0:count, 0:3])
    axis = tree.axes[body, k]
    jointed = tree.freedoms[body] > 0
    fixed, free = jointed & (k >= tree.freedoms[body]), jointed & (k < tree.freedoms[body])
    # three rows that fix the point, then the rotations the joint prevents, body by body
    joints = [
        point_rows(tree, body[jointed], parent[body[jointed]], tree.anchor[body[jointed]], axis[jointed], JOINT),
        angular_rows(body[fixed], parent[body[fixed]], axis[fixed], JOINT),
    ]
    a, b = unconnected_pairs(rng, parent, loops)
    a, b, corner = np.repeat(a, 3), np.repeat(b, 3), np.tile(np.eye(3), (len(a), 1))
    midpoint = 0.5 * (tree.position[a] + tree.position[b])
    loop = point_rows(tree, a, b, midpoint, corner, LOOP)
    limited_axes, driven = free & (rng.random(3 * count) < 0.4), free & (rng.random(3 * count) < 0.7)
    side = rng.choice([-1.0, 1.0], (int(limited_axes.sum()), 1))
    limits = [angular_rows(body[limited_axes], parent[body[limited_axes]], side * axis[limited_axes], LIMIT)]
    drives = angular_rows(body[driven], parent[body[driven]], axis[driven], DRIVE)
    marked = np.flatnonzero(rng.random(count) < 0.3).repeat(3)
    at = tree.position[marked] + 0.15 * rng.normal(size=(len(marked) // 3, 3)).repeat(3, 0)
    anchors = point_rows(tree, marked, np.full(len(marked), -1), at, np.tile(np.eye(3), (len(marked) // 3, 1)), ANCHOR)
    touching = np.arange(count).repeat(rng.integers(0, 5, count))
    contact = np.arange(len(touching)).repeat(3)
    frame = random_rotations(rng, len(touching)).reshape(-1, 3)
    at = tree.position[touching] + 0.15 * rng.normal(size=(len(touching), 3))
    ground = np.where(rng.random(len(touching)) < 0.9, -1, parent[touching])
    contacts = point_rows(tree, touching[contact], ground[contact], at[contact], frame, TANGENT)
    contacts.role[::3] = NORMAL
    if conflicting:
        limits.append(reversed_rows(limits[0], rng.random(len(limits[0].role)) < 0.5))
        normals = reversed_rows(contacts, (contacts.role == NORMAL) & (rng.random(len(contacts.role)) < 0.3))
        limits.append(normals._replace(role=np.full(len(normals.role), LIMIT)))
    return [*joints, loop, *limits, drives, anchors, contacts]


def reference_velocity(rng: np.random.Generator, tree: Tree) -> Floats:
    """Return (n, 6) a velocity that nearly keeps the joints closed; the remaining few cm/s become their targets."""
    v = rng.normal(size=(len(tree.parent), 6))
    rate = 2.0 * rng.normal(size=(len(tree.parent), 3)) * (np.arange(3) < tree.freedoms[:, None])
    relative = np.einsum("nk,nkj->nj", rate, tree.axes)
    near, far = tree.position - tree.anchor, tree.anchor - tree.position[tree.parent]
    for i, above in enumerate(tree.parent):
        if above >= 0:
            v[i, 3:] = v[above, 3:] + relative[i]
            v[i, :3] = v[above, :3] + np.cross(v[above, 3:], far[i]) + np.cross(v[i, 3:], near[i])
    return v + 0.05 * rng.normal(size=v.shape)


def fill_entries(directions: Directions) -> Rows:
    """Return rows with entries, child first, without laws."""
    pairs = directions.other >= 0
    rows = make_rows(1 + pairs.astype(np.int64))
    start = rows.first[:-1]
    rows.body[start], rows.jacobian[start] = directions.child, directions.child_jacobian
    rows.body[start[pairs] + 1] = directions.other[pairs]
    rows.jacobian[start[pairs] + 1] = directions.other_jacobian[pairs]
    return rows


def draw_point(breaks: list[tuple[float, float]], kink: bool, draw: tuple[float, float, float]) -> tuple[float, float]:
    """Return a point (u - c, p) of a law with flat ends, on a break or inside a piece; `draw` is uniform."""
    choice, fraction, gap = draw
    if kink:
        return breaks[int(choice * len(breaks))]
    piece = int(choice * (len(breaks) + 1))
    if piece == 0:
        return breaks[0][0] - gap, breaks[0][1]
    if piece == len(breaks):
        return breaks[-1][0] + gap, breaks[-1][1]
    (u0, p0), (u1, p1) = breaks[piece - 1], breaks[piece]
    return u0 + fraction * (u1 - u0), p0 + fraction * (p1 - p0)


def drive_law(
    rows: Rows, k: int, law: int, u: float, beta: float, limit: float, kink: bool, draw: list[float]
) -> float:
    """Write a drive's law so that (u, p) lies on it; return p (an unyielding one has another target, and p is 0)."""
    width, fraction, lean = 10 ** (4 * draw[3] - 5), 0.2 + 0.6 * draw[4], 0.9 * (2 * draw[5] - 1)
    lo, hi, at = -limit * (0.3 + 0.7 * draw[6]), limit, (draw[0], draw[1], draw[2])
    if law == UNYIELDING:
        bounded_law(rows, k, u + 2 * lean, beta, -WIDE, WIDE)
        return 0.0
    if law == BOUNDED:
        du, p = draw_point([(-beta * hi, hi), (-beta * lo, lo)], kink, at)
        bounded_law(rows, k, u - du, beta, lo, hi)
        return p
    if law == DEAD_ZONE:
        breaks = [(-width - beta * hi, hi), (-width, 0.0), (width, 0.0), (width - beta * lo, lo)]
        du, p = draw_point(breaks, kink, at)
        dead_zone_law(rows, k, u - du, width, beta, lo, hi)
        return p
    # the inner slope uses a fraction of the bounds, so that all five pieces exist
    inner, shift = 2 * width / (fraction * -lo), lean * width if law == SECONDARY else 0.0
    left, right = (shift + width) / inner, (shift - width) / inner
    breaks = [(-width - beta * (hi - left), hi), (-width, left), (width, right), (width - beta * (lo - right), lo)]
    du, p = draw_point(breaks, kink, at)
    two_rate_law(rows, k, u - du, width, beta, u - du + shift, inner, lo, hi)
    return p


def side_law(
    rows: Rows, k: int, u: float, beta: float, impulse: float, kink: bool, demand: float, draw: list[float]
) -> float:
    """Write a one-sided law so that (u, p) lies on it, then demand more velocity; return p."""
    p, gap = 0.0, 0.0
    if not kink:
        p, gap = (impulse, 0.0) if draw[0] < 0.5 else (0.0, draw[2])
    one_sided_law(rows, k, u + beta * p - gap + demand, beta)
    return p


def write_laws(
    rng: np.random.Generator,
    rows: Rows,
    directions: Directions,
    tree: Tree,
    u: Floats,
    hardness: str,
    conflicting: bool,
) -> Floats:
    """Give every row a law that is satisfied at velocity u; return the impulses there."""
    count, role = len(u), directions.role
    limited = 10 ** rng.uniform(*HARDNESS_BETA[hardness], count)
    beta = 10 ** rng.uniform(*BILATERAL_BETA[hardness], count)
    beta[role == LOOP] = 10 ** rng.uniform(*LOOP_BETA, int((role == LOOP).sum()))
    hard_joint = rng.random(len(tree.parent)) < 0.5
    beta[(role == JOINT) & hard_joint[directions.child]] = 0.0
    bilateral = np.isin(role, (JOINT, LOOP, ANCHOR))
    beta = np.where(bilateral, beta, limited)
    weight = GRAVITY * STEP * tree.weight[directions.child]
    impulse = 10.0 * weight * rng.normal(size=count)
    limit = STEP * 10 ** rng.uniform(0, 2.5, count)  # drives of 1 to 300 N m
    law = rng.choice(4, count, p=(0.4, 0.2, 0.2, 0.2))
    kink = rng.random(count) < np.where(role == LIMIT, 0.5, 0.15)
    demand = np.zeros(count)
    if conflicting:
        demand = np.abs(rng.normal(size=count)) * (rng.random(count) < 0.5)
        law[rng.random(count) < 0.3] = UNYIELDING
    limit[role == TANGENT] = (rng.uniform(0.2, 1.0, count) * np.abs(impulse))[role == TANGENT] + 1e-3 * weight[
        role == TANGENT
    ]
    draws = rng.random((count, 7)).tolist()
    target = (u + beta * impulse).tolist()
    columns = zip(
        role.tolist(),
        u.tolist(),
        beta.tolist(),
        impulse.tolist(),
        limit.tolist(),
        law.tolist(),
        kink.tolist(),
        demand.tolist(),
        strict=True,
    )
    p = impulse.tolist()
    for k, (kind, uk, slope, pk, bound, form, on_kink, extra) in enumerate(columns):
        if kind in (JOINT, LOOP, ANCHOR):
            soft_law(rows, k, target[k], slope)
        elif kind in (LIMIT, NORMAL):
            p[k] = side_law(rows, k, uk, slope, abs(pk), on_kink, extra, draws[k])
        elif kind == TANGENT:
            du, p[k] = draw_point(
                [(-slope * bound, bound), (slope * bound, -bound)], on_kink, (draws[k][0], draws[k][1], draws[k][2])
            )
            bounded_law(rows, k, uk - du, slope, -bound, bound)
        elif kind == DRIVE:
            p[k] = drive_law(rows, k, form, uk, slope, bound, on_kink, draws[k])
        else:
            no_law(rows, k)
            p[k] = 0.0
    return np.array(p)


def random_system(rng: np.random.Generator, bodies: int, hardness: str, kind: str, loops: int = 0) -> System:
    """Return a random system.

    Args:
        rng: Only source of randomness: same state, same system.
        bodies: Number of bodies.
        hardness: "soft", "mixed" or "hard": the betas of bounded and one-sided rows.
        kind: "feasible" or "conflicting".
        loops: Ball-like closures between bodies the tree does not connect.
    """
    conflicting = kind == "conflicting"
    tree = random_tree(rng, bodies)
    parts = random_directions(rng, tree, loops, conflicting)
    directions = Directions(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    # absent rows, as left by a contact that has ended
    directions.role[(directions.role >= LIMIT) & (rng.random(len(directions.role)) < 0.02)] = ABSENT
    rows = fill_entries(directions)
    v = reference_velocity(rng, tree)
    rows.offset[:] = np.where(directions.other < 0, 0.3 * rng.normal(size=len(rows.offset)), 0.0)
    per_entry = np.einsum("ej,ej->e", rows.jacobian, v[rows.body])
    u = np.add.reduceat(per_entry, rows.first[:-1]) + rows.offset if len(rows.offset) else rows.offset
    p = write_laws(rng, rows, directions, tree, u, hardness, conflicting)
    momentum = np.einsum("nij,nj->ni", tree.mass, v)
    np.subtract.at(momentum, rows.body, rows.jacobian * p[entry_rows(rows)][:, None])
    planted = not conflicting and rng.random() < 0.5
    if not planted:
        momentum += np.einsum("nij,nj->ni", tree.mass, rng.normal(size=v.shape))
    hard = np.flatnonzero((rows.pieces == 1) & (rows.beta[:, 0] == 0.0))
    return System(tree.mass, momentum, tree.parent, rows, hard, *((v, p) if planted else ()))


def driven_chain(rng: np.random.Generator, links: int, limit: float = 1.0, beta: float = 1e-8) -> System:
    """Return a chain kept level by stiff drives that are too weak for it: about a fifth saturate.

    Hard ball joints; three drives per joint, about the world's axes, limited to `limit` [N m]; links of 0.1 kg, 0.1 m.
    """
    index = np.arange(links)
    weight = np.full(links, 0.1)
    mass = mass_blocks(weight, np.full(links, 0.04), np.ones((links, 3)), random_rotations(rng, links))
    link = np.array([0.1, 0.0, 0.0]) + 0.02 * rng.normal(size=(links, 3))
    end = np.cumsum(link, 0)
    tree = Tree(
        index - 1, weight, mass, end - 0.5 * link, end - link, np.tile(np.eye(3), (links, 1, 1)), np.full(links, 3)
    )
    body, axis = index.repeat(3), np.tile(np.eye(3), (links, 1))
    joints = point_rows(tree, body, tree.parent[body], tree.anchor[body], axis, JOINT)
    drives = angular_rows(body, tree.parent[body], axis, DRIVE)
    rows = fill_entries(Directions(*(np.concatenate(pair) for pair in zip(joints, drives, strict=True))))
    target = 0.5 * rng.normal(size=3 * links)
    for k in range(3 * links):
        soft_law(rows, k, 0.0, 0.0)
        bounded_law(rows, 3 * links + k, target[k], beta, -limit * STEP, limit * STEP)
    momentum = np.einsum("nij,nj->ni", mass, 0.1 * rng.normal(size=(links, 6)))
    momentum[:, 2] -= weight * GRAVITY * STEP
    return System(mass, momentum, tree.parent, rows, np.arange(3 * links))
