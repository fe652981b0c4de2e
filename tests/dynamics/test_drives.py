"""Drives are generalized forces on the coordinates they name, whatever else is driven: against other engines."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from borelli.model.model import Softness
from borelli.physics.inputs import Drive
from borelli.physics.simulate import simulate

from .peers import PEERS, axes_of
from .sample_trees import KINDS, random_state, tree_of

SAME = 1e-6
"""Relative to the largest acceleration."""
TINY = 1e-9
"""[s] The second step shows the acceleration, with an error of first order in h times the
rates of dampers on light parts, some 100/s; rounding adds 1e-16 v / h."""


def accelerations(model, q, speeds, drives):
    """Return the accelerations of all coordinates in the simulation."""
    names = [c.name for c in model.coordinates]
    result = simulate(
        model, duration=2 * TINY, step=TINY, drives=drives, initial_coordinates=dict(zip(names, q, strict=True)),
        initial_velocities=dict(zip(names, speeds, strict=True)),
    )  # fmt: skip
    speed = result["coordinate_velocity"].values
    return (speed[2] - speed[1]) / TINY, result["torque"].values[2]


def random_drive(name: str, rng: np.random.Generator) -> Drive:
    """Return a drive with spring, damper, offset and a limit that is out of reach."""
    target, velocity, offset = (float(x) for x in rng.uniform(-1.0, 1.0, 3))
    return Drive(
        name, target, velocity, float(rng.uniform(0.0, 20.0)), float(rng.uniform(0.0, 3.0)), 1e4, 0.0, 10.0 * offset
    )


@pytest.mark.crosscheck
@pytest.mark.parametrize("kind", KINDS)
def test_accelerations_agree_with_other_engines(kind):
    """With every number of driven coordinates of the middle joint, of the root and of the end."""
    model = tree_of(kind, softness=Softness(erp=0.0))
    q, speeds = random_state(model, 21)
    rng, names = np.random.default_rng(22), [c.name for c in model.coordinates]
    free = np.arange(len(names))
    middle = [name for name in names if name.startswith("middle")]
    for count in range(1, len(middle) + 1):
        driven = [*(["root.3", "root.4", "root.5", "end.0"] if count > 1 else []), *middle[:count]]
        drives = [random_drive(name, rng) for name in driven]
        force = np.zeros(len(names))
        for drive in drives:
            i = names.index(drive.coordinate)
            force[i] = (
                drive.stiffness * (drive.target - q[i]) + drive.damping * (drive.velocity - speeds[i]) + drive.offset
            )
        found, torque = accelerations(model, q, speeds, drives)
        np.testing.assert_allclose(torque, force, atol=SAME * np.abs(force).max())
        axes = axes_of(model, q, speeds, free)
        for peer in PEERS:
            pytest.importorskip(peer)
            engine = PEERS[peer](model)
            expected = np.linalg.solve(engine.mass(axes), force - engine.force(axes, np.zeros(len(q))))
            assert np.abs(found - expected).max() < SAME * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["ball", "ball odd"])
def test_drives_without_force_change_nothing(kind):
    """A drive with zero offset, spring and damper adds no row of its own meaning to the others."""
    model = tree_of(kind, softness=Softness(erp=0.0))
    q, speeds = random_state(model, 23)
    offsets = {"middle.0": 2.0, "middle.1": -1.0, "middle.2": 0.5}
    for pair in combinations(offsets, 2):
        two = [Drive(name, offset=offsets[name]) for name in pair]
        third = next(name for name in offsets if name not in pair)
        expected, _ = accelerations(model, q, speeds, two)
        found, _ = accelerations(model, q, speeds, [*two, Drive(third, offset=0.0)])
        np.testing.assert_allclose(found, expected, atol=SAME * np.abs(expected).max())


def test_fixed_rotation_reports_generalized_forces():
    """Three hard drives rotate a ball as one; their torques are those on the Cardan angles (inverse dynamics)."""
    from borelli.dynamics.generalized_dynamics import bias_forces

    model = tree_of("ball odd", softness=Softness(erp=0.0))
    q, _ = random_state(model, 24)
    names = [c.name for c in model.coordinates]
    drives = [Drive(name, float(value), stiffness=np.inf) for name, value in zip(names, q, strict=True)]
    start = dict(zip(names, q, strict=True))
    torque = simulate(model, duration=0.002, step=0.001, drives=drives, initial_coordinates=start)["torque"].values[2]
    expected = bias_forces(model, q).values
    np.testing.assert_allclose(torque, expected, atol=SAME * np.abs(expected).max())
