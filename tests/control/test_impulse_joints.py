"""Joints with one, two and three axes under impulse-based control, controlled and free, in either direction."""

import numpy as np
import pytest

from borelli.control.controls import Control
from borelli.control.response import PD
from borelli.control.rotation_targets import RotationTargets, rotation_keyframes
from borelli.control.track_targets import track_targets
from borelli.model.model import Body, Coordinate, Frame, Joint, Model
from borelli.numerics.quaternions import quaternion_product, rotation_exponential

from .impulse_worlds import follow, planks, recursion


def swaying(model, seed):
    """A sine for every coordinate, of 0.2 to 0.6 rad and 1 to 3 rad/s."""
    draw = np.random.default_rng(seed)
    names = [c.name for c in model.coordinates]
    sizes, rates = draw.uniform(0.2, 0.6, len(names)), draw.uniform(1.0, 3.0, len(names))
    return {
        name: lambda t, size=size, rate=rate: size * np.sin(rate * t)
        for name, size, rate in zip(names, sizes, rates, strict=True)
    }


def test_ball_joints_reach_any_rotation():
    model, draw = planks(3, kind="ball"), np.random.default_rng(0)
    turns = [rotation_exponential(draw.uniform(-1.5, 1.5, 3)) for _ in range(3)]
    controls = [
        Control(f"joint_{k}", rotation_keyframes(model, f"joint_{k}", [0.0], turns[k][None]), PD(25.0)) for k in range(3)
    ]
    data = track_targets(model, controls, duration=4.0, step=1 / 60, initial_coordinates={"x0": 0.0})
    world = data["body_orientation"].values[-1]
    for k in range(3):
        expected = turns[k] if k == 0 else quaternion_product(world[k - 1], turns[k])
        # row 18: 2.2e-7 rad
        assert 2.0 * np.arccos(min(1.0, abs(world[k] @ expected))) < 2.2e-7


@pytest.mark.parametrize("kind", ["universal", "ball"])
@pytest.mark.parametrize("rate", [60, 240])
def test_moving_targets_of_several_axes_are_met(kind, rate):
    model = planks(3, kind=kind)
    data = follow(model, swaying(model, 1), duration=1.0, step=1 / rate)
    # row 19 leaves 0.013 rad; composed turns (`rotations`) leave rounding
    assert np.abs(data["coordinate_value"] - data["coordinate_target"]).max() < 1e-12
    assert data["joint_gap"].max() < 1e-13


def test_moving_ball_is_caught_up_with():
    model = planks(3, kind="ball")
    data = follow(model, swaying(model, 2), duration=3.0, step=1 / 60, initial_coordinates={"x0": 0.3, "y1": -0.4, "z2": 0.5})
    left = np.abs(data["coordinate_value"] - data["coordinate_target"]).max("coordinate").values
    assert left[0] > 0.3
    assert left[-1] < 1e-4  # the slow root is -2.93/s: exp(-2.93 * 3) of 0.5 rad is 8e-5


def test_free_joints_between_controlled_ones():
    model, step = planks(8), 1 / 60
    aims = {f"q{k}": 0.3 for k in range(0, 8, 2)}
    data = follow(model, aims, duration=2.0, step=step, initial_coordinates={"q0": -1.0})
    for k in range(0, 8, 2):
        expected = 0.3 + recursion(25.0, step, (-1.0 if k == 0 else 0.0) - 0.3, 120)
        np.testing.assert_allclose(data["coordinate_value"].values[:, k], expected, atol=3.9e-14)  # row 20
    assert np.abs(data["coordinate_value"].values[-1, 1::2]).max() > 0.1


def floating(kind, reverse):
    """Four planks in the air, joined from the first to the last or the other way round; the second is the heaviest."""
    inertia = ((0.01, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, 0.03))
    bodies = tuple(
        Body(f"b{k}", 2.0 if k == 1 else 1.0, inertia=inertia, frame=Frame((0.5 * k, 0.0, 1.0))) for k in range(4)
    )
    joints = []
    for k in range(3):
        sides = [(f"b{k}", Frame((0.25, 0.0, 0.0))), (f"b{k + 1}", Frame((-0.25, 0.0, 0.0)))]
        (parent, on_parent), (child, on_child) = sides[::-1] if reverse else sides
        axes = (((0.0, 1.0, 0.0) if not reverse else (0.0, -1.0, 0.0)),) if kind == "hinge" else ()
        names = [f"q{k}"] if kind == "hinge" else [f"x{k}", f"y{k}", f"z{k}"]
        joints.append(
            Joint(f"j{k}", kind, parent, child, on_parent, on_child, axes, tuple(Coordinate(name) for name in names))
        )
    return Model("floating", bodies, tuple(joints), gravity=(0.0, 0.0, 0.0))


def turning(model, reverse):
    """Ball joints that turn about two axes in time; what one calls child the other calls parent."""

    def curve(k):
        def turns(times):
            about = np.stack([0.4 * np.sin(2.0 * times + k), 0.3 * times, 0.2 * np.cos(times)], axis=1)
            turn = rotation_exponential(about)
            return turn * ([1.0, -1.0, -1.0, -1.0] if reverse else [1.0] * 4)

        return turns

    return [Control(f"j{k}", RotationTargets(model, f"j{k}", curve(k)), PD(40.0)) for k in range(3)]


@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_which_body_is_called_parent_does_not_matter(kind):
    found = []
    for reverse in (False, True):
        model = floating(kind, reverse)
        twists = {"b0": (0.1, 0.2, 0.3, 1.0, -2.0, 0.5), "b3": (0.0, 0.0, 0.4, 0.2, 0.1, -1.0)}
        if kind == "hinge":
            data = follow(
                model, {f"q{k}": lambda t: 0.4 * np.sin(3.0 * t) for k in (0, 2)}, duration=1.0, step=1 / 60,
                initial_coordinates={"q1": 0.0}, initial_twists=twists,
            )  # fmt: skip
        else:
            data = track_targets(
                model, turning(model, reverse), duration=1.0, step=1 / 60, initial_coordinates={"x1": 0.0}, initial_twists=twists
            )
        found.append(np.concatenate([data[n].values for n in ("position", "quaternion", "velocity", "spin")], axis=-1))
    # row 28 has 3e-14 after a second
    np.testing.assert_allclose(found[0], found[1], atol=1e-11)
