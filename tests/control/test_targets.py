"""Targets in time: interpolation and invalid arguments."""

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.response import PD, next_velocity
from borelli.control.targets import (
    INTERPOLATIONS,
    b_spline_targets,
    combine_targets,
    keyframes,
    targets_from_functions,
    targets_from_motion,
)
from borelli.errors import SettingsError
from borelli.model.functions import linear
from borelli.model.model import Body, Coordinate, Coupling, Joint, Model

HINGE = Joint("elbow", "hinge", "upper", "lower", coordinates=(Coordinate("flexion", lower=0.0, upper=2.5),))
SHOULDER = Joint("shoulder", "hinge", "ground", "upper", coordinates=(Coordinate("swing"),))
ARM = Model("arm", (Body("upper", 2.0), Body("lower", 1.0)), (SHOULDER, HINGE))
KEYS = [0.0, 0.5, 2.0]
VALUES = [0.2, 2.4, 1.0]


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
def test_keyframes_are_interpolated_and_constant_beyond_the_ends(interpolation):
    targets = keyframes(ARM, KEYS, {"swing": VALUES, "flexion": VALUES}, interpolation)
    np.testing.assert_allclose(targets.at(KEYS), np.stack([VALUES, VALUES], axis=1), atol=1e-14)
    np.testing.assert_allclose(targets.at([-5.0, 9.0]), [[0.2, 0.2], [1.0, 1.0]], atol=1e-14)
    assert targets.at(0.3).shape == (2,)


def test_interpolations_match_their_descriptions():
    between = np.linspace(0.0, 0.5, 50, endpoint=False)
    s = between / 0.5
    curves = {kind: keyframes(ARM, KEYS, {"swing": VALUES}, kind).at(between)[:, 0] for kind in INTERPOLATIONS}
    np.testing.assert_allclose(curves["hold"], 0.2)
    np.testing.assert_allclose(curves["linear"], 0.2 + 2.2 * s)
    # Flash and Hogan 1985
    np.testing.assert_allclose(curves["minimum jerk"], 0.2 + 2.2 * (10 * s**3 - 15 * s**4 + 6 * s**5), atol=1e-13)
    assert (np.diff(curves["monotone"]) > 0.0).all() and curves["monotone"].max() <= 2.4
    first = keyframes(ARM, KEYS, {"swing": VALUES}, "cubic").at([0.0, 1e-6])[:, 0]
    assert abs(first[1] - first[0]) / 1e-6 < 1e-4


def test_curve_that_exceeds_a_joint_limit_between_its_keys_raises():
    targets = keyframes(ARM, [0.0, 0.5, 0.6, 1.0], {"flexion": [0.0, 2.4, 2.5, 0.0]}, "cubic")
    match = r"'flexion' at 0\.5\d* s is 2\.5\d* rad, outside its limits 0 to 2\.5 rad"
    with pytest.raises(SettingsError, match=match):
        targets.at(np.linspace(0.0, 1.0, 101))


def test_b_spline_starts_and_ends_at_its_control_values_and_stays_between_them():
    values = [0.0, 2.5, 0.0, 2.5, 1.0]
    targets = b_spline_targets(ARM, [0.0, 1.0, 2.0], {"flexion": values})
    curve = targets.at(np.linspace(0.0, 2.0, 201))[:, 0]
    assert curve[0] == 0.0 and curve[-1] == pytest.approx(1.0)
    assert curve.min() >= 0.0 and curve.max() <= 2.5
    # straight control polygon at the Greville abscissae: a B-spline reproduces lines
    line = b_spline_targets(ARM, [0.0, 1.0, 2.0], {"swing": [0.0, 1 / 3, 1.0, 5 / 3, 2.0]})
    np.testing.assert_allclose(line.at([0.3, 1.7])[:, 0], [0.3, 1.7], atol=1e-14)


def test_functions_and_the_differences_of_a_step():
    targets = targets_from_functions(ARM, {"swing": np.sin, "flexion": lambda t: 1.0 + t})
    before, now, ahead = targets.around(0.5, 0.1)
    np.testing.assert_allclose(before, [np.sin(0.4), 1.4])
    np.testing.assert_allclose(now, [np.sin(0.5), 1.5])
    np.testing.assert_allclose(ahead, [np.sin(0.6), 1.6])


def test_coordinates_converge_to_their_targets():
    targets = combine_targets(
        keyframes(ARM, KEYS, {"flexion": VALUES}, "minimum jerk"),
        targets_from_functions(ARM, {"swing": lambda t: np.sin(3.0 * t)}),
    )
    x, v, step = np.array([1.0, -0.5]), np.zeros(2), 1 / 60
    for k in range(300):
        v = next_velocity(PD.from_settling_time(1.0), x, v, targets.around(k * step, step), step)
        x = x + step * v
    np.testing.assert_allclose(x, targets.at(5.0), atol=1e-9)


def motion_of(model, coordinates, rate=50.0):
    return make_motion(model, coordinates, np.arange(len(coordinates)) / rate, rate)


def test_motion_is_interpolated_between_its_frames():
    t = np.arange(51) / 50.0
    motion = motion_of(ARM, np.stack([np.sin(2 * t), 1.0 + np.sin(t)], axis=1))
    targets = targets_from_motion(motion)
    assert targets.coordinates == ("swing", "flexion")
    between = np.linspace(0.2, 0.8, 37)
    # cubic: fourth order of the frames' distance, 16 * 0.02^4 * 5/384
    assert np.abs(targets.at(between)[:, 0] - np.sin(2 * between)).max() < 5e-8
    assert targets_from_motion(motion, ["flexion"]).at(0.5) == pytest.approx([1.0 + np.sin(0.5)])


def test_revolutions_between_frames_are_unwrapped():
    wrapped = np.mod(np.linspace(0.0, 10.0, 51) + np.pi, 2 * np.pi) - np.pi
    targets = targets_from_motion(motion_of(ARM, np.stack([wrapped, np.ones(51)], axis=1)), ["swing"])
    times = np.linspace(0.3, 0.7, 50)
    np.testing.assert_allclose(targets.at(times)[:, 0], 10.0 * times, atol=1e-4)


NAN = float("nan")
BAD = {
    "unknown coordinate": (lambda: keyframes(ARM, KEYS, {"flexoin": VALUES}), r"'flexoin' \(did you mean 'flexion'"),
    "unknown interpolation": (lambda: keyframes(ARM, KEYS, {"swing": VALUES}, "cubik"), "did you mean 'cubic'"),
    "NaN": (lambda: keyframes(ARM, KEYS, {"swing": [0.0, NAN, 1.0]}), r"'swing' at 0\.5 s is nan"),
    "outside limits": (lambda: keyframes(ARM, KEYS, {"flexion": [0.0, 1.0, 3.0]}), r"at 2 s is 3 rad, .* 0 to 2\.5"),
    "control value outside limits": (
        lambda: b_spline_targets(ARM, [0.0, 1.0], {"flexion": [0, -1, 0, 0]}),
        r"at 0\.333333 s is -1 rad",
    ),
    "time running backwards": (lambda: keyframes(ARM, [0.0, 1.0, 0.5], {"swing": VALUES}), r"0\.5 s .* after 1 s"),
    "constant time": (lambda: keyframes(ARM, [0.0, 1.0, 1.0], {"swing": VALUES}), "Times must increase"),
    "time not finite": (lambda: keyframes(ARM, [0.0, NAN, 1.0], {"swing": VALUES}), r"times: Element \[1\] is nan"),
    "no times": (lambda: keyframes(ARM, [], {"swing": []}), "at least one"),
    "no coordinates": (lambda: keyframes(ARM, KEYS, {}), "There is no coordinate"),
    "wrong count": (lambda: keyframes(ARM, KEYS, {"swing": [0.0]}), r"shape \(1,\)\. Pass shape \(3,\)"),
    "wrong count of control values": (
        lambda: b_spline_targets(ARM, [0, 1, 2], {"swing": VALUES}),
        r"Pass shape \(5,\)",
    ),
    "degree": (lambda: b_spline_targets(ARM, [0, 1], {"swing": VALUES}, degree=0), "degree is 0"),
    "one knot": (lambda: b_spline_targets(ARM, [0], {"swing": VALUES}), "at least two"),
    "function not finite": (lambda: targets_from_functions(ARM, {"swing": lambda t: NAN}).at(1.0), "at 1 s is nan"),
    "function outside limits": (
        lambda: targets_from_functions(ARM, {"flexion": lambda t: -t}).around(1.0, 0.1),
        "at 0.9 s is -0.9",
    ),
    "evaluated at NaN": (lambda: targets_from_functions(ARM, {"swing": np.sin}).at(NAN), "Pass finite numbers"),
    "step backwards": (lambda: targets_from_functions(ARM, {"swing": np.sin}).around(1.0, -0.1), "The step is -0.1 s"),
    "two controllers": (
        lambda: combine_targets(
            targets_from_functions(ARM, {"swing": np.sin}), keyframes(ARM, KEYS, {"swing": VALUES})
        ),
        "'swing' has two targets",
    ),
    "nothing to combine": (lambda: combine_targets(), "no targets to combine"),
    "two models": (
        lambda: combine_targets(
            targets_from_functions(ARM, {"swing": np.sin}),
            targets_from_functions(Model("leg", ARM.bodies, ARM.joints), {}),
        ),
        "'arm' and 'leg' differ",
    ),
    "unknown coordinate of a motion": (
        lambda: targets_from_motion(motion_of(ARM, np.ones((9, 2))), ["hip"]),
        "'hip'.*nown",
    ),
    "motion with gaps": (lambda: targets_from_motion(motion_of(ARM, np.full((9, 2), NAN)), ["swing"]), "at 0 s is nan"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_targets_raise_a_clear_error(case):
    make, message = BAD[case]
    with pytest.raises(SettingsError, match=message):
        make()


def test_locked_and_coupled_coordinates_raise():
    locked = Joint("elbow", "hinge", "upper", "lower", coordinates=(Coordinate("flexion", locked=True),))
    with pytest.raises(SettingsError, match="'flexion' is locked"):
        targets_from_functions(Model("arm", ARM.bodies, (SHOULDER, locked)), {"flexion": np.sin})
    coupling = Coupling("together", "flexion", "swing", linear(1.0))
    coupled = Model("arm", ARM.bodies, ARM.joints, couplings=(coupling,))
    with pytest.raises(SettingsError, match=r"'flexion' is coupled to 'swing'\. Give 'swing' the target"):
        targets_from_functions(coupled, {"flexion": np.sin})
    assert targets_from_motion(motion_of(coupled, np.ones((9, 2)))).coordinates == ("swing",)
