"""Residuals traded for a stated deviation."""

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads, plate_loads
from borelli.analysis.dynamics.torques import inverse_dynamics
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.residual_reduction.kinematics import adjust_kinematics
from borelli.analysis.residual_reduction.loads import adjust_loads
from borelli.analysis.stepped.stepped_torques import stepped_torques
from borelli.errors import SettingsError
from borelli.physics.inputs import Residual
from borelli.synthetic.recordings import synthetic_recording

SHIFT, TURN = 0.01, 0.03  # [m, rad]


@pytest.fixture(scope="module")
def walk():
    made = synthetic_recording("walk")
    return inverse_kinematics(made.model, made.recording), plate_loads(made.model, made.recording)


@pytest.fixture(scope="module")
def traded(walk):
    return adjust_kinematics(*walk, shift=SHIFT, turn=TURN)


def test_the_residual_falls_and_the_deviation_stays_as_stated(traded):
    assert traded.after[0] < 0.5 * traded.before[0]
    assert traded.after[1] < 0.6 * traded.before[1]
    most = np.abs(traded.deviation).max(axis=0)
    names = [c.name for c in traded.motion.model.coordinates]
    for name, value in zip(names, most, strict=True):
        allowed = {"root_x": SHIFT, "root_y": SHIFT, "root_z": SHIFT}.get(name, TURN if "sacral" in name else 0.0)
        assert value <= 1.05 * allowed + 1e-12, name  # made linear anew, it may end a little beyond


def test_less_freedom_leaves_more(walk, traded):
    tighter = adjust_kinematics(*walk, shift=0.2 * SHIFT, turn=0.2 * TURN)
    assert traded.after[1] < tighter.after[1] < tighter.before[1]


def test_stepped_torques_take_the_trade(walk):
    motion, loads = walk
    plain = stepped_torques(motion, forces=loads)
    less = stepped_torques(motion, forces=loads, kinematic_tolerance=(SHIFT, TURN))
    inner = slice(5, -5)
    before, after = (np.abs(t.data["residual_moment"].values[inner]).mean() for t in (plain, less))
    assert after < before
    assert any("residual lowered" in note.text for note in less.notes)


def test_forces_that_agree_leave_nothing_to_trade(walk):
    """Loads that are the residual itself, on the root: nothing is left, and nothing moves."""
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


def test_within_its_slack_the_root_needs_no_residual(walk):
    motion, loads = walk
    shift, turn = 0.02, 0.05
    torques = stepped_torques(motion, forces=loads, root_tolerance=(shift, turn))
    data = torques.data
    wrench = np.concatenate([data["residual_force"].values, data["residual_moment"].values], axis=1)
    acting = np.abs(wrench).max(axis=1) > 1e-6
    first = int(np.argmax(acting))
    assert data["time"].values[first] - data["time"].values[0] > 0.2  # [s]: then it leans on the edge of its slack
    assert np.abs(wrench[:first]).max() < 1e-9
    deviation = np.abs(data["deviation"].values).max(axis=0)
    assert deviation[:3].max() < 1.02 * shift  # a step's rows are linear
    assert deviation[3:6].max() < 1.03 * turn
    assert np.all(deviation[6:] < turn**2)  # joints go as they should, to second order in the turn
    assert any("needs no residual for 0.2" in note.text for note in torques.notes)
    assert compute_energy(torques).balance_error < 1e-6
    tight = stepped_torques(motion, forces=loads, root_tolerance=(0.0, 0.0))
    plain = stepped_torques(motion, forces=loads)
    for name in ("residual_force", "residual_moment", "torque"):
        assert tight.data[name].values == pytest.approx(plain.data[name].values, abs=0.05)


def test_without_a_residual_the_root_leaves_its_path(walk):
    """What is left of the residual drives it away; traded beforehand and shared with the plates, later."""
    motion, loads = walk
    times = []
    for settings in ({}, {"trade": (0.02, 0.05), "doubt": (20.0, 0.005)}):
        torques = stepped_torques(motion, forces=loads, residual=0.0, **settings)
        assert np.abs(torques.data["residual_force"].values).max() == 0.0
        away = np.linalg.norm(torques.data["deviation"].values[:, :3], axis=1)
        times.append(float(torques.data["time"].values[np.argmax(away > 0.02)] - torques.data["time"].values[0]))
    assert 0.2 < times[0] < 0.5  # [s]: 0.32; it does not last a stride
    assert times[1] > 2.0 * times[0]  # 0.74


def test_measured_forces_give_way_within_their_doubt(walk):
    motion, loads = walk
    plain = stepped_torques(motion, forces=loads)
    sure, doubted, lost = (adjust_loads(motion, loads, force=f, point=p) for f, p in ((0, 0), (20, 0.005), (1e4, 1)))
    assert sure.force == pytest.approx(loads.force, abs=1e-9)
    shared = [stepped_torques(motion, forces=given) for given in (sure, doubted, lost)]
    for name in ("residual_force_rms", "residual_torque_rms"):
        left = [getattr(torques, name) for torques in shared]
        assert left[0] == pytest.approx(getattr(plain, name))
        assert left[0] > left[1] > left[2]
    smooth = [inverse_dynamics(motion, forces=given).residual_force_rms for given in (sure, lost)]
    assert smooth[1] < 0.05 * smooth[0]  # plates that know nothing take it all
    change = (doubted.force - loads.force)[loads.force[..., 2] > 50.0]
    assert 0.0 < np.sqrt(np.mean(change**2)) < 20.0  # [N]: the doubt
    known = np.isfinite(loads.point).all(axis=-1) & (loads.force[..., 2] > 50.0)
    assert np.sqrt(np.mean((doubted.point - loads.point)[known] ** 2)) < 0.005  # [m]
    assert any("their doubt being 20 N" in note.text for note in doubted.notes)


def test_refusals(walk):
    motion, loads = walk
    with pytest.raises(SettingsError, match="slack"):
        stepped_torques(motion, root_tolerance=(-1.0, 0.0))
    with pytest.raises(SettingsError, match="slack frees the root from measured forces"):
        stepped_torques(motion, forces="contacts", root_tolerance=(0.01, 0.01))
    with pytest.raises(SettingsError, match="slack"):
        stepped_torques(motion, root_tolerance=(0.01, 0.01), residual=[Residual("pelvis", 4, 5.0)])
    with pytest.raises(SettingsError, match="doubt"):
        stepped_torques(motion, load_sd=(20.0, 0.005))
    with pytest.raises(SettingsError, match="doubt in force"):
        adjust_loads(motion, loads, force=-1.0, point=0.0)
    with pytest.raises(SettingsError, match="shift"):
        adjust_kinematics(motion, loads, shift=0.0)
    with pytest.raises(SettingsError, match="trade"):
        stepped_torques(motion, forces="contacts", kinematic_tolerance=(0.01, 0.01))
