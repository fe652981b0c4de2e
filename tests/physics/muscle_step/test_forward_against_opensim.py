"""Forward simulation of OpenSim's arm against OpenSim 4.6, in a process of its own, from the same excitations."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from borelli.model.io import read_model
from borelli.muscles.excitations import Excitations
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.muscle_step.arrays import make_muscle_tables
from borelli.physics.muscle_step.excitation_table import make_excitation_table
from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state, to_dataset
from borelli.physics.state import make_inputs

from ...shared_data import shared
from .muscled import STEPPINGS, run, with_sound_masses

pytestmark = [pytest.mark.data, pytest.mark.crosscheck]

DURATION, STEP = 0.6, 1 / 2400
START = {"r_shoulder_elev": 0.5, "r_elbow_flex": 0.6}
TIMES = (0.0, 0.1, 0.2, 0.3, 0.4, 1.0)
FLEX, EXTEND = (0.02, 0.02, 0.08, 0.08, 0.08, 0.08), (0.02, 0.02, 0.02, 0.02, 0.04, 0.04)
ANGLE = np.radians(0.25)
"""[rad] with geodesics: OpenSim's paths over ellipsoid and cylinder are up to 0.02 mm longer, their arms differ."""
ANGLE_SAME_PATHS = np.radians(0.05)
"""[rad] with OpenSim's own rules for paths: an error of first order in the step."""
FORCE = 1.0
"""[N] of forces up to 97 N."""


@pytest.fixture(scope="module")
def model():
    return with_sound_masses(read_model(shared("opensim/arm26/arm26.osim")))


@pytest.fixture(scope="module")
def excitations(model):
    value = [EXTEND if muscle.name.startswith("TRI") else FLEX for muscle in model.muscles]
    return Excitations(tuple(m.name for m in model.muscles), np.array(TIMES), np.array(value).T)


@pytest.fixture(scope="module")
def reference(model, excitations, opensim_python, tmp_path_factory):
    """Answers of OpenSim at 31 times."""
    folder = tmp_path_factory.mktemp("opensim")
    case = {
        "time": np.linspace(0.0, DURATION, 31).tolist(),
        "excitation": {n: [list(TIMES), excitations.value[:, i].tolist()] for i, n in enumerate(excitations.names)},
        "start": START,
        "activation": {muscle.name: muscle.default_activation for muscle in model.muscles},
    }
    (folder / "case.json").write_text(json.dumps(case))
    referee = Path(__file__).with_name("opensim_forward_referee.py")
    files = [shared("opensim/arm26/arm26.osim"), folder / "case.json", folder / "answer.json"]
    done = subprocess.run([opensim_python, referee, *files], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: np.array(values) for name, values in json.loads((folder / "answer.json").read_text()).items()}


def errors(data, reference):
    """Largest errors of angles [rad], forces [N] and activations."""
    rows = np.rint(np.linspace(0.0, DURATION, 31) / STEP).astype(int)
    names = {"coordinate": "coordinate_value", "force": "muscle_force", "activation": "muscle_activation"}
    return {key: np.abs(data[name].values[rows] - reference[key]).max() for key, name in names.items()}


@pytest.mark.parametrize("stepping", STEPPINGS)
def test_arm_moves_as_in_opensim(stepping, model, excitations, reference):
    data = run(
        stepping, model, duration=DURATION, step=STEP, excitations=excitations, initial_coordinates=START
    )  # fmt: skip
    moved = np.ptp(reference["coordinate"], axis=0)
    assert moved.min() > 0.7  # [rad]
    found = errors(data, reference)
    assert found["coordinate"] < ANGLE
    assert found["force"] < FORCE
    assert found["activation"] < 1e-4


def test_what_remains_is_the_geometry_of_paths(model, excitations, reference):
    compiled = compile_model(model, step=STEP)
    steps = round(DURATION / STEP)
    tables = make_muscle_tables(compiled, make_excitation_table(model, excitations, step=STEP, steps=steps))
    tables.geometry[0] = 1  # OpenSim's
    state = initial_state(compiled, coordinates=START)
    simulation = MuscleSimulation(compiled, state, make_inputs(compiled), tables)
    simulation.start_record(steps + 1)
    record = make_record(compiled, steps + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:] = state.position, state.quaternion
    simulation.advance(steps, record, frame=1)
    data = simulation.add_to(to_dataset(compiled, record, STEP * np.arange(steps + 1)))
    assert errors(data, reference)["coordinate"] < ANGLE_SAME_PATHS
