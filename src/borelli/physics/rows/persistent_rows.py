"""Rows that are not of contacts: joints, couplings, limits, drives, marker springs and residuals."""

from __future__ import annotations

from math import isnan

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.arrays.indices import COUPLING_ROWS, ROWS_END, SQUARED_MARKER_SPEED, STEP_SIZE
from borelli.physics.joints.coordinates import coordinates_from_poses
from borelli.physics.rows.coordinate_rows import (
    fill_coupling_rows,
    fill_drive_rows,
    fill_limit_rows,
    set_drive_targets_from_twists,
)
from borelli.physics.rows.joint_rows import fill_joint_rows, fill_prescribed_motion, pose_joints, put_point_arm
from borelli.physics.rows.laws import bounded_law, no_law, soft_law
from borelli.physics.vectors import to_world


@kernel_function
def fill_persistent_rows(tables, state, inputs, rows, scratch, index, aimed):
    """Write all rows but those of contacts: joints, couplings, limits, drives, marker springs, residuals."""
    joints, h = tables.joints, tables.parameters[STEP_SIZE]
    pose_joints(joints, state.position, scratch.rotation, state.coordinate)
    fill_joint_rows(joints, rows, h)
    if len(joints.joint) > 0 and joints.row_ranges[ROWS_END] > joints.row_ranges[COUPLING_ROWS]:
        if len(inputs.drive_target) > 0:
            for i in range(len(joints.joint)):
                inputs.drives.target[i] = inputs.drive_target[index, i]
        coordinates_from_poses(joints, state.twist, state.coordinate, scratch.speed)
        fill_coupling_rows(joints, state.twist, state.coordinate, rows, h)
        fill_limit_rows(joints, state.coordinate, scratch.speed, rows, h)
        fill_drive_rows(joints, inputs.drives, state.coordinate, rows, h)
    fill_prescribed_motion(joints, state.twist, rows)
    if aimed:
        set_drive_targets_from_twists(joints, inputs.drives, scratch.aim, rows, h)
    if len(inputs.marker) > 0:
        _fill_marker_rows(
            tables.marker_springs, inputs.marker, inputs.substeps[0], index, tables.parameters[SQUARED_MARKER_SPEED], h,
            state.position, scratch.rotation, rows,
        )
    _fill_residual_rows(tables.residuals, scratch.aim, aimed, rows)


fill_persistent_rows_by_pointer = by_pointer(fill_persistent_rows)


@kernel_function
def _fill_marker_rows(springs, marker, substeps, index, max_squared_speed, h, position, rotation, rows):
    """Write three rows per visible marker: C = x + R r - m, Cdot = v + w x r - dm/dt; c = dm/dt - (alpha/h) C.

    A marker acts while it is visible in this frame and the next and moves slower than the limit.
    """
    springs, rows = load_shared(springs, rows)
    frame = index // substeps
    fraction = (index - frame * substeps) / substeps
    for i in range(len(springs.body)):
        b, k = springs.body[i], springs.row[i]
        e = rows.first[k]
        squared_speed = 0.0
        for n in range(3):
            squared_speed += ((marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)) ** 2
        if isnan(squared_speed) or squared_speed > max_squared_speed:
            for n in range(3):
                no_law(rows, k + n)
            continue
        rx, ry, rz = to_world(rotation, b, springs.offset[i, 0], springs.offset[i, 1], springs.offset[i, 2])
        put_point_arm(rows.jacobian, e, 1, rx, ry, rz)
        for n in range(3):
            arm = rx if n == 0 else (ry if n == 1 else rz)
            rate = (marker[frame + 1, i, n] - marker[frame, i, n]) / (h * substeps)
            now = marker[frame, i, n] + fraction * (marker[frame + 1, i, n] - marker[frame, i, n])
            error = position[b, n] + arm - now
            soft_law(rows, k + n, rate - springs.alpha[i] / h * error, springs.beta[i])


@inline
def _fill_residual_rows(residuals, aim, aimed, rows):
    for i in range(len(residuals.body)):
        k = residuals.row[i]
        target = residuals.alpha[i] * aim[residuals.body[i], residuals.axis[i]] if aimed else 0.0
        if residuals.max_impulse[i] < 1e300:
            bounded_law(rows, k, target, residuals.beta[i], -residuals.max_impulse[i], residuals.max_impulse[i])
        else:
            soft_law(rows, k, target, residuals.beta[i])
