"""The response of a joint that turns freely, about three axes at once.

A joint's rotation is that of the moved body as the base sees it, T = B^-1 M, with orientations B and M in the world.
With the target T_o, the error as a rotation and as a vector in the base's axes are

    X = T T_o^-1 = exp(v),     v = log(B^-1 M T_o^-1).

Weinstein, Guendelman and Fedkiw (2008), who call the moved body the parent and the base the child, print the inverse,
which with their signs leads to the antipode. They take error and rate in the world, where the spin of the step before
and the one to come add as vectors. But axes turn meanwhile: with spins b and m in the world, after a step

    T(next) = B^-1 exp(-h b) exp(h m) M = B^-1 exp(d) M,     d = log(exp(-h b) exp(h m)) = h (m - b) - h^2/2 b x m + ...

so m - b is not what turns the joint. The difference, half a Coriolis acceleration, is of one size for steps of any
length, and so is the error it leaves on moving targets. It vanishes where turns are composed and never added:

 1. the joint a step ago is where the spins before this step came from, T_b = (exp(-h b) B)^-1 exp(-h m) M;
 2. the error's rate is that with which X_b = T_b T_ob^-1 turned into X: r = log(X X_b^-1) / h;
 3. the response says where v goes, X(next) = exp(E(h) - v) X, and T(next) = X(next) T_o(next);
 4. d = B log(T(next) T^-1), and any spins with exp(h m) = exp(h b) exp(d) take the joint there.

The target enters in X alone: X obeys one recursion however the target and the base move, and if X = X_b = 1, it stays
so. About one axis it is the recursion of a coordinate. In short steps X'X^-1 = r and r' = -k_v r - k_p v, so that
(|r|^2 + k_p |v|^2) / 2 falls by k_v |r|^2: errors die away from anywhere but half a turn.

The error is carried by the base's axes. While there is one and the target moves, exchanging base and moved body gives
another way to the same end, so a caller must choose the base by something else than names. (The mean of both ways does
not depend on the choice, but has resting points off the target: weak gains then never reach a quick target.)
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
    base_spin: Array,
    moved_spin: Array,
    target: tuple[Array, Array, Array],
    step: float,
    time: float = 0.0,
) -> Array:
    """How a joint is to turn in the coming step: d of step 4, a rotation vector [rad] in the world, (..., 3).

    Args:
        response: `PD`, or another; it is applied to each component.
        base: Orientation in the world of the joint's frame on the base, (..., 4).
        moved: And of that on the moved body.
        base_spin: In the step before [rad/s], in the world, (..., 3), before anything of this one acts.
        moved_spin: The same of the moved body.
        target: Rotation of the moved body as the base sees it: a step ago, now, and a step ahead (..., 4).
        step: [s]
        time: [s]
    """
    check_step(step)
    target_before, target_now, target_ahead = target
    joint = quaternion_product(conjugate(base), moved)
    base_before, moved_before = _turned(-step * base_spin, base), _turned(-step * moved_spin, moved)
    joint_before = quaternion_product(conjugate(base_before), moved_before)

    error = quaternion_product(joint, conjugate(target_now))
    error_before = quaternion_product(joint_before, conjugate(target_before))
    v = rotation_logarithm(error)
    rate = rotation_logarithm(quaternion_product(error, conjugate(error_before))) / step

    error_ahead = _turned(response.after(v, rate, step, time) - v, error)
    joint_ahead = quaternion_product(error_ahead, target_ahead)
    return rotate(base, rotation_logarithm(quaternion_product(joint_ahead, conjugate(joint))))


def relative_angular_velocity(turn: Array, base_spin: Array, step: float) -> Array:
    """The m - b [rad/s] that turns a joint by d in a step in which the base has the spin b.

    Where b is not known before m - b is, that of the step before leaves an error of first order in the step; the b
    that came of it, put in again, one of second.
    """
    return np.asarray(rotation_logarithm(_turned(step * base_spin, rotation_exponential(turn))) / step - base_spin)


def _turned(vector: Array, orientation: Array) -> Array:
    """Orientations turned further by rotation vectors [rad]."""
    return quaternion_product(rotation_exponential(vector), orientation)
