"""Mass matrix, bias forces and Jacobians of a kinematic tree, in its variables.

With S_p the direction of part p (`forward_kinematics`), V the velocity (w, v) of a body at the world origin and u the
rates of the variables,

    V = sum S_p u_p        A = sum S_p u_p' + sum (V_p x S_p + S_p') u_p^2        (V_p: velocity before part p)

over the parts on the path to the body. S_p' is the part's own change with its variable, from the curvature of its
function. Directions are derivatives by variables, so couplings and the functions of custom joints need nothing else.
The mass matrix is the sum of S_p . I S_q over pairs of parts of one path, with I the inertia of the subtree of the
outer one (composite rigid body algorithm), the generalized force the sum of S_p . F with F the wrench that the subtree
requires (recursive Newton-Euler algorithm; Featherstone 2008, chapters 5 and 6). Everything is taken at the
world origin, in world axes: inertias and wrenches of a subtree are plain sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, inline_into_caller, kernel
from borelli.kernels.shared_tuples import load_shared
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.rotation_kernels import cross
from borelli.tree.forward_kinematics import compute_poses
from borelli.tree.kinematic_tree import Tree

Floats = NDArray[np.float64]


class TreeInertia(NamedTuple):
    """Inertia of the bodies of a tree, and gravity."""

    mass: Floats
    """(bodies,) [kg]."""
    center: Floats
    """(bodies, 3) centers of mass in body frames [m]."""
    inertia: Floats
    """(bodies, 3, 3) about the center of mass, body axes [kg m^2]."""
    gravity: Floats
    """(3,) [m/s^2]."""


class DynamicsWork(NamedTuple):
    """Arrays that the kernels of a tree write to."""

    inertia: Floats
    """(bodies, 10) of a body, or of its subtree: mass, mass times center, xx, xy, xz, yy, yz, zz about the origin."""
    velocity: Floats
    """(bodies, 6) w, v."""
    acceleration: Floats
    """(bodies, 6) derivative of the velocity; gravity is an acceleration of the ground."""
    wrench: Floats
    """(bodies, 6) moment about the world origin and force that the subtree requires."""


@cached_per_model
def make_tree_inertia(model: Model) -> TreeInertia:
    """Return the inertia of a model's bodies."""
    bodies = model.bodies
    return TreeInertia(
        np.array([body.mass for body in bodies], float),
        np.array([body.center_of_mass for body in bodies], float).reshape(-1, 3),
        np.array([body.inertia for body in bodies], float).reshape(-1, 3, 3),
        np.array(model.gravity, float),
    )


def make_dynamics_work(tree: Tree) -> DynamicsWork:
    """Return work arrays for a tree."""
    count = len(tree.body_part)
    return DynamicsWork(np.zeros((count, 10)), np.zeros((count, 6)), np.zeros((count, 6)), np.zeros((count, 6)))


@inline
def _inertia_at_origin(bodies, pose, b, inertia_out):
    """Write mass, mass times center and the moments of inertia of body b about the world origin."""
    R, x, c, local = pose.rotation[b], pose.position[b], bodies.center[b], bodies.inertia[b]
    m = bodies.mass[b]
    cx = x[0] + R[0, 0] * c[0] + R[0, 1] * c[1] + R[0, 2] * c[2]
    cy = x[1] + R[1, 0] * c[0] + R[1, 1] * c[1] + R[1, 2] * c[2]
    cz = x[2] + R[2, 0] * c[0] + R[2, 1] * c[1] + R[2, 2] * c[2]
    inertia_out[b, 0] = m
    inertia_out[b, 1], inertia_out[b, 2], inertia_out[b, 3] = m * cx, m * cy, m * cz
    k = 4
    for i in range(3):
        for j in range(i, 3):
            total = 0.0
            for p in range(3):
                for q in range(3):
                    total += R[i, p] * local[p, q] * R[j, q]
            inertia_out[b, k] = total
            k += 1
    inertia_out[b, 4] += m * (cy * cy + cz * cz)
    inertia_out[b, 5] -= m * cx * cy
    inertia_out[b, 6] -= m * cx * cz
    inertia_out[b, 7] += m * (cx * cx + cz * cz)
    inertia_out[b, 8] -= m * cy * cz
    inertia_out[b, 9] += m * (cx * cx + cy * cy)


@inline
def _momentum(inertia, b, wx, wy, wz, vx, vy, vz):
    """Return the moment of momentum about the origin and the momentum of body b's inertia at a velocity."""
    m, hx, hy, hz = inertia[b, 0], inertia[b, 1], inertia[b, 2], inertia[b, 3]
    ax, ay, az = cross(hx, hy, hz, vx, vy, vz)
    px, py, pz = cross(wx, wy, wz, hx, hy, hz)
    return (
        inertia[b, 4] * wx + inertia[b, 5] * wy + inertia[b, 6] * wz + ax,
        inertia[b, 5] * wx + inertia[b, 7] * wy + inertia[b, 8] * wz + ay,
        inertia[b, 6] * wx + inertia[b, 8] * wy + inertia[b, 9] * wz + az,
        m * vx + px,
        m * vy + py,
        m * vz + pz,
    )


@inline
def _part_power(direction, p, force):
    return (
        direction[p, 0] * force[0] + direction[p, 1] * force[1] + direction[p, 2] * force[2]
        + direction[p, 3] * force[3] + direction[p, 4] * force[4] + direction[p, 5] * force[5]
    )  # fmt: skip


@inline
def move_bodies(tree, pose, rate, rate_change, velocity_out, acceleration_inout):
    """Write the velocities (bodies, 6) of the bodies, and their derivatives; those of the ground's bodies are given."""
    direction, change = pose.direction, pose.direction_rate
    velocity_out[:, :] = 0.0
    for link in range(len(tree.child)):
        b, a = tree.child[link], tree.parent[link]
        v, acc = velocity_out[b], acceleration_inout[b]
        if a >= 0:
            for n in range(6):
                v[n] = velocity_out[a, n]
                acc[n] = acceleration_inout[a, n]
        for p in range(tree.first[link], tree.first[link + 1]):
            variable = tree.part_variable[p]
            if variable < 0:
                continue
            u, du, s = rate[variable], rate_change[variable], direction[p]
            x, y, z = cross(v[0], v[1], v[2], s[0], s[1], s[2])
            lx, ly, lz = cross(v[0], v[1], v[2], s[3], s[4], s[5])
            mx, my, mz = cross(v[3], v[4], v[5], s[0], s[1], s[2])
            acc[0] += du * s[0] + u * (x + u * change[p, 0])
            acc[1] += du * s[1] + u * (y + u * change[p, 1])
            acc[2] += du * s[2] + u * (z + u * change[p, 2])
            acc[3] += du * s[3] + u * (lx + mx + u * change[p, 3])
            acc[4] += du * s[4] + u * (ly + my + u * change[p, 4])
            acc[5] += du * s[5] + u * (lz + mz + u * change[p, 5])
            for n in range(6):
                v[n] += u * s[n]


@inline_into_caller
def _find_required_wrenches(tree, pose, inertia, gravity, rate, rate_change, load, work):
    """Write velocities, accelerations and the wrench that each body requires, loads subtracted."""
    velocity, acceleration, wrench = work.velocity, work.acceleration, work.wrench
    for b in range(len(tree.body_part)):
        for n in range(3):
            acceleration[b, n], acceleration[b, 3 + n] = 0.0, -gravity[n]
    move_bodies(tree, pose, rate, rate_change, velocity, acceleration)
    for b in range(len(tree.body_part)):
        v, acc = velocity[b], acceleration[b]
        lx, ly, lz, px, py, pz = _momentum(inertia, b, v[0], v[1], v[2], v[3], v[4], v[5])
        nx, ny, nz, fx, fy, fz = _momentum(inertia, b, acc[0], acc[1], acc[2], acc[3], acc[4], acc[5])
        ax, ay, az = cross(v[0], v[1], v[2], lx, ly, lz)
        bx, by, bz = cross(v[3], v[4], v[5], px, py, pz)
        cx, cy, cz = cross(v[0], v[1], v[2], px, py, pz)
        wrench[b, 0], wrench[b, 1], wrench[b, 2] = nx + ax + bx, ny + ay + by, nz + az + bz
        wrench[b, 3], wrench[b, 4], wrench[b, 5] = fx + cx, fy + cy, fz + cz
        for n in range(6):
            wrench[b, n] -= load[b, n]


@inline_into_caller
def _write_motion(bodies, pose, work, motion_out):
    """Write the motion of the centers of mass: with V at the origin, the point c has v + w x c."""
    gravity = bodies.gravity
    for b in range(len(bodies.mass)):
        v, a, out = work.velocity[b], work.acceleration[b], motion_out[b]
        R, x, c = pose.rotation[b], pose.position[b], bodies.center[b]
        cx = x[0] + R[0, 0] * c[0] + R[0, 1] * c[1] + R[0, 2] * c[2]
        cy = x[1] + R[1, 0] * c[0] + R[1, 1] * c[1] + R[1, 2] * c[2]
        cz = x[2] + R[2, 0] * c[0] + R[2, 1] * c[1] + R[2, 2] * c[2]
        x1, y1, z1 = cross(v[0], v[1], v[2], cx, cy, cz)
        x1, y1, z1 = x1 + v[3], y1 + v[4], z1 + v[5]
        x2, y2, z2 = cross(a[0], a[1], a[2], cx, cy, cz)
        x3, y3, z3 = cross(v[0], v[1], v[2], x1, y1, z1)
        out[0], out[1], out[2] = x1, y1, z1
        out[6], out[7], out[8] = x2 + x3 + a[3] + gravity[0], y2 + y3 + a[4] + gravity[1], z2 + z3 + a[5] + gravity[2]
        for n in range(3):
            out[3 + n], out[9 + n] = v[n], a[n]


@kernel
def tree_dynamics(
    tree_at, pose_at, bodies_at, work_at, q_inout, rate, rate_change, load, mass_out, force_out, motion_out, slope_out
):
    """Compute mass matrices, inverse dynamics and the motion of the bodies, of many states.

    Args:
        tree_at: The tree.
        pose_at: Its pose, which is that of the last state afterwards.
        bodies_at: `TreeInertia`.
        work_at: `DynamicsWork`.
        q_inout: (states, coordinates); coupled ones are set.
        rate: (states, variables) u.
        rate_change: (states, variables) u'.
        load: (states, bodies, 6) moment about the world origin and force on each body.
        mass_out: (states, variables, variables).
        force_out: (states, variables) generalized forces that u' requires next to gravity and loads.
        motion_out: (states, bodies, 12) of the centers of mass: velocity, angular velocity, acceleration, angular
            acceleration, world axes.
        slope_out: (states, coordinates, 2) first and second derivative of coordinates by their variables.
    """
    tree, pose, bodies, work = load_shared(tree_at, pose_at, bodies_at, work_at)
    inertia, wrench, direction = work.inertia, work.wrench, pose.direction
    for state in range(len(q_inout)):
        compute_poses(tree_at, q_inout[state], pose_at)
        for c in range(len(tree.variable)):
            slope_out[state, c, 0], slope_out[state, c, 1] = pose.rate[c, 0], pose.rate[c, 1]
        for b in range(len(tree.body_part)):
            _inertia_at_origin(bodies, pose, b, inertia)
        _find_required_wrenches(tree, pose, inertia, bodies.gravity, rate[state], rate_change[state], load[state], work)
        _write_motion(bodies, pose, work, motion_out[state])
        mass, required = mass_out[state], force_out[state]
        mass[:, :] = 0.0
        required[:] = 0.0
        for link in range(len(tree.child) - 1, -1, -1):
            b, a = tree.child[link], tree.parent[link]
            for p in range(tree.first[link], tree.first[link + 1]):
                i = tree.part_variable[p]
                if i < 0:
                    continue
                required[i] += _part_power(direction, p, wrench[b])
                s = direction[p]
                force = _momentum(inertia, b, s[0], s[1], s[2], s[3], s[4], s[5])
                mass[i, i] += _part_power(direction, p, force)
                q = tree.previous[p]
                while q >= 0:
                    j = tree.part_variable[q]
                    if j >= 0:
                        value = _part_power(direction, q, force)
                        mass[i, j] += value
                        mass[j, i] += value
                    q = tree.previous[q]
            if a >= 0:
                for n in range(10):
                    inertia[a, n] += inertia[b, n]
                for n in range(6):
                    wrench[a, n] += wrench[b, n]


@kernel
def tree_inverse_dynamics(tree_at, pose_at, bodies_at, work_at, q_inout, rate, rate_change, load, force_out):
    """Compute inverse dynamics only, of many states; arguments as of `tree_dynamics`."""
    tree, pose, bodies, work = load_shared(tree_at, pose_at, bodies_at, work_at)
    inertia, wrench, direction = work.inertia, work.wrench, pose.direction
    for state in range(len(q_inout)):
        compute_poses(tree_at, q_inout[state], pose_at)
        for b in range(len(tree.body_part)):
            _inertia_at_origin(bodies, pose, b, inertia)
        _find_required_wrenches(tree, pose, inertia, bodies.gravity, rate[state], rate_change[state], load[state], work)
        required = force_out[state]
        required[:] = 0.0
        for link in range(len(tree.child) - 1, -1, -1):
            b, a = tree.child[link], tree.parent[link]
            for p in range(tree.first[link], tree.first[link + 1]):
                if tree.part_variable[p] >= 0:
                    required[tree.part_variable[p]] += _part_power(direction, p, wrench[b])
            if a >= 0:
                for n in range(6):
                    wrench[a, n] += wrench[b, n]


@kernel
def point_jacobians(tree_at, pose_at, q_inout, body, point, jacobian_out):
    """Compute Jacobians of points of bodies: jacobian_out (states, points, 6, variables), velocity then angular.

    `body` (points,) and `point` (points, 3) in body frames [m]; coupled coordinates of `q_inout` are set.
    """
    tree, pose = load_shared(tree_at, pose_at)
    direction = pose.direction
    jacobian_out[:] = 0.0
    for state in range(len(q_inout)):
        compute_poses(tree_at, q_inout[state], pose_at)
        for k in range(len(body)):
            R, x, c, out = pose.rotation[body[k]], pose.position[body[k]], point[k], jacobian_out[state, k]
            px = x[0] + R[0, 0] * c[0] + R[0, 1] * c[1] + R[0, 2] * c[2]
            py = x[1] + R[1, 0] * c[0] + R[1, 1] * c[1] + R[1, 2] * c[2]
            pz = x[2] + R[2, 0] * c[0] + R[2, 1] * c[1] + R[2, 2] * c[2]
            p = tree.body_part[body[k]]
            while p >= 0:
                i, s = tree.part_variable[p], direction[p]
                if i >= 0:
                    vx, vy, vz = cross(s[0], s[1], s[2], px, py, pz)
                    out[0, i] += vx + s[3]
                    out[1, i] += vy + s[4]
                    out[2, i] += vz + s[5]
                    out[3, i] += s[0]
                    out[4, i] += s[1]
                    out[5, i] += s[2]
                p = tree.previous[p]
