"""One walk along every muscle path of a frame: points, tangent points, length, and forces per unit tension.

A path of unit tension pulls on each of its points with the sum of the unit vectors toward its neighbors. These forces
are the negative derivative of the length by the points: tangent points may slide on their surface without changing
the length, so they count as fixed to the body of the wrap object.
"""

from __future__ import annotations

from math import nan, sqrt

from borelli.kernels.jit import inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.muscles.path_kernels.ellipsoid_section import TENDON
from borelli.muscles.path_kernels.geodesic import ELLIPSOID
from borelli.muscles.path_kernels.opensim_rules import INSIDE, MUST_WRAP, NONE
from borelli.muscles.path_kernels.wrap_segment import (
    EXACT,
    NOT_CONVERGED,
    OPENSIM,
    follow_wrap,
    refine_geodesic,
    wrap_segment,
    wrap_tendon,
)
from borelli.tree.forward_kinematics import evaluate_function

CONDITION_TOLERANCE = 1e-5
"""Distance [rad or m] beyond the range of a conditional point within which OpenSim has it active."""
OPENSIM_PASSES = 8
OPENSIM_TOLERANCE = 0.0005
"""Change of length [m] below which OpenSim ends its passes over several wraps."""
MAX_PASSES = 200
MAX_RATIO = 0.95
"""Largest ratio of the displacements of two passes that is extrapolated."""
TOUCH_TOLERANCE = 1e-11
"""Largest displacement [m] of a tangent point in the last pass over several wraps."""


@kernel_function
def walk_paths(arrays_at, q, position, rotation, geometry, work_at, length):
    """Compute the paths of all muscles from coordinates and the poses of the bodies.

    Conditional and moving points depend on `q`; `geometry` is `EXACT` or `OPENSIM`; fills `length` (muscles,) [m].
    """
    arrays, work = load_shared(arrays_at, work_at)
    _place_objects(arrays_at, position, rotation, work_at)
    for m in range(len(arrays.first_point) - 1):
        _place_points(arrays_at, m, q, position, rotation, geometry, work_at)
        if arrays.first_wrap[m + 1] > arrays.first_wrap[m]:
            _apply_wraps(arrays_at, m, q, position, rotation, geometry, work_at)
        length[m] = _pull(work_at, arrays.first_node[m], work.node_count[m])


@inline
def _put_world(body, x, y, z, position, rotation, out):
    """Fill a body's point in world axes; body -1 is the ground."""
    if body < 0:
        out[0], out[1], out[2] = x, y, z
        return
    o, R = position[body], rotation[body]
    out[0] = o[0] + R[0, 0] * x + R[0, 1] * y + R[0, 2] * z
    out[1] = o[1] + R[1, 0] * x + R[1, 1] * y + R[1, 2] * z
    out[2] = o[2] + R[2, 0] * x + R[2, 1] * y + R[2, 2] * z


@kernel_function
def _place_objects(arrays_at, position, rotation, work_at):
    """Compute the poses of the wrap objects in the world."""
    arrays, work = load_shared(arrays_at, work_at)
    for k in range(len(arrays.object_kind)):
        body, o = arrays.object_body[k], arrays.object_position[k]
        _put_world(body, o[0], o[1], o[2], position, rotation, work.object_position[k])
        own, out = arrays.object_rotation[k], work.object_rotation[k]
        for j in range(3):
            if body < 0:
                out[0, j], out[1, j], out[2, j] = own[0, j], own[1, j], own[2, j]
                continue
            R = rotation[body]
            for i in range(3):
                out[i, j] = R[i, 0] * own[0, j] + R[i, 1] * own[1, j] + R[i, 2] * own[2, j]


@kernel_function
def _place_points(arrays_at, m, q, position, rotation, geometry, work_at):
    """Fill the nodes of a muscle with its active points."""
    arrays, work = load_shared(arrays_at, work_at)
    node, beyond = arrays.first_node[m], CONDITION_TOLERANCE if geometry == OPENSIM else 0.0
    for i in range(arrays.first_point[m], arrays.first_point[m + 1]):
        c = arrays.condition[i]
        low, high = arrays.condition_range[i, 0] - beyond, arrays.condition_range[i, 1] + beyond
        if c >= 0 and not (low <= q[c] <= high):
            continue
        x, y, z = arrays.point_position[i, 0], arrays.point_position[i, 1], arrays.point_position[i, 2]
        if arrays.first_motion[i + 1] > arrays.first_motion[i]:
            x, y, z = 0.0, 0.0, 0.0
            for k in range(arrays.first_motion[i], arrays.first_motion[i + 1]):
                c = arrays.motion_coordinate[k]
                value, _, _ = evaluate_function(
                    arrays.first_piece, arrays.start, arrays.end, arrays.coefficient, arrays.motion_function[k],
                    q[c] if c >= 0 else 0.0,
                )  # fmt: skip
                axis = arrays.motion_axis[k]
                x, y, z = x + value * axis[0], y + value * axis[1], z + value * axis[2]
        body = arrays.point_body[i]
        _put_world(body, x, y, z, position, rotation, work.node_position[node])
        work.node_body[node], work.node_slot[node] = body, arrays.point_slot[i]
        work.node_point[node], work.node_wrap[node], work.node_arc[node] = i, -1, -1.0
        work.node_branch[node], work.node_weight[node] = arrays.point_branch[i], arrays.point_weight[i]
        node += 1
    work.node_count[m] = node - arrays.first_node[m]


@kernel_function
def _apply_wraps(arrays_at, m, q, position, rotation, geometry, work_at):
    """Insert the tangent points of a muscle's wraps, each on the path left by those before, until nothing moves."""
    arrays, work = load_shared(arrays_at, work_at)
    first, end = arrays.first_wrap[m], arrays.first_wrap[m + 1]
    tendon = True
    for w in range(first, end):
        tendon = tendon and arrays.wrap_method[w] == TENDON
    single = end - first == 1
    if tendon or single:
        for w in range(first, end):
            _apply_wrap(arrays_at, m, w, single, False, position, rotation, geometry, work_at)
        return
    swapped, last_length, base = False, 1e300, arrays.first_node[m]
    for w in range(first, end):
        work.wrap_state[w], work.touch[w, 0] = NONE, nan
    for k in range(OPENSIM_PASSES):
        change = 0.0
        for i in range(first, end):
            # after the first pass OpenSim may swap the first two wraps
            w = i if not swapped or i > first + 1 else (first + 1 if i == first else first)
            before = work.wrap_state[w]
            if not _apply_wrap(arrays_at, m, w, False, k > 0, position, rotation, geometry, work_at):
                return  # no point of the range is active
            change = max(change, _touch_change(work_at, base, work.node_count[m], w, geometry == OPENSIM))
            if (before > NONE) != (work.wrap_state[w] > NONE):
                change = 1.0
        if geometry == OPENSIM:
            length = _stale_length(work_at, base, work.node_count[m])
            if abs(length - last_length) < OPENSIM_TOLERANCE:
                return
            last_length = length
        elif k > 0 and change < OPENSIM_TOLERANCE:
            break
        if k == 0 and work.wrap_state[first] == NONE and work.wrap_state[first + 1] == INSIDE:
            swapped = True
    if geometry == EXACT:
        _converge(arrays_at, m, work_at)


@kernel_function
def _converge(arrays_at, m, work_at):
    """Move the tangent points of a muscle with several wraps until they rest: each surface keeps its segment and side.

    Gauss-Seidel over the surfaces, with Aitken's extrapolation: displacements d of two passes give the ratio
    d1.d2 / d1.d1 of a geometric series. Where only one surface touches the path, nothing moves.
    """
    arrays, work = load_shared(arrays_at, work_at)
    base = arrays.first_node[m]
    since = 0  # passes since the last extrapolation
    for _ in range(MAX_PASSES):
        change, squares, products = 0.0, 0.0, 0.0
        for i in range(base + 1, base + work.node_count[m] - 2):
            w = work.node_wrap[i]
            if w < 0 or work.node_arc[i] < 0.0 or arrays.wrap_method[w] == TENDON:
                continue
            k, p, q, out = arrays.wrap_object[w], work.ends[0], work.ends[1], work.result[0]
            _into_object(work, k, work.node_position[i - 1], p)
            _into_object(work, k, work.node_position[i + 2], q)
            out[6] = work.node_arc[i]
            if not follow_wrap(
                arrays.object_kind[k], arrays.object_size[k], work.wrap_side[w], p, q, out, work.warm[w], work.scratch
            ):
                work.wrap_state[w] = NOT_CONVERGED
                return
            before = work.touch[w]
            for j in range(6):
                work.ends[j // 3, j % 3] = work.node_position[i + j // 3, j % 3]
            change = max(change, _set_tangents(work_at, k, i, out))
            for j in range(6):
                new = work.node_position[i + j // 3, j % 3] - work.ends[j // 3, j % 3]
                if since > 0:
                    squares += before[j] * before[j]
                    products += before[j] * new
                before[j] = new
        if change < TOUCH_TOLERANCE:
            return
        since += 1
        if since > 1 and 0.0 < products < MAX_RATIO * squares:
            gain = products / (squares - products)
            for i in range(base, base + work.node_count[m] - 1):
                w = work.node_wrap[i]
                if w >= 0 and work.node_arc[i] >= 0.0 and arrays.wrap_method[w] != TENDON:
                    for j in range(6):
                        work.node_position[i + j // 3, j % 3] += gain * work.touch[w, j]
            since = 0
    for i in range(base, base + work.node_count[m]):
        if work.node_wrap[i] >= 0:
            work.wrap_state[work.node_wrap[i]] = NOT_CONVERGED


@kernel_function
def _set_tangents(work_at, k, at, best):
    """Set two nodes to the tangent points and length in `best`; return their largest displacement [m]."""
    work = load_shared(work_at)
    o, R, change = work.object_position[k], work.object_rotation[k], 0.0
    for n in range(2):
        x, y, z, out = best[3 * n], best[3 * n + 1], best[3 * n + 2], work.node_position[at + n]
        for i in range(3):
            new = o[i] + R[i, 0] * x + R[i, 1] * y + R[i, 2] * z
            change = max(change, abs(new - out[i]))
            out[i] = new
    work.node_arc[at], work.node_arc[at + 1] = best[6], -1.0
    return change


@kernel_function
def _apply_wrap(arrays_at, m, w, single, again, position, rotation, geometry, work_at):
    """Insert the tangent points of one wrap; return False if no point of its range is active."""
    arrays, work = load_shared(arrays_at, work_at)
    base = arrays.first_node[m]
    if again:
        _remove(work_at, base, m, w)
    k = arrays.wrap_object[w]
    work.wrap_state[w] = NONE
    if arrays.object_active[k] == 0:
        return True
    first, last = _range_nodes(arrays, work, base, m, w)
    if last < first:
        return False
    tendon = arrays.wrap_method[w] == TENDON
    body = arrays.side_body[w]
    if body > -2:
        s, out = arrays.side_position[w], work.ends[2]
        _put_world(body, s[0], s[1], s[2], position, rotation, out)
        _into_object(work, k, out, out)
    chosen, least = -1, 1e300
    p, q, out, kind, sizes = work.ends[0], work.ends[1], work.result[0], arrays.object_kind[k], arrays.object_size[k]
    _into_object(work, k, work.node_position[base + first], q)
    for i in range(base + first, base + last):
        p[0], p[1], p[2] = q[0], q[1], q[2]
        _into_object(work, k, work.node_position[i + 1], q)
        one, two = work.node_wrap[i], work.node_wrap[i + 1]
        if one >= 0 and two >= 0 and arrays.wrap_object[one] == arrays.wrap_object[two]:
            continue  # over a surface
        if work.node_branch[i] != work.node_branch[i + 1]:
            continue
        if tendon:
            result = wrap_tendon(kind, sizes, body > -2, work.ends[2], p, q, out)
        else:
            result = wrap_segment(
                kind, sizes, arrays.object_side[k, 0], arrays.object_side[k, 1], arrays.wrap_method[w], single,
                geometry, p, q, out,
            )  # fmt: skip
        if result <= NONE:
            if chosen < 0:
                work.wrap_state[w] = result
            continue
        change = 0.0
        if result < MUST_WRAP:
            change = _distance(p, 0, out, 0) + out[6] + _distance(q, 0, out, 3) - _distance(p, 0, q, 0)
        if result >= MUST_WRAP or change < least:
            chosen, least = i, change
            work.wrap_state[w] = result
            for j in range(8):
                work.result[1, j] = out[j]
        if result >= MUST_WRAP:
            break
    if chosen >= 0:
        if geometry == EXACT and not tendon and arrays.object_kind[k] >= ELLIPSOID:
            _into_object(work, k, work.node_position[chosen], p)
            _into_object(work, k, work.node_position[chosen + 1], q)
            if not refine_geodesic(
                arrays.object_kind[k], arrays.object_size[k], p, q, work.result[1], work.warm[w], work.scratch
            ):
                work.wrap_state[w] = NOT_CONVERGED
        _insert(arrays_at, work_at, base, m, w, chosen + 1)
    return True


@inline
def _distance(a, i, b, j):
    return sqrt((a[i] - b[j]) ** 2 + (a[i + 1] - b[j + 1]) ** 2 + (a[i + 2] - b[j + 2]) ** 2)


@inline
def _into_object(work, k, x, out):
    """Fill a world point in the frame of a wrap object."""
    o, R = work.object_position[k], work.object_rotation[k]
    dx, dy, dz = x[0] - o[0], x[1] - o[1], x[2] - o[2]
    out[0] = R[0, 0] * dx + R[1, 0] * dy + R[2, 0] * dz
    out[1] = R[0, 1] * dx + R[1, 1] * dy + R[2, 1] * dz
    out[2] = R[0, 2] * dx + R[1, 2] * dy + R[2, 2] * dz


@inline
def _range_nodes(arrays, work, base, m, w):
    """Return the nodes of the first and last active point of a wrap's range; the last is before the first if none."""
    low = arrays.first_point[m] + arrays.wrap_range[w, 0]
    high = arrays.first_point[m] + arrays.wrap_range[w, 1]
    first, last = 0, -1
    for i in range(work.node_count[m]):
        point = work.node_point[base + i]
        if low <= point <= high:
            if last < 0:
                first = i
            last = i
    return first, last


@kernel_function
def _remove(work_at, base, m, w):
    """Remove the tangent points of a wrap from the nodes."""
    work = load_shared(work_at)
    count = work.node_count[m]
    for i in range(base, base + count):
        if work.node_wrap[i] == w:
            for j in range(i, base + count - 2):
                _copy_node(work, j + 2, j)
            work.node_count[m] = count - 2
            break


@kernel_function
def _insert(arrays_at, work_at, base, m, w, at):
    """Insert the tangent points of the best segment before node `at`."""
    arrays, work = load_shared(arrays_at, work_at)
    for j in range(base + work.node_count[m] - 1, at - 1, -1):
        _copy_node(work, j, j + 2)
    work.node_count[m] += 2
    k = arrays.wrap_object[w]
    _set_tangents(work_at, k, at, work.result[1])
    work.wrap_side[w] = work.result[1, 7]
    for n in range(at, at + 2):
        work.node_body[n], work.node_slot[n] = arrays.object_body[k], arrays.wrap_slot[w]
        work.node_point[n], work.node_wrap[n] = -1, w
        work.node_branch[n], work.node_weight[n] = work.node_branch[at - 1], work.node_weight[at - 1]


@inline
def _copy_node(work, i, j):
    for n in range(3):
        work.node_position[j, n] = work.node_position[i, n]
    work.node_body[j], work.node_slot[j] = work.node_body[i], work.node_slot[i]
    work.node_point[j], work.node_wrap[j], work.node_arc[j] = work.node_point[i], work.node_wrap[i], work.node_arc[i]
    work.node_branch[j], work.node_weight[j] = work.node_branch[i], work.node_weight[i]


@kernel_function
def _touch_change(work_at, base, count, w, first_only):
    """Return the largest displacement of a wrap's tangent points since they were stored, and store them.

    `first_only` stores those of the first pass.
    """
    work = load_shared(work_at)
    change, n, known = 0.0, 0, work.touch[w, 0] == work.touch[w, 0]
    for i in range(base, base + count):
        if work.node_wrap[i] == w:
            for j in range(3):
                x = work.node_position[i, j]
                change = max(change, abs(x - work.touch[w, n]) if known else 1.0)
                if not (known and first_only):
                    work.touch[w, n] = x
                n += 1
    return change


@kernel_function
def _stale_length(work_at, base, count):
    """Return the length by which OpenSim ends its passes.

    OpenSim 4.6 caches the positions of tangent points in the first pass; only lengths over surfaces are new.
    """
    work = load_shared(work_at)
    length, n = 0.0, 0
    for i in range(base, base + count - 1):
        if work.node_arc[i] >= 0.0:
            length += work.node_arc[i]
            n = 3
            continue
        a, b, j, k = work.node_position[i], work.node_position[i + 1], 0, 0
        if work.node_wrap[i] >= 0:
            a, j = work.touch[work.node_wrap[i]], n
        if work.node_wrap[i + 1] >= 0:
            b, k = work.touch[work.node_wrap[i + 1]], 0
        length += _distance(a, j, b, k)
        n = 0
    return length


@kernel_function
def _pull(work_at, base, count):
    """Return the length and fill the forces per unit tension on the nodes."""
    work = load_shared(work_at)
    length = 0.0
    for i in range(base, base + count):
        work.node_force[i, 0] = work.node_force[i, 1] = work.node_force[i, 2] = 0.0
    for i in range(base, base + count - 1):
        weight = work.node_weight[i]
        if work.node_arc[i] >= 0.0:
            length += weight * work.node_arc[i]
            continue
        if work.node_branch[i] != work.node_branch[i + 1]:
            continue
        a, b, f, g = work.node_position[i], work.node_position[i + 1], work.node_force[i], work.node_force[i + 1]
        x, y, z = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        size = sqrt(x * x + y * y + z * z)
        if size == 0.0:
            continue  # two points at the same position do not pull
        length += weight * size
        scale = weight / size
        x, y, z = scale * x, scale * y, scale * z
        f[0], f[1], f[2] = f[0] + x, f[1] + y, f[2] + z
        g[0], g[1], g[2] = g[0] - x, g[1] - y, g[2] - z
    return length
