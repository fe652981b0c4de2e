"""Gains from next to nothing to 1e8 and steps from 10 us to 1 s: every joint goes the way its response says.

The law held against is the recursion of one coordinate, E -> a E + b E' (control.response): whatever the body, its
weight and the step, each controlled joint obeys it (spec impulse-pd, tests 11 and 13), so that none diverges.
"""

from dataclasses import replace

import numpy as np
import pytest

from borelli.control.controls import Control, make_controls
from borelli.control.example_motions import march
from borelli.control.response import PD
from borelli.control.targets import keyframes
from borelli.control.track_targets import track_targets
from borelli.errors import SettingsError
from borelli.model.mechanisms import net, planks
from borelli.model.people.full_skeleton import full_skeleton

STEPS = 25
OFF = 0.1  # of the range, or rad


def bare_skeleton():
    skeleton = full_skeleton()
    return replace(skeleton, bodies=tuple(replace(body, shapes=()) for body in skeleton.bodies))


def starts(model):
    """Of each internal coordinate: its target and where it starts; of a ball joint the first alone is off."""
    found = {}
    for joint in model.joints:
        if joint.kind == "free":
            continue
        for i, c in enumerate(joint.coordinates):
            low, high = (c.lower, c.upper) if np.isfinite(c.upper - c.lower) else (c.default - 0.5, c.default + 0.5)
            target = 0.5 * (low + high)
            found[c.name] = target, target + (OFF * (high - low) if joint.kind != "ball" or i == 0 else 0.0)
    return found


def recursion(error, response, step):
    """|E| of a coordinate released at rest, after each step."""
    way, rate = [error], 0.0 * error
    for _ in range(STEPS):
        way.append(response.after(way[-1], rate, step, 0.0))
        rate = (way[-1] - way[-2]) / step
    return np.array(way)


@pytest.mark.parametrize("build", [lambda: planks(5), bare_skeleton], ids=["planks", "skeleton"])
@pytest.mark.parametrize("stiffness", [1e-2, 1.0, 1e2, 1e5, 1e8])
def test_any_gain_and_step_is_stable(build, stiffness):
    model = build()
    wanted, response = starts(model), PD(stiffness)
    names = list(wanted)
    targets = keyframes(model, [0.0], {name: [target] for name, (target, _) in wanted.items()})
    controls = [Control(name, targets, response) for name in names]
    begun = np.array([at - target for target, at in wanted.values()])
    for step in (1e-5, 1e-3, 1 / 60, 1.0):
        data = track_targets(
            model, controls, duration=STEPS * step, step=step, initial_coordinates={name: at for name, (_, at) in wanted.items()}
        )
        error = (data["coordinate_value"] - data["coordinate_target"]).sel(coordinate=names).values
        law = recursion(begun, response, step)
        assert np.abs(error - law).max() < 1e-9
        assert (np.abs(error[-1]) < np.abs(begun)).all(where=begun != 0.0)
        assert np.abs(error).max() < np.abs(begun).max() * (1.0 + 1e-9)
        assert float(data["joint_gap"].max()) < 1e-9


def test_a_ratio_that_no_step_is_safe_with_is_refused():
    """The bound is 0.0293 (spec impulse-pd, test 8)."""
    with pytest.raises(SettingsError, match="ratio"):
        PD(25.0, ratio=0.029)
    PD(25.0, ratio=0.0294)


@pytest.mark.parametrize("step", [1 / 60, 1 / 240])
def test_a_skeleton_that_marches_on_the_ground_stays_whole(step):
    """Toes that carry the body are pushed to their stops while their controls pull: joints stay closed all the same."""
    model = full_skeleton()
    data = track_targets(model, make_controls(march(model)), duration=0.3, step=step)
    assert np.isfinite(data["coordinate_value"].values).all()
    assert float(data["ground_reaction_force"].sel(axis="z").sum("body").max()) > 0.5 * 9.81 * model.mass
    assert float(data["joint_gap"].max()) < 1e-9


def test_joints_that_were_left_open_are_told():
    """A flat net between two corners is too taut for long steps: not all of them close it."""
    data = track_targets(net(8, 8, arc=0.0), (), duration=0.3, step=1 / 30)
    left = (data["solver_status"] >= 16).values
    assert left.any() and float(data["joint_gap"].max()) < 5e-3
    wide = data["joint_gap"].values > 1e-9  # what `positions.NEARLY_CLOSED` allows
    assert wide[left].all() and not wide[~left].any()
    assert f"in {left.sum()} of the recorded steps" in data.attrs["notes"]
    assert "left open" not in track_targets(net(4, 4), (), duration=0.6, step=1 / 240).attrs["notes"]
