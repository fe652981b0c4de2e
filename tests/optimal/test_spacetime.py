"""Spacetime constraints: closed form of a mass, defects that fall with the interval, bounds and ground kept."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.experiments.optimal.worm_model import ARCH, angle_names, worm_system
from borelli.experiments.optimal.worm_race import extend
from borelli.optimal.spacetime import solve_spacetime
from borelli.optimal.system import Variable, make_system


def mass():
    return make_system("mass", states=[Variable("x"), Variable("x_speed")], controls=[Variable("force")],
                       rates=lambda s: {"x": s.x_speed, "x_speed": s.force})  # fmt: skip


def test_mass_moves_as_the_calculus_of_variations_says():
    """Least int f^2 from rest to rest over 1 m in 2 s: x = 3 (t/T)^2 - 2 (t/T)^3, J = 12 / T^3 (Bryson and Ho 1975)."""
    errors = []
    for intervals in (20, 40):
        found = solve_spacetime(mass(), {"x": 0.0}, {"x": 1.0}, duration=2.0, intervals=intervals)
        s = found.time / 2.0
        errors.append([np.abs(found.position[:, 0] - 3 * s**2 + 2 * s**3).max(), abs(found.cost - 1.5)])
    assert found.converged
    assert np.all(np.array(errors[1]) < 0.3 * np.array(errors[0]))  # second order: 0.25
    assert errors[1][1] < 0.01


def test_defects_of_the_worm_fall_with_the_interval():
    found = [extend(intervals) for intervals in (20, 40, 80)]
    worst = [np.abs(one.defect).max() for one in found]
    assert all(one.converged for one in found)
    assert worst[2] <= 0.02  # rad
    assert worst[1] < 0.6 * worst[0]
    assert worst[2] < 0.6 * worst[1]


def test_worm_keeps_its_rate_and_stays_above_ground():
    found = extend(40)
    assert np.abs(np.diff(found.position, axis=0) * 40 / found.time[-1]).max() <= 6.0 + 1e-6
    system = worm_system()
    for q in found.position:
        x = np.concatenate([q, np.zeros(4)])
        values = system.outputs(0.0, x, [], np.zeros(4), [], np.zeros(8))
        heights = [float(v) for name, v in zip(system.output_names, values, strict=True) if name.endswith("_y")]
        assert min(heights[1:]) > -1e-4
    np.testing.assert_allclose(found.position[0], ARCH, atol=1e-9)
    np.testing.assert_allclose(found.position[-1], 0.0, atol=1e-9)


def test_rate_bound_matters():
    """Without it the optimum exploits the differences: rates of several rad per step, and defects that stay."""
    free, bounded = extend(20, max_rate=np.inf), extend(20)
    assert np.abs(free.rate).max() > 2.0 * np.abs(bounded.rate).max()
    assert np.abs(free.defect).max() > 2.0 * np.abs(bounded.defect).max()


def test_wrong_statements_are_refused():
    with pytest.raises(SettingsError, match="missing or unknown"):
        solve_spacetime(mass(), {"y": 0.0}, {"x": 1.0}, duration=2.0, intervals=10)
    with pytest.raises(SettingsError, match="two intervals"):
        solve_spacetime(mass(), {"x": 0.0}, {"x": 1.0}, duration=2.0, intervals=1)
    assert len(angle_names()) == 4
