"""Framewise inverse kinematics: known motions are recovered, and problems are reported."""

from dataclasses import replace

import numpy as np
import pytest

import borelli as bo
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.framewise_ik import IkProblem, make_ik_problem, solve_poses
from borelli.analysis.kinematics.smoothing_system import differentiate, rest_energy
from borelli.analysis.motion import make_motion, match_markers, to_model_axes
from borelli.model.kinematics import marker_positions, root_coordinates
from borelli.model.model import Marker
from borelli.recording.recording import Recording, make_dataset

RATE = 100.0
FRAMES = 40


def swing(model, frames=FRAMES, seed=1):
    """Return coordinates that swing slowly within their limits while the body travels."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / RATE
    q = np.array([c.default for c in model.coordinates]) + np.zeros((frames, 1))
    low = np.array([max(c.lower, -1.0) for c in model.coordinates])
    high = np.array([min(c.upper, 1.0) for c in model.coordinates])
    midpoint, amplitude = 0.5 * (low + high), 0.2 * (high - low)
    rotational = np.array([c.rotational for c in model.coordinates])
    angle = 2.0 * np.pi * rng.uniform(0.5, 1.5, len(low)) * t + rng.uniform(0, 6, len(low))
    q[:, rotational] = (midpoint + amplitude * np.sin(angle))[:, rotational]
    q[:, :3] += t * [1.2, 0.3, 0.0]
    return q


def record(model, q, labels=None):
    markers = marker_positions(model, q) @ to_model_axes(model)
    names = labels or [marker.name for marker in model.markers]
    data = make_dataset({"marker_position": markers}, {"marker": names}, rate=RATE)
    return Recording(data, "synthetic")


def with_markers(recording, markers):
    return Recording(make_dataset({"marker_position": markers}, {"marker": recording.markers}, rate=RATE))


@pytest.fixture(scope="module")
def human():
    return bo.human(75.0, 1.75, markers="cmu41")


def test_known_motion_is_recovered(human):
    q = swing(human)
    motion = inverse_kinematics(human, record(human, q), pose_stiffness=0.0)
    found = motion.coordinates
    markers = marker_positions(human, found)
    assert motion.marker_rms < 1e-9
    assert np.abs(markers - marker_positions(human, q)).max() < 1e-8
    knees = [i for i, c in enumerate(human.coordinates) if c.name.startswith(("knee_flexion", "hip_flexion"))]
    assert np.abs(found[:, knees] - q[:, knees]).max() < 1e-7


def test_dimensions_units_and_names_of_a_motion(human):
    motion = inverse_kinematics(human, record(human, swing(human, 3)))
    data = motion.data
    assert data["coordinate_value"].dims == ("time", "coordinate")
    assert data["marker_error"].attrs["units"] == "m"
    assert list(data["coordinate"].values) == [c.name for c in human.coordinates]
    assert np.allclose(np.linalg.norm(data["body_orientation"].values, axis=-1), 1.0, atol=1e-12)
    assert motion.rate == RATE


def test_motion_rotates_and_translates_with_the_recording(human):
    q = swing(human)
    recording = record(human, q)
    noisy = recording.data["marker_position"].values + np.random.default_rng(0).normal(0.0, 0.002, (FRAMES, 41, 3))
    plain = inverse_kinematics(human, with_markers(recording, noisy))
    angle = 2.1
    rotation = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
    there = noisy @ rotation.T + [3.0, -5.0, 0.2]
    rotated = inverse_kinematics(human, with_markers(recording, there))
    inner = [i for i, c in enumerate(human.coordinates) if not c.name.startswith("root_")]
    assert np.abs(rotated.coordinates[:, inner] - plain.coordinates[:, inner]).max() < 1e-6
    expected = plain.data["body_position"].values @ rotation.T + [3.0, -5.0, 0.2]
    assert np.abs(rotated.data["body_position"].values - expected).max() < 1e-6


def test_prefix_and_case_of_labels_are_ignored(human):
    names = [f"Bob:{marker.name.lower()}" for marker in human.markers]
    motion = inverse_kinematics(human, record(human, swing(human, 3), names))
    assert motion.marker_rms < 0.01
    assert len(motion.data["marker"]) == 41


def test_aliases_are_tried_after_names():
    markers = (Marker("A", "x", (0.0, 0.0, 0.0), aliases=("R.Knee",)), Marker("B", "x", (0.0, 0.0, 0.0)))
    assert match_markers(markers, ["R.Knee", "C"]) == [0, -1]
    assert match_markers(markers, ["R.Knee", "A"]) == [1, -1]


def test_missing_samples_have_no_weight(human):
    q = swing(human)
    recording = record(human, q)
    markers = recording.data["marker_position"].values.copy()
    rng = np.random.default_rng(3)
    markers[rng.random(markers.shape[:2]) < 0.15] = np.nan
    motion = inverse_kinematics(human, with_markers(recording, markers))
    assert motion.marker_rms < 0.002
    assert np.isnan(motion.data["marker_error"].values).any()


def test_frames_without_markers_have_no_pose_and_a_note(human):
    recording = record(human, swing(human))
    markers = recording.data["marker_position"].values.copy()
    markers[10:13] = np.nan
    motion = inverse_kinematics(human, with_markers(recording, markers))
    assert np.isnan(motion.coordinates[10:13]).all()
    assert np.isfinite(np.delete(motion.coordinates, [10, 11, 12], axis=0)).all()
    assert any(note.code == "frames_without_pose" and "3 of 40" in note.text for note in motion.notes)


def test_poses_stay_within_joint_limits(human):
    """A knee bent the wrong way stays at its limit, which a note reports with the frames."""
    q = swing(human)
    knee = [c.name for c in human.coordinates].index("knee_flexion_r")
    q[10:20, knee] = -0.4
    motion = inverse_kinematics(human, record(human, q))
    assert (motion.coordinates[:, knee] >= human.coordinates[knee].lower).all()
    (note,) = (note for note in motion.notes if note.code == "coordinate_limits")
    times = "frames 10 to 19, {:.2f} to {:.2f} s".format(*motion.data["time"].values[[10, 19]])
    assert f"knee_flexion_r at -10 degrees ({times})" in note.text and note.kind == "problem"


def test_coordinates_without_markers_are_not_pushed(human):
    """Without markers on the forearms and hands, elbows rest at their limit; markers do not push them there."""
    distal = [f"{body}_{side}" for body in ("forearm", "hand") for side in "rl"]
    bare = replace(human, markers=tuple(m for m in human.markers if m.body not in distal))
    straight = {f"elbow_flexion_{side}": 0.0 for side in "rl"}
    bare = replace(bare, joints=tuple(_resting(joint, straight) for joint in bare.joints))
    motion = inverse_kinematics(bare, record(human, swing(human)))
    assert bare.coordinates[[c.name for c in bare.coordinates].index("elbow_flexion_r")].lower == 0.0
    assert not any("elbow" in note.text for note in motion.notes if note.code == "coordinate_limits")


def _resting(joint, rest):
    """Return a joint whose named coordinates rest at these values, which are their lower limits."""
    coordinates = tuple(
        replace(c, default=rest[c.name], lower=rest[c.name]) if c.name in rest else c for c in joint.coordinates
    )
    return replace(joint, coordinates=coordinates)


def test_limits_change_no_bit_of_poses_within_them(human, monkeypatch):
    """Where the search ends within all limits, poses are those of a search that has none as bounds."""
    q = swing(human)
    knee = [c.name for c in human.coordinates].index("knee_flexion_r")
    q[10:20, knee] = -0.4
    recording = record(human, q)
    bounded = inverse_kinematics(human, recording).coordinates
    monkeypatch.setattr(IkProblem, "is_outside", lambda self, q: np.zeros(len(q), bool))
    plain = inverse_kinematics(human, recording).coordinates
    low, high = np.array([(c.lower, c.upper) for c in human.coordinates]).T
    inside = ((plain >= low) & (plain <= high)).all(axis=1)
    assert inside.sum() > 10 and (bounded[inside] == plain[inside]).all()
    assert (plain[10:20, knee] < low[knee]).all()


def test_poses_at_limits_satisfy_the_karush_kuhn_tucker_conditions(human):
    """Random poses beyond many limits: free variables have no gradient, those at a limit an outward one."""
    rng = np.random.default_rng(5)
    q = np.tile([c.default for c in human.coordinates], (12, 1))
    q[:, 6:] += rng.uniform(-0.9, 0.9, q[:, 6:].shape)
    problem = make_ik_problem(human, record(human, q))
    found = q.copy()
    _, count = solve_poses(problem, np.arange(len(q)), found, chained=False)
    springs, x = problem.rest_springs, found[:, problem.tree.free]
    assert (count > 0).all() and (x >= springs.lower).all() and (x <= springs.upper).all()
    _, gradient, stiffness, _ = differentiate(problem, found)
    gradient = gradient + rest_energy(problem, found)[1]
    at_lower, at_upper = x == springs.lower, x == springs.upper
    tiny = 1e-6 * np.abs(stiffness).max()
    assert at_lower.sum() > 10 and at_upper.sum() > 10
    assert np.abs(gradient[~at_lower & ~at_upper]).max() < tiny
    assert (gradient[at_lower] > -tiny).all() and (gradient[at_upper] < tiny).all()


def test_fixed_coordinates_stay_at_rest(human):
    knee = [c.name for c in human.coordinates].index("knee_flexion_r")
    motion = inverse_kinematics(
        human, record(human, swing(human, 4)), fixed=("knee_flexion_r",), rest={"knee_flexion_r": 0.3}
    )
    assert (motion.coordinates[:, knee] == 0.3).all()


def test_same_input_same_bits(human):
    recording = record(human, swing(human))
    first, second = inverse_kinematics(human, recording), inverse_kinematics(human, recording)
    assert (first.coordinates == second.coordinates).all()


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_model_axes_have_gravity_down_and_keep_handedness(human, axis, sign):
    gravity = np.zeros(3)
    gravity[axis] = -9.81 * sign
    rotation = to_model_axes(replace(human, gravity=tuple(gravity)))
    assert np.allclose(rotation @ rotation.T, np.eye(3)) and np.linalg.det(rotation) == pytest.approx(1.0)  # no mirror
    assert np.allclose(rotation @ [0.0, 0.0, 1.0], -gravity / 9.81)


def test_orientations_are_continuous_over_two_revolutions(human):
    q = np.tile([c.default for c in human.coordinates], (100, 1))
    q[:, [c.name for c in human.coordinates].index("root_yaw")] = np.linspace(0.0, 4.0 * np.pi, 100)
    orientation = make_motion(human, q, np.arange(100) / RATE, RATE).data["body_orientation"].values
    assert (np.einsum("tbi,tbi->tb", orientation[1:], orientation[:-1]) > 0.9).all()


def test_markers_at_the_origin_are_missing(human):
    recording = record(human, swing(human))
    lost = recording.data["marker_position"].values.copy()
    lost[:, 3] = 0.0
    gone = lost.copy()
    gone[:, 3] = np.nan
    found = inverse_kinematics(human, with_markers(recording, lost))
    assert (found.coordinates == inverse_kinematics(human, with_markers(recording, gone)).coordinates).all()
    assert np.isnan(found.data["marker_error"].values[:, 3]).all()


def test_root_has_the_largest_subtree(human):
    assert root_coordinates(human)[:3] == ("root_x", "root_y", "root_z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "frame_wise"}, "framewise"),
        ({"weights": {"nose": 1.0}}, "nose"),
        ({"weights": {"RKNE": -1.0}}, "RKNE"),
        ({"rest": {"knee": 1.0}}, "(?i)unknown coordinate 'knee'"),
        ({"fixed": ("tail",)}, "tail"),
    ],
)
def test_unknown_options_are_refused(human, options, message):
    with pytest.raises(bo.BorelliError, match=message):
        inverse_kinematics(human, record(human, swing(human, 2)), **options)


def test_recordings_without_the_models_markers_are_refused(human):
    recording = record(human, swing(human, 2), [f"thing{i}" for i in range(41)])
    with pytest.raises(bo.SettingsError, match=r"No marker of model .* is in the recording \(thing0"):
        inverse_kinematics(human, recording)


def test_arms_that_are_raised_midway_are_found_within_their_limits():
    """The search starts from the middle frame, in which the rest pose leads to arms twisted beyond their limits."""
    model = bo.human(75.0, 1.75, markers="joint_centers_of_bones")
    names = [c.name for c in model.coordinates]
    raised = np.sin(np.pi * np.linspace(0.0, 1.0, 61))
    q = np.tile([c.default for c in model.coordinates], (61, 1))
    q[:, names.index("root_yaw")] = 2.0
    for side in "rl":
        for name, angle in (("shoulder_flexion", 170.0), ("clavicle_elevation", 30.0), ("shoulder_rotation", 20.0)):
            q[:, names.index(f"{name}_{side}")] = np.radians(angle) * raised
    motion = inverse_kinematics(model, record(model, q))
    assert motion.data["marker_error"].values.max() < 0.001  # the rest pose pulls by 0.6 mm


def test_joints_of_the_trunk_do_not_rotate_against_each_other(human):
    """Markers above the waist are 30 mm lower than the spine is long; none is on the lower torso."""
    recording = record(human, np.array([[c.default for c in human.coordinates]]))
    legs = ("pelvis", "thigh_r", "shank_r", "foot_r", "toes_r", "thigh_l", "shank_l", "foot_l", "toes_l")
    points = recording.data["marker_position"].values.copy()
    points[:, [i for i, marker in enumerate(human.markers) if marker.body not in legs], 2] -= 0.03
    found = inverse_kinematics(human, with_markers(recording, points)).data["coordinate_value"].isel(time=0)
    rotations = found.sel(coordinate=["sacral_rotation", "lumbar_rotation"]).values
    assert np.degrees(np.abs(rotations)).max() < 5.0  # 14 and 17 if only weak springs hold them
