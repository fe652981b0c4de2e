"""Parts of the dual Newton method: controls and their derivatives, order of elimination."""

import os
import subprocess
import sys

import numpy as np
import pytest

from borelli.analysis.load_sharing.actuator_columns import elimination_order

DERIVATIVES = """
import numpy as np
from borelli.analysis.load_sharing.costs import joins
from borelli.analysis.load_sharing.dual_newton import _control
from borelli.analysis.load_sharing.problem_arrays import SharingProblem, make_buffers
for p in (1.5, 2.5, 3.0, 4.0, 5.0):
    for k in (0.0, 0.7):
        x_join, slope = joins(p)
        fields = dict.fromkeys(SharingProblem._fields) | {
            "exponent": np.array([p]), "join": np.array([x_join]), "join_slope": np.array([slope])}
        problem, buffers = SharingProblem(**fields), make_buffers(1, 1)
        buffers.power_weight[0], buffers.quadratic[0], buffers.linear[0] = 1.3, k, 0.2
        buffers.lower[0], buffers.upper[0] = -1.0, 1.0
        for s in (-9.0, -1.1, -0.4, 0.05, 0.3, 0.9, 2.0):
            x, slope = _control(problem, buffers, 0, s)
            h = 1e-6
            around = [_control(problem, buffers, 0, s + step)[0] for step in (-h, h)]
            assert abs((around[1] - around[0]) / (2.0 * h) - slope) <= 1e-6 * (1.0 + slope), (p, k, s)
            inside = 0.0 < abs(x) < 1.0
            if inside and abs(x) > x_join:
                force = p * 1.3 * abs(x) ** (p - 1.0) + k * abs(x) + 0.2
                assert abs(force - abs(s)) <= 1e-12 and np.sign(x) == np.sign(s), (p, k, s)
print("checked")
"""


def test_controls_are_roots_and_their_derivatives_are_differences():
    """Run as plain Python: kernel functions cannot be called from it otherwise."""
    environment = os.environ | {"BORELLI_JIT": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", DERIVATIVES], capture_output=True, text=True, check=False, env=environment
    )
    assert ran.stdout.strip() == "checked", ran.stderr[-2000:]


@pytest.mark.parametrize("seed", range(5))
def test_coordinates_are_eliminated_by_minimum_degree(seed):
    """Neighbors after an elimination are those reached through eliminated coordinates."""
    nonzero = np.random.default_rng(seed).random((25, 15)) < 0.12
    joined = (nonzero.T.astype(int) @ nonzero.astype(int)) > 0
    order = elimination_order(nonzero)
    assert sorted(order.tolist()) == list(range(15))

    def degree(coordinate, gone):
        reached, waiting = set(), [coordinate]
        while waiting:
            for other in np.flatnonzero(joined[waiting.pop()]).tolist():
                if other not in reached and other != coordinate:
                    reached.add(other)
                    if other in gone:
                        waiting.append(other)
        return len(reached - gone)

    for i, chosen in enumerate(order.tolist()):
        gone, rest = set(order[:i].tolist()), order[i:].tolist()
        assert degree(chosen, gone) == min(degree(other, gone) for other in rest)
