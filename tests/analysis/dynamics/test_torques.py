"""Torques: laws on motions made by hand, and OpenSim's own results on its own examples."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.dynamics.external_loads import Loads, foot_bodies, measured_loads
from borelli.analysis.dynamics.torques import inverse_dynamics, root_body
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.errors import ModelError, SettingsError
from borelli.model.kinematics import center_of_mass
from borelli.model.people.human import human

from ..opensim_trials import trial

MODEL = human(mass=70.0, height=1.75)
RATE = 100.0
WEIGHT = 70.0 * 9.81
SAME = 1e-9  # of the weight: round-off


def swinging(frames=201, seed=1):
    """A body that sways in every coordinate, slowly enough for the filter."""
    rng = np.random.default_rng(seed)
    time = np.arange(frames) / RATE
    n = len(MODEL.coordinates)
    phase, size = rng.uniform(0.0, 6.28, n), rng.uniform(0.02, 0.15, n)
    q = size * np.sin(2.0 * np.pi * rng.uniform(0.3, 1.2, n) * time[:, None] + phase)
    q[:, 2] += 1.0
    return make_motion(MODEL, q, time, RATE)


def supporting(motion, **settings):
    """Loads on the feet that hold and move the body as it moves: half of the root's wrench on each."""
    bare = inverse_dynamics(motion, **settings)
    root = motion.data["body_position"].values[:, root_body(MODEL)]
    force = np.repeat(0.5 * bare.data["residual_force"].values[:, None], 2, axis=1)
    moment = np.repeat(0.5 * bare.data["residual_moment"].values[:, None], 2, axis=1)
    # the filtered root is where the torques were computed
    found = make_motion(MODEL, bare.data["coordinate_value"].values, motion.data["time"].values, RATE)
    root = found.data["body_position"].values[:, root_body(MODEL)]
    return Loads(("right", "left"), ("foot_r", "foot_l"), found.data["time"].values, force,
                 np.repeat(root[:, None], 2, axis=1), moment)  # fmt: skip


def test_parts_add_up_and_the_residual_moves_the_whole():
    motion = swinging()
    found = inverse_dynamics(motion, filter="none")
    data = found.data
    parts = data["torque_inertial"] + data["torque_gravity"] + data["torque_ground"]
    assert np.allclose(parts, data["torque"], atol=1e-10)
    assert not data["torque_ground"].any()
    # Newton for the whole body, from where its centre of mass goes
    curves = differentiate(motion, filter="none")
    step = 1e-3
    centers = [center_of_mass(MODEL, curves.at(curves.time + way * step)[0]) for way in (-1, 0, 1)]
    acceleration = (centers[0] - 2.0 * centers[1] + centers[2]) / step**2
    inner = slice(20, -20)  # beyond the ends the splines go on as reflected
    expected = 70.0 * (acceleration - np.array(MODEL.gravity))
    assert np.abs(data["residual_force"].values - expected)[inner].max() < 1e-3 * WEIGHT
    assert data.attrs["grf_source"] == "none" and data.attrs["root_body"] == "pelvis"


def test_loads_that_support_the_body_leave_no_residual():
    motion = swinging()
    found = inverse_dynamics(motion, forces=supporting(motion))
    assert found.residual_force_rms < 1e-9 * WEIGHT
    assert found.residual_moment_rms < 1e-9 * WEIGHT
    assert found.grf_source == "plates"
    data = found.data
    # arms hang on the trunk: what the feet carry does not change them
    alone = inverse_dynamics(motion).data["torque"].sel(coordinate="elbow_flexion_r")
    assert np.allclose(data["torque"].sel(coordinate="elbow_flexion_r"), alone, atol=1e-9)
    ankle = data["torque"].sel(coordinate="ankle_flexion_r").values
    assert np.abs(ankle).max() > 50.0  # the load acts at the pelvis, a leg away


def test_a_body_in_free_fall_needs_no_torques():
    time = np.arange(101) / RATE
    q = np.zeros((101, len(MODEL.coordinates)))
    q[:, 0], q[:, 2] = 1.5 * time, 2.0 - 0.5 * 9.81 * time**2
    found = inverse_dynamics(make_motion(MODEL, q, time, RATE), filter="none")
    inner = slice(20, -20)  # the reflected ends break the parabola
    assert np.abs(found.data["torque"].values[inner]).max() < 1e-3
    assert np.abs(found.data["joint_reaction_force"].values[inner]).max() < 1e-3


def test_turning_the_lab_turns_the_results():
    """Turned about the vertical, forces turn along and joint torques stay."""
    motion = swinging()
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    q = motion.coordinates.copy()
    q[:, :3] = q[:, :3] @ turn.T + (3.0, -2.0, 0.0)
    # the root's Cardan angles are about x, then y, then z
    q[:, 3:6] = (Rotation.from_matrix(turn) * Rotation.from_euler("XYZ", q[:, 3:6])).as_euler("XYZ")
    q[:, 3:6] = np.unwrap(q[:, 3:6], axis=0)
    turned = make_motion(MODEL, q, motion.data["time"].values, RATE)
    first, second = (inverse_dynamics(one).data for one in (motion, turned))
    joints = slice(6, None)
    assert np.abs(first["torque"].values - second["torque"].values)[:, joints].max() < SAME * WEIGHT
    for name in ("residual_force", "residual_moment"):
        assert np.abs(first[name].values @ turn.T - second[name].values).max() < SAME * WEIGHT
    forces = "joint_reaction_force"
    assert np.abs(first[forces].values @ turn.T - second[forces].values).max() < SAME * WEIGHT


def test_mirroring_the_motion_mirrors_the_results():
    """Left and right exchanged: so are their torques, and what points sideways changes its sign."""
    motion = swinging()
    names = [c.name for c in MODEL.coordinates]
    swap = [names.index(n[:-2] + {"_r": "_l", "_l": "_r"}[n[-2:]]) if n[-2:] in ("_r", "_l") else i
            for i, n in enumerate(names)]  # fmt: skip
    # the human's coordinates of a side are mirror images; those of the middle that lean or turn sideways change sign
    sign = np.array([-1.0 if n in ("root_y", "root_roll", "root_yaw") or n.endswith(("_bending", "_rotation")) else 1.0
                     for n in names])  # fmt: skip
    mirrored = make_motion(MODEL, (motion.coordinates * sign)[:, swap], motion.data["time"].values, RATE)
    first, second = (inverse_dynamics(one).data for one in (motion, mirrored))
    expected = (first["torque"].values * sign)[:, swap]
    assert np.abs(expected - second["torque"].values).max() < SAME * WEIGHT
    assert np.abs(first["residual_force"].values * (1.0, -1.0, 1.0) - second["residual_force"].values).max() < 1e-6


def test_what_is_asked_must_be_there():
    motion = swinging()
    for settings, words in (
        ({"method": "smoth"}, "unknown method"),
        ({"forces": "plate"}, "unknown source"),
        ({"forces": "plates"}, "no recording"),
        ({"limit": 3.0}, "no setting 'limit'"),
    ):
        with pytest.raises(SettingsError, match=words):
            inverse_dynamics(motion, **settings)


def test_feet_are_known_by_name():
    assert foot_bodies(MODEL) == {"right": "foot_r", "left": "foot_l"}
    with pytest.raises(ModelError, match="fot_r"):
        foot_bodies(MODEL, {"right": "fot_r"})


def test_loads_between_samples_and_beyond():
    time = np.array([0.0, 0.1, 0.2])
    force = np.zeros((3, 1, 3))
    force[:, 0, 2] = (0.0, 100.0, 200.0)
    point = np.full((3, 1, 3), np.nan)
    point[1:, 0] = ((1.0, 0.0, 0.0), (2.0, 0.0, 0.0))
    loads = Loads(("right",), ("foot_r",), time, force, point, np.zeros((3, 1, 3)))
    now = loads.at(np.array([-1.0, 0.05, 0.15, 0.2, 1.0]))
    assert now.force[:, 0, 2].tolist() == pytest.approx([0.0, 50.0, 150.0, 200.0, 0.0])
    assert now.point[:4, 0, 0].tolist() == pytest.approx([1.0, 1.0, 1.5, 2.0])


def test_samples_that_are_no_numbers_carry_nothing():
    force = np.zeros((3, 1, 3))
    force[:, 0, 2] = (100.0, np.nan, 100.0)
    loads = measured_loads(("right",), ("foot_r",), np.arange(3.0), force, 0.0 * force, 0.0 * np.ones((3, 1, 3)))
    assert loads.force[:, 0, 2].tolist() == [100.0, 0.0, 100.0]
    assert "1 of 3 samples" in loads.notes[0].text
    with pytest.raises(SettingsError, match="1 samples"):
        measured_loads(("right",), ("foot_r",), np.zeros(1), force[:1], force[:1], force[:1])


def errors(found, reference, *, residuals):
    """RMS difference in % of each peak, by coordinate, of those that reach 10 N m or N."""
    result = {}
    for name, expected in reference.items():
        peak = np.abs(expected).max()
        if peak > 10.0 and name.startswith("pelvis_") == residuals:
            off = found.data["torque"].sel(coordinate=name).values[: len(expected)] - expected
            result[name] = 100.0 * np.sqrt(np.mean(off**2)) / peak
    return result


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "parity", "own"),
    [("gait10dof18musc", 0.1, 3.0), ("gait2354", 0.1, 3.0), ("rajagopal2015_run_bmclab", 0.5, 10.0)],
)
def test_moments_are_those_of_opensim(name, parity, own):
    """Limits in % of each peak (spec mocap, 7); measured 0.04, 0.08 and 0.34, residuals too; default 1.1, 2.0, 6.4."""
    motion, loads, reference = trial(name)
    found = inverse_dynamics(motion, forces=loads, filter="opensim", cutoff=6.0)
    for residuals in (False, True):
        off = errors(found, reference, residuals=residuals)
        assert off and max(off.values()) < parity, off
    ours = errors(inverse_dynamics(motion, forces=loads), reference, residuals=False)
    assert max(ours.values()) < own, ours
