"""Steps off the plates: a step whose plate is removed is predicted, and known frames are reported."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.ground.off_plate_steps import SOURCE, _combine, _off_plates
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import make_motion
from borelli.errors import ModelError
from borelli.export.grf_agreement import compare_feet
from borelli.export.stage_files import read_stage, write_stage
from borelli.numerics.runs import find_runs
from borelli.people.human import human
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording
from borelli.synthetic.recordings import synthetic_recording

from ..dynamics.test_plate_coverage import without
from ..dynamics.test_torques import supporting, swinging
from ..opensim_trials import folder


@cache
def walk():
    """Return the synthetic walk, with its plates assigned to feet."""
    made = synthetic_recording("walk")
    recording = clean(made.recording, cutoff=None)
    return make_motion(
        made.model, made.coordinates, recording.data["time"].values, recording.rate, recording=recording
    )  # fmt: skip


def hidden(motion, foot, number):
    """Return the motion as if one step of a foot had been off the plates, and the time of that step [s]."""
    recording = motion.recording
    side = list(recording.data["foot"].values).index(foot)
    force = recording.data["ground_reaction_force"].values.copy()
    a, b = [one for one in find_runs(force[:, side, 2] > 0.0) if one[1] - one[0] > 0.3 * recording.analog_rate][number]
    force[a:b, side] = 0.0
    data = recording.data.assign(ground_reaction_force=recording.data["ground_reaction_force"].copy(data=force))
    clock = recording.data["analog_time"].values
    return replace(motion, recording=replace(recording, data=data)), (clock[a], clock[b - 1])


@pytest.mark.parametrize(("plate_cutoff", "memory", "same"), [(0.0, 0.1, 1e-8), (None, 0.6, 1e-2)])
def test_a_hidden_step_is_predicted_and_the_rest_stays_as_measured(plate_cutoff, memory, same):
    """`memory` is how far the step reaches [s] through the filter, whose impulse response falls as exp(-27 t)."""
    motion, (start, stop) = hidden(walk(), "left", 1)
    whole = inverse_dynamics(walk(), forces="plates", plate_cutoff=plate_cutoff).data
    bare = inverse_dynamics(motion, forces="plates", plate_cutoff=plate_cutoff)
    found = inverse_dynamics(motion, forces=SOURCE, plate_cutoff=plate_cutoff)
    time = whole["time"].values
    step = (time >= start) & (time <= stop)
    source = found.data["grf_source"]
    assert (source.sel(foot="left").values[step] == "predicted").mean() > 0.9
    assert (source.sel(foot="right").values == "plate").all()
    far = (time < start - memory) | (time > stop + memory)
    for name in ("torque", "ground_reaction_force", "residual_force"):
        assert np.allclose(found.data[name].values[far], whole[name].values[far], rtol=1e-6, atol=same), name
    weight = motion.model.mass * 9.81
    error = (found.data["ground_reaction_force"] - whole["ground_reaction_force"]).sel(foot="left").values[step]
    assert np.sqrt((error[:, 2] ** 2).mean()) < 0.05 * weight  # the accuracy of prediction without any plate
    for name in ("ankle_flexion_l", "knee_flexion_l", "hip_flexion_l"):
        off = [
            np.abs(data["torque"] - whole["torque"]).sel(coordinate=name).values[step].mean()
            for data in (found.data, bare.data)
        ]
        assert off[0] < 0.4 * off[1], name
    assert found.grf_source == SOURCE and found.grf_known.all() and not found.data["grf_complete"].values.all()
    assert found.data["grf_complete"].equals(bare.data["grf_complete"])
    # no discontinuity where measured and predicted forces meet
    jump = np.abs(np.diff(found.data["ground_reaction_force"].sel(foot="left", axis="z").values[step])).max()
    assert jump < 1.5 * np.abs(np.diff(whole["ground_reaction_force"].sel(foot="left", axis="z").values)).max()
    (note,) = [note for note in found.notes if note.code == "grf_predicted"]
    assert "1 left step " in note.text and note.kind == "problem"


def test_plates_that_record_every_step_are_left_alone():
    found, plates = (inverse_dynamics(walk(), forces=forces) for forces in (SOURCE, "plates"))
    assert plates.data["grf_complete"].values.all()
    assert found.data.identical(plates.data)


def test_stepped_torques_use_the_same_forces():
    motion, _ = hidden(walk(), "left", 0)
    short = replace(motion, data=motion.data.isel(time=slice(0, 140)))
    smooth, stepped = (inverse_dynamics(short, method=method, forces=SOURCE) for method in ("newton_euler", "stepped"))
    assert stepped.grf_source == SOURCE and "grf_source" in stepped.data
    assert len(set(stepped.notes)) == len(stepped.notes)
    apart = (stepped.data["ground_reaction_force"] - smooth.data["ground_reaction_force"]).values
    assert np.nanmax(np.abs(apart)) < 0.05 * motion.model.mass * 9.81  # a step has the mean of its span


def test_predicted_forces_are_not_compared_with_themselves():
    """A foot whose every step is off the plates is not compared; the other is as with the plates alone."""
    motion = walk()
    force = motion.recording.data["ground_reaction_force"].copy(deep=True)
    force.loc[{"foot": "left"}] = 0.0
    data = motion.recording.data.assign(ground_reaction_force=force)
    motion = replace(motion, recording=motion.recording.with_data(data))
    computed, weight = predict_grf(motion), motion.model.mass * 9.81
    filled, alone = (
        compare_feet(inverse_dynamics(motion, forces=forces).data, computed, weight) for forces in (SOURCE, "plates")
    )
    assert [one.foot for one in filled] == ["right"] and filled == alone


def test_steps_that_cannot_be_predicted_are_reported(monkeypatch):
    def no_soles(*_, **__):
        raise ModelError("its feet have no soles")

    motion, _ = hidden(walk(), "left", 0)
    monkeypatch.setattr("borelli.analysis.ground.off_plate_steps.solve_ground_reaction", no_soles)
    found = compute_torques(motion, AnalysisSettings())
    assert found.grf_source == "plates" and not found.grf_known.all()
    (note,) = [note for note in found.notes if "no soles" in note.text]
    assert note.kind == "problem" and note.code == "grf_incomplete"


def test_stepped_torques_filter_the_plates():
    motion = replace(walk(), data=walk().data.isel(time=slice(0, 60)))
    for given, used in ((10.0, 10.0), (None, 6.0), (0.0, None)):
        found = inverse_dynamics(motion, method="stepped", forces="plates", plate_cutoff=given)
        assert found.loads.cutoff == found.settings["plate_cutoff_hz"] == used


def test_torques_with_predicted_steps_are_restored_from_a_file(tmp_path):
    motion, _ = hidden(walk(), "left", 1)
    found = inverse_dynamics(motion, forces=SOURCE)
    write_stage(found, tmp_path / "torques.nc")
    again = read_stage(tmp_path / "torques.nc")
    assert again.grf_source == SOURCE and np.array_equal(again.grf_known, found.grf_known)
    assert np.array_equal(again.loads.computed, found.loads.computed) and again.loads.belt == found.loads.belt
    assert compute_energy(again).summary == pytest.approx(compute_energy(found).summary)


def test_two_loads_combine_to_one_wrench():
    rng = np.random.default_rng(2)
    one, two = (
        Loads(("a", "b"), ("x", "y"), np.arange(5.0), *(rng.normal(size=(3, 5, 2, 3)) + [[[[0.0, 0.0, 2.0]]]] * 3))
        for _ in range(2)
    )
    force, point, moment = _combine(one, two, np.full((5, 2), 0.5))
    about = moment + np.cross(point, force)
    assert np.allclose(force, one.force + two.force)
    assert np.allclose(about, sum(load.moment + np.cross(load.point, load.force) for load in (one, two)))


def test_a_foot_that_leaves_its_plate_midway_is_off_it_from_there():
    """Two feet alternate, 0.4 s each; the plate of the second records only the first half of its step."""
    time = np.arange(160) / 100.0
    needed = np.zeros((160, 2))
    for k in range(4):
        needed[40 * k : 40 * (k + 1), k % 2] = 1.0
    measured = needed.copy()
    measured[60:80, 1] = 0.6
    found = _off_plates(time, measured.sum(axis=1) > 0.9, needed, measured)
    assert not found[:60].any() and found[60:80, 1].all() and not found[80:].any()


def test_a_step_on_a_plate_is_kept_where_the_end_of_a_motion_needs_too_much():
    """A run that begins in flight: filtered accelerations err in its first frames, then force is needed too early."""
    time = np.arange(80) / 100.0
    needed, measured = np.zeros((80, 2)), np.zeros((80, 2))
    needed[:40, 0] = 2.5 * np.sin(np.pi * np.arange(40) / 40.0)
    measured[1:41, 0] = 2.4 * np.sin(np.pi * np.arange(40) / 40.0)
    needed[:8, 0] += np.linspace(0.8, 0.0, 8)
    complete = np.arange(80) >= 20
    assert not _off_plates(time, complete, needed, measured).any()
    assert _off_plates(time, complete, needed, 0.3 * measured)[:40, 0].all()  # half on the plate


def test_feet_that_land_together_are_on_their_plates():
    """The prediction has one foot land three frames before its plate records it; then both plates carry it all."""
    time = np.arange(80) / 100.0
    needed, measured = np.zeros((80, 2)), np.zeros((80, 2))
    needed[20:60, 0], needed[17:60, 1], measured[20:60] = 0.8, 0.8, 0.8
    complete = np.ones(80, bool)
    complete[17:35] = False
    assert not _off_plates(time, complete, needed, measured).any()
    needed[10:20, 1] = 0.8  # single support that lasts shows a step off the plate
    assert _off_plates(time, complete, needed, measured)[10:60, 1].all()


def test_work_is_summed_where_forces_are_known():
    motion = swinging(401)
    loads = supporting(motion)
    whole, part = (
        compute_energy(inverse_dynamics(motion, forces=one, plate_cutoff=0.0))
        for one in (loads, without(loads, 1.0, 1.6))
    )
    known = part.torques.grf_known
    assert part.summary["evaluated_s"] == pytest.approx(0.01 * (known[1:] & known[:-1]).sum())
    assert whole.summary["evaluated_s"] == pytest.approx(4.0)
    # in the frames that count the two are the same motion under the same forces
    power = np.maximum(whole.data["joint_power"].values[:, 6:], 0.0).sum(axis=1)
    counted = known[1:] & known[:-1]
    expected = (0.005 * (power[1:] + power[:-1]) * counted).sum()
    assert part.summary["positive_work_j"] == pytest.approx(expected, rel=1e-3)
    gained = part.summary["net_work_j"] + part.summary["residual_work_net_j"] + part.summary["ground_work_j"]
    assert gained == pytest.approx(part.summary["energy_change_j"], abs=1e-3 * part.summary["positive_work_j"])
    assert any(note.code == "evaluated_time" for note in part.notes) and not whole.notes
    assert part.torques.residual_force_rms < 0.05 * 70.0 * 9.81  # it is 0.4 of the weight with the incomplete frames


@pytest.mark.data
def test_hidden_steps_of_a_measured_walk_are_predicted():
    """subject01: each complete step with its plate removed, compared with what that plate measured."""
    trial = folder("subject01_walk")
    recording = add_plates(
        read_recording(trial / "subject01_walk1.trc"), read_recording(trial / "subject01_walk1_grf.mot")
    )
    recording = clean(recording, cutoff=None)
    motion = inverse_kinematics(fit_model(human(72.6, 1.8), [recording]).model, recording)
    whole = inverse_dynamics(motion, forces="plates").data
    time = whole["time"].values
    for foot, number in (("left", 0), ("left", 1), ("right", 0)):
        other, (start, stop) = hidden(motion, foot, number)
        found = inverse_dynamics(other, forces=SOURCE).data
        step = (time >= start) & (time <= stop)
        error = (
            100.0
            * (found["ground_reaction_force"] - whole["ground_reaction_force"]).sel(foot=foot).values[step]
            / (72.6 * 9.81)
        )
        along, aside, up = np.sqrt((error**2).mean(axis=0))
        # [% of body weight] measured: 1.6 to 1.9, 1.4 to 1.7, 2.5 to 2.9
        assert along < 2.5 and aside < 2.5 and up < 4.0
