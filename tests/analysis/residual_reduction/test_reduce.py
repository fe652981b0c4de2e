"""Residual reduction for use: errors that were put in are found, the total mass stays, frames off the plates too."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.ground.off_plate_steps import SOURCE
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.residual_reduction.masses import _with_changes
from borelli.analysis.residual_reduction.reduce import ReductionBounds, unreduced_model
from borelli.errors import SettingsError
from borelli.model.resize import scale_mass
from borelli.numerics.runs import find_runs
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.synthetic.recordings import synthetic_recording

OFFSET = np.array([0.006, -0.004, 0.0])  # [m]


@cache
def walk():
    """Return the motion of noisy markers of the synthetic walk on plates."""
    made = synthetic_recording("walk")
    return inverse_kinematics(made.model, clean(made.recording, cutoff=None))


def with_plates(motion, offset):
    """Return the motion as if the plates had been displaced (3,) [m]."""
    data = motion.recording.data
    moved = data["center_of_pressure"].copy(data=data["center_of_pressure"].values + offset)
    return replace(motion, recording=motion.recording.with_data(data.assign(center_of_pressure=moved)))


@cache
def reduced(forces="plates"):
    return inverse_dynamics(with_plates(walk(), OFFSET), forces=forces, residual="reduce")


def test_a_plate_offset_is_found():
    """Plates that are 6 and 4 mm off are moved back; half the bound is one standard deviation of what is expected."""
    found = reduced().settings["residual_reduction"]
    without = inverse_dynamics(walk(), forces="plates", residual="reduce").settings["residual_reduction"]
    back = np.subtract(found["plate_offset_m"], without["plate_offset_m"])
    assert np.abs(back + OFFSET).max() < 0.0015
    assert np.abs(found["plate_offset_m"]).max() <= 0.01
    assert found["after"]["moment_rms"] < 0.5 * found["before"]["moment_rms"]


def test_what_is_reported_is_what_was_computed():
    """Gain, price and changes are those of separate analyses of the motion before and after."""
    found, before = reduced(), inverse_dynamics(with_plates(walk(), OFFSET), forces="plates")
    stated = found.settings["residual_reduction"]
    time = before.data["time"].values
    used = before.evaluated & (time > time[0] + 0.0999) & (time < time[-1] - 0.0999)
    for torques, key in ((before, "before"), (found, "after")):
        force = np.linalg.norm(torques.data["residual_force"].values[used], axis=1)
        assert stated[key]["force_rms"] == pytest.approx(np.sqrt((force**2).mean()))
        assert stated[key]["force_peak"] == pytest.approx(force.max())
    markers = np.linalg.norm(found.motion.data["model_marker_position"] - found.motion.data["marker_position"], axis=-1)
    assert stated["marker_rms_mm"][1] == pytest.approx(1e3 * np.sqrt(np.nanmean(markers**2)))
    (note,) = [note for note in found.notes if note.code == "residual_reduction"]
    assert f"to {stated['after']['force_rms']:.1f} N RMS" in note.text and "Price: marker error" in note.text
    change = found.motion.coordinates - walk().coordinates
    names = [c.name for c in walk().model.coordinates]
    for name, largest in zip(names, np.abs(change).max(axis=0), strict=True):
        bound = 0.002 if name in ("root_x", "root_y", "root_z") else np.radians(0.5) if "sacral" in name else 0.0
        assert largest <= bound * (1.0 + 1e-9), name
    assert unreduced_model(found.motion.model, found.settings) == walk().model


def test_a_wrong_mass_becomes_that_of_the_plates():
    """A model 6 % too heavy, and with its mass in other segments, gets the mass that the plates weigh."""
    motion = walk()
    heavy = scale_mass(motion.model, 1.06 * motion.model.mass)
    found = inverse_dynamics(replace(motion, model=heavy), forces="plates", residual="reduce")
    plain = inverse_dynamics(replace(motion, model=heavy), forces="plates")
    assert found.motion.model.mass == pytest.approx(plain.data.attrs["plate_mass_kg"], rel=1e-12)
    assert found.motion.model.mass == pytest.approx(68.0, rel=0.01)  # the synthetic subject's
    assert found.residual_force_rms < 0.5 * plain.residual_force_rms
    assert abs(found.data["residual_force"].values[found.evaluated].mean(axis=0)[2]) < 5.0  # [N] of 40


def test_masses_in_other_segments_are_found():
    """Thighs 8 % too light and the trunk as much heavier: the residual falls, and masses move towards the truth."""
    motion = walk()
    names = [body.name for body in motion.model.bodies]
    thighs, trunk = [names.index("thigh_r"), names.index("thigh_l")], names.index("upper_torso")
    lost = 0.08 * sum(motion.model.bodies[i].mass for i in thighs)
    wrong = _with_changes(
        motion.model, [thighs, [trunk]], trunk, np.array([-0.08, lost / motion.model.bodies[trunk].mass, 0.0, 0.0, 0.0])
    )
    found = inverse_dynamics(replace(motion, model=wrong), forces="plates", residual="reduce")
    truth = inverse_dynamics(motion, forces="plates", residual="reduce")
    change = {name: found.motion.model.body(name).mass - truth.motion.model.body(name).mass for name in names}
    before = {body.name: body.mass - motion.model.body(body.name).mass for body in wrong.bodies}
    # partly: thighs and trunk move alike in walking
    assert abs(change["thigh_r"]) < abs(before["thigh_r"])
    assert abs(change["upper_torso"]) < abs(before["upper_torso"])


def test_frames_off_the_plates_are_unchanged_to_the_bit():
    """A step off the plates: outside the frames that plates cover the coordinates are those of before."""
    motion = walk()
    data = motion.recording.data
    force = data["ground_reaction_force"].values.copy()
    side = list(data["foot"].values).index("left")
    a, b = [run for run in find_runs(force[:, side, 2] > 0.0) if run[1] - run[0] > 100][1]
    force[a:b, side] = 0.0
    left_out = data["ground_reaction_force"].copy(data=force)
    motion = replace(motion, recording=motion.recording.with_data(data.assign(ground_reaction_force=left_out)))
    found = inverse_dynamics(motion, forces=SOURCE, residual="reduce")
    complete = inverse_dynamics(motion, forces=SOURCE).data["grf_complete"].values
    assert 0.2 < complete.mean() < 0.9
    assert np.array_equal(found.motion.coordinates[~complete], motion.coordinates[~complete])
    moved = np.abs(found.motion.coordinates - motion.coordinates)[complete].max(axis=0)
    assert 0.0 < moved[:3].max() <= 0.002 * (1.0 + 1e-9)
    for name in ("body_position", "marker_error"):
        first, second = (one.data[name].values[~complete] for one in (found.motion, motion))
        assert np.array_equal(first, second, equal_nan=True), name
    assert found.grf_source == SOURCE


def test_wider_bounds_lower_the_residual_and_cost_markers():
    wide = ReductionBounds(translation=0.005, rotation=float(np.radians(1.0)))
    found = inverse_dynamics(with_plates(walk(), OFFSET), forces="plates", residual=wide)
    first, second = (one.settings["residual_reduction"] for one in (reduced(), found))
    assert second["after"]["moment_rms"] < first["after"]["moment_rms"]
    assert second["marker_rms_mm"][1] > first["marker_rms_mm"][1] > first["marker_rms_mm"][0]


def test_without_plates_it_is_refused():
    with pytest.raises(SettingsError, match="--reduce-residuals: No foot is on a force plate"):
        compute_torques(walk(), AnalysisSettings(plates=False, reduce_residuals=True))
    with pytest.raises(SettingsError, match="newton_euler"):
        AnalysisSettings(id_method="stepped", reduce_residuals=True)
    with pytest.raises(SettingsError, match="measured"):
        inverse_dynamics(walk(), forces="predicted", residual="reduce")
