"""Controlled joints in an impulse step: their errors, where they are to be at the step's end, and their rows.

The response is that of `control.response`: with E the error of a coordinate and E' its mean rate over the step before,
E(h) = a E + b E', and the coordinate aims at its target ahead plus E(h). Joints that turn freely are as in
`control.rotations`: with X = T T_o^-1 the error as a rotation, seen from the base, X(h) = exp(E(h) - E) X, and the
joint aims at X(h) T_o(h).
What collisions changed at the step's beginning is added to E'.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.numerics.rotation_kernels import quaternion_product, rotation_exponential, rotation_logarithm
from borelli.physics.impulse_step.joint_limits import turn_within_stops, within_stops
from borelli.physics.impulse_step.stage_laws import along_row, leave_out, velocity_along
from borelli.physics.joints.joint_frames import along_axis, from_axes, relative_quaternion
from borelli.physics.rows.coordinate_rows import drive_law
from borelli.physics.rows.laws import soft_law
from borelli.physics.solver.factor_arrays import FLAT_ROW, MODE


@inline
def _load4(array, n):
    return array[n, 0], array[n, 1], array[n, 2], array[n, 3]


@inline
def _store4(array, n, q):
    array[n, 0], array[n, 1], array[n, 2], array[n, 3] = q


@inline
def _product(a, b):
    return quaternion_product(a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3])


@inline
def _inverse(q):
    return q[0], -q[1], -q[2], -q[3]


@inline
def _log(q):
    return rotation_logarithm(q[0], q[1], q[2], q[3])


@inline
def _seen_from_base(q, side):
    """The moved body's rotation as the base sees it, of the child's in the parent's."""
    return q if side > 0.0 else _inverse(q)


@kernel_function
def find_turns(joints, controls, turn_out):
    """How balls are turned now."""
    for n in range(len(controls.ball)):
        j = controls.ball[n]
        turn = relative_quaternion(joints.axes_parent, joints.axes_child, j)
        _store4(turn_out, n, _seen_from_base(turn, controls.side[n]))


find_turns_by_pointer = by_pointer(find_turns)


@inline
def _to_world(joints, j, side, x, y, z):
    """A vector in the base's joint axes, in world axes."""
    if side > 0.0:
        return from_axes(joints.axes_parent, j, x, y, z)
    return from_axes(joints.axes_child, j, x, y, z)


@inline
def _to_base(joints, j, side, x, y, z):
    axes = joints.axes_parent if side > 0.0 else joints.axes_child
    return along_axis(axes, j, 0, x, y, z), along_axis(axes, j, 1, x, y, z), along_axis(axes, j, 2, x, y, z)


@inline
def _spin_of_rows(joints, j, side, speed):
    """The moved body's spin less the base's, in world axes, of the speeds of a ball's three rows."""
    i = joints.coordinate_first[j]
    x, y, z = from_axes(joints.axes_child, j, speed[i], speed[i + 1], joints.sign[i + 2] * speed[i + 2])
    return side * x, side * y, side * z


@inline
def _along_row(joints, rows, j, side, k, x, y, z):
    """The speed that a spin of the moved body less the base's, in world axes, gives a ball's row k."""
    e, sign = rows.first[k], side
    if joints.child_slot[j] < 0:
        sign = -side
    n = rows.jacobian[e]
    return sign * (n[3] * x + n[4] * y + n[5] * z)


@kernel_function
def read_speeds(joints, controls, rows, twist, speed_out):
    """The speeds of all controlled rows."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        speed_out[i] = velocity_along(rows, joints.drive_row[i], twist)
    for n in range(len(controls.ball)):
        first = joints.coordinate_first[controls.ball[n]]
        for i in range(first, first + 3):
            speed_out[i] = velocity_along(rows, joints.drive_row[i], twist)


@kernel_function
def free_controls(joints, controls, rows):
    """Let controls push with nothing."""
    for n in range(len(controls.coordinate)):
        leave_out(rows, joints.drive_row[controls.coordinate[n]])
    for n in range(len(controls.ball)):
        k = joints.drive_row[joints.coordinate_first[controls.ball[n]]]
        for axis in range(3):
            leave_out(rows, k + axis)


@inline_into_caller
def hold_controls(joints, controls, rows):
    """Let controlled joints stay as they are: u = 0."""
    for n in range(len(controls.coordinate)):
        soft_law(rows, joints.drive_row[controls.coordinate[n]], 0.0, 0.0)
    for n in range(len(controls.ball)):
        k = joints.drive_row[joints.coordinate_first[controls.ball[n]]]
        for axis in range(3):
            soft_law(rows, k + axis, 0.0, 0.0)


@inline_into_caller
def measure_errors(joints, controls, course, memory, stages, value, rows, twist, index, h):
    """Errors and their rates; `stages.speed` has the speeds before collisions, `twist` what they left."""
    known = memory.known[0] > 0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        u = velocity_along(rows, joints.drive_row[i], twist)
        q, before, now = value[i], course.value[index, i], course.value[index + 1, i]
        stages.value[i] = q
        moved = q - memory.value[i] + h * (u - stages.speed[i]) if known else h * u
        stages.error[i] = q - now
        stages.rate[i] = (moved - (now - before)) / h
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        turn = _load4(stages.turn, n)
        before = _seen_from_base(_load4(course.turn[index], n), side)
        now = _seen_from_base(_load4(course.turn[index + 1], n), side)
        for axis in range(3):
            u = velocity_along(rows, joints.drive_row[i + axis], twist)
            stages.speed[i + axis] = u - stages.speed[i + axis] if known else u
        x, y, z = _spin_of_rows(joints, j, side, stages.speed)
        x, y, z = _to_base(joints, j, side, x, y, z)
        last = _load4(memory.turn, n)
        if not known:
            last = _product(rotation_exponential(-h * x, -h * y, -h * z), turn)
            x, y, z = 0.0, 0.0, 0.0
        error = _product(turn, _inverse(now))
        error_before = _product(last, _inverse(before))
        rx, ry, rz = _log(_product(error, _inverse(error_before)))
        vx, vy, vz = _log(error)
        stages.error[i], stages.error[i + 1], stages.error[i + 2] = vx, vy, vz
        stages.rate[i], stages.rate[i + 1], stages.rate[i + 2] = rx / h + x, ry / h + y, rz / h + z


@inline
def _respond(controls, course, stages, i, index):
    if not controls.told[i]:
        stages.after[i] = controls.a[i] * stages.error[i] + controls.b[i] * stages.rate[i]
    if len(course.shift) > 0:
        stages.after[i] += course.shift[index, i]


@inline
def _ask(controls, course, stages, rows, i, k, u, index):
    """Row k of coordinate i is to have the velocity u, with the impulse the control may have."""
    most = course.most[min(index, len(course.most) - 1), i]
    stages.most[i] = most
    drive_law(rows, k, u, 0.0, controls.slope[i], 0.0, -most, most)


@inline_into_caller
def aim_controls(joints, controls, course, stages, value, rows, index, h):
    """Where controlled joints are to be at the step's end, and rows that ask for the velocities that lead there."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        _respond(controls, course, stages, i, index)
        stages.aim[i] = within_stops(joints, i, course.value[index + 2, i] + stages.after[i])
        _ask(controls, course, stages, rows, i, joints.drive_row[i], (stages.aim[i] - stages.value[i]) / h, index)
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        for axis in range(3):
            _respond(controls, course, stages, i + axis, index)
        ew, ex, ey, ez = rotation_exponential(
            stages.after[i] - stages.error[i],
            stages.after[i + 1] - stages.error[i + 1],
            stages.after[i + 2] - stages.error[i + 2],
        )
        turn = _load4(stages.turn, n)
        now = _seen_from_base(_load4(course.turn[index + 1], n), side)
        ahead = _seen_from_base(_load4(course.turn[index + 2], n), side)
        aim = _product(_product((ew, ex, ey, ez), _product(turn, _inverse(now))), ahead)
        aim = _seen_from_base(turn_within_stops(joints, j, _seen_from_base(aim, side), value), side)
        _store4(stages.aim_turn, n, aim)
        x, y, z = _log(_product(aim, _inverse(turn)))
        x, y, z = _to_world(joints, j, side, x, y, z)
        for axis in range(3):
            k = joints.drive_row[i + axis]
            u = _along_row(joints, rows, j, side, k, x, y, z) / h
            _ask(controls, course, stages, rows, i + axis, k, u, index)


@inline_into_caller
def note_limits(joints, controls, stages, mark):
    """Controls at their limit, or of one loop, do not reach their aim: they are left to what they push with."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        stages.held[i] = mark[joints.drive_row[i], MODE] != FLAT_ROW and not controls.shares[i]
    for n in range(len(controls.ball)):
        first = joints.coordinate_first[controls.ball[n]]
        for i in range(first, first + 3):
            stages.held[i] = mark[joints.drive_row[i], MODE] != FLAT_ROW and not controls.shares[i]


@inline_into_caller
def give_way(joints, controls, stages, value, rows, twist, h):
    """Let aims move along with what contacts changed; `stages.speed` has the speeds before."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        moved = h * (velocity_along(rows, joints.drive_row[i], twist) - stages.speed[i])
        stages.aim[i] = within_stops(joints, i, stages.aim[i] + moved)
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        first = joints.coordinate_first[j]
        for i in range(first, first + 3):
            stages.speed[i] = velocity_along(rows, joints.drive_row[i], twist) - stages.speed[i]
        x, y, z = _spin_of_rows(joints, j, side, stages.speed)
        x, y, z = _to_base(joints, j, side, h * x, h * y, h * z)
        aim = _product(rotation_exponential(x, y, z), _load4(stages.aim_turn, n))
        aim = _seen_from_base(turn_within_stops(joints, j, _seen_from_base(aim, side), value), side)
        _store4(stages.aim_turn, n, aim)


@inline
def _lock(controls, stages, rows, i, k, u):
    """Row k of coordinate i must have the velocity u, if its control is held; |u| if it is.

    A limited control has what its limit leaves of what it pushed with before.
    """
    if stages.held[i]:
        most, used = stages.most[i], stages.total[k]
        drive_law(rows, k, u, 0.0, controls.slope[i], 0.0, min(-most - used, 0.0), max(most - used, 0.0))
        return abs(u)
    leave_out(rows, k)
    return 0.0


@inline_into_caller
def correct_controls(joints, controls, stages, value, rows, h):
    """Rows that bring controlled joints to their aims at once; the largest distance from them [rad or m]."""
    worst = 0.0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        u = (stages.aim[i] - value[i]) / h
        worst = max(worst, _lock(controls, stages, rows, i, joints.drive_row[i], u))
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        x, y, z = _log(_product(_load4(stages.aim_turn, n), _inverse(_load4(stages.now, n))))
        x, y, z = _to_world(joints, j, side, x, y, z)
        for axis in range(3):
            k = joints.drive_row[i + axis]
            u = _along_row(joints, rows, j, side, k, x, y, z) / h
            worst = max(worst, _lock(controls, stages, rows, i + axis, k, u))
    return h * worst


@inline_into_caller
def lessen_controls(joints, controls, stages, rows):
    """Take from what controls lack what `stages.change` gives them; the largest lack left [rad/s or m/s].

    Rows of coordinates turn with the bodies (`stages.trial`); a ball's rows stay those its error is told in.
    """
    worst = 0.0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        k = joints.drive_row[i]
        if stages.held[i]:
            rows.c[k, 0] -= along_row(stages.trial, k, stages.change)
            worst = max(worst, abs(rows.c[k, 0]))
    for n in range(len(controls.ball)):
        first = joints.coordinate_first[controls.ball[n]]
        for i in range(first, first + 3):
            k = joints.drive_row[i]
            if stages.held[i]:
                rows.c[k, 0] -= along_row(rows, k, stages.change)
                worst = max(worst, abs(rows.c[k, 0]))
    return worst


@inline_into_caller
def lock_controls(joints, controls, stages, value, rows, h):
    """Controlled joints keep the mean velocity of the step."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        _lock(controls, stages, rows, i, joints.drive_row[i], (value[i] - stages.value[i]) / h)
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        x, y, z = _log(_product(_load4(stages.now, n), _inverse(_load4(stages.turn, n))))
        x, y, z = _to_world(joints, j, side, x, y, z)
        for axis in range(3):
            k = joints.drive_row[i + axis]
            u = _along_row(joints, rows, j, side, k, x, y, z) / h
            _lock(controls, stages, rows, i + axis, k, u)


@inline_into_caller
def remember_controls(controls, memory, stages):
    """Keep for the next step where this one began."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        memory.value[i] = stages.value[i]
    for n in range(len(controls.ball)):
        _store4(memory.turn, n, _load4(stages.turn, n))
    memory.known[0] = 1
