"""Residual reduction: kinematics and loads adjusted within bounds, and a root tolerance."""

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads, plate_loads
from borelli.analysis.dynamics.torques import newton_euler_torques
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.analysis.residual_reduction.kinematics import adjust_kinematics
from borelli.analysis.residual_reduction.loads import adjust_loads
from borelli.analysis.stepped.stepped_torques import stepped_torques
from borelli.errors import SettingsError
from borelli.physics.inputs import Residual
from borelli.synthetic.recordings import synthetic_recording

TRANSLATION, ROTATION = 0.01, 0.03  # [m, rad]


@pytest.fixture(scope="module")
def walk():
    made = synthetic_recording("walk")
    return inverse_kinematics(made.model, made.recording), plate_loads(made.model, made.recording)


@pytest.fixture(scope="module")
def adjusted(walk):
    return adjust_kinematics(*walk, max_translation=TRANSLATION, max_rotation=ROTATION)


def test_the_residual_falls_and_the_adjustment_stays_within_bounds(adjusted):
    assert adjusted.after[0] < 0.5 * adjusted.before[0]
    assert adjusted.after[1] < 0.6 * adjusted.before[1]
    largest = np.abs(adjusted.adjustment).max(axis=0)
    names = [c.name for c in adjusted.motion.model.coordinates]
    bounds = {f"root_{axis}": TRANSLATION for axis in "xyz"}
    for name, value in zip(names, largest, strict=True):
        allowed = bounds.get(name, ROTATION if "sacral" in name else 0.0)
        assert value <= 1.05 * allowed + 1e-12, name  # after several linearizations it may end a little beyond


def test_the_outer_tenth_of_a_span_is_reduced_too(walk):
    """The root errs by 3 mm at 2 Hz. The motion joins the unchanged one with its acceleration."""
    motion, loads = walk
    q, time = motion.coordinates.copy(), motion.data["time"].values
    q[:, [c.name for c in motion.model.coordinates].index("root_z")] += 0.003 * np.sin(4.0 * np.pi * time)
    motion = make_motion(motion.model, q, time, motion.rate)
    curves = differentiate(motion)
    used = np.zeros(len(curves.time), bool)
    used[40:100] = True
    found = adjust_kinematics(motion, loads, max_translation=TRANSLATION, max_rotation=ROTATION, used=used)
    force = [
        np.linalg.norm(newton_euler_torques(one, differentiate(one), loads).data["residual_force"], axis=1)
        for one in (motion, found.motion)
    ]
    outer = np.r_[40 : 40 + round(0.1 * motion.rate), 100 - round(0.1 * motion.rate) : 100]
    before, after = (np.sqrt((one[outer] ** 2).mean()) for one in force)
    print(f"{before:.1f} to {after:.1f} N RMS")
    assert after < 0.75 * before
    bend = np.abs(np.diff(found.adjustment, 2, axis=0)).max(axis=1)
    assert (found.adjustment[~used] == 0.0).all()
    assert bend[[38, 39, 98, 99]].max() < bend[40:98].max()


def test_tighter_bounds_leave_a_larger_residual(walk, adjusted):
    tighter = adjust_kinematics(*walk, max_translation=0.2 * TRANSLATION, max_rotation=0.2 * ROTATION)
    assert adjusted.after[1] < tighter.after[1] < tighter.before[1]


def test_stepped_torques_adjust_kinematics(walk):
    motion, loads = walk
    plain = stepped_torques(motion, forces=loads)
    less = stepped_torques(motion, forces=loads, kinematic_tolerance=(TRANSLATION, ROTATION))
    inner = slice(5, -5)
    before, after = (np.abs(t.data["residual_moment"].values[inner]).mean() for t in (plain, less))
    assert after < before
    assert any(note.code == "adjusted_kinematics" for note in less.notes)


def test_forces_that_agree_leave_nothing_to_adjust(walk):
    """Loads that equal the residual, on the root: nothing is left, and nothing moves."""
    motion, _ = walk
    whole = stepped_torques(motion)
    data = whole.data
    root = motion.data["body_position"].sel(body="pelvis").values
    loads = Loads(
        ("root",), ("pelvis",), data["time"].values, data["residual_force"].values[:, None],
        root[: len(data["time"])][:, None], data["residual_moment"].values[:, None],
    )  # fmt: skip
    found = adjust_kinematics(motion, loads)
    assert found.before[0] < 20.0  # [N]: steps and splines differ a little
    assert found.after[0] <= found.before[0]


def test_within_its_tolerance_the_root_needs_no_residual(walk):
    motion, loads = walk
    translation, rotation = 0.02, 0.05
    torques = stepped_torques(motion, forces=loads, root_tolerance=(translation, rotation))
    data = torques.data
    wrench = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    acting = np.abs(wrench).max(axis=1) > 1e-6
    first = int(np.argmax(acting))
    free = data["time"].values[first] - data["time"].values[0]
    assert free > 0.2  # [s]: then it reaches the edge of its tolerance
    assert np.abs(wrench[:first]).max() < 1e-9
    error = np.abs(data["coordinate_error"].values).max(axis=0)
    assert error[:3].max() < 1.02 * translation  # a step's rows are linear
    assert error[3:6].max() < 1.03 * rotation
    assert np.all(error[6:] < rotation**2)  # joints track to second order in the rotation
    (note,) = [note for note in torques.notes if note.code == "root_tolerance"]
    assert f"needs no residual for {free:.2f} s" in note.text
    assert compute_energy(torques).balance_error < 1e-6
    tight = stepped_torques(motion, forces=loads, root_tolerance=(0.0, 0.0))
    plain = stepped_torques(motion, forces=loads)
    for name in ("residual_force", "residual_moment", "torque"):
        assert tight.data[name].values == pytest.approx(plain.data[name].values, abs=0.05)


def test_without_a_residual_the_root_leaves_its_path(walk):
    """The remaining residual drives it away; later if kinematics and loads are adjusted first."""
    motion, loads = walk
    times = []
    for options in ({}, {"kinematic_tolerance": (0.02, 0.05), "load_sd": (20.0, 0.005)}):
        torques = stepped_torques(motion, forces=loads, residual=0.0, **options)
        assert np.abs(torques.data["residual_force"].values).max() == 0.0
        away = np.linalg.norm(torques.data["coordinate_error"].values[:, :3], axis=1)
        times.append(float(torques.data["time"].values[np.argmax(away > 0.02)] - torques.data["time"].values[0]))
    assert 0.2 < times[0] < 0.5  # [s]: 0.32; it does not last a stride
    assert times[1] > 2.0 * times[0]  # 0.74


def test_measured_forces_are_adjusted_within_their_standard_deviations(walk):
    motion, loads = walk
    plain = stepped_torques(motion, forces=loads)
    exact, uncertain, unknown = (
        adjust_loads(motion, loads, force_sd=f, point_sd=p) for f, p in ((0, 0), (20, 0.005), (1e4, 1))
    )
    loads = loads.smoothed(6.0)  # as all of them are
    assert exact.force == pytest.approx(loads.force, abs=1e-9)
    shared = [stepped_torques(motion, forces=given) for given in (exact, uncertain, unknown)]
    for name in ("residual_force_rms", "residual_moment_rms"):
        left = [getattr(torques, name) for torques in shared]
        assert left[0] == pytest.approx(getattr(plain, name))
        assert left[0] > left[1] > left[2]
    smooth = [inverse_dynamics(motion, forces=given).residual_force_rms for given in (exact, unknown)]
    assert smooth[1] < 0.05 * smooth[0]  # plates of unknown accuracy take all of it
    change = (uncertain.force - loads.force)[loads.force[..., 2] > 50.0]
    assert 0.0 < np.sqrt(np.mean(change**2)) < 20.0  # [N]: the standard deviation
    known = np.isfinite(loads.point).all(axis=-1) & (loads.force[..., 2] > 50.0)
    assert np.sqrt(np.mean((uncertain.point - loads.point)[known] ** 2)) < 0.005  # [m]
    assert any(note.code == "adjusted_loads" and "20 N" in note.text for note in uncertain.notes)


def test_invalid_options_raise(walk):
    motion, loads = walk
    with pytest.raises(SettingsError, match="root_tolerance: Got -1"):
        stepped_torques(motion, root_tolerance=(-1.0, 0.0))
    with pytest.raises(SettingsError, match="root_tolerance: It applies to measured forces"):
        stepped_torques(motion, forces="contacts", root_tolerance=(0.01, 0.01))
    with pytest.raises(SettingsError, match="root_tolerance: It applies to the whole root"):
        stepped_torques(motion, root_tolerance=(0.01, 0.01), residual=[Residual("pelvis", 4, 5.0)])
    with pytest.raises(SettingsError, match="load_sd"):
        stepped_torques(motion, load_sd=(20.0, 0.005))
    with pytest.raises(SettingsError, match="load_sd: The force"):
        adjust_loads(motion, loads, force_sd=-1.0, point_sd=0.0)
    with pytest.raises(SettingsError, match="kinematic_tolerance"):
        adjust_kinematics(motion, loads, max_translation=0.0)
    with pytest.raises(SettingsError, match="kinematic_tolerance"):
        stepped_torques(motion, forces="contacts", kinematic_tolerance=(0.01, 0.01))
