"""OpenSim's own static optimization. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_so_referee.py job.json

The job has: model, actuators ("" for none), coordinates, loads ("" for none), cutoff [Hz], start, end, step_interval,
criterion and iterations of the optimizer, folder, out. Writes to `out` (npz) for each frame what OpenSim's static
optimization found, and what it had: moment arms [m], forces at full activation [N], columns of the other actuators
(generalized force per unit of control).
Prints the CPU seconds that it took.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import opensim


def run(job):
    tool = opensim.AnalyzeTool()
    tool.setName("so")
    tool.setModelFilename(job["model"])
    if job["actuators"]:
        files = opensim.ArrayStr()
        files.append(job["actuators"])
        tool.setForceSetFiles(files)
        tool.setReplaceForceSet(False)
    tool.setCoordinatesFileName(job["coordinates"])
    tool.setLowpassCutoffFrequency(job["cutoff"])
    tool.setExternalLoadsFileName(job["loads"])
    tool.setInitialTime(job["start"])
    tool.setFinalTime(job["end"])
    tool.setResultsDir(job["folder"])
    tool.setSolveForEquilibrium(False)
    sharing, states = opensim.StaticOptimization(), opensim.StatesReporter()
    sharing.setUseModelForceSet(True)
    sharing.setActivationExponent(2.0)
    sharing.setUseMusclePhysiology(True)
    sharing.setConvergenceCriterion(job["criterion"])
    sharing.setMaxIterations(job["iterations"])
    for analysis in (sharing, states):
        analysis.setStartTime(job["start"])
        analysis.setEndTime(job["end"])
        analysis.setStepInterval(job["step_interval"])
        tool.updAnalysisSet().cloneAndAppend(analysis)
    setup = f"{job['folder']}/setup.xml"
    tool.printToXML(setup)
    tool = opensim.AnalyzeTool(setup)  # loads states from the coordinates
    begun = time.process_time()
    tool.run()
    print("seconds", time.process_time() - begun)


def inverse_dynamics(job):
    """Run OpenSim's inverse dynamics on the same motion and loads; return names, times and torques."""
    tool = opensim.InverseDynamicsTool()
    model = opensim.Model(job["model"])
    model.updForceSet().clearAndDestroy()
    model.initSystem()
    tool.setModel(model)
    tool.setCoordinatesFileName(job["coordinates"])
    tool.setLowpassCutoffFrequency(job["cutoff"])
    if job["loads"]:
        tool.setExternalLoadsFileName(job["loads"])
    tool.setStartTime(job["start"])
    tool.setEndTime(job["end"])
    tool.setResultsDir(job["folder"])
    tool.setOutputGenForceFileName("id.sto")
    tool.run()
    return table(f"{job['folder']}/id.sto")


def load(job, *, constraints=True):
    model = opensim.Model(job["model"])
    if not constraints:
        model.updConstraintSet().clearAndDestroy()
    if job["actuators"]:
        extra = opensim.ForceSet(job["actuators"])
        for i in range(extra.getSize()):
            model.updForceSet().cloneAndAppend(extra.get(i))
    model.initSystem()
    return model


def table(path):
    storage = opensim.TimeSeriesTable(path)
    return list(storage.getColumnLabels()), np.array(storage.getIndependentColumn()), storage.getMatrix().to_numpy()


def column(model, state, actuator, rows):
    """Return the generalized force of an actuator at unit control, by the change of acceleration it makes.

    The model has no constraints, so that the mass matrix turns accelerations into generalized forces.
    """
    scalar = opensim.ScalarActuator.safeDownCast(actuator)
    scalar.overrideActuation(state, True)
    changes = []
    for value in (0.0, scalar.getOptimalForce()):
        scalar.setOverrideActuation(state, value)
        model.realizeAcceleration(state)
        changes.append(state.getUDot().to_numpy().copy())
    scalar.setOverrideActuation(state, 0.0)
    mass = opensim.Matrix()
    model.getMatterSubsystem().calcM(state, mass)
    return (mass.to_numpy() @ (changes[1] - changes[0]))[rows]


def speed_rows(model, state, coordinates):
    """Return the rows of coordinates among the speeds of the state: found by setting one of them."""
    rows = []
    for c in coordinates:
        for other in model.getCoordinateSet():
            other.setSpeedValue(state, 0.0)
        c.setSpeedValue(state, 1.0)
        rows.append(int(np.argmax(state.getU().to_numpy())))
    return rows


def set_pose(model, state, labels, row):
    for c in model.getCoordinateSet():
        path = f"{c.getAbsolutePathString()}/"
        if path + "value" in labels:
            c.setValue(state, row[labels.index(path + "value")], False)
            c.setSpeedValue(state, row[labels.index(path + "speed")])
    model.realizeVelocity(state)


def main(path):
    opensim.Logger.setLevelString("Off")
    job = json.loads(Path(path).read_text())
    run(job)
    model, free = load(job), load(job, constraints=False)
    state, free_state = model.initSystem(), free.initSystem()
    names, times, activation = table(f"{job['folder']}/so_StaticOptimization_activation.sto")
    force_names, _, force = table(f"{job['folder']}/so_StaticOptimization_force.sto")
    labels, state_times, values = table(f"{job['folder']}/so_StatesReporter_states.sto")
    coordinates = [c for c in model.getCoordinateSet() if not c.isConstrained(state)]
    rows = speed_rows(free, free_state, [free.getCoordinateSet().get(c.getName()) for c in coordinates])
    muscles = [m.getName() for m in model.getMuscles()]
    others = [name for name in names if name not in muscles]
    actuators = [free.getActuators().get(name) for name in others]
    arms, tops, columns = [], [], []
    for t in times:
        row = values[int(np.argmin(np.abs(state_times - t)))]
        set_pose(model, state, labels, row)
        set_pose(free, free_state, labels, row)
        arms.append([[m.computeMomentArm(state, c) for c in coordinates] for m in model.getMuscles()])
        tops.append([m.calcInextensibleTendonActiveFiberForce(state, 1.0) for m in model.getMuscles()])
        columns.append([column(free, free_state, actuator, rows) for actuator in actuators])
    labels, id_times, torque = inverse_dynamics(job)
    at = [int(np.argmin(np.abs(id_times - t))) for t in times]
    wanted = [
        next(i for i, label in enumerate(labels) if label in (f"{c.getName()}_moment", f"{c.getName()}_force"))
        for c in coordinates
    ]
    order = [names.index(name) for name in [*muscles, *others]]
    np.savez(
        job["out"],
        times=times,
        muscles=muscles,
        coordinates=[c.getName() for c in coordinates],
        activation=activation[:, order],
        force=force[:, [force_names.index(name) for name in muscles]],
        torque=torque[at][:, wanted],
        moment_arm=np.array(arms),
        max_force=np.array(tops),
        column=np.array(columns).reshape(len(times), len(others), len(coordinates)),
        lower=[m.getMinControl() for m in model.getMuscles()],
        upper=[m.getMaxControl() for m in model.getMuscles()],
        bound=[opensim.ScalarActuator.safeDownCast(actuator).getMaxControl() for actuator in actuators],
    )


if __name__ == "__main__":
    main(sys.argv[1])
