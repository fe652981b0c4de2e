"""Torques: physical laws on synthetic motions, and OpenSim's own results on its own examples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.dynamics.external_loads import Loads, foot_bodies, measured_loads
from borelli.analysis.dynamics.torques import root_body
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.errors import ModelError, SettingsError
from borelli.model.kinematics import center_of_mass
from borelli.people.human import human
from borelli.synthetic.recordings import synthetic_recording

from ..opensim_trials import trial

MODEL = human(mass=70.0, height=1.75)
RATE = 100.0
WEIGHT = 70.0 * 9.81
SAME = 1e-9  # of the weight: round-off


def swinging(frames=201, seed=1):
    """Return a motion that sways in every coordinate, slowly enough for the filter."""
    rng = np.random.default_rng(seed)
    time = np.arange(frames) / RATE
    n = len(MODEL.coordinates)
    phase, size = rng.uniform(0.0, 6.28, n), rng.uniform(0.02, 0.15, n)
    q = size * np.sin(2.0 * np.pi * rng.uniform(0.3, 1.2, n) * time[:, None] + phase)
    q[:, 2] += 1.0
    return make_motion(MODEL, q, time, RATE)


def supporting(motion, **settings):
    """Return loads on the feet that support the motion: half of the root's wrench on each."""
    bare = inverse_dynamics(motion, forces=None, **settings)
    root = motion.data["body_position"].values[:, root_body(MODEL)]
    force = np.repeat(0.5 * bare.data["residual_force"].values[:, None], 2, axis=1)
    moment = np.repeat(0.5 * bare.data["residual_moment"].values[:, None], 2, axis=1)
    # the filtered root is where the torques were computed
    found = make_motion(MODEL, bare.data["coordinate_value"].values, motion.data["time"].values, RATE)
    root = found.data["body_position"].values[:, root_body(MODEL)]
    return Loads(("right", "left"), ("foot_r", "foot_l"), found.data["time"].values, force,
                 np.repeat(root[:, None], 2, axis=1), moment)  # fmt: skip


def test_parts_add_up_and_the_residual_obeys_newtons_law():
    motion = swinging()
    found = inverse_dynamics(motion, forces=None, filter="none")
    data = found.data
    parts = data["torque_inertial"] + data["torque_gravity"] + data["torque_ground"]
    assert np.allclose(parts, data["torque"], atol=1e-10)
    assert not data["torque_ground"].any()
    # Newton's law for the whole body, from the path of its center of mass
    curves = differentiate(motion, filter="none")
    step = 1e-3
    centers = [center_of_mass(MODEL, curves.at(curves.time + sign * step)[0]) for sign in (-1, 0, 1)]
    acceleration = (centers[0] - 2.0 * centers[1] + centers[2]) / step**2
    inner = slice(20, -20)  # beyond the ends the splines go on as reflected
    expected = 70.0 * (acceleration - np.array(MODEL.gravity))
    assert np.abs(data["residual_force"].values - expected)[inner].max() < 1e-3 * WEIGHT
    assert data.attrs["grf_source"] == "none" and data.attrs["root_body"] == "pelvis"


def test_loads_that_support_the_body_leave_no_residual():
    motion = swinging()
    found = inverse_dynamics(motion, forces=supporting(motion), plate_cutoff=0.0)  # of the filtered motion
    assert found.residual_force_rms < 1e-9 * WEIGHT
    assert found.residual_moment_rms < 1e-9 * WEIGHT
    assert found.grf_source == "plates"
    data = found.data
    # loads on the feet do not change the torques of the arms
    alone = inverse_dynamics(motion, forces=None).data["torque"].sel(coordinate="elbow_flexion_r")
    assert np.allclose(data["torque"].sel(coordinate="elbow_flexion_r"), alone, atol=1e-9)
    ankle = data["torque"].sel(coordinate="ankle_flexion_r").values
    assert np.abs(ankle).max() > 50.0  # the load acts at the pelvis, a leg away


def test_free_fall_needs_no_torques():
    time = np.arange(101) / RATE
    q = np.zeros((101, len(MODEL.coordinates)))
    q[:, 0], q[:, 2] = 1.5 * time, 2.0 - 0.5 * 9.81 * time**2
    found = inverse_dynamics(make_motion(MODEL, q, time, RATE), forces=None, filter="none")
    inner = slice(20, -20)  # the reflected ends break the parabola
    assert np.abs(found.data["torque"].values[inner]).max() < 1e-3
    assert np.abs(found.data["joint_reaction_force"].values[inner]).max() < 1e-3


def test_results_rotate_with_the_lab():
    """A rotation about the vertical rotates forces and leaves joint torques unchanged."""
    motion = swinging()
    angle = 0.7
    rotation = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    q = motion.coordinates.copy()
    q[:, :3] = q[:, :3] @ rotation.T + (3.0, -2.0, 0.0)
    # the root's Cardan angles are about x, then y, then z
    q[:, 3:6] = (Rotation.from_matrix(rotation) * Rotation.from_euler("XYZ", q[:, 3:6])).as_euler("XYZ")
    q[:, 3:6] = np.unwrap(q[:, 3:6], axis=0)
    rotated = make_motion(MODEL, q, motion.data["time"].values, RATE)
    first, second = (inverse_dynamics(one, forces=None).data for one in (motion, rotated))
    joints = slice(6, None)
    assert np.abs(first["torque"].values - second["torque"].values)[:, joints].max() < SAME * WEIGHT
    for name in ("residual_force", "residual_moment"):
        assert np.abs(first[name].values @ rotation.T - second[name].values).max() < SAME * WEIGHT
    forces = "joint_reaction_force"
    assert np.abs(first[forces].values @ rotation.T - second[forces].values).max() < SAME * WEIGHT


def test_mirrored_motion_gives_mirrored_results():
    """Swapping left and right swaps their torques, and changes the sign of lateral components."""
    motion = swinging()
    names = [c.name for c in MODEL.coordinates]
    swap = [names.index(n[:-2] + {"_r": "_l", "_l": "_r"}[n[-2:]]) if n[-2:] in ("_r", "_l") else i
            for i, n in enumerate(names)]  # fmt: skip
    # the human's coordinates of a side are mirror images; those of the trunk that bend or rotate sideways change sign
    sign = np.array([-1.0 if n in ("root_y", "root_roll", "root_yaw") or n.endswith(("_bending", "_rotation")) else 1.0
                     for n in names])  # fmt: skip
    mirrored = make_motion(MODEL, (motion.coordinates * sign)[:, swap], motion.data["time"].values, RATE)
    first, second = (inverse_dynamics(one, forces=None).data for one in (motion, mirrored))
    expected = (first["torque"].values * sign)[:, swap]
    assert np.abs(expected - second["torque"].values).max() < SAME * WEIGHT
    assert np.abs(first["residual_force"].values * (1.0, -1.0, 1.0) - second["residual_force"].values).max() < 1e-6


def test_unknown_options_are_refused():
    motion = swinging()
    for settings, words in (
        ({"method": "newton_oiler"}, "inverse dynamics method 'newton_oiler'"),
        ({"forces": "plate"}, "source of ground reaction forces"),
        ({"forces": "plates"}, "no recording"),
        ({"method": "stepped", "forces": "plate"}, "contacts"),
        ({"forces": "contacts"}, "source of ground reaction forces"),
        ({"substeps": 3}, "Unknown option of method .newton_euler. .substeps.*substeps"),
    ):
        with pytest.raises(SettingsError, match=words):
            inverse_dynamics(motion, **settings)


def test_hyphens_in_method_names_count_as_underscores():
    assert inverse_dynamics(swinging(), method="newton-euler", forces=None).settings["method"] == "newton_euler"


def test_default_forces_are_plates_then_predicted_then_none():
    made = synthetic_recording("walk")
    motion = inverse_kinematics(made.model, made.recording)
    chosen = {}
    for name, one in (
        ("plates", motion),
        ("predicted", replace(motion, recording=None)),
        ("none", swinging_without_feet()),
    ):
        torques = inverse_dynamics(one)
        (note,) = [note for note in torques.notes if note.code == "grf_source"]
        chosen[name] = (torques.grf_source, note.kind)
    assert chosen == {
        "plates": ("plates", "inferred"), "predicted": ("predicted", "inferred"), "none": ("none", "problem"),
    }  # fmt: skip
    assert inverse_dynamics(motion, forces=None).grf_source == "none"


def swinging_without_feet():
    """Return a motion of a model whose feet no name identifies."""
    motion = swinging()
    names = {name: f"part{i}" for i, name in enumerate(body.name for body in MODEL.bodies)}
    bodies = tuple(replace(body, name=names[body.name]) for body in MODEL.bodies)
    joints = tuple(
        replace(joint, parent=names.get(joint.parent, joint.parent), child=names[joint.child]) for joint in MODEL.joints
    )
    return replace(motion, model=replace(MODEL, bodies=bodies, joints=joints, markers=()))


def test_feet_are_identified_by_name():
    assert foot_bodies(MODEL) == {"right": "foot_r", "left": "foot_l"}
    with pytest.raises(ModelError, match="fot_r"):
        foot_bodies(MODEL, {"right": "fot_r"})


def test_loads_are_interpolated_and_zero_beyond_the_ends():
    time = np.array([0.0, 0.1, 0.2])
    force = np.zeros((3, 1, 3))
    force[:, 0, 2] = (0.0, 100.0, 200.0)
    point = np.full((3, 1, 3), np.nan)
    point[1:, 0] = ((1.0, 0.0, 0.0), (2.0, 0.0, 0.0))
    loads = Loads(("right",), ("foot_r",), time, force, point, np.zeros((3, 1, 3)))
    now = loads.at(np.array([-1.0, 0.05, 0.15, 0.2, 1.0]))
    assert now.force[:, 0, 2].tolist() == pytest.approx([0.0, 50.0, 150.0, 200.0, 0.0])
    assert now.point[:4, 0, 0].tolist() == pytest.approx([1.0, 1.0, 1.5, 2.0])


def test_nan_samples_count_as_zero_load():
    force = np.zeros((3, 1, 3))
    force[:, 0, 2] = (100.0, np.nan, 100.0)
    loads = measured_loads(Loads(("right",), ("foot_r",), np.arange(3.0), force, 0.0 * force, np.zeros((3, 1, 3))))
    assert loads.force[:, 0, 2].tolist() == [100.0, 0.0, 100.0]
    assert loads.notes[0].code == "plate_nan" and "1 of 3" in loads.notes[0].text
    with pytest.raises(SettingsError, match="there are 1"):
        measured_loads(Loads(("right",), ("foot_r",), np.zeros(1), force[:1], force[:1], force[:1]))


def errors(found, reference, *, residuals):
    """Return the RMS difference in % of each peak, by coordinate, of peaks above 10 N m or N."""
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
def test_moments_agree_with_opensim(name, parity, own):
    """Limits in % of each peak; measured 0.04, 0.08 and 0.34, residuals too; default 1.1, 2.0, 6.4."""
    motion, loads, reference = trial(name)
    found = inverse_dynamics(motion, forces=loads, filter="opensim", cutoff=6.0)
    for residuals in (False, True):
        off = errors(found, reference, residuals=residuals)
        assert off and max(off.values()) < parity, off
    # OpenSim does not filter the loads
    default = errors(inverse_dynamics(motion, forces=loads, plate_cutoff=0.0), reference, residuals=False)
    assert max(default.values()) < own, default
