"""Muscles of all classes for tests, and questions to OpenSim about them."""

import json
import subprocess
from math import cos, sin
from pathlib import Path

import numpy as np

from borelli.model.model import GROUND, Model, Muscle, PathPoint

PATH = (PathPoint(GROUND, (0.0, 0.0, 0.0)), PathPoint(GROUND, (0.3, 0.0, 0.0)))
THELEN, MILLARD, DE_GROOTE = "Thelen2003Muscle", "Millard2012EquilibriumMuscle", "DeGrooteFregly2016Muscle"
PARK, MUJOCO = "Park1992Muscle", "MuJoCo"
KINDS = (PARK, THELEN, MILLARD, DE_GROOTE, MUJOCO)
ELASTIC = (PARK, THELEN, MILLARD, DE_GROOTE)
REFEREE = Path(__file__).with_name("opensim_muscle_referee.py")
OLD_THELEN = {"FmaxTendonStrain": 0.033, "KshapeActive": 0.5, "KshapePassive": 4.0, "Af": 0.3, "Flen": 1.8}
"""Values of gait2392, which differ from the defaults of OpenSim 4."""
RAJAGOPAL = {
    "ActiveForceLengthCurve.minimum_value": 0.0,
    "FiberForceLengthCurve.strain_at_one_norm_force": 0.52,
    "fiber_damping": 0.01,
}
"""Values as in Rajagopal2016 (passive strain of one muscle)."""


def muscle(kind, name="m", pennation=0.2, **parameters):
    own = {key: parameters.pop(key) for key in list(parameters) if key in Muscle.__dataclass_fields__}
    return Muscle(
        name, PATH, own.pop("max_isometric_force", 1000.0), own.pop("optimal_fiber_length", 0.1),
        own.pop("tendon_slack_length", 0.2), 0.0 if kind == MUJOCO else pennation,
        kind=kind, parameters=tuple(parameters.items()), **own,
    )  # fmt: skip


def model(*muscles):
    return Model("muscles", (), muscles=muscles)


def random_cases(rng, kind, count, rigid=False, parameters=None):
    """Return muscles and states with fibers of 0.6 to 1.5 and tendons of 1 to 1.06 of their lengths."""
    cases = []
    for i in range(count):
        optimal, slack = rng.uniform(0.03, 0.2), rng.uniform(0.03, 0.4)
        pennation = rng.uniform(0.0, 0.5) if i % 3 else 0.0
        fiber = rng.uniform(0.6, 1.5) * optimal
        width = optimal * sin(pennation)
        along = fiber * cos(np.arcsin(width / fiber))
        stretch = 1.0 if rigid else rng.uniform(1.0, 1.06)
        properties = {
            "max_isometric_force": rng.uniform(100.0, 6000.0), "optimal_fiber_length": optimal,
            "tendon_slack_length": slack, "pennation_angle_at_optimal": pennation,
            "max_contraction_velocity": rng.uniform(5.0, 15.0), "ignore_tendon_compliance": float(rigid),
        }  # fmt: skip
        properties |= parameters or {}
        cases.append({
            "name": f"m{i}", "class": kind, "properties": properties, "slow": rng.uniform(0.2, 0.8),
            "length": along + slack * stretch, "velocity": rng.uniform(-0.6, 0.6) * optimal * 8.0,
            "activation": rng.uniform(0.02, 1.0), "excitation": rng.uniform(0.02, 1.0), "fiber_length": fiber,
        })  # fmt: skip
    return cases


def as_muscle(case):
    """Return the muscle of a case."""
    own = dict(case["properties"])
    fields = {name: own.pop(name) for name in list(own) if name in Muscle.__dataclass_fields__}
    fields["pennation_angle"] = own.pop("pennation_angle_at_optimal")
    times = {THELEN: (0.015, 0.05), DE_GROOTE: (0.015, 0.06), MILLARD: (0.01, 0.04)}[case["class"]]
    fields |= {"activation_time": times[0], "deactivation_time": times[1]}
    return Muscle(case["name"], PATH, kind=case["class"], parameters=tuple(own.items()), **fields)


def ask_opensim(python, folder, **questions):
    """Return OpenSim's answers, computed in a process of its own."""
    asked, answered = folder / "cases.json", folder / "answers.json"
    asked.write_text(json.dumps(questions))
    done = subprocess.run(
        [python, str(REFEREE), str(asked), str(answered)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(answered.read_text())
