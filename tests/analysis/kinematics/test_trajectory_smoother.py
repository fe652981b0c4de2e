"""Trajectory smoother: less error than frame by frame, in any lab axes, and gaps are bridged.

The benchmark workload is 2 s at 120 Hz with 41 markers and 1 mm noise.
"""

from dataclasses import replace

import numpy as np
import pytest

import borelli as bo
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics import trajectory_smoother as smoother
from borelli.analysis.kinematics.framewise_ik import make_ik_problem, solve_framewise
from borelli.analysis.kinematics.snap_penalty import find_snap, group_variables
from borelli.bench import poses
from borelli.bench.ground_truth import motion
from borelli.errors import BorelliError
from borelli.experiments.movement.analytic_walk import make_walk
from borelli.numerics.banded import BandedMatrix
from borelli.numerics.filters import lowpass
from borelli.recording.recording import Recording, make_dataset


@pytest.fixture(scope="module")
def job():
    return poses.human(), motion()


def with_points(recording, points):
    return Recording(make_dataset({"marker_position": points}, {"marker": recording.markers}, rate=recording.rate))


def shortened(recording, frames):
    return with_points(recording, recording.data["marker_position"].values[:frames])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_errors_of_the_workload_with_noise(job, seed):
    model, truth = job
    recording = poses.record(truth, 1e-3, seed)
    single = inverse_kinematics(model, recording, pose_stiffness=0.0)
    smooth = inverse_kinematics(model, recording, method="smoothed")
    # least squares of every frame: 2.21 to 2.39 deg with these ten seeds; 35 to 36 N m by central differences, more by
    # splines at the ends
    assert 2.2 < poses.angle_error(single, truth) < 2.4
    assert poses.torque_error(single, truth) > 30.0
    # 0.40 to 0.59 deg and 0.10 to 0.14 N m; of 4.08 N m
    assert poses.angle_error(smooth, truth) < 0.65
    assert poses.torque_error(smooth, truth) < 0.2


def test_exact_markers_give_exact_angles_without_smoothing(job):
    model, truth = job
    recording = poses.record(truth)
    single = inverse_kinematics(model, recording, pose_stiffness=0.0)
    assert poses.angle_error(single, truth) < 1e-4  # half the digits of a quaternion are left
    smooth = inverse_kinematics(model, recording, pose_stiffness=0.0, method="smoothed")
    assert np.abs(smooth.coordinates - single.coordinates).max() < 1e-8  # the same minimum, from another start
    assert any(note.code == "not_smoothed" for note in smooth.notes)


def test_torques_of_exact_angles_are_the_truth(job):
    model, truth = job
    single = inverse_kinematics(model, poses.record(truth), pose_stiffness=0.0)
    assert poses.torque_error(single, truth) < 1e-5  # of quintic splines at 120 Hz


def test_smoothing_is_better_than_filtering_markers(job):
    model, truth = job
    recording = poses.record(truth, 1e-3, 4)
    filtered = with_points(recording, lowpass(recording.data["marker_position"].values, recording.rate, 6.0))
    by_filter = inverse_kinematics(model, filtered, pose_stiffness=0.0)
    smooth = inverse_kinematics(model, recording, method="smoothed")
    assert poses.angle_error(smooth, truth) < 0.8 * poses.angle_error(by_filter, truth)


@pytest.fixture(scope="module")
def noisy(job):
    model, truth = job
    recording = shortened(poses.record(truth, 1e-3, 5), 100)
    return recording, inverse_kinematics(model, recording, method="smoothed")


@pytest.mark.parametrize(("angle", "axis"), [(1.0, 2), (-3.0, 2), (0.4, 0)])
def test_motion_rotates_with_the_lab(job, noisy, angle, axis):
    model, _ = job
    recording, plain = noisy
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.roll(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), axis + 1, axis=(0, 1))
    offset = np.array([3.0, -2.0, 0.1])
    there = with_points(recording, recording.data["marker_position"].values @ rotation.T + offset)
    rotated = inverse_kinematics(model, there, method="smoothed")
    expected = plain.data["body_position"].values @ rotation.T + offset
    assert np.abs(rotated.data["body_position"].values - expected).max() < 1e-6
    assert np.abs(rotated.coordinates[:, 6:] - plain.coordinates[:, 6:]).max() < 1e-6


def test_a_mirrored_recording_gives_the_mirrored_motion():
    human = bo.human(75.0, 1.75, markers="cmu41")
    recording = make_walk(human, frames=60).record(1e-3, 3)
    kept = [name for name in recording.markers if name != "RBAC"]  # which has none on the left
    recording = recording.select_markers(kept)
    side = {"L": "R", "R": "L"}
    other = [side[n[0]] + n[1:] if n[0] in side and side[n[0]] + n[1:] in kept else n for n in kept]
    points = recording.data["marker_position"].values * [1.0, -1.0, 1.0]
    there = Recording(make_dataset({"marker_position": points}, {"marker": other}, rate=recording.rate))
    plain, mirrored = (inverse_kinematics(human, r, method="smoothed").coordinates for r in (recording, there))
    names = [c.name for c in human.coordinates]
    right = [i for i, name in enumerate(names) if name.endswith("_r")]
    left = [names.index(names[i][:-2] + "_l") for i in right]
    assert np.abs(plain[:, right] - mirrored[:, left]).max() < 1e-6


def test_large_noise_is_smoothed():
    human = bo.human(75.0, 1.75, markers="cmu41")
    walk = make_walk(human, frames=60)
    recording = walk.record(0.032, 1)
    found, _ = smoother.smooth_markers(make_ik_problem(human, recording), recording)
    assert np.abs(found - walk.coordinates)[:, 6:].mean() < 0.15  # 0.10 over 260 frames; of single frames 0.32


def test_the_same_input_gives_the_same_bits(job, noisy):
    model, _ = job
    recording, plain = noisy
    again = inverse_kinematics(model, recording, method="smoothed")
    assert np.array_equal(again.coordinates, plain.coordinates)


def test_gaps_are_bridged_and_long_ones_reported(job):
    model, truth = job
    recording = poses.record(truth, 1e-3, 6)
    points = recording.data["marker_position"].values.copy()
    points[:5] = np.nan  # before the first pose nothing is known
    points[60:70] = np.nan
    points[150:185] = np.nan  # 0.29 s
    points[100:140, ::7] = np.nan
    found = inverse_kinematics(model, with_points(recording, points), method="smoothed")
    posed = np.isfinite(found.coordinates).all(axis=1)
    assert posed[5:].all() and not posed[:5].any()
    (note,) = [note for note in found.notes if note.code == "extrapolated_poses"]
    assert note.text.startswith("Frames 150 to 184")
    cut = replace(truth, poses=truth.poses[5:], markers=truth.markers[5:], angles=truth.angles[5:])
    kept = replace(found, data=found.data.isel(time=slice(5, None)))
    assert poses.angle_error(kept, cut) < 0.8  # 0.53 without gaps


def test_few_frames_are_not_smoothed(job):
    model, truth = job
    recording = shortened(poses.record(truth, 1e-3), 8)
    found = inverse_kinematics(model, recording, method="smoothed")
    # what a last Newton step of 1e-6 leaves where there are only weak springs
    assert np.abs(found.coordinates - inverse_kinematics(model, recording).coordinates).max() < 1e-7
    assert any(note.code == "not_smoothed" for note in found.notes)


def test_many_frames_are_smoothed_in_windows(job, monkeypatch):
    model, truth = job
    recording = poses.record(truth, 1e-3, 7)
    whole = inverse_kinematics(model, recording, method="smoothed").coordinates
    monkeypatch.setattr(smoother, "WINDOW", 160)
    monkeypatch.setattr(smoother, "OVERLAP", 120)
    pieces = inverse_kinematics(model, recording, method="smoothed").coordinates
    assert np.abs(pieces - whole).max() < 5e-3  # against an error of 9e-3
    # and smooth where they meet
    assert np.abs(np.diff(pieces - whole, n=2, axis=0)).max() < 2.0 * np.abs(np.diff(whole, n=2, axis=0)).max()


def with_stiff_elbow(model):
    """Return the model with a left elbow that the workload would bend beyond its limits."""
    joints = tuple(
        replace(j, coordinates=tuple(replace(c, lower=-0.4, upper=0.1) for c in j.coordinates))
        if j.name == "left_forearm" else j for j in model.joints
    )  # fmt: skip
    return replace(model, joints=joints)


def test_joint_limits_are_kept(job):
    model, truth = with_stiff_elbow(job[0]), job[1]
    recording = shortened(poses.record(truth, 1e-3, 8), 100)
    found = inverse_kinematics(model, recording, method="smoothed")
    columns = [i for i, c in enumerate(model.coordinates) if c.name.startswith("left_forearm")]
    assert found.coordinates[:, columns].min() == -0.4
    assert found.coordinates[:, columns].max() <= 0.1


def test_motion_at_joint_limits_has_the_least_energy(job, monkeypatch):
    """A Newton step of all variables that no limit holds would gain next to nothing, in units of a marker's noise."""
    model, truth = with_stiff_elbow(job[0]), job[1]
    recording = shortened(poses.record(truth, 1e-3, 8), 40)
    tasks = []

    def record(task, scale, *rest):
        tasks.append((task, scale))
        return original(task, scale, *rest)

    original = smoother.minimize_in_windows
    monkeypatch.setattr(smoother, "minimize_in_windows", record)
    found = inverse_kinematics(model, recording, method="smoothed").coordinates
    (task, scale), free = tasks[0], tasks[0][0].problem.tree.free
    assert tasks[-1][0].problem.rest_springs.limit_stiffness.min() > 1e3  # limits were stiffened
    springs, system = task.problem.rest_springs, smoother.System(task, found)
    x, gradient = found[:, free], system.gradient(scale)
    held = ((x <= springs.lower) & (gradient > 0.0)) | ((x >= springs.upper) & (gradient < 0.0))
    assert held.any()
    H, slope = dense(system.hessian(scale)), np.where(held, 0.0, gradient).ravel()
    other = ~held.ravel()
    gain = 0.5 * slope[other] @ np.linalg.solve(H[np.ix_(other, other)], slope[other])
    assert gain / task.noise < 1.0  # 0.44, since limits yield a little and poses are clipped; 2080 with soft limits


def dense(banded):
    """Return a banded matrix with all its entries."""
    columns = banded.entry.reshape(-1, banded.entry.shape[2])
    H = np.zeros((len(columns) + columns.shape[1], len(columns)))
    for j, column in enumerate(columns):
        H[j : j + len(column), j] = column
    H = H[: len(columns)]
    return H + np.tril(H, -1).T


def energy_gradient(task, q, scale):
    system = smoother.System(task, q)
    return system.energy(scale), system.gradient(scale)


def test_gradient_agrees_with_finite_differences(job):
    model, truth = job
    recording = shortened(poses.record(truth, 5e-3, 9), 12)
    problem = make_ik_problem(model, recording)
    q, _ = solve_framewise(problem)
    rng = np.random.default_rng(0)
    q += 0.1 * rng.normal(size=q.shape)  # large snaps: the Jacobian of rotations matters
    task = smoother.SmoothingProblem(
        problem, group_variables(model, problem.tree), 1.0, rng.uniform(0.5, 2.0, len(problem.tree.free))
    )
    direction = rng.normal(size=(len(q), len(problem.tree.free)))
    slope = float((energy_gradient(task, q, 3.0)[1] * direction).sum())
    h = 1e-6
    ahead, back = q.copy(), q.copy()
    ahead[:, problem.tree.free] += h * direction
    back[:, problem.tree.free] -= h * direction
    difference = (energy_gradient(task, ahead, 3.0)[0] - energy_gradient(task, back, 3.0)[0]) / (2.0 * h)
    assert slope == pytest.approx(difference, rel=1e-7)


def test_degrees_of_freedom_used_are_the_trace(job):
    model, truth = job
    recording = shortened(poses.record(truth, 1e-3, 10), 12)
    problem = make_ik_problem(model, recording)
    q, _ = solve_framewise(problem)
    task = smoother.SmoothingProblem(
        problem, group_variables(model, problem.tree), 1.0, np.full(len(problem.tree.free), 10.0)
    )
    system = smoother.System(task, q)
    n, H = len(problem.tree.free), dense(system.hessian(1.0))
    G = np.zeros_like(H)
    for t, block in enumerate(system.stiffness):
        G[t * n : (t + 1) * n, t * n : (t + 1) * n] = block
    exact = np.trace(np.linalg.solve(H, G))
    used = system.fit(1.0, system.correct_degrees_of_freedom())[1]
    assert used == pytest.approx(exact, rel=5e-3)  # a finite difference over a tenth of the stiffness


def test_steady_rotation_has_no_snap(job):
    model, _ = job
    q = np.zeros((30, len(model.coordinates)))
    q[:, 5] = np.linspace(0.0, 9.0, 30)  # the body rotates about the vertical, more than one revolution
    problem = make_ik_problem(model, poses.record(motion(seconds=0.25)))
    snap, _ = find_snap(group_variables(model, problem.tree), problem.tree, q)
    assert np.abs(snap).max() < 1e-12


def test_undetermined_variables_are_reported():
    with pytest.raises(BorelliError, match="Variable 1 of frame 0 is not determined"):
        band = BandedMatrix(3, 2, 1)
        band.entry[:, 0, 0] = 1.0
        band.factor()


def test_a_quarter_of_a_second_is_smoothed():
    """Cross-validation increases the scale there until the markers are lost in rounding: it must stop before."""
    truth = motion(seconds=0.25)
    found, alone = (
        inverse_kinematics(poses.human(), poses.record(truth, 1e-3), method=method)
        for method in ("smoothed", "framewise")
    )
    assert poses.angle_error(found, truth) < poses.angle_error(alone, truth)


class DiagonalSystem:
    """Smoothing of independent values with penalties of many sizes, whose residual and trace are closed forms."""

    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.penalty = 10.0 ** np.linspace(-6.0, 3.0, 60)
        self.value = rng.normal(size=60) / (1.0 + self.penalty) + 0.1 * rng.normal(size=60)
        self.count = count

    def correct_degrees_of_freedom(self):
        return 0.0

    def fit(self, scale, _):
        kept = 1.0 / (1.0 + scale * self.penalty)
        return ((1.0 - kept) * self.value) @ ((1.0 - kept) * self.value), kept.sum(), self.count

    def score(self, power):
        left, used, count = self.fit(10.0**power, 0.0)
        return np.log(left / count) - 2.0 * np.log(1.0 - used / count) if used < count else np.inf


@pytest.mark.parametrize("count", [60, 50, 40, 25, 20])
@pytest.mark.filterwarnings("error")
def test_scale_is_good_among_those_that_leave_markers_to_judge_it(count):
    system = DiagonalSystem(count)
    best = min(map(system.score, np.arange(*smoother.SCALES, 0.05)))
    assert system.score(np.log10(smoother.choose_scale([system]))) < best + 0.25  # of scores that differ by 2 to inf


@pytest.mark.filterwarnings("error")
def test_scale_is_large_where_none_leaves_markers_to_judge_it():
    assert smoother.choose_scale([DiagonalSystem(1)]) == 10.0 ** smoother.SCALES[1]
