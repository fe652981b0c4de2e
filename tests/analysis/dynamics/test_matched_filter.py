"""One filter for motion and plates: laws of filtered wrenches, and a walk with impacts whose torques are known."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import make_motion
from borelli.errors import SettingsError
from borelli.model.kinematics import generalized_forces, point_positions
from borelli.people.human import human
from borelli.recording.cleaning.filtering import lowpass_filter
from borelli.recording.cleaning.wrench_filter import fill_points
from borelli.recording.recording import Recording, make_dataset
from borelli.synthetic.curves import spline_derivatives
from borelli.synthetic.ground_forces import distribute_load, root_wrench
from borelli.synthetic.walk import CYCLE, preferred_pressure, walk_coordinates

RATE = 1000.0
ROUNDING = 1e-9  # [N, N m], of some 1000 N


def step(seed=3, samples=1500):
    """Return loads of two steps with rough forces, and their centers of pressure only while they are loaded."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / RATE
    force, point = np.zeros((samples, 2, 3)), np.full((samples, 2, 3), np.nan)
    for foot, (start, stop) in enumerate(((0.1, 0.6), (0.5, 1.0))):
        on = (time >= start) & (time < stop)
        size = np.sin(np.pi * (time[on] - start) / (stop - start))[:, None] ** 0.3
        force[on, foot] = size * ((100.0, 20.0, 700.0) + 50.0 * rng.normal(size=(on.sum(), 3)))
        point[on, foot] = rng.normal(size=(on.sum(), 3)) * 0.01 + (0.3 * foot, 0.1, 0.0)
        point[on, foot, 2] = 0.0
    moment = np.zeros_like(force)
    moment[..., 2] = 0.01 * force[..., 2]
    return Loads(("right", "left"), ("foot_r", "foot_l"), time, force, point, moment)


def about(loads, origin=(0.0, 0.0, 0.0)):
    """Return the wrenches (samples, loads, 6) about a point."""
    point = np.nan_to_num(loads.point) - np.array(origin)
    return np.concatenate([loads.force, loads.moment + np.cross(point, loads.force)], axis=-1)


def test_filter_commutes_with_the_choice_of_the_point():
    """The same wrenches, stated at other points that move, are the same after the filter."""
    loads = step()
    moved = loads.at(loads.time)
    away = np.random.default_rng(1).normal(size=moved.point.shape)
    moved = replace(moved, point=moved.point + away, moment=moved.moment - np.cross(away, moved.force))
    first, second = loads.smoothed(10.0), moved.smoothed(10.0)
    for origin in ((0.0, 0.0, 0.0), (3.0, -2.0, 0.5)):
        assert np.abs(about(first, origin) - about(second, origin)).max() < ROUNDING * 1e3  # points are meters away
    # and it is a filter: the wrench about any point is that of the filtered components
    direct = np.stack([first.force[..., i] for i in range(3)], axis=-1)
    assert np.abs(direct - loads.force).max() > 50.0


def test_filter_moves_with_the_lab():
    loads, offset = step(), np.array([5.0, -3.0, 0.0])
    here, there = loads.smoothed(6.0), replace(loads, point=loads.point + offset).smoothed(6.0)
    for name, expected in (("force", here.force), ("point", here.point + offset), ("moment", here.moment)):
        assert np.abs(getattr(there, name) - expected).max() < 1e-8, name


def test_wrench_and_not_its_parts_is_filtered():
    """The moment about the origin is what a filter of that signal alone gives."""
    loads = step()
    found = about(loads.smoothed(6.0))
    filled = loads.at(loads.time)
    signal = filled.moment + np.cross(filled.point, filled.force)
    alone = Loads(("a", "b"), ("x", "y"), loads.time, signal, 0.0 * signal, 0.0 * signal).smoothed(6.0).force
    assert np.abs(found[..., 3:] - alone).max() < ROUNDING
    pressed = loads.smoothed(6.0).force[..., 2] >= 20.0
    assert np.abs(loads.smoothed(6.0).moment[pressed][:, :2]).max() < 1e-7  # about the center of pressure


def test_constant_loads_stay_constant():
    steady = np.tile((10.0, -5.0, 400.0), (800, 1, 1))
    point, moment = np.tile((0.2, 0.1, 0.0), (800, 1, 1)), np.tile((0.0, 0.0, 3.0), (800, 1, 1))
    loads = Loads(("right",), ("foot_r",), np.arange(800) / RATE, steady, point, moment)
    found = loads.smoothed(6.0)
    assert np.allclose(found.force, steady, atol=1e-8) and np.allclose(found.moment, moment, atol=1e-8)
    assert np.allclose(found.point, point, atol=1e-10)
    assert found.cutoff == 6.0 and found.notes[-1].code == "plate_cutoff"


def test_unloaded_phases_stay_unloaded():
    """The filter's impulse response falls as exp(-27 t) at 6 Hz: half a second after a step nothing is left."""
    loads = step(samples=2500)
    found = loads.smoothed(6.0)
    late = loads.time > 1.7
    assert np.abs(about(found)[late]).max() < 1e-4  # [N, N m] of 700
    empty = replace(loads, force=0.0 * loads.force, moment=0.0 * loads.moment).smoothed(6.0)
    assert not about(empty).any() and np.isfinite(empty.point).all()


def test_cleaning_filters_wrenches_too():
    loads = step()
    zero = np.zeros((150, 1, 3))
    data = make_dataset(
        {"plate_force": loads.force, "plate_center_of_pressure": loads.point, "plate_free_moment": loads.moment,
         "marker_position": zero},
        {"plate": ["one", "two"], "marker": ["a"]}, rate=100.0, analog_rate=RATE,
    )  # fmt: skip
    found = lowpass_filter(Recording(data), cutoff=None, plate_cutoff=8.0).data
    filtered = replace(
        loads, force=found["plate_force"].values, point=found["plate_center_of_pressure"].values,
        moment=found["plate_free_moment"].values,
    )  # fmt: skip
    loaded = filtered.force[..., 2] >= 20.0
    assert np.isfinite(filtered.point[loaded]).all() and np.isnan(filtered.point[~loaded]).all()
    filled = loads.at(loads.time)
    signal = filled.moment + np.cross(filled.point, filled.force)
    marker = make_dataset({"marker_position": signal}, {"marker": ["a", "b"]}, rate=RATE)
    alone = lowpass_filter(Recording(marker), cutoff=8.0).data["marker_position"].values
    assert np.abs(about(filtered)[..., 3:] - alone)[loaded].max() < ROUNDING


def test_presets_decide_the_filter_of_the_plates():
    loads = step()
    assert loads.matched({"filter": "default", "cutoff_hz": 6.0}).cutoff == 6.0
    assert loads.matched({"filter": "default", "cutoff_hz": 6.0}, 12.0).cutoff == 12.0
    assert loads.matched({"filter": "default", "cutoff_hz": 6.0}, 0.0) is loads
    for unfiltered in ({"filter": "none", "cutoff_hz": None}, {"filter": "opensim", "cutoff_hz": 6.0}):
        assert loads.matched(unfiltered) is loads
    assert loads.smoothed(6.0).matched({"filter": "default", "cutoff_hz": 10.0}).cutoff == 6.0  # is filtered
    predicted = replace(loads, source="predicted")
    assert predicted.matched({"filter": "default", "cutoff_hz": 6.0}) is predicted
    with pytest.raises(SettingsError, match=r"plate cutoff: 600 Hz.*\(500 Hz\)"):
        loads.matched({"filter": "default", "cutoff_hz": 6.0}, 600.0)


def test_plates_get_the_filter_of_the_motion():
    """A sine of any frequency is damped alike as a coordinate and as a force."""
    model = human(70.0, 1.75)
    time = np.arange(4000) / RATE
    for frequency in (2.0, 6.0, 9.0):
        sine = np.sin(2.0 * np.pi * frequency * time)
        q = np.zeros((len(time), len(model.coordinates)))
        q[:, 0] = sine
        force = np.zeros((len(time), 1, 3))
        force[:, 0, 0] = sine
        loads = Loads(("right",), ("foot_r",), time, force, 0.0 * force, 0.0 * force)
        curves = differentiate(make_motion(model, q, time, RATE), cutoff=6.0)
        inner = slice(1000, -1000)
        found = loads.matched(curves.settings).force[inner, 0, 0]
        assert np.abs(found - curves.coordinates[inner, 0]).max() < 1e-6
        gain = 1.0 / (1.0 + (np.tan(np.pi * frequency / RATE) / np.tan(np.pi * 6.0 / RATE)) ** 4)
        assert np.abs(found).max() == pytest.approx(gain, rel=1e-3)


IMPACT, DURATION, SWING = np.array([-100.0, 0.0, 500.0]), 0.03, 0.3  # [N, s, s]: a heel strike, and the swing before
HIPS = ["hip_flexion_r", "hip_flexion_l"]


def response(model, q, body):
    """Return how all coordinates yield to a force on a foot: M^-1 J^T f, which takes no torque of any joint."""
    count = len(model.coordinates)
    poses = np.tile(q, (count, 1))
    mass = generalized_forces(model, poses, 0.0 * poses, np.eye(count), gravity=False)
    step = 1e-6 * np.eye(count)
    heel = (-0.03, 0.0, -0.05)
    after, before = (point_positions(model, poses + sign * step, [body], [heel])[:, 0] for sign in (1, -1))
    return np.linalg.solve(mass, (after - before) / 2e-6 @ IMPACT)


def strike(time, at):
    """Return w(t) [s^2]: a foot that swings to the ground and is stopped within DURATION by w'' of at most 1."""
    s = np.clip(time - at, 0.0, DURATION)  # w'' = sin^2(pi s / DURATION)
    ripple = DURATION**2 / (8.0 * np.pi**2) * (np.cos(2.0 * np.pi * s / DURATION) - 1.0)
    after = 0.25 * s**2 - 0.5 * DURATION * s + ripple
    x = np.clip((time - at + SWING) / SWING, 0.0, 1.0)
    before = 0.5 * DURATION * SWING * x**3 * (1.0 - x)
    settle = np.clip((time - at - DURATION) / SWING, 0.0, 1.0)
    return np.where(time < at, before, after * (1.0 - settle**3 * (10.0 - 15.0 * settle + 6.0 * settle**2)))


@cache
def walk_with_impacts():
    """Return model, time, true coordinates, plates and true torques of a walk with heel strikes.

    A strike adds the force f w''(t) to the plate and the motion M^-1 J^T f w(t) to the body: joints need no torque for
    it, as far as the pose hardly changes in 30 ms.
    """
    model = human(68.0, 1.72)
    time = np.arange(int(2.4 * CYCLE * RATE)) / RATE + 0.1
    walk = walk_coordinates(model, time)
    q, u, a = spline_derivatives(walk.coordinates, 1.0 / RATE)
    smooth = root_wrench(model, q, u, a)
    given = distribute_load(*smooth, walk.left_load, preferred_pressure(model, time))
    force, center, free = (values.copy() for values in given)
    center = fill_points(center)
    struck, strikes = q.copy(), [(k * 0.5 * CYCLE, "rl"[k % 2]) for k in range(1, 5)]
    for at, side in strikes:
        pose = q[np.argmin(np.abs(time - at))]
        struck += strike(time, at)[:, None] * response(model, pose, f"foot_{side}")
    struck, u, a = spline_derivatives(struck, 1.0 / RATE)
    change = [one - other for one, other in zip(root_wrench(model, struck, u, a), smooth, strict=True)]
    striking = np.zeros(len(time), bool)
    for at, side in strikes:
        striking |= (on := (time >= at) & (time < at + DURATION + 2.0 / RATE))
        foot = "lr".index(side)
        force[on, foot] += change[0][on]
        free[on, foot] += change[1][on] - np.cross(center[on, foot], change[0][on])
    # before and after, the feet share it as they share the load
    for foot, part in enumerate((walk.left_load, 1.0 - walk.left_load)):
        rest = np.where(striking, 0.0, part)[:, None]
        force[:, foot] += rest * change[0]
        free[:, foot] += rest * (change[1] - np.cross(center[:, foot], change[0]))
    loads = Loads(("left", "right"), ("foot_l", "foot_r"), time, force, center, free)
    truth = inverse_dynamics(make_motion(model, struck, time, RATE), forces=loads, filter="none")
    return model, time, struck, loads, truth, [at for at, _ in strikes]


def test_one_cutoff_is_nearer_to_the_truth_at_foot_strike():
    """Coordinates at 100 Hz with noise, filtered at 6 Hz: raw plates leave impacts that no motion balances.

    Peak hip extension: true -75, raw plates -140, one cutoff -73 N m. The ankle is so near to the plate that inertia
    hardly matters: there a filter only flattens, the more the faster the load changes from foot to foot.
    """
    model, time, q, loads, truth, strikes = walk_with_impacts()
    inner = slice(100, -100)
    assert np.abs(truth.data["residual_force"].values[inner]).max() < 0.1  # [N]: the truth is consistent
    frames = slice(0, None, 10)
    seen = q[frames] + 0.0005 * np.random.default_rng(0).normal(size=q[frames].shape)  # [m, rad]
    motion = make_motion(model, seen, time[frames], 0.1 * RATE)
    near = np.any([np.abs(time[frames] - at - 0.05) < 0.1 for at in strikes], axis=0)
    expected = truth.data["torque"].sel(coordinate=HIPS).values[frames][near]
    errors, residuals, peaks = {}, {}, {}
    for plate_cutoff in (0.0, None):
        found = inverse_dynamics(motion, forces=loads, cutoff=6.0, plate_cutoff=plate_cutoff)
        hips = found.data["torque"].sel(coordinate=HIPS).values[near]
        errors[plate_cutoff] = np.sqrt(((hips - expected) ** 2).mean(axis=0))
        peaks[plate_cutoff] = hips.min(axis=0) / expected.min(axis=0)
        residuals[plate_cutoff] = found.residual_force_rms
    assert (errors[None] < 0.65 * errors[0.0]).all()
    assert (np.abs(peaks[None] - 1.0) < 0.1).all() and (peaks[0.0] > 1.6).all()
    assert residuals[None] < 0.5 * residuals[0.0]
