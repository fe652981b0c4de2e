"""What plates saw: frames they cover, the weight they find, times that were rounded, residuals that masses explain."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import inverse_dynamics
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.analysis.residual_reduction.masses import reduce_residuals
from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.model.people.human import human
from borelli.recording.clean import clean
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording

from ..opensim_trials import folder, trial
from .test_torques import MODEL, WEIGHT, supporting, swinging


def without(loads, start, stop):
    """The loads with nothing measured between two times."""
    off = (loads.time >= start) & (loads.time <= stop)
    return replace(loads, force=np.where(off[:, None, None], 0.0, loads.force))


def test_frames_that_plates_miss_are_found():
    motion = swinging(401)
    loads = supporting(motion)
    assert inverse_dynamics(motion, forces=loads).data["grf_complete"].all()
    found = inverse_dynamics(motion, forces=without(loads, 1.0, 1.6))
    covered, time = found.data["grf_complete"].values, found.data["time"].values
    assert not covered[(time > 1.0) & (time < 1.6)].any()
    assert covered[(time < 0.8) | (time > 1.8)].all()
    assert any("% of the frames" in note.text for note in found.notes)
    late = replace(loads, time=loads.time + 1.0)
    assert not inverse_dynamics(motion, forces=late).data["grf_complete"].values[time < 0.9].any()


def test_plates_weigh_the_body():
    motion = swinging(401)
    loads = supporting(motion)
    found = inverse_dynamics(motion, forces=loads)
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(70.0, rel=2e-3)
    assert not any("weigh" in note.text for note in found.notes)
    heavier = inverse_dynamics(motion, forces=replace(loads, force=1.1 * loads.force))
    assert heavier.data.attrs["plate_mass_kg"] == pytest.approx(77.0, rel=2e-3)
    assert heavier.data["grf_complete"].all()
    (note,) = [note for note in heavier.notes if "weigh" in note.text]
    assert "77.0 kg" in note.text and "70.0 kg" in note.text and note.action == "give the mass: --mass 77.0"


def test_a_wrong_mass_does_not_hide_what_is_covered():
    """A model 15 % too heavy lacks as much in every frame, and yet only one span is uncovered."""
    motion = swinging(401)
    loads = supporting(motion)
    found = inverse_dynamics(motion, forces=without(replace(loads, force=0.87 * loads.force), 1.0, 1.6))
    covered, time = found.data["grf_complete"].values, found.data["time"].values
    assert not covered[(time > 1.0) & (time < 1.6)].any()
    assert covered[(time < 0.8) | (time > 1.8)].all()
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(0.87 * 70.0, rel=5e-3)


def test_masses_that_were_changed_are_found_again():
    """A trunk whose mass lies 20 mm farther forward, and heavier thighs, leave a residual that the search explains."""
    motion = swinging(401)
    bodies = {body.name: body for body in MODEL.bodies}
    heaviest = max((b for b in MODEL.bodies if "torso" in b.name), key=lambda body: body.mass).name
    x, y, z = bodies[heaviest].center_of_mass
    bodies[heaviest] = replace(bodies[heaviest], center_of_mass=(x + 0.02, y, z))
    other = replace(MODEL, bodies=tuple(bodies.values()))
    loads = supporting(replace(motion, model=other))
    found = reduce_residuals(motion, differentiate(motion), loads)
    assert found.trunk == heaviest
    assert found.after[1] < 0.5 * found.before[1]
    assert found.center_change[0] > 0.008  # no farther than the data ask: half the bound is one standard deviation
    assert max(map(abs, found.mass_change.values())) <= 0.1 + 1e-9
    assert found.mass_change["thigh_r"] == found.mass_change["thigh_l"]
    with pytest.raises(SettingsError, match="give forces"):
        inverse_dynamics(motion, residual="reduce")
    with pytest.raises(SettingsError, match="reduce"):
        inverse_dynamics(motion, residual="remove")


def test_no_load_carries_no_weight():
    motion = swinging()
    nothing = np.zeros((2, 1, 3))
    loads = Loads(("right",), ("foot_r",), np.array([0.0, 2.0]), nothing, nothing, nothing)
    found = inverse_dynamics(motion, forces=loads)
    assert not found.data["grf_complete"].any() and np.isnan(found.data.attrs["plate_mass_kg"])
    assert found.residual_force_rms == pytest.approx(inverse_dynamics(motion).residual_force_rms)
    assert found.residual_force_rms > 0.9 * WEIGHT


@pytest.mark.data
def test_residuals_fall_where_opensim_moved_the_trunk():
    """OpenSim's residual reduction moved the torso of gait2354 by (+49, 0, +17) mm: subject01_simbody_adjusted.osim."""
    motion, loads, _ = trial("gait2354")
    found = reduce_residuals(motion, differentiate(motion), loads)
    assert found.trunk == "torso"
    assert found.after[0] < 1.01 * found.before[0] and found.after[1] < 0.9 * found.before[1]
    assert found.center_change[0] > 0.005 and found.center_change[2] > 0.005


@pytest.mark.data
def test_a_run_is_covered_from_the_first_plate_to_the_last_flight():
    motion, loads, _ = trial("rajagopal2015_run_bmclab")
    data = inverse_dynamics(motion, forces=loads).data
    time = data["time"].values[data["grf_complete"].values]
    # the left foot leaves the floor before the first plate at 0.07 s and comes down behind the last at 0.74 s
    assert time[0] == pytest.approx(0.07, abs=0.02) and time[-1] == pytest.approx(0.74, abs=0.02)


@pytest.mark.data
def test_plates_of_rajagopal2016_weigh_85_kg():
    """The plates' mean over whole steps is 85.0 kg, the model's mass 75.3 kg (spec mocap, 8).

    The model is not scaled and wears ten of the markers: its pose is rough, which the weight hardly feels.
    """
    where = folder("rajagopal2016")
    recording = add_plates(
        read_recording(where / "walk" / "motion_capture_walk.trc"), read_recording(where / "walk" / "grf_walk.mot")
    )
    recording = clean(recording, cutoff=None)
    motion = inverse_kinematics(read_model(where / "Rajagopal2016.osim"), recording)
    found = inverse_dynamics(motion, forces="plates")
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(85.0, abs=1.0)
    assert any("but the model 75.3 kg" in note.text for note in found.notes)
    covered, time = found.data["grf_complete"].values, found.data["time"].values
    assert covered[(time > 0.5) & (time < 1.75)].all()  # the window by hand (spec mocap, 2)
    assert covered.mean() < 0.75


@cache
def subject01():
    where = folder("subject01_walk")
    recording = add_plates(
        read_recording(where / "subject01_walk1.trc"), read_recording(where / "subject01_walk1_grf.mot")
    )
    recording = clean(recording, cutoff=None)
    fit = fit_model(human(72.6, 1.8), recording, static=read_recording(where / "subject01_static.trc"))
    return inverse_kinematics(fit.model, recording)


@pytest.mark.data
def test_rounded_times_are_repaired_before_they_shake_the_body():
    """Vertical force from motion alone against raw plates, % of weight: 2.5 over the trial, 6 with times as written.

    It ends 0.04 s after a heel strike: the stride before tells how it goes on (3.1 without it).
    """

    def vertical(motion, filter="strides"):
        found = inverse_dynamics(motion, forces="plates", plate_cutoff=None, filter=filter)
        return 100.0 * float(np.sqrt(np.mean(found.data["residual_force"].values[:, 2] ** 2))) / (72.6 * 9.81)

    motion = subject01()
    assert any("restored from the rate" in note.text for note in motion.recording.notes)
    assert vertical(motion) <= 2.5
    # a spline through frames at the times the file has, to the millisecond, as OpenSim 3 would take it
    time = motion.data["time"].values
    rounded = make_motion(
        motion.model, differentiate(motion).coordinates, np.round(time, 3), 60.0, recording=motion.recording
    )
    assert vertical(rounded, filter="none") > 5.0
    # and even those are mended, because frames are put on an even grid before the low-pass
    mended = make_motion(motion.model, motion.coordinates, np.round(time, 3), 60.0, recording=motion.recording)
    assert vertical(mended) <= 2.5
