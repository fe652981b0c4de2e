"""Plate coverage: frames with complete GRF, mass from plates, rounded times, and residuals explained by masses."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.analysis.residual_reduction.masses import adjust_masses
from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording

from ..opensim_trials import folder, trial
from .test_torques import MODEL, WEIGHT, supporting, swinging


def without(loads, start, end):
    """Return the loads with zero force between two times."""
    off = (loads.time >= start) & (loads.time <= end)
    return replace(loads, force=np.where(off[:, None, None], 0.0, loads.force))


def test_frames_off_the_plates_are_incomplete():
    motion = swinging(401)
    loads = supporting(motion)
    assert inverse_dynamics(motion, forces=loads).data["grf_complete"].all()
    found = inverse_dynamics(motion, forces=without(loads, 1.0, 1.6))
    complete, time = found.data["grf_complete"].values, found.data["time"].values
    assert not complete[(time > 1.0) & (time < 1.6)].any()
    assert complete[(time < 0.8) | (time > 1.8)].all()
    assert any(note.code == "grf_incomplete" for note in found.notes)
    late = replace(loads, time=loads.time + 1.0)
    assert not inverse_dynamics(motion, forces=late).data["grf_complete"].values[time < 0.9].any()


def test_plates_weigh_the_body():
    motion = swinging(401)
    loads = supporting(motion)
    found = inverse_dynamics(motion, forces=loads)
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(70.0, rel=2e-3)
    assert not any(note.code == "plate_mass" for note in found.notes)
    heavier = inverse_dynamics(motion, forces=replace(loads, force=1.1 * loads.force))
    assert heavier.data.attrs["plate_mass_kg"] == pytest.approx(77.0, rel=2e-3)
    assert heavier.data["grf_complete"].all()
    (note,) = [note for note in heavier.notes if note.code == "plate_mass"]
    assert "77.0 kg" in note.text and "70.0 kg" in note.text and note.action == "--mass 77.0"


def test_a_wrong_mass_does_not_hide_complete_frames():
    """A model 15 % too heavy has a deficit in every frame, and yet only one span is incomplete."""
    motion = swinging(401)
    loads = supporting(motion)
    found = inverse_dynamics(motion, forces=without(replace(loads, force=0.87 * loads.force), 1.0, 1.6))
    complete, time = found.data["grf_complete"].values, found.data["time"].values
    assert not complete[(time > 1.0) & (time < 1.6)].any()
    assert complete[(time < 0.8) | (time > 1.8)].all()
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(0.87 * 70.0, rel=5e-3)


def test_changed_masses_are_recovered():
    """A trunk whose center of mass is 20 mm farther forward leaves a residual that mass adjustment explains."""
    motion = swinging(401)
    bodies = {body.name: body for body in MODEL.bodies}
    heaviest = max((b for b in MODEL.bodies if "torso" in b.name), key=lambda body: body.mass).name
    x, y, z = bodies[heaviest].center_of_mass
    bodies[heaviest] = replace(bodies[heaviest], center_of_mass=(x + 0.02, y, z))
    other = replace(MODEL, bodies=tuple(bodies.values()))
    loads = supporting(replace(motion, model=other))
    curves = differentiate(motion)
    used = np.ones(len(curves.time), bool)
    found = adjust_masses(MODEL, curves, loads, used, max_change=0.1, max_displacement=0.03)
    before, after = (
        inverse_dynamics(replace(motion, model=model), forces=loads, plate_cutoff=0.0) for model in (MODEL, found.model)
    )
    assert found.trunk == heaviest
    assert after.residual_moment_rms < 0.5 * before.residual_moment_rms
    # half the bound is one standard deviation of the prior
    assert found.model.body(heaviest).center_of_mass[0] - x > 0.008
    assert max(abs(change) for change in found.changes.values()) <= 0.1 + 1e-6
    assert found.changes["thigh_r"] == pytest.approx(found.changes["thigh_l"], rel=1e-9)
    assert found.model.mass == pytest.approx(MODEL.mass, rel=1e-14)  # what plates weigh is held
    with pytest.raises(SettingsError, match="plates"):
        inverse_dynamics(motion, forces=None, residual="reduce")
    with pytest.raises(SettingsError, match="reduce"):
        inverse_dynamics(motion, forces=None, residual="remove")


def test_zero_load_is_never_complete():
    motion = swinging()
    nothing = np.zeros((2, 1, 3))
    loads = Loads(("right",), ("foot_r",), np.array([0.0, 2.0]), nothing, nothing, nothing)
    found = inverse_dynamics(motion, forces=loads)
    assert not found.data["grf_complete"].any() and np.isnan(found.data.attrs["plate_mass_kg"])
    assert found.residual_force_rms == pytest.approx(inverse_dynamics(motion, forces=None).residual_force_rms)
    assert found.residual_force_rms > 0.9 * WEIGHT


@pytest.mark.data
def test_trunk_moves_as_in_opensims_residual_reduction():
    """OpenSim's residual reduction moved the torso of gait2354 by (+49, 0, +17) mm: subject01_simbody_adjusted.osim."""
    motion, loads, _ = trial("gait2354")
    loads = loads.smoothed(6.0)
    curves = differentiate(motion)
    used = np.ones(len(curves.time), bool)
    found = adjust_masses(motion.model, curves, loads, used, max_change=0.1, max_displacement=0.03)
    before, after = (
        inverse_dynamics(replace(motion, model=model), forces=loads) for model in (motion.model, found.model)
    )
    assert after.residual_force_rms < 1.01 * before.residual_force_rms
    assert after.residual_moment_rms < 0.9 * before.residual_moment_rms
    assert found.trunk == "torso" and found.displacement[0] > 0.005 and found.displacement[2] > 0.005


@pytest.mark.data
def test_a_run_is_complete_from_the_first_plate_to_the_last_flight():
    motion, loads, _ = trial("rajagopal2015_run_bmclab")
    data = inverse_dynamics(motion, forces=loads).data
    time = data["time"].values[data["grf_complete"].values]
    # the left foot leaves the floor before the first plate at 0.07 s and comes down behind the last at 0.74 s
    assert time[0] == pytest.approx(0.07, abs=0.02) and time[-1] == pytest.approx(0.74, abs=0.02)


@pytest.mark.data
def test_plates_of_rajagopal2016_weigh_85_kg():
    """The plates' mean over whole steps is 85.0 kg, the model's mass 75.3 kg.

    The model has ten of the markers: its pose is rough, which hardly affects the mass.
    """
    where = folder("rajagopal2016")
    recording = add_plates(
        read_recording(where / "walk" / "motion_capture_walk.trc"), read_recording(where / "walk" / "grf_walk.mot")
    )
    recording = clean(recording, cutoff=None)
    motion = inverse_kinematics(fit_model(read_model(where / "Rajagopal2016.osim"), recording).model, recording)
    found = inverse_dynamics(motion, forces="plates")
    assert found.data.attrs["plate_mass_kg"] == pytest.approx(85.0, abs=1.0)
    assert any(note.code == "plate_mass" and "75.3 kg" in note.text for note in found.notes)
    complete, time = found.data["grf_complete"].values, found.data["time"].values
    assert complete[(time > 0.5) & (time < 1.75)].all()  # the window found by hand
    assert complete.mean() < 0.75


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
def test_rounded_times_are_repaired_before_differentiation():
    """Vertical force from motion alone against raw plates, % of weight: 2.54 over the trial, 6 with times as written.

    It ends 0.04 s after a heel strike: it is extended as in the stride before (3.1 without that).
    """

    def vertical(motion, filter="strides"):
        found = inverse_dynamics(motion, forces="plates", plate_cutoff=0.0, filter=filter)
        return 100.0 * float(np.sqrt(np.mean(found.data["residual_force"].values[:, 2] ** 2))) / (72.6 * 9.81)

    motion = subject01()
    assert any(note.code == "time_stamps_repaired" for note in motion.recording.notes)
    assert vertical(motion) <= 2.6
    # a spline through frames at the times the file has, to the millisecond, as OpenSim 3 would take it
    time = motion.data["time"].values
    rounded = make_motion(
        motion.model, differentiate(motion).coordinates, np.round(time, 3), 60.0, recording=motion.recording
    )
    assert vertical(rounded, filter="none") > 5.0
    # and even those are repaired, because frames are resampled to an even grid before the low-pass filter
    repaired = make_motion(motion.model, motion.coordinates, np.round(time, 3), 60.0, recording=motion.recording)
    assert vertical(repaired) <= 2.6
