"""One schema: the datasets that the package makes have the names, dimensions, units and frames of the conventions."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import borelli as bo
from borelli.control import keyframes, make_controls
from borelli.experiments.control.planks import rotated_plank
from borelli.export.stage_files import loads_dataset
from borelli.muscles import muscle_paths
from borelli.recording import crop

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs" / "conventions.md").read_text().split("## One schema\n")[1]
DIMENSIONS = re.findall(r"`(\w+)`", SECTION.split("Dimensions are ")[1].split("The coordinate `")[0])
ROWS = [line.split(" | ") for line in SECTION.splitlines() if line.startswith("| `")]
VARIABLES = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])}
VARIABLES |= {name for row in ROWS for name in re.findall(r"`(\w+)`", row[-1]) if name.startswith("plate_")}
STEMS = ("stride_", "_sd", "_low", "_high")
"""Beginning and ends of names that stand for others of the table."""
MATRICES = ("mass_matrix", "moment_arm")
"""Variables whose units follow from those of two others."""
LABELS = {"axis": ["x", "y", "z"], "quaternion": ["w", "x", "y", "z"]}


def controlled_pendulum():
    model = bo.gallery_scene("pendulum").model
    controls = make_controls(keyframes(model, [0.0, 0.1], {"pivot": [1.0, 1.0]}), bo.PD.from_settling_time(0.2))
    return bo.track_targets(model, controls, duration=0.1)


def pushed_reach():
    reach = bo.synthetic_recording("reach")
    motion = bo.inverse_kinematics(reach.model, crop(reach.recording, end=0.6))
    return bo.animate(motion, [bo.Push("hand_r", (0.0, 80.0, 0.0), start=0.1, duration=0.1)]).data


def lengths_of_muscles():
    model = bo.add_muscles(bo.human())
    return muscle_paths(model, np.zeros((2, len(model.coordinates)))).to_dataset([0.0, 0.01])


def solution_of_optimal_control():
    pytest.importorskip("casadi")
    from tests.optimal.swing import swing_up

    return bo.optimal.solve(swing_up(11)).dataset


PRODUCERS = {
    "simulate": lambda walk, analyzed: bo.simulate(bo.gallery_scene("stack").model, duration=0.05),
    "track_targets": lambda walk, analyzed: controlled_pendulum(),
    "animate": lambda walk, analyzed: pushed_reach(),
    "forward_dynamics": lambda walk, analyzed: bo.forward_dynamics(bo.gallery_scene("pendulum").model),
    "contact_forces": lambda walk, analyzed: bo.dynamics.contact_forces(bo.gallery_scene("stack").model),
    "mass_matrix": lambda walk, analyzed: bo.dynamics.mass_matrix(bo.human()).to_dataset(name="mass_matrix"),
    "Recording": lambda walk, analyzed: walk.recording.data,
    "Motion": lambda walk, analyzed: analyzed.energy.torques.motion.data,
    "Torques": lambda walk, analyzed: analyzed.energy.torques.data,
    "Energy": lambda walk, analyzed: analyzed.energy.data,
    "Loads": lambda walk, analyzed: loads_dataset(analyzed.energy.torques.loads),
    "Fit": lambda walk, analyzed: analyzed.fit.data,
    "muscle_paths": lambda walk, analyzed: lengths_of_muscles(),
    "MuscleForces": lambda walk, analyzed: forces_of_muscles(walk),
    "Solution": lambda walk, analyzed: solution_of_optimal_control(),
    "rotated_plank": lambda walk, analyzed: rotated_plank([0.0, 0.1], [0.0, 0.2]),
}


def forces_of_muscles(walk):
    motion = bo.inverse_kinematics(bo.add_muscles(walk.model), crop(walk.recording, end=0.6))
    return bo.muscle_forces(bo.inverse_dynamics(motion, forces="predicted")).data


def is_in_the_tables(name):
    stems = {name, *(name.removeprefix(stem).removesuffix(stem) for stem in STEMS)}
    return not stems.isdisjoint(VARIABLES)


def deviations(data):
    """Yield how a dataset deviates from the schema."""
    for name in map(str, data.data_vars):
        variable = data[name]
        if not is_in_the_tables(name):
            yield f"{name} is not in the tables"
        if unknown := set(map(str, variable.dims)) - set(DIMENSIONS):
            yield f"{name} has the dimensions {sorted(unknown)}"
        if variable.dtype.kind in "fi" and "units" not in variable.attrs:
            yield f"{name} has no units"
        if set(LABELS) & set(variable.dims) and "frame" not in variable.attrs:
            yield f"{name} has no frame"
    for name, labels in LABELS.items():
        if name in data.dims and (name not in data.coords or data[name].values.tolist() != labels):
            yield f"{name} is not labeled {labels}"
    by_coordinate = [name for name in data.data_vars if "coordinate" in data[name].dims and name not in MATRICES]
    if by_coordinate and "coordinate_units" not in data.coords:
        yield "coordinate_units is missing"
    if "time" in data.dims and data["time"].attrs.get("units") != "s":
        yield "time has no units"
    if "rate" in data.attrs or "analog_rate" in data.attrs or "seconds" in data.attrs:
        yield f"attributes {sorted(data.attrs)}"


@pytest.mark.parametrize("name", PRODUCERS)
def test_datasets_obey_the_schema(name, walk, analyzed):
    found = list(deviations(PRODUCERS[name](walk, analyzed)))
    assert not found, "\n".join(found)


def test_dimensions_in_the_source_are_of_the_schema():
    """Datasets that no test makes: in (dimensions, values, ...), a tuple of strings that begins with time."""
    found = {
        (path.name, dimension.value)
        for path in (ROOT / "src" / "borelli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Tuple) and node.elts and isinstance(dims := node.elts[0], ast.Tuple)
        and all(isinstance(one, ast.Constant) for one in dims.elts) and dims.elts
        and dims.elts[0].value in ("time", "analog_time")
        for dimension in dims.elts
    }  # fmt: skip
    assert {one for one in found if one[1] not in DIMENSIONS} == set()
    assert len(found) > 20
