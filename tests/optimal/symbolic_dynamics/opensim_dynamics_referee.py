"""OpenSim's inverse dynamics. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_dynamics_referee.py ask.npz answer.npz

OpenSim's vector of speeds is in the order of the multibody tree, not of the coordinate set: the index of a coordinate
is found by setting its speed alone. Muscles, other forces and constraints are off.
"""

import sys

import numpy as np
import opensim


def main(ask: str, answer: str) -> None:
    opensim.Logger.setLevelString("Off")
    given = np.load(ask)
    model = opensim.Model(str(given["path"]))
    for i in range(model.getForceSet().getSize()):
        model.updForceSet().get(i).set_appliesForce(False)
    for i in range(model.getConstraintSet().getSize()):
        model.updConstraintSet().get(i).set_isEnforced(False)
    state = model.initSystem()
    coordinates = [model.getCoordinateSet().get(str(name)) for name in given["names"]]
    for coordinate in coordinates:
        coordinate.setLocked(state, False)
    index = []
    for coordinate in coordinates:
        for other in coordinates:
            other.setSpeedValue(state, 0.0)
        coordinate.setSpeedValue(state, 1.0)
        speeds = [state.getU().get(i) for i in range(state.getNU())]
        index.append(int(np.argmax(speeds)))
    solver = opensim.InverseDynamicsSolver(model)
    forces = []
    for q, v, a in zip(given["q"], given["v"], given["a"], strict=True):
        for coordinate, x, speed in zip(coordinates, q, v, strict=True):
            coordinate.setValue(state, float(x), False)
            coordinate.setSpeedValue(state, float(speed))
        rates = opensim.Vector(state.getNU(), 0.0)
        for i, value in zip(index, a, strict=True):
            rates.set(i, float(value))
        force = solver.solve(state, rates)
        forces.append([force.get(i) for i in index])
    np.savez(answer, force=np.array(forces))


if __name__ == "__main__":
    main(*sys.argv[1:])
