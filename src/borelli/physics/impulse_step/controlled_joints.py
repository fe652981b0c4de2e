"""Controlled joints in an impulse step: their errors, their targets at the step's end, and their rows.

The response is that of `control.response`: with E the error of a coordinate and E' its mean rate over the step before,
E(h) = a E + b E', and the coordinate is driven to its target at the step's end plus E(h). Ball joints are as under
"Ball joints" in docs/theory.md: with X = T T_o^-1 the error as a rotation relative to the base, X(h) = exp(E(h) - E) X,
and the joint is driven to X(h) T_o(h). Velocities that collisions changed at the step's start are added to E'.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, inline_into_caller, kernel_function
from borelli.numerics.rotation_kernels import quaternion_product, rotation_exponential, rotation_logarithm
from borelli.physics.impulse_step.joint_limits import clamp_rotation_to_limits, clamp_to_limits
from borelli.physics.impulse_step.stage_laws import disable_row, project_on_row, velocity_on_row
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
def _relative_to_base(q, side):
    """Return the rotation of the moved body relative to the base, from that of the child relative to the parent."""
    return q if side > 0.0 else _inverse(q)


@kernel_function
def compute_ball_rotations(joints, controls, rotation_out):
    """Write the present rotations of ball joints."""
    for n in range(len(controls.ball)):
        j = controls.ball[n]
        rotation = relative_quaternion(joints.axes_parent, joints.axes_child, j)
        _store4(rotation_out, n, _relative_to_base(rotation, controls.side[n]))


compute_ball_rotations_by_pointer = by_pointer(compute_ball_rotations)


@inline
def _to_world(joints, j, side, x, y, z):
    """Return a vector in the base's joint axes, in world axes."""
    return from_axes(joints.axes_parent if side > 0.0 else joints.axes_child, j, x, y, z)


@inline
def _to_base(joints, j, side, x, y, z):
    axes = joints.axes_parent if side > 0.0 else joints.axes_child
    return along_axis(axes, j, 0, x, y, z), along_axis(axes, j, 1, x, y, z), along_axis(axes, j, 2, x, y, z)


@inline
def _angular_velocity_of_rows(joints, j, side, speed):
    """Return the angular velocity of the moved body relative to the base, world axes, from a ball's row velocities."""
    i = joints.coordinate_first[j]
    x, y, z = from_axes(joints.axes_child, j, speed[i], speed[i + 1], joints.sign[i + 2] * speed[i + 2])
    return side * x, side * y, side * z


@inline
def _row_velocity(joints, rows, j, side, k, x, y, z):
    """Return the velocity of row k of a ball at a relative angular velocity in world axes."""
    e, sign = rows.first[k], side
    if joints.child_slot[j] < 0:
        sign = -side
    n = rows.jacobian[e]
    return sign * (n[3] * x + n[4] * y + n[5] * z)


@kernel_function
def compute_control_velocities(joints, controls, rows, twist, velocity_out):
    """Write the velocities of all controlled rows."""
    for n in range(len(controls.every)):
        i = controls.every[n]
        velocity_out[i] = velocity_on_row(rows, joints.drive_row[i], twist)


@kernel_function
def disable_controls(joints, controls, rows):
    """Disable the rows of all controls."""
    for n in range(len(controls.every)):
        disable_row(rows, joints.drive_row[controls.every[n]])


@inline_into_caller
def fix_controls(joints, controls, rows):
    """Set the law of all controlled rows to u = 0."""
    for n in range(len(controls.every)):
        soft_law(rows, joints.drive_row[controls.every[n]], 0.0, 0.0)


@inline_into_caller
def compute_control_errors(joints, controls, targets, history, stages, value, rows, twist, index, h):
    """Write errors and their rates; `stages.velocity` has the velocities before collisions, `twist` those after."""
    known = history.has_previous[0] > 0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        u = velocity_on_row(rows, joints.drive_row[i], twist)
        q, before, now = value[i], targets.value[index, i], targets.value[index + 1, i]
        stages.value[i] = q
        moved = q - history.value[i] + h * (u - stages.velocity[i]) if known else h * u
        stages.error[i] = q - now
        stages.rate[i] = (moved - (now - before)) / h
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        rotation = _load4(stages.rotation, n)
        before = _relative_to_base(_load4(targets.rotation[index], n), side)
        now = _relative_to_base(_load4(targets.rotation[index + 1], n), side)
        for axis in range(3):
            u = velocity_on_row(rows, joints.drive_row[i + axis], twist)
            stages.velocity[i + axis] = u - stages.velocity[i + axis] if known else u
        x, y, z = _angular_velocity_of_rows(joints, j, side, stages.velocity)
        x, y, z = _to_base(joints, j, side, x, y, z)
        last = _load4(history.rotation, n)
        if not known:
            last = _product(rotation_exponential(-h * x, -h * y, -h * z), rotation)
            x, y, z = 0.0, 0.0, 0.0
        error = _product(rotation, _inverse(now))
        error_before = _product(last, _inverse(before))
        rx, ry, rz = _log(_product(error, _inverse(error_before)))
        vx, vy, vz = _log(error)
        stages.error[i], stages.error[i + 1], stages.error[i + 2] = vx, vy, vz
        stages.rate[i], stages.rate[i + 1], stages.rate[i + 2] = rx / h + x, ry / h + y, rz / h + z


@inline
def _respond(controls, stages, i):
    if not controls.callback_response[i]:
        stages.response[i] = controls.a[i] * stages.error[i] + controls.b[i] * stages.rate[i]


@inline
def _set_target_velocity(controls, targets, stages, rows, i, k, u, index):
    """Set the law of row k of coordinate i to the velocity u within the impulse limit of its control."""
    max_impulse = targets.max_impulse[min(index, len(targets.max_impulse) - 1), i]
    stages.max_impulse[i] = max_impulse
    stages.velocity[i] = u
    slope = controls.slope[i] + controls.compliance[i]
    drive_law(rows, k, u, 0.0, slope, 0.0, -max_impulse, max_impulse)


@inline_into_caller
def set_control_targets(joints, controls, targets, stages, value, rows, index, h):
    """Write the targets of controlled joints at the step's end, and rows with the velocities that lead there."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        _respond(controls, stages, i)
        stages.target[i] = clamp_to_limits(joints, i, targets.value[index + 2, i] + stages.response[i])
        u = (stages.target[i] - stages.value[i]) / h
        _set_target_velocity(controls, targets, stages, rows, i, joints.drive_row[i], u, index)
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        i = joints.coordinate_first[j]
        for axis in range(3):
            _respond(controls, stages, i + axis)
        ew, ex, ey, ez = rotation_exponential(
            stages.response[i] - stages.error[i],
            stages.response[i + 1] - stages.error[i + 1],
            stages.response[i + 2] - stages.error[i + 2],
        )
        rotation = _load4(stages.rotation, n)
        now = _relative_to_base(_load4(targets.rotation[index + 1], n), side)
        ahead = _relative_to_base(_load4(targets.rotation[index + 2], n), side)
        target = _product(_product((ew, ex, ey, ez), _product(rotation, _inverse(now))), ahead)
        target = _relative_to_base(clamp_rotation_to_limits(joints, j, _relative_to_base(target, side), value), side)
        _store4(stages.target_rotation, n, target)
        x, y, z = _log(_product(target, _inverse(rotation)))
        x, y, z = _to_world(joints, j, side, x, y, z)
        for axis in range(3):
            k = joints.drive_row[i + axis]
            u = _row_velocity(joints, rows, j, side, k, x, y, z) / h
            _set_target_velocity(controls, targets, stages, rows, i + axis, k, u, index)


@inline_into_caller
def mark_feasible_controls(joints, controls, stages, mark):
    """Mark the controls that reach their targets: those not saturated and not of one loop."""
    for n in range(len(controls.every)):
        i = controls.every[n]
        stages.feasible[i] = mark[joints.drive_row[i], MODE] != FLAT_ROW and not controls.in_loop[i]


@inline_into_caller
def yield_to_contacts(joints, controls, stages, value, rows, twist, h):
    """Shift targets by the velocities that contacts or muscles changed; `stages.velocity` has those before."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        moved = h * (velocity_on_row(rows, joints.drive_row[i], twist) - stages.velocity[i])
        stages.target[i] = clamp_to_limits(joints, i, stages.target[i] + moved)
    for n in range(len(controls.ball)):
        j, side = controls.ball[n], controls.side[n]
        first = joints.coordinate_first[j]
        for i in range(first, first + 3):
            stages.velocity[i] = velocity_on_row(rows, joints.drive_row[i], twist) - stages.velocity[i]
        x, y, z = _angular_velocity_of_rows(joints, j, side, stages.velocity)
        x, y, z = _to_base(joints, j, side, h * x, h * y, h * z)
        target = _product(rotation_exponential(x, y, z), _load4(stages.target_rotation, n))
        target = _relative_to_base(clamp_rotation_to_limits(joints, j, _relative_to_base(target, side), value), side)
        _store4(stages.target_rotation, n, target)


@inline
def _fix_velocity(controls, stages, rows, i, k, u):
    """Set the law of row k of coordinate i to the velocity u and return |u|; disable it if its control is not feasible.

    A limited control has the rest of its impulse limit.
    """
    if stages.feasible[i]:
        max_impulse, used = stages.max_impulse[i], stages.impulse[k]
        drive_law(rows, k, u, 0.0, controls.slope[i], 0.0, min(-max_impulse - used, 0.0), max(max_impulse - used, 0.0))
        return abs(u)
    disable_row(rows, k)
    return 0.0


@inline
def _fix_ball_velocity(joints, controls, stages, rows, n, rotation, rotation_after, h):
    """Set the laws of ball n to the velocity that takes one rotation to another in a step; return the largest |u|."""
    j, side, largest = controls.ball[n], controls.side[n], 0.0
    x, y, z = _log(_product(_load4(rotation_after, n), _inverse(_load4(rotation, n))))
    x, y, z = _to_world(joints, j, side, x, y, z)
    for i in range(joints.coordinate_first[j], joints.coordinate_first[j] + 3):
        k = joints.drive_row[i]
        u = _row_velocity(joints, rows, j, side, k, x, y, z) / h
        largest = max(largest, _fix_velocity(controls, stages, rows, i, k, u))
    return largest


@inline_into_caller
def set_control_corrections(joints, controls, stages, value, rows, h):
    """Write rows that move controlled joints to their targets; return the largest distance from them [rad or m]."""
    largest = 0.0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        u = (stages.target[i] - value[i]) / h
        largest = max(largest, _fix_velocity(controls, stages, rows, i, joints.drive_row[i], u))
    start, end = stages.trial_rotation, stages.target_rotation
    for n in range(len(controls.ball)):
        largest = max(largest, _fix_ball_velocity(joints, controls, stages, rows, n, start, end, h))
    return h * largest


@inline_into_caller
def reduce_control_defects(joints, controls, stages, rows):
    """Subtract `stages.change` from the defects of controls; return the largest defect left [rad/s or m/s].

    Rows of coordinates rotate with the bodies (`stages.trial_rows`); a ball's rows stay those of its error.
    """
    largest = 0.0
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        k = joints.drive_row[i]
        if stages.feasible[i]:
            rows.c[k, 0] -= project_on_row(stages.trial_rows, k, stages.change)
            largest = max(largest, abs(rows.c[k, 0]))
    for n in range(len(controls.ball)):
        first = joints.coordinate_first[controls.ball[n]]
        for i in range(first, first + 3):
            k = joints.drive_row[i]
            if stages.feasible[i]:
                rows.c[k, 0] -= project_on_row(rows, k, stages.change)
                largest = max(largest, abs(rows.c[k, 0]))
    return largest


@inline_into_caller
def fix_control_velocities(joints, controls, stages, value, rows, h):
    """Write rows with the mean velocity of the step."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        _fix_velocity(controls, stages, rows, i, joints.drive_row[i], (value[i] - stages.value[i]) / h)
    for n in range(len(controls.ball)):
        _fix_ball_velocity(joints, controls, stages, rows, n, stages.rotation, stages.trial_rotation, h)


@inline_into_caller
def store_history(controls, history, stages):
    """Store where this step began for the next one."""
    for n in range(len(controls.coordinate)):
        i = controls.coordinate[n]
        history.value[i] = stages.value[i]
    for n in range(len(controls.ball)):
        _store4(history.rotation, n, _load4(stages.rotation, n))
    history.has_previous[0] = 1
