"""Differentiation: known curves, gain of the filters, rotations, and frames without a pose."""

import numpy as np
import pytest
from scipy.signal import butter
from scipy.spatial.transform import Rotation

from borelli.analysis.dynamics.rnea import forward_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.joint_rotations import (
    ThreeAxisJoint,
    angles_from_quaternions,
    find_rotation_joints,
    joint_quaternions,
    three_axis_joints,
)
from borelli.analysis.motion import make_motion
from borelli.errors import SettingsError
from borelli.numerics.filters import lowpass, opensim_lowpass
from borelli.numerics.series_extension import extend_series, find_stride, reflect
from borelli.people.human import human

MODEL = human(mass=70.0, height=1.75)
RATE = 100.0


def moving(frequency, *, frames=301, rate=RATE):
    """Return a motion in which every coordinate swings at this frequency [Hz] by 0.1."""
    time = np.arange(frames) / rate
    q = np.repeat(0.1 * np.sin(2.0 * np.pi * frequency * time)[:, None], len(MODEL.coordinates), axis=1)
    return make_motion(MODEL, q, time, rate)


def test_unfiltered_splines_differentiate_a_sine():
    found = differentiate(moving(1.0), filter="none")
    omega = 2.0 * np.pi
    inner = slice(20, -20)
    assert np.abs(found.speeds[inner, 8] - 0.1 * omega * np.cos(omega * found.time[inner])).max() < 1e-7
    assert np.abs(found.accelerations[inner, 8] + omega**2 * found.coordinates[inner, 8]).max() < 1e-4
    q, u, _ = found.at(found.time[inner] + 0.5 / RATE)
    assert np.abs(q[:, 8] - 0.1 * np.sin(omega * (found.time[inner] + 0.5 / RATE))).max() < 1e-9
    assert np.abs(u[:, 8] - 0.1 * omega * np.cos(omega * (found.time[inner] + 0.5 / RATE))).max() < 1e-6


@pytest.mark.parametrize(("preset", "order"), [("default", 2), ("opensim", 3)])
def test_gain_is_that_of_two_passes(preset, order):
    """Each pass of order n has the power gain 1/(1 + (f/fc)^2n) in the frequencies of the bilinear transform."""
    inner = slice(400, 800)
    for frequency in (3.0, 6.0, 9.0):
        motion = moving(frequency, frames=1201)
        found = differentiate(motion, filter=preset, cutoff=6.0)
        gain = np.ptp(found.coordinates[inner, 8]) / np.ptp(motion.coordinates[inner, 8])
        ratio = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * 6.0 / RATE)
        assert gain == pytest.approx(1.0 / (1.0 + ratio ** (2 * order)), abs=2e-3)


def test_opensim_filter_agrees_with_its_recurrence():
    """`Signal::LowpassIIR`, sample by sample: three samples copied, then the recurrence, forward and backward."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(50, 3))
    b, a = butter(3, 6.0, fs=RATE)

    def once(x):
        y = x.copy()
        for n in range(3, len(x)):
            y[n] = sum(b[k] * x[n - k] for k in range(4)) - sum(a[k] * y[n - k] for k in range(1, 4))
        return y

    assert np.allclose(opensim_lowpass(signal, RATE, 6.0), once(once(signal)[::-1])[::-1], atol=1e-12)


def test_extension_gives_better_accelerations_at_the_ends_than_reflection():
    """A sine of 1.5 Hz cut at any phase, 6 Hz: reflection gives none at the cut; over 0.1 s a fifth less error."""
    time = np.arange(301) / RATE
    phases = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    cut, pad = np.sin(2.0 * np.pi * 1.5 * time[:, None] + phases), 100

    def accelerations(series, pad):
        low = lowpass(series, RATE, 4.8)[pad : len(series) - pad]
        return np.diff(low, 2, axis=0)[:10] * RATE**2

    truth = -((2.0 * np.pi * 1.5) ** 2) * cut[1:11]
    new = accelerations(extend_series(cut, pad, RATE / 6.0, noisy=True), pad) - truth
    old = accelerations(reflect(cut, pad), pad) - truth
    assert np.sqrt(np.mean(new**2)) < 0.8 * np.sqrt(np.mean(old**2))


def test_noiseless_series_are_extended_smoothly():
    time = np.arange(200)[:, None] / RATE
    fall = -4.9 * time**2 + 2.0 * time + np.array([0.0, 1.0])
    before = -4.9 * (time[:3] - 0.03) ** 2 + 2.0 * (time[:3] - 0.03) + np.array([0.0, 1.0])
    longer = extend_series(fall, 50, RATE / 6.0, noisy=False)
    # the acceleration dies away within T, a quarter of the period: a t^3 / 6 T is what it lacks, from a sample later
    assert np.abs(longer[47:50] - before).max() < 9.8 * 0.04**3 / (6.0 * 0.25 / 6.0)
    assert np.array_equal(longer[50:250], fall)
    rotation = Rotation.from_rotvec((0.3, -1.0, 0.5)).as_matrix()
    noisy = np.random.default_rng(3).normal(size=(90, 3)).cumsum(axis=0)
    assert np.allclose(
        extend_series(noisy @ rotation, 40, 10.0, noisy=True),
        extend_series(noisy, 40, 10.0, noisy=True) @ rotation,
        atol=1e-9,
    )


def test_frames_without_a_pose():
    motion = moving(1.0)
    q = motion.coordinates.copy()
    q[:5], q[-3:], q[100:104] = np.nan, np.nan, np.nan
    with_gaps = make_motion(MODEL, q, motion.data["time"].values, RATE)
    found = differentiate(with_gaps)
    assert (found.time[0], len(found.time)) == (motion.data["time"].values[5], 293)
    assert {note.code for note in found.notes} == {"bridged_frames", "ends_without_pose"}
    assert np.abs(found.coordinates - differentiate(motion).coordinates[5:-3])[20:-20].max() < 1e-4
    q[150:180] = np.nan
    with pytest.raises(SettingsError, match="Frames 150 to 179"):
        differentiate(make_motion(MODEL, q, motion.data["time"].values, RATE))
    with pytest.raises(SettingsError, match="0 of 301 frames"):
        differentiate(make_motion(MODEL, q * np.nan, motion.data["time"].values, RATE))


def test_rotations_have_no_gimbal_lock():
    """The angles of a body that tumbles over twice jump; its angular velocity does not."""
    time = np.arange(301) / RATE
    q = np.zeros((301, len(MODEL.coordinates)))
    rate = 2.0 * np.pi * 2.0 / 3.0
    # rotated to the left by 0.4 rad, then about its own lateral axis
    whole = Rotation.from_euler("Z", 0.4) * Rotation.from_rotvec(np.outer(rate * time, (0.0, 1.0, 0.0)))
    q[:, 3:6] = np.unwrap(whole.as_euler("XYZ"), axis=0)
    found = differentiate(make_motion(MODEL, q, time, RATE))
    kinematics = forward_kinematics(MODEL, found.coordinates, found.speeds, found.accelerations)
    inner = slice(60, -60)
    angular_velocity = kinematics.angular_velocity[0][:, inner]
    assert np.abs(angular_velocity - Rotation.from_euler("Z", 0.4).apply((0.0, rate, 0.0))[:, None]).max() < 1e-3
    assert np.abs(kinematics.angular_acceleration[0][:, inner]).max() < 0.05


def test_angles_and_their_derivatives_agree():
    """Finite differences of the angles of a joint's quaternion spline, for right- and left-handed axes."""
    assert len(three_axis_joints(MODEL)) == 11  # root, 4 of the spine, collars, shoulders, hips
    motion = moving(1.0)
    assert [joint.columns for joint in find_rotation_joints(MODEL, motion.coordinates)] == [(3, 4, 5)]
    q = motion.coordinates.copy()
    second = [joint.columns[1] for joint in three_axis_joints(MODEL)]
    q[:, second] += 1.2
    motion = make_motion(MODEL, q, motion.data["time"].values, RATE)
    found = differentiate(motion, cutoff=6.0)
    assert len(found.rotation_joints) == 11
    h = 1e-4
    inner = found.time[100:200]
    (q0, u0, _), (q1, u1, a1), (q2, u2, _) = (found.at(inner + sign * h) for sign in (-1, 0, 1))
    assert np.abs((q2 - q0) / (2.0 * h) - u1).max() < 1e-5
    assert np.abs((u2 - u0) / (2.0 * h) - a1).max() < 1e-4
    assert np.abs(q1 - found.coordinates[100:200]).max() < 1e-12


def test_invalid_options_are_refused():
    with pytest.raises(SettingsError, match="opensim"):
        differentiate(moving(1.0), filter="opensum")
    with pytest.raises(SettingsError, match="Nyquist"):
        differentiate(moving(1.0), cutoff=60.0)


def test_left_handed_axes_are_supported():
    rng = np.random.default_rng(2)
    axes = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    angles = rng.uniform(-1.4, 1.4, size=(20, 3))
    joint = ThreeAxisJoint((0, 1, 2), axes)
    p = joint_quaternions(joint, angles)
    found, u, a = angles_from_quaternions(joint, p, 0.0 * p, 0.0 * p, angles)
    assert np.abs(found - angles).max() < 1e-12
    assert not u.any() and not a.any()
    for wrong in (0.5, -0.5):  # the other solution lies half a revolution off
        assert np.abs(angles_from_quaternions(joint, p, 0.0 * p, 0.0 * p, angles + wrong)[0] - angles).max() < 1e-12


def strides(count, length=70, columns=4):
    """Return a drifting periodic curve, each stride a little larger than the one before, and noise of 0.5 mm."""
    draw, t = np.random.default_rng(4), np.arange(int(count * length)) / length
    waves = [np.sin(2.0 * np.pi * k * t[:, None] + draw.uniform(0.0, 6.0, columns)) / k**2 for k in range(1, 7)]
    return t[:, None] + (1.0 + 0.03 * t[:, None]) * sum(waves), draw.normal(0.0, 5e-4, (len(t), columns))


def test_strides_of_periodic_series_are_found():
    curve, _ = strides(2.2)
    assert abs(find_stride(curve, 10.0) - 70) <= 1
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    assert find_stride(curve @ rotation, 10.0) == find_stride(curve, 10.0)
    assert find_stride(curve[:95], 10.0) is None  # too little of it is there twice
    assert find_stride(curve[:5], 10.0) is None and find_stride(curve[:, :0], 10.0) is None
    grown = np.exp(np.linspace(0.0, 3.0, len(curve)))[:, None] * curve
    assert find_stride(grown, 10.0) is None
    assert (
        find_stride(np.cumsum(np.cumsum(np.random.default_rng(2).normal(size=(200, 3)), axis=0), axis=0), 10.0) is None
    )
    # the sums as they are defined, one by one
    a = np.diff(curve, 2, axis=0)
    differ = {p: np.sum((a[p:] - a[:-p]) ** 2) / (np.sum(a[p:] ** 2) + np.sum(a[:-p] ** 2)) for p in range(30, 109)}
    assert find_stride(curve, 10.0) == min(differ, key=differ.get)


def test_periodic_series_are_extended_exactly():
    """Strides without noise that drift: the whole difference between them is the drift."""
    t = np.arange(-20, 190)[:, None] / 70.0
    curve = 0.3 * t + np.sin(2.0 * np.pi * t) * [1.0, -0.5] + 0.2 * np.cos(6.0 * np.pi * t)
    longer = extend_series(curve[20:-20], 20, 10.0, noisy=False, stride_columns=(0, 1))
    assert np.allclose(longer, curve, rtol=0.0, atol=1e-12)


def test_walks_are_extended_as_in_the_stride_before():
    curve, noise = strides(2.6)
    cut, pad = len(curve) - 25, 25
    known = (curve + noise)[:cut]

    def missed(telling):
        longer = extend_series(known, pad, 10.0, noisy=True, stride_columns=telling)[-pad:]
        return np.sqrt(np.mean((longer - curve[cut:]) ** 2))

    assert missed(range(4)) < 0.25 * missed(())
    # beyond a stride the extension does not use strides
    np.testing.assert_array_equal(
        extend_series(known, 80, 10.0, noisy=True, stride_columns=range(4)), extend_series(known, 80, 10.0, noisy=True)
    )


def test_frame_rates_far_above_the_cutoff_are_refused():
    """At 10 kHz, the equations for the ends of a motion are singular to rounding."""
    model = human()
    time = np.arange(40) / 1e4
    coordinates = np.random.default_rng(0).normal(0.0, 1e-3, (len(time), len(model.coordinates)))
    motion = make_motion(model, coordinates, time, 1e4)
    with pytest.raises(SettingsError, match=r"6 Hz is not accurate at 10000 Hz\. Resample"):
        differentiate(motion)
    assert np.isfinite(differentiate(motion, cutoff=600.0).accelerations).all()
