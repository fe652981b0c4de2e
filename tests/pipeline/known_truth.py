"""Synthetic trials of subjects whose every deviation from the analysis' assumptions is known and of published size.

A subject has other joint centers, segment lengths and marker offsets than the tables (`skin_walker.subject`), other
segment masses, centers of mass and inertias, skin that moves in step with the motion, plates that are displaced and
have a gain, and a scale that errs. The analysis gets the recording, a static trial, height, sex and what the scale
shows. All draws are made here, from sizes of the literature, by other code than that of the Monte Carlo repeats.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads, foot_bodies
from borelli.analysis.energetics.energy import Energy, compute_energy
from borelli.analysis.fit.fit_model import Fit, fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.model.kinematics import center_of_mass, poses
from borelli.model.marker_sets import extent
from borelli.model.resize import scale_mass
from borelli.people.human import human
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.stages import compute_torques
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.curves import spline_derivatives
from borelli.synthetic.ground_forces import distribute_load, root_wrench, sole_points
from borelli.synthetic.jump_and_reach import jump_coordinates, reach_coordinates
from borelli.synthetic.recordings import plate_variables
from borelli.synthetic.walk import CYCLE, preferred_pressure, walk_coordinates

from ..analysis.fit import skin_walker

RATE, SAMPLES = 60.0, 4
"""[Hz] of frames, and plate samples per frame."""
NOISE = 0.0005
"""[m] White noise of markers along each axis."""
SKIN = {"thigh": (0.008 / 0.43, np.radians(4.0) / 0.43), "upper_arm": (0.008 / 0.43, np.radians(4.0) / 0.43)}
OTHER_SKIN = (0.004 / 0.38, np.radians(2.0) / 0.38)
"""[m/rad], [rad/rad] Translation along and rotation about each axis by angle: those of a walk, 8 mm and 4 degrees on
the thigh and half of it on the shank (Benoit et al. 2006), at its excursions of 0.43 and 0.38 rad.
"""
SCALE_ERROR, SEGMENT_MASS_ERROR, CENTER_ERROR, INERTIA_ERROR = 0.01, 0.10, 0.02, 0.10
"""Relative; that of centers of mass by the size of the segment (Durkin and Dowling 2003, Rossi et al. 2013)."""
PLATE_OFFSET, PLATE_GAIN, PRESSURE_NOISE = 0.003, 0.01, 0.001
"""[m], relative, [m] (Collins et al. 2009, Cappello et al. 2011)."""
SETS = ("opencap_mocap", "plugin_gait", "qualisys_cast")
TASKS = {"walk": 1.5 * CYCLE, "reach": 3.0, "jump": 2.0}


class Trial(NamedTuple):
    """Trial with its truth."""

    recording: Recording
    static: Recording
    truth: Energy
    """True angles, forces, torques and energy at the frames."""
    mass: float
    """[kg] by the scale."""
    body: tuple[float, float, str]


def make_trial(number: int, task: str = "walk") -> Trial:
    """Return a trial of a subject, all of whose errors are drawn with the subject's number."""
    rng = np.random.default_rng(1000 + number)
    body = skin_walker.BODIES[number % len(skin_walker.BODIES)]
    model = true_body(skin_walker.subject(number % len(skin_walker.BODIES), SETS[number % len(SETS)])[0], rng)
    fine, loads = _motion(model, task)
    truth = _truth(model, fine, loads)
    q = fine[::SAMPLES]
    markers = _markers(model, q, rng)
    variables = {"marker_position": markers, **_plates_with_errors(loads, rng)}
    labels = {"marker": [m.name for m in model.markers]}
    labels["plate"] = [f"plate {i + 1}" for i in range(variables["plate_force"].shape[1])]
    data = make_dataset(variables, labels, rate=RATE, analog_rate=RATE * SAMPLES)
    mass = model.mass * (1.0 + SCALE_ERROR * rng.standard_normal())
    recording = assign_plates(Recording(data, f"{task} of subject {number}"))
    return Trial(recording, skin_walker.static(model), truth, mass, body)


def true_body(model, rng):
    """Return the model with other masses, centers of mass and inertias, alike on both sides, and the same total."""
    errors = {}
    bodies = []
    for body in model.bodies:
        side = body.name[-2:] if body.name.endswith(("_r", "_l")) else ""
        stem = body.name.removesuffix(side)
        if stem not in errors:
            errors[stem] = rng.standard_normal(5)
        mass, x, y, z, inertia = errors[stem]
        size = 2.0 * extent(body)[1]
        offset = CENTER_ERROR * size * (x, -y if side == "_l" else y, z)
        center = tuple(float(v) for v in np.array(body.center_of_mass) + offset)
        factor = 1.0 + SEGMENT_MASS_ERROR * mass
        tensor = np.array(body.inertia) * factor * (1.0 + INERTIA_ERROR * inertia)
        rows = tuple(tuple(float(v) for v in row) for row in tensor)
        bodies.append(replace(body, mass=body.mass * factor, center_of_mass=center, inertia=rows))
    return scale_mass(replace(model, bodies=tuple(bodies)), model.mass)


def analyze_trial(trial: Trial, *, plates: bool) -> tuple[Energy, Fit]:
    """Return the results of an analysis of the trial, and its fit."""
    mass, height, sex = trial.mass, *trial.body[1:]
    fit = fit_model(human(mass, height, sex), trial.recording, static=trial.static)
    motion = inverse_kinematics(fit.model, trial.recording)
    return compute_energy(compute_torques(motion, AnalysisSettings(plates=plates))), fit


def _motion(model, task):
    """Return coordinates at the samples of the plates, and the loads on the feet, left first."""
    time = np.arange(round(TASKS[task] * RATE) * SAMPLES + 1) / (RATE * SAMPLES)
    if task == "walk":
        time = time - 0.1 * CYCLE
        walk = walk_coordinates(model, time)
        q, v, a = spline_derivatives(walk.coordinates, time[1] - time[0])
        loads = distribute_load(*root_wrench(model, q, v, a), walk.left_load, preferred_pressure(model, time))
        return q, _brake_and_push(loads, center_of_mass(model, q))
    make = {"jump": jump_coordinates, "reach": reach_coordinates}[task]
    q, v, a = spline_derivatives(make(model, time), time[1] - time[0])
    force, moment = root_wrench(model, q, v, a)
    under = sole_points(model, q).mean(axis=2)
    sideways = moment[:, 0] / np.maximum(force[:, 2], 20.0)
    fraction = np.clip((sideways - under[:, 1, 1]) / (under[:, 0, 1] - under[:, 1, 1]), 0.0, 1.0)
    flying = (force[:, 2] < 20.0)[:, None]
    return q, distribute_load(np.where(flying, 0.0, force), np.where(flying, 0.0, moment), fraction, under)


def _brake_and_push(loads, center):
    """Return loads whose forces, seen from the side, point to the center of mass in double support (Maus et al. 2010).

    The leading foot brakes and the trailing one pushes with a pair of forward forces, and free moments that keep the
    total wrench.
    """
    force, free = loads.force.copy(), loads.free_moment.copy()
    up = force[..., 2]
    both = (up > 1e-6).all(axis=1)
    line = np.where(both[:, None], loads.center[:, 0] - loads.center[:, 1], 0.0)
    pair = up.prod(axis=1) / np.maximum(up.sum(axis=1), 1e-6) / center[:, 2] * line[:, 0]
    force[:, 0, 0] -= pair
    force[:, 1, 0] += pair
    free[..., 2] -= 0.5 * (line[:, 1] * pair)[:, None] * both[:, None]
    return loads._replace(force=force, free_moment=free)


def _truth(model, fine, loads) -> Energy:
    """Return the true energy at the frames, from the coordinates at the plates' samples without any filter."""
    right_first = [1, 0]
    clock = np.arange(len(fine)) / (RATE * SAMPLES)
    bodies = tuple(foot_bodies(model).values())
    force, point, moment = (values[:, right_first] for values in (loads.force, loads.center, loads.free_moment))
    motion = make_motion(model, fine, clock, RATE * SAMPLES)
    return compute_energy(
        inverse_dynamics(motion, forces=Loads(("right", "left"), bodies, clock, force, point, moment), filter="none")
    )


def _markers(model, q, rng):
    """Return markers on skin that moves as a rigid piece of each segment, with the angles of the joints at its ends.

    Its displacement is linear in these angles, and zero in the pose of the static trial (Bonci et al. 2014).
    """
    position, orientation = poses(model, q)
    names = [coordinate.name for coordinate in model.coordinates]
    bent = q - np.array([coordinate.default for coordinate in model.coordinates])
    result = np.zeros((len(q), len(model.markers), 3))
    for index, name in enumerate(body.name for body in model.bodies):
        own = [i for i, m in enumerate(model.markers) if m.body == name]
        near = [j for j in model.joints if name in (j.parent, j.child) and j.parent != "ground"]
        angles = [names.index(c.name) for j in near for c in j.coordinates]
        slide, turn = SKIN.get(name[:-2], OTHER_SKIN)
        at = np.array([model.markers[i].position for i in own]).reshape(-1, 3)
        moved = bent[:, angles] @ rng.standard_normal((len(angles), 6))
        local = at + slide * moved[:, None, :3]
        if own:
            local = local + np.cross(turn * moved[:, None, 3:], (at - at.mean(axis=0))[None])
        result[:, own] = position[:, index, None] + np.einsum("fik,fmk->fmi", orientation[:, index], local)
    return result + NOISE * rng.standard_normal(result.shape)


def _plates_with_errors(loads, rng):
    """Return plates whose every step has its own displacement and gain."""
    variables = dict(plate_variables(loads))
    count = variables["plate_force"].shape[1]
    gain = 1.0 + PLATE_GAIN * rng.standard_normal((count, 1))
    flat = np.array([1.0, 1.0, 0.0])
    offset = PLATE_OFFSET * flat * rng.standard_normal((count, 3))
    center = variables["plate_center_of_pressure"]
    variables["plate_force"] = gain * variables["plate_force"]
    variables["plate_free_moment"] = gain * variables["plate_free_moment"]
    variables["plate_center_of_pressure"] = center + offset + PRESSURE_NOISE * flat * rng.standard_normal(center.shape)
    return variables
