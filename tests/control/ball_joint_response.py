"""Response of a ball joint, about three axes at once.

A joint's rotation is that of the moved body relative to the base, T = B^-1 M, with orientations B and M in the world.
With the target T_o, the error as a rotation and as a rotation vector in the base's axes are

    X = T T_o^-1 = exp(v),     v = log(B^-1 M T_o^-1).

Weinstein, Guendelman and Fedkiw (2008), who call the moved body the parent and the base the child, print the inverse,
which with their signs leads to the antipode. They state error and rate in the world, where the angular velocities of
the previous and the next step add as vectors. But the axes rotate meanwhile: with angular velocities b and m in the
world, after a step

    T(next) = B^-1 exp(-h b) exp(h m) M = B^-1 exp(d) M,     d = log(exp(-h b) exp(h m)) = h (m - b) - h^2/2 b x m + ...

so m - b does not rotate the joint by d / h. The difference, half a Coriolis acceleration, does not shrink with the
step, nor does the error that it leaves on moving targets. It vanishes where rotations are composed and never added:

 1. the joint one step ago follows from the present angular velocities, T_b = (exp(-h b) B)^-1 exp(-h m) M;
 2. the rate of the error is that which took X_b = T_b T_ob^-1 to X: r = log(X X_b^-1) / h;
 3. the response gives the next v, X(next) = exp(E(h) - v) X, and T(next) = X(next) T_o(next);
 4. d = B log(T(next) T^-1), and any angular velocities with exp(h m) = exp(h b) exp(d) take the joint there.

The target enters in X alone: X obeys one recursion for any motion of target and base, and if X = X_b = 1, it stays
so. About one axis it is the recursion of a coordinate. In short steps X'X^-1 = r and r' = -k_v r - k_p v, so that
(|r|^2 + k_p |v|^2) / 2 falls by k_v |r|^2: errors decay from anywhere but half a revolution.

The error moves with the base's axes. While there is one and the target moves, swapping base and moved body gives
another path to the same end, so a caller must choose the base by something other than names. (The mean of both paths
does not depend on the choice, but has resting points off the target: weak gains then never reach a quick target.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import Response, check_step
from borelli.numerics.quaternions import conjugate, quaternion_product, rotate, rotation_exponential, rotation_logarithm

Array = NDArray[np.float64]


def next_rotation(
    response: Response,
    base: Array,
    moved: Array,
    base_angular_velocity: Array,
    moved_angular_velocity: Array,
    target: tuple[Array, Array, Array],
    step: float,
    time: float = 0.0,
) -> Array:
    """Return d of step 4, the rotation vector [rad] of a joint in the next step, in the world (..., 3).

    Args:
        response: `PD`, or another; it is applied to each component.
        base: Orientation in the world of the joint's frame on the base, (..., 4).
        moved: The same on the moved body.
        base_angular_velocity: In the previous step [rad/s], in the world, (..., 3), before anything acts in this step.
        moved_angular_velocity: The same of the moved body.
        target: Rotation of the moved body relative to the base: one step ago, now, and one step ahead (..., 4).
        step: Step length [s].
        time: Present time [s].
    """
    check_step(step)
    target_before, target_now, target_ahead = target
    joint = quaternion_product(conjugate(base), moved)
    base_before = _rotate_by(-step * base_angular_velocity, base)
    moved_before = _rotate_by(-step * moved_angular_velocity, moved)
    joint_before = quaternion_product(conjugate(base_before), moved_before)

    error = quaternion_product(joint, conjugate(target_now))
    error_before = quaternion_product(joint_before, conjugate(target_before))
    v = rotation_logarithm(error)
    rate = rotation_logarithm(quaternion_product(error, conjugate(error_before))) / step

    error_ahead = _rotate_by(response.after(v, rate, step, time) - v, error)
    joint_ahead = quaternion_product(error_ahead, target_ahead)
    return rotate(base, rotation_logarithm(quaternion_product(joint_ahead, conjugate(joint))))


def relative_angular_velocity(rotation: Array, base_angular_velocity: Array, step: float) -> Array:
    """Return m - b [rad/s] that rotates a joint by d in a step in which the base has the angular velocity b.

    Where b depends on m - b, the b of the previous step leaves an error of first order in the step; the b that
    results, used once more, one of second order.
    """
    composed = _rotate_by(step * base_angular_velocity, rotation_exponential(rotation))
    return np.asarray(rotation_logarithm(composed) / step - base_angular_velocity)


def _rotate_by(vector: Array, orientation: Array) -> Array:
    """Rotate orientations further by rotation vectors [rad]."""
    return quaternion_product(rotation_exponential(vector), orientation)
