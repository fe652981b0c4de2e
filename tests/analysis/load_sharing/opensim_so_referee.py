"""OpenSim's own static optimization. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_so_referee.py job.json

The job has: model, actuators ("" for none), coordinates, loads ("" for none), cutoff [Hz], start, end, step_interval,
folder, out. Writes to `out` (npz) for each frame what OpenSim's static optimization found, and what it had: moment arms
[m], forces at full activation [N], columns of the other actuators (generalized force per unit of control).
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


def load(job):
    model = opensim.Model(job["model"])
    if job["actuators"]:
        extra = opensim.ForceSet(job["actuators"])
        for i in range(extra.getSize()):
            model.updForceSet().cloneAndAppend(extra.get(i))
    model.initSystem()
    return model


def table(path):
    storage = opensim.TimeSeriesTable(path)
    return list(storage.getColumnLabels()), np.array(storage.getIndependentColumn()), storage.getMatrix().to_numpy()


def column(model, state, actuator, coordinates, row_of):
    """Return the generalized force of an actuator at unit control, by the change of acceleration it makes."""
    scalar = opensim.ScalarActuator.safeDownCast(actuator)
    changes = []
    for value in (0.0, scalar.getOptimalForce()):
        scalar.overrideActuation(state, True)
        scalar.setOverrideActuation(state, value)
        model.realizeAcceleration(state)
        changes.append(state.getUDot().to_numpy().copy())
    scalar.setOverrideActuation(state, 0.0)
    mass = opensim.Matrix()
    model.getMatterSubsystem().calcM(state, mass)
    force = mass.to_numpy() @ (changes[1] - changes[0])
    return [force[row_of[name]] for name in coordinates]


def main(path):
    opensim.Logger.setLevelString("Off")
    job = json.loads(Path(path).read_text())
    run(job)
    model = load(job)
    state = model.initSystem()
    names, times, activation = table(f"{job['folder']}/so_StaticOptimization_activation.sto")
    _, _, force = table(f"{job['folder']}/so_StaticOptimization_force.sto")
    labels, state_times, values = table(f"{job['folder']}/so_StatesReporter_states.sto")
    coordinates = [c for c in model.getCoordinateSet() if not c.isConstrained(state)]
    muscles = [m.getName() for m in model.getMuscles()]
    others = [name for name in names if name not in muscles]
    # order of speeds in the state: found by setting one of them
    row_of = {}
    for c in coordinates:
        for other in coordinates:
            other.setSpeedValue(state, 0.0)
        c.setSpeedValue(state, 1.0)
        row_of[c.getName()] = int(np.argmax(state.getU().to_numpy()))
    arms, tops, columns = [], [], []
    for t in times:
        row = values[int(np.argmin(np.abs(state_times - t)))]
        for c in model.getCoordinateSet():
            path = f"{c.getAbsolutePathString()}/"
            if path + "value" in labels:
                c.setValue(state, row[labels.index(path + "value")], False)
                c.setSpeedValue(state, row[labels.index(path + "speed")])
        model.assemble(state)
        model.realizeVelocity(state)
        arms.append([[m.computeMomentArm(state, c) for c in coordinates] for m in model.getMuscles()])
        tops.append([m.calcInextensibleTendonActiveFiberForce(state, 1.0) for m in model.getMuscles()])
        kept = [model.getForceSet().get(name) for name in others]
        columns.append([column(model, state, a, [c.getName() for c in coordinates], row_of) for a in kept])
    labels, id_times, torque = inverse_dynamics(job)
    rows = [int(np.argmin(np.abs(id_times - t))) for t in times]
    wanted = [
        next(i for i, label in enumerate(labels) if label in (f"{c.getName()}_moment", f"{c.getName()}_force"))
        for c in coordinates
    ]
    order = [names.index(name) for name in muscles + others]
    np.savez(
        job["out"],
        times=times,
        muscles=muscles,
        others=others,
        coordinates=[c.getName() for c in coordinates],
        activation=activation[:, order],
        force=force[:, order],
        torque=torque[rows][:, wanted],
        moment_arm=np.array(arms),
        max_force=np.array(tops),
        column=np.array(columns).reshape(len(times), len(others), len(coordinates)),
        lower=[m.getMinControl() for m in model.getMuscles()],
        upper=[m.getMaxControl() for m in model.getMuscles()],
    )


if __name__ == "__main__":
    main(sys.argv[1])
