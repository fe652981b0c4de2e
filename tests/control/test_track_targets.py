"""Following targets: what it gives, other responses than PD, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.control.controls import Control, make_controls
from borelli.control.response import PD, MinimumJerk
from borelli.control.rotation_targets import RotationTargets, rotation_keyframes
from borelli.control.targets import targets_from_functions, keyframes
from borelli.control.track_targets import track_targets
from borelli.errors import ModelError, SettingsError
from borelli.model.model import Model

from .impulse_worlds import follow, planks

MODEL = planks(2)
STILL = targets_from_functions(MODEL, {"q0": lambda t: 0.2, "q1": lambda t: 0.1})


def test_nothing_follows_nothing():
    assert track_targets(Model("nothing", ()), (), duration=0.1, step=0.01).sizes["body"] == 0


def test_result_names_targets_and_forces():
    data = follow(MODEL, {"q0": 0.2}, duration=0.1, step=0.01, initial_coordinates={}, record_every=2)
    assert data["coordinate_target"].dims == data["torque"].dims == ("time", "coordinate")
    assert data.sizes["time"] == 6
    np.testing.assert_array_equal(data["coordinate_target"].sel(coordinate="q0"), 0.2)
    assert np.isnan(data["coordinate_target"].sel(coordinate="q1")).all()
    assert (data["torque"].sel(coordinate="q1") == 0.0).all()
    assert data["torque"].attrs["units"] == "N m"


def test_starts_on_its_targets_unless_told_otherwise():
    moving = {"q0": lambda t: 0.3 + 0.5 * t, "q1": lambda t: -0.2 * t}
    data = follow(MODEL, moving, duration=0.5)
    assert np.abs(data["coordinate_value"] - data["coordinate_target"]).max() < 1e-12
    np.testing.assert_allclose(data["coordinate_velocity"].values[0], [0.5, -0.2], atol=1e-9)


def test_recorded_every_few_steps_is_the_same_run():
    fine = follow(MODEL, {"q0": 0.2}, duration=0.4, initial_coordinates={})
    coarse = follow(MODEL, {"q0": 0.2}, duration=0.4, initial_coordinates={}, record_every=4)
    np.testing.assert_array_equal(fine["coordinate_value"].values[::4], coarse["coordinate_value"].values)


def test_minimum_jerk_in_the_place_of_pd():
    """Steps of any length end on the path."""
    response = MinimumJerk(error=-0.5, rate=0.0, duration=1.0, correction=PD(100.0))
    targets = targets_from_functions(MODEL, {"q0": lambda t: 0.5})
    data = track_targets(MODEL, [Control("q0", targets, response)], duration=1.5, step=1 / 50, initial_coordinates={"q0": 0.0})
    path = [0.5 + float(response.path(t)) for t in data["time"].values]
    np.testing.assert_allclose(data["coordinate_value"].sel(coordinate="q0"), path, atol=1e-12)


def test_ball_follows_a_response_of_its_own():
    class Halving:
        def after(self, error, rate, step, time):
            return 0.5 * error

    model = planks(1, kind="ball")
    target = rotation_keyframes(model, "joint_0", [0.0], [[1.0, 0.0, 0.0, 0.0]])
    data = track_targets(model, [Control("joint_0", target, Halving())], duration=0.1, step=0.01, initial_coordinates={"z0": 0.8})
    np.testing.assert_allclose(data["coordinate_value"].values[:, 2], 0.8 * 0.5 ** np.arange(11), atol=1e-12)


def test_keyframes_of_a_ball_are_turned_through():
    model = planks(1, kind="ball")
    turns = rotation_keyframes(model, "joint_0", [0.0, 1.0], [[1.0, 0, 0, 0], [np.cos(0.5), 0.0, np.sin(0.5), 0.0]])
    data = track_targets(model, [Control("joint_0", turns)], duration=1.5)
    np.testing.assert_allclose(data["coordinate_value"].sel(time=0.5, coordinate="y0"), 0.5, atol=1e-9)
    np.testing.assert_allclose(data["coordinate_value"].values[-1], [0.0, 1.0, 0.0], atol=1e-3)


def test_bad_targets_are_refused():
    bad = targets_from_functions(MODEL, {"q0": lambda t: np.nan if t > 0.5 else 0.0})
    with pytest.raises(SettingsError, match=r"'q0' at 0.50\d* s is nan; every target must be a finite number"):
        track_targets(MODEL, make_controls(bad), duration=1.0)
    stopped = replace(
        MODEL,
        joints=(replace(MODEL.joints[0], coordinates=(replace(MODEL.coordinates[0], upper=0.1),)), MODEL.joints[1]),
    )
    with pytest.raises(SettingsError, match="beyond its stops"):
        track_targets(stopped, make_controls(STILL), duration=1.0)
    with pytest.raises(SettingsError, match="unit quaternion"):
        rotation_keyframes(planks(1, kind="ball"), "joint_0", [0.0], [[1.0, 1.0, 0.0, 0.0]])
    with pytest.raises(SettingsError, match="ball joint"):
        RotationTargets(MODEL, "joint_0", lambda times: np.zeros((len(times), 4)))
    with pytest.raises(SettingsError, match="times must rise"):
        keyframes(MODEL, [0.0, 1.0, 0.5], {"q0": [0.0, 0.1, 0.2]})


def test_bad_controls_are_refused():
    with pytest.raises(SettingsError, match="'q0' is controlled twice, by 'q0' and by 'q0'"):
        track_targets(MODEL, [*make_controls(STILL), Control("q0", STILL)], duration=1.0)
    with pytest.raises(SettingsError, match="q7"):
        Control("q7", STILL)
    with pytest.raises(SettingsError, match="coordinate 'q1'"):
        track_targets(planks(1), make_controls(STILL), duration=1.0)
    with pytest.raises(SettingsError, match="limit is -1"):
        Control("q0", STILL, max_force=-1.0)
    with pytest.raises(SettingsError, match="their responses differ"):
        model = planks(1, kind="ball")
        still = targets_from_functions(model, {name: lambda t: 0.0 for name in ("x0", "y0", "z0")})
        controls = [Control(name, still, PD(gain)) for name, gain in (("x0", 1.0), ("y0", 1.0), ("z0", 2.0))]
        track_targets(model, controls, duration=1.0)
    with pytest.raises(ModelError, match="stone"):
        track_targets(MODEL, make_controls(STILL), duration=1.0, outside=["stone"])
    with pytest.raises(SettingsError, match="outside the controller's world"):
        track_targets(MODEL, make_controls(STILL), duration=1.0, outside=["plank_1"])


@pytest.mark.parametrize(
    "given", [{"step": 0.0}, {"step": -0.01}, {"duration": -1.0}, {"every": 0}, {"method": "magic"}]
)
def test_bad_settings_are_refused(given):
    with pytest.raises(SettingsError):
        track_targets(MODEL, make_controls(STILL), **{"duration": 1.0} | given)
