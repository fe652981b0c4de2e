"""Running simulations with muscles: copies, pickles and saved states continue with the same bits."""

import copy
import pickle

import numpy as np
import pytest

from borelli.errors import DivergedError, SettingsError
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.impulse_step.arrays import compile_impulse, make_target_trajectory
from borelli.physics.muscle_step.arrays import make_muscle_tables, make_muscle_work
from borelli.physics.muscle_step.excitation_table import make_excitation_table
from borelli.physics.muscle_step.run_muscle_steps import MuscleImpulseSimulation, MuscleSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state, simulate
from borelli.physics.state import make_inputs

from ..worlds import fingerprint
from .muscled import STEPPINGS, floating, run, slider

STEPS, STEP = 60, 1 / 1000
EXCITATIONS = {"one": lambda t: 0.5 + 0.5 * np.sin(20.0 * t)}


def make(stepping, model=None):
    """A tumbling model with an ellipsoid, whose geodesic starts from that of the last step."""
    model = floating(planar=False) if model is None else model
    table = make_excitation_table(model, EXCITATIONS, step=STEP, steps=4 * STEPS)
    start = {"coordinates": {"h": 0.2, "b1": 0.1}, "velocities": {"ry": -2.0}}
    if stepping == "soft":
        compiled = compile_model(model, step=STEP)
        state = initial_state(compiled, **start)
        return MuscleSimulation(compiled, state, make_inputs(compiled), make_muscle_tables(compiled, table))
    compiled, controls = compile_impulse(model, step=STEP, controlled={})
    values = np.zeros((4 * STEPS + 2, len(model.coordinates)))
    targets = make_target_trajectory(compiled, values, np.zeros((len(values), 0, 4)))
    muscles = make_muscle_tables(compiled, table)
    state = initial_state(compiled, **start)
    return MuscleImpulseSimulation(compiled, state, make_inputs(compiled), controls, targets, muscles)


def advance(simulation, steps=STEPS):
    """Make steps and return the fingerprints of records and state."""
    record = make_record(simulation.compiled, steps)
    simulation.start_record(steps)
    getattr(simulation, "advance_impulses", simulation.advance)(steps, record)
    return fingerprint(record), fingerprint(simulation.muscle_record), fingerprint(simulation.state)


@pytest.mark.parametrize("stepping", STEPPINGS)
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_continue_with_the_same_bits(stepping, duplicate):
    original = make(stepping)
    advance(original)
    other = duplicate(original)
    first = advance(original)
    assert advance(other) == first
    assert not np.shares_memory(other.state.muscle, original.state.muscle)


def test_a_restored_state_continues_with_the_same_bits():
    """Even where all work arrays are new: the state alone determines what follows."""
    simulation = make("soft")
    advance(simulation)
    saved = simulation.state.copy()
    first = advance(simulation)
    simulation.state.restore(saved)
    simulation.muscle_work = make_muscle_work(simulation.compiled, simulation.muscles)
    simulation.index = STEPS
    assert advance(simulation) == first


def test_recording_does_not_change_the_motion():
    data, sparse = (
        run("soft", floating(planar=False), duration=0.06, step=STEP, excitations=EXCITATIONS, record_every=every)
        for every in (1, 7)
    )
    assert np.array_equal(data["coordinate_value"].values[::7], sparse["coordinate_value"].values)
    assert np.array_equal(data["muscle_force"].values[::7], sparse["muscle_force"].values)


def test_moving_a_body_by_hand_moves_the_path():
    """The path is that of the present pose, not that of the last step."""
    seen = []

    def before_step(simulation):
        simulation.state.position[0, 0] += 0.001
        seen.append(simulation.state.position[0, 0])

    data = simulate(
        slider(1e9), duration=0.01, step=STEP, excitations=0.0, before_step=before_step, initial_coordinates={}
    )
    np.testing.assert_allclose(data["muscle_length"].values[1:, 0], seen, atol=1e-9)


def test_a_muscle_without_equilibrium_is_an_error():
    """A path of infinite length: the message names the muscle, and no force is zero in silence."""
    simulation = make("soft", floating())
    simulation.state.position[1, 0] = 1e308
    simulation.state.position[0, 0] = -1e308
    with pytest.raises(DivergedError, match=r"Muscle 'one' has no equilibrium \(invalid input"):
        advance(simulation, 1)


def test_excitations_must_last():
    simulation = make("soft")
    with pytest.raises(SettingsError, match="It has 240 rows, but 300 steps need 300"):
        advance(simulation, 300)


def test_a_slack_muscle_is_reported():
    data = run("soft", slider(1e9, length=0.15), duration=0.05, step=STEP, excitations=1.0)
    assert (data["muscle_status"].values == 1).all() and (data["muscle_force"].values == 0.0).all()
    assert "1: slack" in data["muscle_status"].attrs["meaning"]
