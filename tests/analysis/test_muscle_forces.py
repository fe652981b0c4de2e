"""Muscle forces of a motion: they produce its torques, joints carry what muscles leave, and faults are named."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.muscle_forces import TENDONS, MuscleForces, muscle_forces, unattained_fractions
from borelli.errors import ModelError, SettingsError
from borelli.export.stage_files import read_stage, write_stage
from borelli.muscles.hill import elastic_tendon_force, make_muscle_arrays
from borelli.muscles.paths import muscle_paths
from borelli.people.human_muscles import add_muscles


@pytest.fixture(scope="module")
def torques(walk):
    model = add_muscles(walk.model)
    return inverse_dynamics(inverse_kinematics(model, walk.recording))


@pytest.fixture(scope="module")
def muscles(torques):
    return muscle_forces(torques)


def test_forces_produce_the_torques(torques, muscles):
    """R F plus what is unattained is the torque of inverse dynamics, with moment arms computed apart."""
    arm = muscle_paths(torques.motion.model, torques.data["coordinate_value"].values).moment_arm
    produced = np.einsum("fmc,fm->fc", arm, muscles.data["muscle_force"].values)
    for name in muscles.actuated:
        column = list(torques.data["coordinate"].values).index(name)
        required = torques.data["torque"].values[:, column]
        missing = muscles.data["unattained_torque"].sel(coordinate=name).values
        np.testing.assert_allclose(produced[:, column] + missing, required, atol=1e-6)


def test_elastic_tendons_are_in_equilibrium_with_their_fibers(torques):
    """The force of each muscle is that of a bracketed search for equilibrium at its activation, by another kernel.

    Fibers are undamped there: load sharing has no damping, as in OpenSim's static optimization.
    """
    torques = replace(torques, data=torques.data.isel(time=slice(None, None, 3)))
    elastic = muscle_forces(torques, tendon="elastic", passive=True, metabolics=None)
    arrays = make_muscle_arrays(torques.motion.model)
    undamped = arrays._replace(damping=np.zeros_like(arrays.damping))
    activation = elastic.data["muscle_activation"].values
    shared = np.isfinite(activation).all(axis=1)
    length, velocity, activation, force = (
        elastic.data[name].values[shared]
        for name in ("muscle_length", "muscle_velocity", "muscle_activation", "muscle_force")
    )
    expected = elastic_tendon_force(undamped, length, velocity, activation)
    largest = arrays.max_isometric_force
    converged = expected.status == 0
    error = np.abs(force - expected.force) / largest
    assert converged.mean() > 0.99 and error[converged].max() < 1e-4
    # tendons under load are longer, so fibers are shorter than with rigid tendons
    rigid = muscle_forces(torques, passive=True, metabolics=None).data["fiber_length"].values[shared]
    soleus = [muscle.name for muscle in torques.motion.model.muscles].index("soleus_r")
    shorter = rigid - elastic.data["fiber_length"].values[shared]
    assert shorter[force[:, soleus].argmax(), soleus] > 0.003
    assert not [note for note in elastic.notes if note.code == "tendons_not_converged"]


def test_rigid_tendons_stay_rigid(torques):
    model = torques.motion.model
    rigid = (replace(m, parameters=(*m.parameters, ("ignore_tendon_compliance", 1.0))) for m in model.muscles)
    rigid = replace(model, muscles=tuple(rigid))
    assert make_muscle_arrays(rigid).rigid_tendon.all()
    few = replace(torques, motion=replace(torques.motion, model=rigid), data=torques.data.isel(time=slice(100, 110)))
    a, b = (muscle_forces(few, tendon=tendon, metabolics=None).data["muscle_force"].values for tendon in TENDONS)
    np.testing.assert_array_equal(a, b)


def test_activations_are_within_bounds_and_legs_are_strong_enough(muscles):
    activation = muscles.data["muscle_activation"].values
    assert np.nanmin(activation) >= 0.0 and np.nanmax(activation) <= 1.0
    legs = {name: f for name, f in unattained_fractions(muscles).items() if not name.startswith(("sacral", "lumbar"))}
    assert len(legs) == 10 and max(legs.values()) < 0.05


def test_joints_carry_what_muscles_leave(torques, muscles):
    """Muscles that cross the ankle press the foot to the shank, by no more than the sum of their forces."""
    model = torques.motion.model
    data = muscles.data.sel(joint="ankle_r")
    net = torques.data.sel(joint="ankle_r")
    added = (data["joint_contact_force"] - net["joint_reaction_force"]).values
    crossing = [m for m in model.muscles if {p.body for p in m.path} & {"foot_r", "toes_r"} and m.name.endswith("_r")]
    pull = muscles.data["muscle_force"].sel(muscle=[m.name for m in crossing]).values.sum(axis=1)
    assert np.all(np.linalg.norm(added, axis=1) <= pull + 1e-6)
    assert np.linalg.norm(added, axis=1).max() > 0.5 * pull.max()


def test_metabolic_cost_is_in_the_energy(muscles):
    energy = compute_energy(muscles)
    assert energy.muscles is muscles
    mass = muscles.data.attrs["mass_kg"]
    # standing takes about 1.5 W/kg, fast walking less than 10 (Ralston 1958; Browning and Kram 2005)
    assert 1.5 < energy.summary["metabolic_power_w"] / mass < 10.0
    assert compute_energy(muscles.torques).summary.keys() < energy.summary.keys()


@pytest.mark.parametrize("stage", ["muscles", "energy"])
def test_stage_files_keep_muscles(muscles, tmp_path, stage):
    result = muscles if stage == "muscles" else compute_energy(muscles)
    write_stage(result, tmp_path / f"{stage}.nc")
    again = read_stage(tmp_path / f"{stage}.nc")
    known = again if stage == "muscles" else again.muscles
    assert isinstance(known, MuscleForces) and known.data.equals(muscles.data)
    assert known.settings["cost"] == "activation" and known.notes == muscles.notes


def test_weak_muscles_are_reported(torques):
    model = torques.motion.model
    weak = tuple(replace(m, max_isometric_force=0.05 * m.max_isometric_force) for m in model.muscles)
    motion = replace(torques.motion, model=replace(model, muscles=weak))
    result = muscle_forces(replace(torques, motion=motion))
    assert result.worst_unattained[1] > 0.5
    assert any(note.code == "torque_unattained" for note in result.notes)
    helped = muscle_forces(replace(torques, motion=motion), reserves=100.0)
    assert max(unattained_fractions(helped).values()) < 1e-6
    assert np.nanmax(np.abs(helped.data["reserve_torque"].values)) > 10.0


def test_higher_exponents_spread_the_load(torques, muscles):
    peak = muscles.data["muscle_activation"].max("muscle").values
    spread = muscle_forces(torques, exponent=4.0, metabolics=None).data["muscle_activation"].max("muscle").values
    assert (spread <= peak + 1e-6).mean() > 0.95 and np.mean(spread) < np.mean(peak)


def test_wrong_options_are_refused(torques, walk):
    with pytest.raises(ModelError, match="no muscles"):
        muscle_forces(inverse_dynamics(inverse_kinematics(walk.model, walk.recording)))
    with pytest.raises(SettingsError, match="hip_flexion_r"):
        muscle_forces(torques, coordinates=["hip_flexoin_r"])
    with pytest.raises(SettingsError, match="No muscle crosses"):
        muscle_forces(torques, coordinates=["elbow_flexion_r"])
    with pytest.raises(SettingsError, match="cost"):
        muscle_forces(torques, cost="effort")


def test_emg_is_matched_to_muscles_and_pulls_activations(torques, muscles):
    """An envelope of the soleus that is on all the time raises its activation, at a cost that the weight states."""
    time = torques.data["time"].values
    emg = xr.Dataset(
        {"emg_envelope": (("time", "muscle"), np.full((len(time), 2), 0.8))},
        {"time": time, "muscle": ["soleus_r", "deltoid_r"]},
    )
    shown = muscle_forces(torques, emg=emg, metabolics=None)
    assert shown.data["muscle_activation"].equals(muscles.data["muscle_activation"])
    known = np.isfinite(shown.data["emg_envelope"].values).any(axis=0)
    assert shown.data["muscle"].values[known].tolist() == ["soleus_r"]
    assert any(note.code == "emg_without_muscle" and "deltoid_r" in note.text for note in shown.notes)
    pulled = muscle_forces(torques, emg=emg, emg_weight=10.0, metabolics=None)
    before, after = (one.data["muscle_activation"].sel(muscle="soleus_r").values for one in (muscles, pulled))
    assert np.median(after) > np.median(before) + 0.1
    assert max(unattained_fractions(pulled).values()) < 0.05
    with pytest.raises(SettingsError, match="no EMG"):
        muscle_forces(torques, emg_weight=1.0)
