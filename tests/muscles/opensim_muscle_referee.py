"""OpenSim's own muscles, curves and metabolic probes. Run in a process of its own by a Python that has `opensim`.

    python opensim_muscle_referee.py cases.json answers.json

Every case is one muscle on a slider of its own, so that its path length is the slider's coordinate.
"""

import json
import sys
from pathlib import Path

import opensim

CURVES = {
    "active": ("ActiveForceLengthCurve", "setActiveForceLengthCurve"),
    "velocity": ("ForceVelocityCurve", "setForceVelocityCurve"),
    "passive": ("FiberForceLengthCurve", "setFiberForceLengthCurve"),
    "tendon": ("TendonForceLengthCurve", "setTendonForceLengthCurve"),
}


def assign(component, name, value):
    prop = component.updPropertyByName(name)
    if prop.size() == 0:  # optional and not set yet
        getattr(component, f"set_{name}")(value)
    elif prop.getTypeName() == "bool":
        opensim.PropertyHelper.setValueBool(bool(value), prop)
    else:
        opensim.PropertyHelper.setValueDouble(float(value), prop)


def make_curve(name, parameters):
    curve = getattr(opensim, CURVES[name][0])()
    for key, value in parameters.items():
        assign(curve, key, value)
    curve.ensureCurveUpToDate()
    return curve


def make_muscle(case):
    muscle = getattr(opensim, case["class"])()
    muscle.setName(case["name"])
    curves = {}
    for key, value in case["properties"].items():
        holder, _, name = key.rpartition(".")
        if holder:
            curves.setdefault(holder, {})[name] = value
        else:
            assign(muscle, name, value)
    for short, (kind, setter) in CURVES.items():
        if kind in curves:
            getattr(muscle, setter)(make_curve(short, curves[kind]))
    return muscle


def make_model(cases, probes):
    model = opensim.Model()
    for case in cases:
        body = opensim.Body("b_" + case["name"], 1.0, opensim.Vec3(0), opensim.Inertia(1, 1, 1))
        joint = opensim.SliderJoint("j_" + case["name"], model.getGround(), body)
        joint.updCoordinate().setName("q_" + case["name"])
        model.addBody(body)
        model.addJoint(joint)
        muscle = make_muscle(case)
        muscle.addNewPathPoint("p1", model.getGround(), opensim.Vec3(0))
        muscle.addNewPathPoint("p2", body, opensim.Vec3(0))
        model.addForce(muscle)
    for probe in probes(model, cases) if probes else ():
        model.addProbe(probe)
    return model


def metabolic_probes(model, cases):
    found = []
    for kind in ("Umberger2010", "Bhargava2004"):
        probe = getattr(opensim, f"{kind}MuscleMetabolicsProbe")()
        probe.setName(kind)
        probe.set_report_total_metabolics_only(False)
        probe.setOperation("value")
        for case in cases:
            constants = (40.0, 133.0, 74.0, 111.0) if kind == "Bhargava2004" else ()
            probe.addMuscle(case["name"], case["slow"], *constants)
        found.append(probe)
    return found


def smoothed_metabolics(model, cases):
    metabolics = opensim.Bhargava2004SmoothedMuscleMetabolics()
    metabolics.setName("smoothed")
    metabolics.set_use_smoothing(True)
    for case in cases:
        muscle = opensim.Muscle.safeDownCast(model.getForceSet().get(case["name"]))
        metabolics.addMuscle(case["name"], muscle, case["slow"], 250000.0)
    model.addComponent(metabolics)
    return metabolics


def set_state(model, state, cases):
    controls = opensim.Vector(model.getNumControls(), 0.0)
    for i, case in enumerate(cases):
        coordinate = model.getCoordinateSet().get("q_" + case["name"])
        coordinate.setValue(state, case["length"], False)
        coordinate.setSpeedValue(state, case["velocity"])
        muscle = model.getMuscles().get(case["name"])
        names = [muscle.getStateVariableNames().get(k) for k in range(muscle.getNumStateVariables())]
        for name in names:
            if name.endswith("/activation"):
                model.setStateVariableValue(state, name, case["activation"])
            elif name.endswith("/fiber_length"):
                model.setStateVariableValue(state, name, case["fiber_length"])
        controls.set(i, case["excitation"])
    model.realizeVelocity(state)
    model.setControls(state, controls)


def answer_muscles(cases, with_probes):
    model = make_model(cases, metabolic_probes if with_probes else None)
    smoothed = smoothed_metabolics(model, cases) if with_probes else None
    state = model.initSystem()
    set_state(model, state, cases)
    model.realizeDynamics(state)
    answers = []
    for case in cases:
        muscle = model.getMuscles().get(case["name"])
        names = [muscle.getStateVariableNames().get(k) for k in range(muscle.getNumStateVariables())]
        rate = [model.getStateVariableDerivativeValue(state, n) for n in names if n.endswith("/activation")]
        answers.append({
            "inextensible": muscle.calcInextensibleTendonActiveFiberForce(state, 1.0),
            "active": muscle.getActiveFiberForceAlongTendon(state),
            "passive": muscle.getPassiveFiberForceAlongTendon(state),
            "active_fiber": muscle.getActiveFiberForce(state),
            "passive_fiber": muscle.getPassiveFiberForce(state),
            "fiber_length": muscle.getFiberLength(state),
            "fiber_velocity": muscle.getFiberVelocity(state),
            "tendon_force": muscle.getTendonForce(state),
            "activation": muscle.getActivation(state),
            "fl": muscle.getActiveForceLengthMultiplier(state),
            "rate": rate[0] if rate else None,
        })  # fmt: skip
    result = {"muscles": answers, "mass": model.getTotalMass(state)}
    if with_probes:
        for i in range(model.getProbeSet().getSize()):
            probe = model.getProbeSet().get(i)
            values = getattr(opensim, probe.getConcreteClassName()).safeDownCast(probe).computeProbeInputs(state)
            result[probe.getName()] = [values.get(k) for k in range(values.size())]
        result["smoothed"] = {
            "total": [smoothed.getMuscleMetabolicRate(state, f"/forceset/{c['name']}") for c in cases],
            "sums": [
                smoothed.getTotalActivationRate(state), smoothed.getTotalMaintenanceRate(state),
                smoothed.getTotalShorteningRate(state), smoothed.getTotalMechanicalWorkRate(state),
                smoothed.getTotalMetabolicRate(state),
            ],
        }  # fmt: skip
    return result


def answer_equilibrium(cases):
    model = make_model(cases, None)
    state = model.initSystem()
    set_state(model, state, cases)
    model.equilibrateMuscles(state)
    model.realizeDynamics(state)
    muscles = [model.getMuscles().get(case["name"]) for case in cases]
    return [{"force": m.getTendonForce(state), "fiber_length": m.getFiberLength(state)} for m in muscles]


def answer_curve(case):
    curve = make_curve(case["curve"], case["parameters"])
    return [[curve.calcValue(x), curve.calcDerivative(x, 1)] for x in case["x"]]


def answer_simulation(case):
    """Integrate activation and fiber length while the slider moves as a prescribed function of time."""
    model = make_model([case], None)
    coordinate = model.getCoordinateSet().get(0)
    path = opensim.PiecewiseLinearFunction()
    for t, x in zip(case["path_time"], case["path"], strict=True):
        path.addPoint(t, x)
    controller = opensim.PrescribedController()
    controller.addActuator(model.getMuscles().get(0))
    control = opensim.StepFunction(case["on"], case["on"] + 1e-9, case["low"], case["high"])
    controller.prescribeControlForActuator(case["name"], control)
    model.addController(controller)
    coordinate.setDefaultValue(case["path"][0])
    coordinate.set_prescribed_function(path)
    coordinate.setDefaultIsPrescribed(True)
    state = model.initSystem()
    muscle = model.getMuscles().get(0)
    muscle.setActivation(state, case["activation"])
    model.equilibrateMuscles(state)
    manager = opensim.Manager(model)
    manager.setIntegratorAccuracy(1e-9)
    manager.initialize(state)
    answers = []
    for t in [0.0, *case["times"]]:
        state = manager.integrate(t) if t > 0.0 else state
        model.realizeDynamics(state)
        answers.append([muscle.getActivation(state), muscle.getFiberLength(state), muscle.getTendonForce(state)])
    return answers


def answer_lengths(case):
    """Return names and path lengths of a model's muscles along a table of coordinates [rad, m]."""
    model = opensim.Model(case["model"])
    state = model.initSystem()
    muscles = [model.getMuscles().get(k) for k in range(model.getMuscles().getSize())]
    lengths = []
    for row in case["values"]:
        for name, value in zip(case["coordinates"], row, strict=True):
            model.getCoordinateSet().get(name).setValue(state, value, False)
        model.realizePosition(state)
        lengths.append([muscle.getLength(state) for muscle in muscles])
    return {"names": [muscle.getName() for muscle in muscles], "lengths": lengths}


def answer_ligaments(case):
    """Return path lengths and tensions of a model's ligaments at values of its only coordinate."""
    model = opensim.Model(case["model"])
    state = model.initSystem()
    answers = []
    for value in case["values"]:
        model.getCoordinateSet().get(0).setValue(state, value)
        model.realizeDynamics(state)
        row = []
        for i in range(model.getForceSet().getSize()):
            ligament = opensim.Ligament.safeDownCast(model.getForceSet().get(i))
            row.append([ligament.getLength(state), ligament.getTension(state)])
        answers.append(row)
    return answers


def main(question, answer):
    opensim.Logger.setLevelString("Off")
    asked = json.loads(Path(question).read_text())
    result = {}
    if "muscles" in asked:
        result["muscles"] = answer_muscles(asked["muscles"], asked.get("probes", False))
    if "equilibrium" in asked:
        result["equilibrium"] = answer_equilibrium(asked["equilibrium"])
    if "curves" in asked:
        result["curves"] = [answer_curve(case) for case in asked["curves"]]
    if "simulations" in asked:
        result["simulations"] = [answer_simulation(case) for case in asked["simulations"]]
    if "lengths" in asked:
        result["lengths"] = answer_lengths(asked["lengths"])
    if "ligaments" in asked:
        result["ligaments"] = answer_ligaments(asked["ligaments"])
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
