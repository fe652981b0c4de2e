"""Arrays of a model's muscles for kernels, with checks that name the muscle."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Model, Muscle
from borelli.muscles.force_curves import CLASSES, SUBSTITUTES, min_fiber_length, muscle_class
from borelli.muscles.hill_kernels.arrays import Floats, HillArrays
from borelli.muscles.hill_kernels.curves import MUJOCO

FIBER_RANGE = (0.2, 2.0)
"""Normalized fiber lengths beyond which parameters are suspect: sarcomeres produce no active force there."""
MIN_CURVE_SIZE = 8
"""Numbers in the longest row of curves in closed form."""


class MuscleArrays(NamedTuple):
    """Parameters of muscles, one entry each; the fields after `names` are those of `HillArrays`."""

    names: tuple[str, ...]
    max_isometric_force: Floats
    optimal_fiber_length: Floats
    tendon_slack_length: Floats
    pennation_angle: Floats
    max_contraction_velocity: Floats
    damping: Floats
    min_fiber_length: Floats
    rigid_tendon: NDArray[np.bool_]
    curve_kind: NDArray[np.int64]
    curve: Floats
    activation_kind: NDArray[np.int64]
    activation_time: Floats
    deactivation_time: Floats
    activation_smoothing: Floats
    min_activation: Floats
    max_activation: Floats
    default_activation: Floats
    min_control: Floats
    max_control: Floats

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


def kernel_arrays(arrays: MuscleArrays) -> HillArrays:
    """Return the arrays without the names, as kernels take them."""
    return HillArrays(*arrays[1:])


def make_muscle_arrays(model: Model, muscles: Sequence[str] | None = None) -> MuscleArrays:
    """Return the parameters of a model's muscles as arrays.

    Args:
        model: with muscles of the classes in `borelli.muscles.force_curves`.
        muscles: names in the order wanted. Default: all muscles of the model.

    Raises:
        ModelError: if a parameter is out of range; names the muscle.
        SettingsError: if a name is unknown.
    """
    ensure_compiled("muscles")
    by_name = {muscle.name: muscle for muscle in model.muscles}
    for name in muscles or ():
        if name not in by_name:
            raise SettingsError(f"{unknown_name('muscle', name, by_name)}.")
    chosen = list(model.muscles) if muscles is None else [by_name[name] for name in muscles]
    columns = [_values(muscle) for muscle in chosen]
    rows = [row for _, row in columns]
    curve = np.zeros((len(rows), max([MIN_CURVE_SIZE, *map(len, rows)])))
    for i, row in enumerate(rows):
        curve[i, : len(row)] = row
    values = {name: [entry[name] for entry, _ in columns] for name in _FIELDS}
    arrays: dict[str, Any] = {name: np.array(column, _FIELDS[name]) for name, column in values.items()}
    return MuscleArrays(tuple(muscle.name for muscle in chosen), curve=curve, **arrays)


_FIELDS: dict[str, type] = {
    name: {"rigid_tendon": bool, "curve_kind": int, "activation_kind": int}.get(name, float)
    for name in HillArrays._fields
    if name != "curve"
}


def _values(muscle: Muscle) -> tuple[dict[str, float], list[float]]:
    """Return the numbers of one muscle by field, and its row of curve parameters."""
    _check(muscle)
    kind = muscle_class(muscle)
    row = kind.row(muscle)
    slack = _tendon_length(muscle) if kind.curve_kind == MUJOCO else muscle.tendon_slack_length
    compliant = kind.curve_kind != MUJOCO and slack > 0.0 and not muscle.parameter("ignore_tendon_compliance", 0.0)
    dynamic = not muscle.parameter("ignore_activation_dynamics", 0.0)
    smoothing = muscle.parameter("activation_dynamics_smoothing", muscle.parameter("tausmooth", kind.smoothing))
    values = {
        "max_isometric_force": muscle.max_isometric_force,
        "optimal_fiber_length": muscle.optimal_fiber_length,
        "tendon_slack_length": slack,
        "pennation_angle": muscle.pennation_angle,
        "max_contraction_velocity": muscle.max_contraction_velocity,
        "damping": muscle.parameter("fiber_damping", kind.damping),
        "min_fiber_length": min_fiber_length(muscle, kind.curve_kind, row),
        "rigid_tendon": not compliant,
        "curve_kind": kind.curve_kind,
        "activation_kind": kind.activation_kind,
        "activation_time": muscle.activation_time if dynamic else 0.0,
        "deactivation_time": muscle.deactivation_time if dynamic else 0.0,
        "activation_smoothing": smoothing,
        "min_activation": muscle.parameter("minimum_activation", kind.min_activation),
        "max_activation": 1.0,
        "default_activation": muscle.default_activation,
        "min_control": muscle.parameter("min_control", 0.0),
        "max_control": muscle.parameter("max_control", 1.0),
    }
    bad = next((name for name, value in values.items() if not isfinite(value)), None)
    if bad or values["damping"] < 0.0 or not 0.0 <= values["min_activation"] < 1.0:
        bad = bad or ("damping" if values["damping"] < 0.0 else "min_activation")
        raise ModelError(f"Muscle {muscle.name!r}: {bad} is {values[bad]:g}. Give a finite number in its range.")
    return values, row


def _tendon_length(muscle: Muscle) -> float:
    """Return MuJoCo's tendon length, which may be negative; the reader keeps it in the ranges of lengths."""
    stated = muscle.parameter("lengthrange0", 0.0) - muscle.parameter("range0", 0.0) * muscle.optimal_fiber_length
    return stated if stated < 0.0 and muscle.tendon_slack_length == 0.0 else muscle.tendon_slack_length


def _check(muscle: Muscle) -> None:
    """Raise ModelError where a parameter makes no muscle."""
    for name in ("max_isometric_force", "optimal_fiber_length", "max_contraction_velocity"):
        value = getattr(muscle, name)
        if not (value > 0.0 and isfinite(value)):
            raise ModelError(f"Muscle {muscle.name!r}: {name} is {value:g}. It must be positive and finite.")
    for name in ("tendon_slack_length", "activation_time", "deactivation_time"):
        value = getattr(muscle, name)
        if not (value >= 0.0 and isfinite(value)):
            raise ModelError(f"Muscle {muscle.name!r}: {name} is {value:g}. It must not be negative.")
    if not 0.0 <= muscle.pennation_angle < pi / 2.0:
        found = f"pennation_angle is {muscle.pennation_angle:g} rad"
        raise ModelError(f"Muscle {muscle.name!r}: {found}. It must be from 0 to below pi/2 (at optimal fiber length).")
    largest = muscle.parameter("maximum_pennation_angle", pi / 2.0)
    if not muscle.pennation_angle < largest:
        found = f"pennation_angle ({muscle.pennation_angle:g} rad) exceeds maximum_pennation_angle ({largest:g} rad)"
        raise ModelError(f"Muscle {muscle.name!r}: {found}. Correct one of them.")


def muscle_warnings(model: Model, arrays: MuscleArrays, length: Floats | None = None) -> list[str]:
    """Return warnings about muscles with substituted curves or implausible lengths.

    Args:
        model: from which the arrays were made.
        arrays: of the muscles to check.
        length: path lengths (poses, muscles) [m] over the range of motion. Fiber lengths far from the optimal one, as
            in models converted with wrong lengths, are reported.
    """
    kinds = {muscle.name: muscle.kind for muscle in model.muscles}
    replaced = [name for name in arrays.names if kinds[name] in SUBSTITUTES]
    warnings = []
    for kind in sorted({kinds[name] for name in replaced}):
        names = [name for name in replaced if kinds[name] == kind]
        stated = f"class {kind} has no curves here" if kind else "no muscle class is stated"
        warnings.append(f"Muscles {list_names(names, 5)}: {stated}; those of {SUBSTITUTES[kind]} are used.")
    slackless = [n for n, slack in zip(arrays.names, arrays.tendon_slack_length, strict=True) if slack == 0.0]
    if slackless:
        warnings.append(
            f"Muscles {list_names(slackless, 5)}: tendon_slack_length is 0; the tendon is treated as rigid."
        )
    return warnings if length is None else warnings + _length_warnings(arrays, length)


def _length_warnings(arrays: MuscleArrays, length: Floats) -> list[str]:
    """Return a warning for every muscle whose fiber leaves the plausible range with a rigid tendon."""
    along = np.asarray(length) - arrays.tendon_slack_length
    width = arrays.optimal_fiber_length * np.sin(arrays.pennation_angle)
    fiber = np.where(along > 0.0, np.hypot(along, width), 0.0) / arrays.optimal_fiber_length
    shortest, longest = FIBER_RANGE
    warnings = []
    for i, name in enumerate(arrays.names):
        low, high = float(fiber[:, i].min()), float(fiber[:, i].max())
        if low < shortest or high > longest or not np.isfinite(high):
            found = f"normalized fiber length from {low:.2f} to {high:.2f} (plausible: {shortest:g} to {longest:g})"
            advice = "Its forces are not reliable. Check optimal_fiber_length and tendon_slack_length."
            warnings.append(f"Muscle {name!r}: {found} over these path lengths. {advice}")
    return warnings


__all__ = ["CLASSES", "MuscleArrays", "kernel_arrays", "make_muscle_arrays", "muscle_warnings"]
