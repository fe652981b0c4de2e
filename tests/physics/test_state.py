"""The same state results in the same bits, whatever happened to the work arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import DivergedError
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import State, make_inputs
from borelli.physics.work_arrays import make_work
from borelli.scenes.gallery import conveyor, four_bar, human_drop, stack

from .worlds import advance, fingerprint

SCENES = {"human": human_drop, "conveyor": conveyor, "four_bar": four_bar, "stack": stack}
STEPS = 400
"""By then the human lies on the ground with many contacts."""


def make_simulation(name: str) -> Simulation:
    """Return a scene with an applied force; the human also has drives that saturate."""
    scene = SCENES[name]()
    drives = scene.drives
    if name == "human":
        drives = tuple(
            Drive(c.name, 0.2, stiffness=200.0, damping=10.0, max_force=60.0)
            for c in scene.model.coordinates
            if not c.name.startswith("root")
        )
    compiled = compile_model(scene.model, step=scene.step, settings=scene.settings, drives=drives)
    state = initial_state(compiled, coordinates=scene.coordinates, velocities=scene.speeds, twists=scene.twists)
    push = AppliedForce(scene.model.bodies[0].name, (5.0, 3.0, 0.0), start=0.3, end=0.6)
    return Simulation(compiled, state, make_inputs(compiled, drives=drives, forces=(push,)))


@pytest.fixture(scope="module", params=SCENES)
def scene_name(request):
    return request.param


@pytest.fixture(scope="module")
def unbroken(scene_name):
    """Return the state at half time, the record of the second half and the end of an uninterrupted run."""
    simulation = make_simulation(scene_name)
    advance(simulation, STEPS // 2)
    middle = simulation.state.copy()
    return middle, fingerprint(advance(simulation, STEPS // 2)), fingerprint(simulation.state)


def test_same_input_gives_the_same_bits(scene_name, unbroken):
    simulation = make_simulation(scene_name)
    record = advance(simulation, STEPS)
    assert fingerprint(simulation.state) == unbroken[2]
    assert fingerprint([array[STEPS // 2 :] for array in record]) == unbroken[1]


def test_restored_run_repeats_itself(scene_name, unbroken):
    middle, second_half, end = unbroken
    simulation = make_simulation(scene_name)
    advance(simulation, STEPS)
    simulation.state.restore(middle)
    simulation.index = STEPS // 2
    assert fingerprint(advance(simulation, STEPS // 2)) == second_half
    assert fingerprint(simulation.state) == end


def test_saved_run_continues_with_the_same_bits(scene_name, unbroken, tmp_path):
    """Through a file, with new work arrays: the state is sufficient."""
    middle, second_half, end = unbroken
    np.savez(tmp_path / "state.npz", **middle._asdict())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        state = State(**{name: saved[name] for name in State._fields})
    assert fingerprint(state) == fingerprint(middle)
    simulation = make_simulation(scene_name)
    continued = Simulation(simulation.compiled, state, simulation.inputs)
    continued.index = STEPS // 2
    assert fingerprint(advance(continued, STEPS // 2)) == second_half
    assert fingerprint(continued.state) == end


def test_new_work_arrays_every_few_steps_change_nothing(scene_name, unbroken):
    simulation = make_simulation(scene_name)
    record = make_record(simulation.compiled, STEPS)
    for start in range(0, STEPS, 20):
        simulation.work = make_work(simulation.compiled, 64)
        simulation.advance(20, record, frame=start)
    assert fingerprint(simulation.state) == unbroken[2]


def test_growing_capacity_changes_nothing(scene_name, unbroken):
    """Work arrays start with capacity for one contact and grow."""
    simulation = make_simulation(scene_name)
    if not len(simulation.compiled.tables.shapes.pair_a):
        pytest.skip("nothing touches")
    simulation._contacts = 1
    simulation.work = make_work(simulation.compiled, 1)
    advance(simulation, STEPS)
    assert len(simulation.work.contacts.depth) > 1
    assert fingerprint(simulation.state) == unbroken[2]


@pytest.mark.parametrize("every", [1, 7, 50])
def test_recording_does_not_change_the_motion(scene_name, unbroken, every):
    simulation = make_simulation(scene_name)
    record = make_record(simulation.compiled, STEPS // every)
    simulation.advance(STEPS, record, record_every=every)
    assert fingerprint(simulation.state) == unbroken[2]
    twin = make_simulation(scene_name)
    whole = advance(twin, STEPS)
    kept = slice(every - 1, None, every)
    assert fingerprint(record) == fingerprint([array[kept] for array in whole])


def test_another_process_gives_the_same_bits():
    program = (
        "from tests.physics.test_state import STEPS, make_simulation\n"
        "from tests.physics.worlds import advance, fingerprint\n"
        "simulation = make_simulation('human')\n"
        "advance(simulation, STEPS)\n"
        "print(fingerprint(simulation.state))\n"
    )
    here = make_simulation("human")
    advance(here, STEPS)
    root = str(Path(__file__).parents[2])
    paths = os.environ | {"PYTHONPATH": os.pathsep.join([root, *(path for path in sys.path if path)])}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths)
    assert found.stdout.strip() == fingerprint(here.state)


def test_failed_step_does_not_change_the_state():
    """An excessive force: the step fails, and the state is that before it."""
    simulation = make_simulation("human")
    advance(simulation, 10)
    before = simulation.state.copy()
    push = AppliedForce("pelvis", (1e200, 0.0, 0.0))
    simulation.inputs = make_inputs(simulation.compiled, forces=(push,))
    with pytest.raises(DivergedError, match="fastest body"):
        advance(simulation, 1)
    # `coordinate` only counts full revolutions: each step renews it from the poses before anything can fail
    after = simulation.state._replace(coordinate=before.coordinate)
    assert fingerprint(after) == fingerprint(before)
