"""Geodesics over an ellipsoid: great circles, and a slow and exact integration of the textbook equation."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from borelli.muscles.path_kernels import ellipsoid_geodesic
from borelli.muscles.path_kernels.geodesic import ELLIPSOID, shoot_samples

ROUNDING = 1e-14


def starts(rng, ratios):
    """Return half axes [m] and a random start (x, t) on the surface."""
    sizes = 0.05 * ratios
    u = rng.normal(size=3)
    x = sizes * u / np.linalg.norm(u)
    normal = x / sizes**2
    t = np.cross(normal, rng.normal(size=3))
    return sizes, np.concatenate([x, t / np.linalg.norm(t)])


def follow(sizes, start, lengths):
    points = np.zeros((len(lengths), 3))
    shoot_samples(ELLIPSOID, sizes, np.append(start, [0.0, 0.0]), np.asarray(lengths), np.zeros(10), points)
    return points


def integrate(sizes, start, length):
    """Integrate x'' = -(t.H t / g.g) g by a library's solver."""
    h = 1.0 / sizes**2

    def rates(_, y):
        x, t = y[:3], y[3:]
        g = h * x
        return np.concatenate([t, -(t @ (h * t)) / (g @ g) * g])

    return solve_ivp(rates, (0.0, length), start, "DOP853", rtol=1e-13, atol=1e-15).y[:3, -1]


@pytest.mark.parametrize("flat", [1.0, 0.6, 0.3])
def test_ends_are_those_of_the_geodesic_equation(flat):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes, start = starts(rng, np.array([1.0, rng.uniform(flat, 1.0), flat]))
        length = rng.uniform(0.2, 3.0) * sizes.mean()
        error = np.abs(follow(sizes, start, [length])[0] - integrate(sizes, start, length)).max()
        # the steps are controlled by the result of lower order, so that of higher order is well within
        assert error < 0.2 * ellipsoid_geodesic.STEP_TOLERANCE * sizes.mean()


def test_sphere_has_great_circles():
    sizes, start = starts(np.random.default_rng(1), np.ones(3))
    lengths = np.linspace(0.01, 0.3, 8)  # nearly a full circle
    x, t, angle = start[:3], start[3:], lengths[:, None] / sizes[0]
    np.testing.assert_allclose(
        follow(sizes, start, lengths), np.cos(angle) * x + np.sin(angle) * sizes[0] * t, atol=1e-9
    )


def test_extrapolation_removes_all_even_powers_up_to_the_eighth():
    """Weights w_n of n substeps: sum w = 1, sum w / n^2k = 0 for k = 1 to 4; differences remove one less."""
    counts = range(1, ellipsoid_geodesic.SUBSTEPS + 1)
    for k, expected in enumerate((1.0, 0.0, 0.0, 0.0, 0.0)):
        powers = [float(Fraction(1, n ** (2 * k))) for n in counts]
        assert np.dot(ellipsoid_geodesic.WEIGHTS, powers) == pytest.approx(expected, abs=ROUNDING * 10)
        if k < 4:
            assert np.dot(ellipsoid_geodesic.DIFFERENCES, powers) == pytest.approx(0.0, abs=ROUNDING * 10)
