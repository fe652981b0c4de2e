"""Replay of load sharing: forces and activations of `muscle_forces`, put back on the bodies, give the accelerations.

Forces act as in a simulation (nodes of the paths, wrenches on bodies, moving points); accelerations come from the mass
matrix of inverse dynamics.
"""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.dynamics.rnea import coordinate_forces, forward_kinematics, subtree_wrenches
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.motion import make_motion
from borelli.analysis.muscle_forces import muscle_forces
from borelli.analysis.opensim_setup import loads_from_setup, read_external_loads
from borelli.kernels.jit import kernel
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.io import read_model
from borelli.model.kinematics import coupled_forces
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.muscle_step.arrays import make_muscle_tables
from borelli.physics.muscle_step.evaluate import sum_wrenches
from borelli.physics.muscle_step.run_muscle_steps import MuscleSimulation
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs
from borelli.recording.io import read_recording

from ...analysis.opensim_trials import DATA, motion_of, trial

pytestmark = pytest.mark.data

FRAMES = 8
ACCURACY = 1e-6
"""Largest error of an acceleration, relative to the largest of the motion: load sharing ends at 1e-8 of the torque."""
UNIT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def static_model(model):
    """The model as load sharing sees it: tendons are rigid, fibers have no damping."""

    def static(muscle):
        parameters = dict(muscle.parameters) | {"ignore_tendon_compliance": 1.0, "fiber_damping": 0.0}
        return replace(muscle, parameters=tuple(parameters.items()))

    return replace(model, muscles=tuple(map(static, model.muscles)))


def arm():
    model = static_model(read_model(DATA / "arm26/arm26.osim"))
    return motion_of(model, read_recording(DATA / "arm26/reference/arm26_InverseKinematics.mot")), None


def walk():
    model = static_model(read_model(DATA / "gait2392/subject01_simbody_adjusted_StaticOp.osim"))
    motion = motion_of(model, read_recording(DATA / "gait2392/reference/StaticOptimization_input_Kinematics.sto"))
    plates = read_recording(DATA / "subject01_walk/subject01_walk1_grf.mot")
    return motion, loads_from_setup(read_external_loads(DATA / "gait2392/setup/subject01_walk1_grf.xml"), plates)


def run():
    one = trial("rajagopal2015_run_bmclab")
    data = one.motion.data
    rate = 1.0 / np.diff(data["time"].values).mean()
    model = static_model(one.motion.model)
    return make_motion(model, data["coordinate_value"].values, data["time"].values, rate), one.loads


@kernel
def pull(joints, paths, state, work):
    sum_wrenches(joints, paths, state, work)


def wrenches(model, q, u, *, activation=None, force=None):
    """(frames, bodies, 6) moment about the origin and force, of muscles with activations or forces."""
    # masses do not matter here, and those of some files are not physical
    sound = replace(model, bodies=tuple(replace(body, mass=1.0, inertia=UNIT) for body in model.bodies))
    compiled = compile_model(sound, step=1e-3)
    tables = make_muscle_tables(compiled, np.zeros((1, len(model.muscles), 2)))
    names = [c.name for c in model.coordinates]
    result = []
    for i in range(len(q)):
        state = initial_state(
            compiled, coordinates=dict(zip(names, q[i], strict=True)), velocities=dict(zip(names, u[i], strict=True))
        )
        if activation is not None:
            state.muscle[:, 0] = activation[i]
        simulation = MuscleSimulation(compiled, state, make_inputs(compiled), tables)
        simulation.start_record(1)
        work = simulation.muscle_work
        if force is not None:
            work.tension[: len(model.muscles)] = force[i]
            joints = SharedTuple(simulation.tables.joints)
            pull(joints, SharedTuple(tables.paths), SharedTuple(state), SharedTuple(work))
        moment = work.wrench[:, 3:] + np.cross(state.position, work.wrench[:, :3])
        result.append(np.hstack([moment, work.wrench[:, :3]]))
    return np.array(result)


def mass_matrices(model, q):
    """(frames, free coordinates, free coordinates): inertial forces of unit accelerations from rest."""
    columns = []
    zero = np.zeros_like(q)
    for i in range(q.shape[1]):
        unit = np.zeros_like(q)
        unit[:, i] = 1.0
        columns.append(forward_kinematics(model, q, zero, unit).required_force[0])
    return np.stack(columns, axis=-1)


def coupled_columns(model, q):
    """(frames, coordinates, coordinates) derivative of all coordinates by those that drive them."""
    eye = np.tile(np.eye(q.shape[1]), (len(q), 1, 1))
    return np.stack([coupled_forces(model, q, eye[:, i]) for i in range(q.shape[1])], axis=1)


@pytest.mark.parametrize(("case", "put_back"), [(arm, "force"), (walk, "force"), (run, "activation")])
def test_replay_gives_the_accelerations(case, put_back):
    """Muscles, reserves, unattained torques, residuals and loads together; Thelen's activations are not put back.

    Load sharing evaluates Thelen's force-velocity curve at full activation, as OpenSim does, and the curve depends on
    activation: his forces are put back instead.
    """
    motion, loads = case()
    model = motion.model
    torques = inverse_dynamics(motion, forces=loads)
    shared = muscle_forces(torques, passive=True, metabolics=None)
    chosen = np.linspace(5, len(torques.data["time"]) - 6, FRAMES).astype(int)
    data, muscles = torques.data.isel(time=chosen), shared.data.isel(time=chosen)
    q, u, a = (data[f"coordinate_{what}"].values for what in ("value", "velocity", "acceleration"))
    wrench = wrenches(model, q, u, **{put_back: muscles[f"muscle_{put_back}"].values})
    kinematics = forward_kinematics(model, q, u, a)
    produced = coordinate_forces(kinematics, subtree_wrenches(kinematics, wrench.transpose(1, 2, 0)))
    produced = coupled_forces(model, q, produced)
    columns = [str(name) in shared.actuated for name in data["coordinate"].values]
    others = np.nan_to_num(muscles["reserve_torque"].values) + np.nan_to_num(muscles["unattained_torque"].values)
    # what muscles do not produce elsewhere, on the root and in passive joints, is the residual
    error = np.where(columns, produced + others - data["torque"].values, 0.0)
    driven = coupled_columns(model, q)
    mass = np.einsum("fai,fij,fbj->fab", driven.swapaxes(1, 2), mass_matrices(model, q), driven.swapaxes(1, 2))
    free = np.flatnonzero(np.abs(mass).sum(axis=(0, 1)) > 0.0)
    change = np.linalg.solve(mass[:, free][:, :, free], error[:, free, None])[..., 0]
    assert np.abs(produced[:, columns]).max() > 1.0  # [N m] muscles do act
    assert np.abs(change).max() < ACCURACY * np.abs(a[:, free]).max()
