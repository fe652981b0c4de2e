"""Copies and pickles of running simulations: independent of the original, with the same bits."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from borelli.model.mechanisms import planks
from borelli.model.model import Frame, Shape
from borelli.people.human import human
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.impulse_step.arrays import ResponseCoefficients, compile_impulse, make_target_trajectory
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.post_stabilization import PostStabilizer
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.state import make_inputs, make_state

from .worlds import fingerprint

STEPS = 120
"""Number of steps before, and after, a copy is made."""
STEP = 1 / 240

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda simulation: pickle.loads(pickle.dumps(simulation)),
}


def soft_simulation():
    """A human with drives that falls on the ground."""
    model = replace(human(), ground=(Shape("plane", frame=Frame((0.0, 0.0, 0.2))),))
    drives = [Drive(c.name, 0.1, stiffness=200.0, damping=10.0, max_force=60.0) for c in model.coordinates[6:]]
    compiled = compile_model(model, step=STEP, drives=drives)
    push = AppliedForce(model.bodies[0].name, (40.0, 10.0, 0.0), start=0.1, end=0.8)
    return Simulation(compiled, make_state(compiled), make_inputs(compiled, drives=drives, forces=(push,)))


def impulse_simulation():
    """Planks with two limited controls that hit the ground."""
    model = replace(planks(4), ground=(Shape("plane", frame=Frame((0.0, 0.0, 3.5))),))
    names = [c.name for c in model.coordinates]
    controlled = {name: ResponseCoefficients(0.9, 1e-3, limited=True) for name in names[1:3]}
    compiled, controls = compile_impulse(model, step=STEP, controlled=controlled)
    value = 0.3 * np.sin(np.arange(4 * STEPS + 2)[:, None] * STEP * np.arange(1, len(names) + 1))
    targets = make_target_trajectory(
        compiled, value, np.zeros((len(value), 0, 4)), max_impulse=np.full((1, len(names)), 20.0 * STEP)
    )
    return ImpulseSimulation(compiled, make_state(compiled), make_inputs(compiled), controls, targets)


SIMULATIONS = {"soft": soft_simulation, "impulse": impulse_simulation}


def advance(simulation, steps=STEPS):
    """Make steps and return the fingerprints of the record and of the state."""
    record = make_record(simulation.compiled, steps)
    run = simulation.advance_impulses if isinstance(simulation, ImpulseSimulation) else simulation.advance
    run(steps, record)
    return fingerprint(record), fingerprint(simulation.state)


@pytest.fixture(scope="module", params=SIMULATIONS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def uninterrupted(kind):
    """Fingerprints of two runs of STEPS steps, one after the other."""
    simulation = SIMULATIONS[kind]()
    results = advance(simulation), advance(simulation)
    assert simulation.state.slot_normal_impulse.max() > 0.0, "the scene must have contacts"
    return results


@pytest.mark.parametrize("how", COPIES)
def test_original_and_copy_advance_independently(kind, uninterrupted, how):
    original = SIMULATIONS[kind]()
    assert advance(original) == uninterrupted[0]
    other = COPIES[how](original)
    assert advance(original, STEPS // 2) != uninterrupted[1]
    assert advance(other) == uninterrupted[1]
    advance(original, STEPS - STEPS // 2)
    assert fingerprint(original.state) == uninterrupted[1][1]


@pytest.mark.parametrize("how", COPIES)
def test_copy_outlives_its_original(kind, uninterrupted, how):
    original = SIMULATIONS[kind]()
    advance(original)
    other = COPIES[how](original)
    del original
    gc.collect()
    filler = [np.full(2000, np.nan) for _ in range(2000)]  # takes over freed memory
    assert advance(other) == uninterrupted[1]
    del filler


@pytest.mark.parametrize("how", COPIES)
def test_copy_of_a_copy_advances(kind, uninterrupted, how):
    other = COPIES[how](COPIES[how](SIMULATIONS[kind]()))
    assert advance(other) == uninterrupted[0]
    assert advance(other) == uninterrupted[1]


def test_pickle_continues_in_another_process(kind, uninterrupted, tmp_path):
    simulation = SIMULATIONS[kind]()
    advance(simulation)
    (tmp_path / "simulation.pickle").write_bytes(pickle.dumps(simulation))
    program = (
        "import pickle, pathlib\n"
        "from tests.physics.test_copies import advance\n"
        f"simulation = pickle.loads(pathlib.Path({str(tmp_path / 'simulation.pickle')!r}).read_bytes())\n"
        "print(*advance(simulation))\n"
    )
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, *(path for path in sys.path if path)])}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert tuple(found.stdout.split()) == uninterrupted[1]


@pytest.mark.parametrize("how", COPIES)
def test_copies_of_a_post_stabilizer_are_independent(how):
    original = PostStabilizer(planks(4))
    state = make_state(original.compiled)
    state.twist[:] = np.random.default_rng(0).normal(size=state.twist.shape)
    expected = original.solve(state)
    other = COPIES[how](original)
    original.solve(state._replace(twist=2.0 * state.twist))
    del original
    gc.collect()
    assert fingerprint(other.solve(state)[:3]) == fingerprint(expected[:3])
