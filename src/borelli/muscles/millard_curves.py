"""Control points of the curves of Millard et al. (2013), as in OpenSim's Millard2012EquilibriumMuscle."""

from __future__ import annotations

from borelli.errors import ModelError
from borelli.model.model import Muscle

PLATEAU_HALF_WIDTH = 0.05
"""Half of the plateau of the active curve [optimal fiber lengths] (OpenSim 4.6)."""
STEEPNESS = 1.25
"""Slope of the ascending limb over its mean slope (OpenSim 4.6)."""
MIN_DAMPING = 0.001
"""Fiber damping from which OpenSim 4.6 uses the damped model."""
NEAR_MAX_VELOCITY = 0.9
"""Velocity at which the slopes "near vmax" apply [max contraction velocities] (OpenSim 4.6)."""

Point = tuple[float, float]


def millard_row(muscle: Muscle) -> list[float]:
    """Return the corners of the active, force-velocity, passive and tendon curve."""
    return [*_active(muscle), *_velocity(muscle), *_passive(muscle), *_tendon(muscle)]


def _is_regular(muscle: Muscle) -> bool:
    """Return whether the muscle is damped or rigid; OpenSim then sets the active floor and the end slopes to zero.

    Only the undamped muscle with an elastic tendon is singular without them.
    """
    rigid = muscle.parameter("ignore_tendon_compliance", 0.0) or muscle.tendon_slack_length == 0.0
    return bool(rigid) or muscle.parameter("fiber_damping", 0.1) >= MIN_DAMPING


def _corner(
    start: tuple[float, float], slope0: float, end: tuple[float, float], slope1: float, curviness: float
) -> list[float]:
    """Return the 13 numbers of a quintic Bezier corner between two points with given slopes."""
    (x0, y0), (x1, y1) = start, end
    flat = abs(slope0 - slope1) <= 1e-8  # the square root of the precision, as in OpenSim
    xc = 0.5 * (x0 + x1) if flat else (y1 - y0 - x1 * slope1 + x0 * slope0) / (slope0 - slope1)
    # from the flatter end: an end of slope zero stays exactly flat
    yc = y0 + slope0 * (xc - x0) if abs(slope0) < abs(slope1) else y1 + slope1 * (xc - x1)
    c = 0.1 + 0.8 * curviness
    numbers = []
    for p0, corner, p1 in ((x0, xc, x1), (y0, yc, y1)):
        a, b = p0 + c * (corner - p0), p1 + c * (corner - p1)
        # powers of u in the sum of Bernstein's polynomials times the control points p0, a, a, b, b, p1
        numbers += [p0, 5.0 * (a - p0), 10.0 * (p0 - a), 10.0 * (b - p0), 5.0 * (p0 + 2.0 * a - 3.0 * b)]
        numbers += [p1 - p0 + 5.0 * (b - a)]
    return [*numbers, x1]


def _refuse(muscle: Muscle, curve: str, found: str, rule: str) -> ModelError:
    return ModelError(f"Muscle {muscle.name!r}: {curve}: {found}. {rule}")


def _active(muscle: Muscle) -> list[float]:
    """Return five corners: rise, shoulder, plateau, fall, foot."""
    curve = "ActiveForceLengthCurve"
    x0 = muscle.parameter(f"{curve}.min_norm_active_fiber_length", 0.4441)
    x1 = muscle.parameter(f"{curve}.transition_norm_fiber_length", 0.73)
    x3 = muscle.parameter(f"{curve}.max_norm_active_fiber_length", 1.8123)
    slope = muscle.parameter(f"{curve}.shallow_ascending_slope", 0.8616)
    floor = 0.0 if _is_regular(muscle) else muscle.parameter(f"{curve}.minimum_value", 0.1)
    if not 0.0 <= x0 < x1 < 1.0 < x3:
        raise _refuse(
            muscle, curve, f"The lengths are {x0:g}, {x1:g}, {x3:g}", "They must increase, with 1 before the last."
        )
    if not 0.0 <= slope < 1.0 / (1.0 - x1) or not 0.0 <= floor < 1.0:
        found = f"shallow_ascending_slope is {slope:g}, minimum_value {floor:g}"
        raise _refuse(muscle, curve, found, f"Give a slope from 0 to {1.0 / (1.0 - x1):g} and a value from 0 to 1.")
    d = PLATEAU_HALF_WIDTH
    shoulder = 1.0 - slope * (1.0 - d - x1)
    rise = STEEPNESS * shoulder / (x1 - x0)
    fall = -1.0 / ((x3 - d) - (1.0 + d))
    points: list[tuple[Point, float]] = [
        ((x0, floor), 0.0),
        ((0.5 * (x0 + x1), 0.5 * shoulder), rise),
        ((0.5 * (x1 + 1.0 - d), 0.5 * (shoulder + 1.0)), slope),
        ((1.0, 1.0), 0.0),
        ((0.5 * (x3 + 1.0 + d), 0.5), fall),
        ((x3, floor), 0.0),
    ]
    return _chain(points, [1.0] * 5)


def _velocity(muscle: Muscle) -> list[float]:
    """Return four corners from the maximum shortening to the maximum lengthening velocity."""
    curve = "ForceVelocityCurve"
    most = muscle.parameter(f"{curve}.max_eccentric_velocity_force_multiplier", 1.4)
    slow, near_slow = (
        muscle.parameter(f"{curve}.concentric_slope_at_vmax", 0.0),
        muscle.parameter(f"{curve}.concentric_slope_near_vmax", 0.25),
    )
    long, near_long = (
        muscle.parameter(f"{curve}.eccentric_slope_at_vmax", 0.0),
        muscle.parameter(f"{curve}.eccentric_slope_near_vmax", 0.15),
    )
    if _is_regular(muscle):
        slow = long = 0.0
    isometric = muscle.parameter(f"{curve}.isometric_slope", 5.0)
    concentric = muscle.parameter(f"{curve}.concentric_curviness", 0.6)
    eccentric = muscle.parameter(f"{curve}.eccentric_curviness", 0.9)
    ordered = 0.0 <= slow < near_slow <= 1.0 < isometric and 0.0 <= long <= near_long < most - 1.0
    if not ordered or not 0.0 <= concentric <= 1.0 or not 0.0 <= eccentric <= 1.0:
        found = f"slopes {slow:g}, {near_slow:g}, {isometric:g}, {near_long:g}, {long:g}, largest force {most:g}"
        rule = "Slopes must increase to the isometric one (above 1) and decrease from there; curviness is from 0 to 1."
        raise _refuse(muscle, curve, f"It has {found}", rule)
    width = 1.0 - NEAR_MAX_VELOCITY
    points: list[tuple[Point, float]] = [
        ((-1.0, 0.0), slow),
        ((-NEAR_MAX_VELOCITY, 0.5 * (slow + near_slow) * width), near_slow),
        ((0.0, 1.0), isometric),
        ((NEAR_MAX_VELOCITY, most - 0.5 * (long + near_long) * width), near_long),
        ((1.0, most), long),
    ]
    return _chain(points, [concentric, concentric, eccentric, eccentric])


def _passive(muscle: Muscle) -> list[float]:
    """Return two corners: foot and rise."""
    curve = "FiberForceLengthCurve"
    start = muscle.parameter(f"{curve}.strain_at_zero_force", 0.0)
    end = muscle.parameter(f"{curve}.strain_at_one_norm_force", 0.7)
    if not end > start:
        raise _refuse(muscle, curve, f"The strains are {start:g} and {end:g}", "They must increase.")
    low = muscle.parameter(f"{curve}.stiffness_at_low_force", 0.2)
    stiff = muscle.parameter(f"{curve}.stiffness_at_one_norm_force", 2.0 / (end - start))
    curviness = muscle.parameter(f"{curve}.curviness", 0.75)
    mean = 1.0 / (end - start)
    if not 0.0 < low < mean < stiff or not 0.0 <= curviness <= 1.0:
        found = f"The stiffnesses are {low:g} and {stiff:g}, curviness is {curviness:g}"
        raise _refuse(muscle, curve, found, f"Give one below and one above {mean:g}; curviness is from 0 to 1.")
    x0, x1 = 1.0 + start, 1.0 + end
    width = min(0.1 / stiff, 0.1 * (x1 - x0))
    points: list[tuple[Point, float]] = [
        ((x0, 0.0), 0.0),
        ((x0 + width, 0.5 * low * width), low),
        ((x1, 1.0), stiff),
    ]
    return _chain(points, [curviness] * 2)


def _tendon(muscle: Muscle) -> list[float]:
    """Return the two corners of the toe; the line beyond it is their end tangent."""
    curve = "TendonForceLengthCurve"
    strain = muscle.parameter(f"{curve}.strain_at_one_norm_force", 0.049)
    if not strain > 0.0:
        raise _refuse(muscle, curve, f"strain_at_one_norm_force is {strain:g}", "It must be positive.")
    stiff = muscle.parameter(f"{curve}.stiffness_at_one_norm_force", 1.375 / strain)
    toe = muscle.parameter(f"{curve}.norm_force_at_toe_end", 2.0 / 3.0)
    curviness = muscle.parameter(f"{curve}.curviness", 0.5)
    if not stiff > 1.0 / strain or not 0.0 < toe < 1.0 or not 0.0 <= curviness <= 1.0:
        found = f"stiffness {stiff:g}, force at the toe's end {toe:g}, curviness {curviness:g}"
        raise _refuse(
            muscle, curve, f"It has {found}", f"Give a stiffness above {1.0 / strain:g} and others from 0 to 1."
        )
    x1 = 1.0 + strain
    x_toe = (toe - 1.0) / stiff + x1
    foot = 1.0 + 0.1 * (x_toe - 1.0)
    x_middle = (0.5 * toe - 1.0) / stiff + x1
    slope = 0.5 * toe / (x_middle - foot)
    x_control = 0.5 * (foot + x_middle)
    points: list[tuple[Point, float]] = [
        ((1.0, 0.0), 0.0),
        ((x_control, slope * (x_control - foot)), slope),
        ((x_toe, toe), stiff),
    ]
    return _chain(points, [curviness] * 2)


def _chain(points: list[tuple[Point, float]], curviness: list[float]) -> list[float]:
    """Return the corners between points with slopes."""
    numbers: list[float] = []
    for (start, slope0), (end, slope1), bend in zip(points, points[1:], curviness, strict=False):
        numbers += _corner(start, slope0, end, slope1, bend)
    return numbers
