"""OpenSim's own forward simulation. Run in a process of its own by a Python that has `opensim`.

    python opensim_forward_referee.py model.osim case.json answer.json

The case has the times of the answer, `excitation` (muscle: [times, values], linear between) and `start` (coordinate:
value). The answer has coordinates, forces, activations and fiber lengths at these times.
"""

import json
import sys
from pathlib import Path

import opensim

ACCURACY = 1e-9
"""Error tolerance of the integrator."""


def excite(model, excitation):
    controller = opensim.PrescribedController()
    controller.setName("excitations")
    muscles = model.getMuscles()
    for i in range(muscles.getSize()):
        controller.addActuator(muscles.get(i))
    for name, (times, values) in excitation.items():
        function = opensim.PiecewiseLinearFunction()
        for t, u in zip(times, values, strict=True):
            function.addPoint(t, u)
        controller.prescribeControlForActuator(name, function)
    model.addController(controller)
    model.finalizeConnections()


def main(model_path, case_path, answer_path):
    case = json.loads(Path(case_path).read_text())
    opensim.Logger.setLevelString("error")
    model = opensim.Model(str(model_path))
    excite(model, case["excitation"])
    state = model.initSystem()
    coordinates, muscles = model.getCoordinateSet(), model.getMuscles()
    for name, value in case["start"].items():
        coordinates.get(name).setValue(state, value)
    for name, value in case["activation"].items():
        muscles.get(name).setActivation(state, value)
    model.equilibrateMuscles(state)
    manager = opensim.Manager(model)
    manager.setIntegratorAccuracy(ACCURACY)
    manager.initialize(state)
    answer = {"coordinate": [], "force": [], "activation": [], "fiber_length": [], "length": []}
    for t in case["time"]:
        state = manager.integrate(t) if t > 0.0 else state
        model.realizeDynamics(state)
        listed = [muscles.get(name) for name in case["excitation"]]
        answer["coordinate"].append([coordinates.get(i).getValue(state) for i in range(coordinates.getSize())])
        answer["force"].append([muscle.getTendonForce(state) for muscle in listed])
        answer["activation"].append([muscle.getActivation(state) for muscle in listed])
        answer["fiber_length"].append([muscle.getFiberLength(state) for muscle in listed])
        answer["length"].append([muscle.getLength(state) for muscle in listed])
    Path(answer_path).write_text(json.dumps(answer))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
