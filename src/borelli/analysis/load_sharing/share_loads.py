"""Load sharing: activations of least cost whose forces produce the torques of inverse dynamics, frame by frame.

    minimize    sum_i cost(a_i) + sum_j weight_j r_j^2
    subject to  R^T (F a + passive force) + G r = torque,   min <= a <= max

with R the moment arms, F the active force at full activation, G r the torques of reserve actuators. `dual_newton` has
the method. Where no activation within the bounds attains the torque, the attained one is nearest by

    sum_k (unattained torque_k / strength_k)^2

with the strength of a coordinate: the torque of all muscles that cross it, pulling with one sign at full activation, in
the frame where it is largest. Rates of activation are bounded as by first-order activation dynamics of constant time
constants with excitations from 0 to 1 (De Groote et al. 2009), from frame to frame. Frames are solved in the order of
time, so no muscle begins before it is needed: a torque that rises faster than activation is unattained for some frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from borelli.analysis.load_sharing.actuator_columns import ColumnPattern, find_pattern, gather
from borelli.analysis.load_sharing.costs import (
    CostCoefficients,
    SoftTargets,
    cost_coefficients,
    cost_values,
    joins,
    mean_stiffness,
    muscle_weights,
)
from borelli.analysis.load_sharing.dual_newton import SOFTNESS, solve_frames
from borelli.analysis.load_sharing.problem_arrays import SharingProblem, make_buffers
from borelli.analysis.load_sharing.sharing_settings import Reserves, SharingSettings
from borelli.errors import SettingsError
from borelli.files.html_repr import fields_summary, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats
from borelli.numerics.vectors import Array

STATUS = ("attained", "nearest", "not converged", "missing")
"""Words for the status of a frame: the torque is attained; it is not attainable, and the nearest is; neither is proven
within the iterations; the input is NaN."""


@dataclass(frozen=True)
class SharingResult:
    """Result of load sharing.

    Attributes:
        activation: (frames, muscles); NaN in missing frames, as all below.
        force: (frames, muscles) active plus passive force [N].
        reserve: (frames, actuators) force or torque of the reserve actuators [N or N m].
        reserve_torque: (frames, coordinates) what they contribute to each coordinate [N m or N].
        unattained_torque: (frames, coordinates) required minus produced [N m or N].
        status: (frames,) index in `STATUS`.
        kkt_residual: (frames,) error of the optimality conditions, divided by strength and by 1 + the largest required
            torque per strength. Attained: largest unattained torque; nearest: bound of the excess of the distance over
            the least possible.
        objective: (frames,) cost.
        iterations: (frames,) Newton steps.
    """

    activation: Array
    force: Array
    reserve: Array
    reserve_torque: Array
    unattained_torque: Array
    status: NDArray[np.int64]
    kkt_residual: Array
    objective: Array
    iterations: NDArray[np.int64]

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    @property
    def attained(self) -> NDArray[np.bool_]:
        """(frames,) whether the torque is attained."""
        return np.asarray(self.status == STATUS.index("attained"))


class _Input(NamedTuple):
    """Checked arrays."""

    moment_arm: Array
    torque: Array
    max_force: Array
    passive_force: Array
    missing: NDArray[np.bool_]


class _Actuators(NamedTuple):
    """Reserve actuators as arrays."""

    direction: Array
    optimal_force: Array
    weight: Array
    max_control: Array


def share_loads(
    moment_arm: npt.ArrayLike,
    torque: npt.ArrayLike,
    max_force: npt.ArrayLike,
    *,
    settings: SharingSettings = SharingSettings(),
    weights: npt.ArrayLike | None = None,
    volume: npt.ArrayLike | None = None,
    min_activation: npt.ArrayLike = 0.0,
    max_activation: npt.ArrayLike = 1.0,
    passive_force: npt.ArrayLike | None = None,
    targets: npt.ArrayLike | None = None,
    target_weights: npt.ArrayLike | None = None,
    reserves: Reserves | None = None,
    times: npt.ArrayLike | None = None,
) -> SharingResult:
    """Compute activations of least cost that produce torques.

    Args:
        moment_arm: (frames, muscles, coordinates) torque per unit of muscle force [m], -d length / d coordinate.
        torque: (frames, coordinates) required torque [N m or N]; a frame with NaN here or in other arrays is missing.
        max_force: (frames, muscles) active force at full activation along the tendon [N].
        settings: Cost and bounds on rates.
        weights: (muscles,) factors of each muscle's cost; None: 1.
        volume: (muscles,) muscle volumes, or maximum isometric force times optimal fiber length; required for the
            costs "volume" and "metabolic".
        min_activation: Lower bounds: a number, (muscles,) or (frames, muscles).
        max_activation: Upper bounds, likewise.
        passive_force: (frames, muscles) force without activation [N]; None: none.
        targets: (frames, muscles) activations to stay near to, such as EMG envelopes; NaN: no target.
        target_weights: (muscles,) weight v of v (a - target)^2; 0: ignored.
        reserves: Reserve and residual actuators; None: none.
        times: (frames,) [s]; required for bounds on rates.

    Returns:
        Activations, muscle forces, the torques that they do not attain, and the status of each frame.

    Raises:
        SettingsError: Arrays do not fit together, or numbers are out of range.
    """
    given = _check_input(moment_arm, torque, max_force, passive_force)
    frames, muscles, coordinates = given.moment_arm.shape
    lower, upper = _bounds(min_activation, max_activation, (frames, muscles))
    actuators = _make_actuators(reserves, coordinates, frames)
    soft = _soft_targets(targets, target_weights, (frames, muscles))
    own = as_floats("weights", np.ones(muscles) if weights is None else weights, (muscles,))
    if not (own > 0.0).all():
        raise SettingsError(f"weights: The smallest is {own.min():g}. Pass positive numbers.")
    size = None if volume is None else as_floats("volume", volume, (muscles,))
    if settings.cost in ("volume", "metabolic") and (size is None or not (size > 0.0).all()):
        raise SettingsError(
            f'volume: The cost "{settings.cost}" needs the volume of every muscle. Pass positive numbers.'
        )
    weight = muscle_weights(settings, own, given.max_force, size, ~given.missing)
    coefficients = cost_coefficients(settings, weight, soft)
    rates = _rates(settings, times, frames)
    problem, order, strength = _make_problem(given, (lower, upper), settings, coefficients, actuators, rates)
    control, u = np.empty((frames, muscles + len(actuators.weight))), np.empty((frames, coordinates))
    status, steps, residual = np.empty(frames, np.int64), np.empty(frames, np.int64), np.empty(frames)
    solve_frames(problem, make_buffers(control.shape[1], coordinates), control, u, status, residual, steps)
    activation, reserve_control = np.ascontiguousarray(control[:, :muscles]), control[:, muscles:]
    unattained = np.empty_like(u)
    unattained[:, order] = u * strength
    reserve = reserve_control * actuators.optimal_force
    directions = np.broadcast_to(actuators.direction, (frames, *actuators.direction.shape[1:]))
    return SharingResult(
        activation=activation,
        force=activation * given.max_force + given.passive_force,
        reserve=reserve,
        reserve_torque=np.einsum("fa,fac->fc", reserve, directions),
        unattained_torque=unattained,
        status=status,
        kkt_residual=residual,
        objective=cost_values(settings, weight, soft, activation) + (actuators.weight * reserve_control**2).sum(axis=1),
        iterations=steps,
    )


def _check_input(
    moment_arm: npt.ArrayLike, torque: npt.ArrayLike, max_force: npt.ArrayLike, passive_force: npt.ArrayLike | None
) -> _Input:
    arms = as_floats("moment_arm", moment_arm, (None, None, None), finite=False)
    frames, muscles, coordinates = arms.shape
    required = as_floats("torque", torque, (frames, coordinates), finite=False)
    force = as_floats("max_force", max_force, (frames, muscles), finite=False)
    passive = np.zeros((frames, muscles)) if passive_force is None else passive_force
    passive = as_floats("passive_force", passive, (frames, muscles), finite=False)
    if not (np.nan_to_num(force) >= 0.0).all():
        raise SettingsError(f"max_force: The smallest is {np.nanmin(force):g} N. Pass forces of at least 0 N.")
    finite = [np.isfinite(array).reshape(frames, -1).all(axis=1) for array in (arms, required, force, passive)]
    missing = ~np.logical_and.reduce(finite)
    if missing.any():
        arms, force = np.where(missing[:, None, None], 0.0, arms), np.where(missing[:, None], 0.0, force)
        passive = np.where(missing[:, None], 0.0, passive)
    return _Input(arms, required, force, passive, missing)


def _bounds(lowest: npt.ArrayLike, highest: npt.ArrayLike, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the bounds of activation as (1 or frames, muscles)."""
    low, high = _by_muscle("min_activation", lowest, shape), _by_muscle("max_activation", highest, shape)
    if not (low <= high).all():
        raise SettingsError("min_activation: A lower bound is above its upper bound (max_activation). Correct them.")
    return low, high


def _by_muscle(where: str, given: npt.ArrayLike, shape: tuple[int, int]) -> Array:
    array = np.asarray(given, float)
    if array.ndim < 2:
        array = np.broadcast_to(array, (1, shape[1])) if array.ndim == 0 else array[None]
    return as_floats(where, array, (len(array) if len(array) == 1 else shape[0], shape[1]))


def _make_actuators(reserves: Reserves | None, coordinates: int, frames: int) -> _Actuators:
    if reserves is None:
        return _Actuators(np.zeros((1, 0, coordinates)), np.zeros(0), np.zeros(0), np.zeros(0))
    direction = reserves.directions(coordinates)
    if len(direction) not in (1, frames):
        raise SettingsError(f"reserves.direction: There are {len(direction)} frames. Pass {frames} or 1.")
    count = direction.shape[1]
    force, weight = reserves.column("optimal_force", count), reserves.column("weight", count)
    return _Actuators(direction, force, weight, reserves.column("max_control", count, finite=False))


def _soft_targets(
    targets: npt.ArrayLike | None, weights: npt.ArrayLike | None, shape: tuple[int, int]
) -> SoftTargets | None:
    if (targets is None) != (weights is None):
        raise SettingsError("targets and target_weights: Only one is given. Pass both or neither.")
    if targets is None:
        return None
    activation = as_floats("targets", targets, shape, finite=False)
    weight = as_floats("target_weights", weights, (shape[1],))
    if not (weight >= 0.0).all():
        raise SettingsError(f"target_weights: The smallest is {weight.min():g}. Pass numbers of at least 0.")
    known = np.isfinite(activation)
    return SoftTargets(np.where(known, activation, 0.0), np.where(known, weight, 0.0))


def _rates(settings: SharingSettings, times: npt.ArrayLike | None, frames: int) -> tuple[Array, Array]:
    """Return the factors of 1 - a and of a from frame to frame at extreme excitations; empty without bounds."""
    if settings.activation_time is None or settings.deactivation_time is None:
        return np.zeros(0), np.zeros(0)
    if times is None:
        raise SettingsError("times: Bounds on rates (activation_time) need the times of the frames. Pass them.")
    steps = np.diff(as_floats("times", times, (frames,)), prepend=np.nan)
    if not (steps[1:] > 0.0).all():
        raise SettingsError("times: They do not increase. Pass increasing times.")
    steps[:1] = 0.0
    return np.exp(-steps / settings.activation_time), np.exp(-steps / settings.deactivation_time)


def _make_problem(
    given: _Input,
    bounds: tuple[Array, Array],
    settings: SharingSettings,
    coefficients: CostCoefficients,
    actuators: _Actuators,
    rates: tuple[Array, Array],
) -> tuple[SharingProblem, NDArray[np.int64], Array]:
    """Return the problem for the kernel, the order of its rows, and their strengths [N m or N] in this order."""
    muscles, count = given.max_force.shape[1], len(actuators.weight)
    nonzero = [(given.moment_arm != 0.0).any(axis=0), (actuators.direction != 0.0).any(axis=0)]
    pattern = find_pattern(np.concatenate(nonzero))
    arms = gather(pattern, given.moment_arm, 0) * given.max_force[:, pattern.column[pattern.column < muscles]]
    others = gather(pattern, actuators.direction, muscles)
    others = others * actuators.optimal_force[pattern.column[pattern.column >= muscles] - muscles]
    strength = _strengths(pattern, arms, others, bounds[1], actuators)
    entry = np.concatenate([arms, np.broadcast_to(others, (len(arms), others.shape[1]))], axis=1)
    passive = (given.passive_force[:, None] @ given.moment_arm)[:, 0] if given.passive_force.any() else 0.0
    required = np.where(given.missing[:, None], np.nan, given.torque - passive)[:, pattern.order] / strength
    power, quadratic, linear, pull = coefficients
    join, join_slope = joins(settings.exponent)
    problem = SharingProblem(
        start=pattern.start,
        row=pattern.position,
        entry=np.ascontiguousarray(entry / strength[pattern.position]),
        required=np.ascontiguousarray(required),
        lower=_append(bounds[0], -actuators.max_control),
        upper=_append(bounds[1], actuators.max_control),
        exponent=np.append(np.full(muscles, settings.exponent), np.full(count, 2.0)),
        join=np.append(np.full(muscles, join), np.zeros(count)),
        join_slope=np.append(np.full(muscles, join_slope), np.zeros(count)),
        power_weight=_append(power, np.zeros(count)),
        quadratic=_append(quadratic, 2.0 * actuators.weight),
        linear=_append(linear, np.zeros(count)),
        pull=_append(pull, np.zeros(count)),
        softness=np.array([SOFTNESS / mean_stiffness(settings.exponent, coefficients)]),
        rise=rates[0],
        decay=rates[1],
        rated=np.array([muscles]),
    )
    return problem, pattern.order, strength


def _strengths(pattern: ColumnPattern, arms: Array, others: Array, upper: Array, actuators: _Actuators) -> Array:
    """Return the strengths of coordinates by position: of muscles, else of reserves, 1 where nothing acts."""
    first = arms.shape[1]
    muscles = np.abs(arms) * np.abs(upper[:, pattern.column[:first]])
    bound = np.where(np.isfinite(actuators.max_control), actuators.max_control, 1.0)
    reserves = np.abs(others) * bound[pattern.column[first:] - upper.shape[1]]
    strength = np.ones(len(pattern.order))
    for k in range(len(strength)):
        for torque, position in ((reserves, pattern.position[first:]), (muscles, pattern.position[:first])):
            largest = torque[:, position == k].sum(axis=1).max(initial=0.0)
            strength[k] = largest if largest > 0.0 else strength[k]
    return strength


def _append(by_muscle: Array, by_actuator: Array) -> Array:
    rows = np.broadcast_to(by_actuator, (len(by_muscle), len(by_actuator)))
    return np.ascontiguousarray(np.concatenate([by_muscle, rows], axis=1))
