"""Excitations of a run: every form gives the same table, and bad ones are refused with the muscle's name."""

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.muscles.excitations import Excitations
from borelli.physics.muscle_step.excitation_table import make_excitation_table
from borelli.scenes.gallery import gallery_scene

from .muscled import floating, run

STEP, STEPS = 0.01, 50


def table(excitations):
    return make_excitation_table(floating(), excitations, step=STEP, steps=STEPS)


def test_all_forms_agree():
    """A function, an array and a table of excitations that rise linearly; the other muscle is not excited."""
    time = STEP * np.arange(STEPS + 1)
    forms = [
        {"two": lambda t: 0.5 * t},
        {"two": 0.5 * time},
        Excitations(("two",), np.array([0.0, 1.0]), np.array([[0.0], [0.5]])),
    ]
    first, *others = map(table, forms)
    np.testing.assert_allclose(first[:, 1, 0], 0.5 * time[:-1])
    np.testing.assert_allclose(first[:, 1, 1], 0.5 * time[1:])
    assert not first[:, 0].any()
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-15)


def test_constants():
    assert np.array_equal(table(0.3), np.full((1, 2, 2), 0.3))
    assert np.array_equal(table({"one": 0.3}), [[[0.3, 0.3], [0.0, 0.0]]])


@pytest.mark.parametrize("jump", [0.1, np.nextafter(0.1, 0.0), np.nextafter(0.1, 1.0)])
def test_a_jump_at_the_end_of_a_step_is_a_jump(jump):
    """Also where the time of the step differs from that of the table by rounding."""
    found = table(Excitations(("one",), np.array([0.0, jump]), np.array([[0.2], [0.7]]), "constant"))[:, 0]
    assert np.array_equal(found[:10], np.full((10, 2), 0.2)) and np.array_equal(found[10:], np.full((40, 2), 0.7))


@pytest.mark.parametrize(
    ("excitations", "message"),
    [
        ({"tow": 0.5}, r"excitations: Unknown muscle 'tow' \(did you mean 'two'\?\); known: one, two"),
        (Excitations(("three",), np.zeros(1), np.zeros((1, 1))), "Unknown muscle 'three'.*known: one, two"),
        ({"one": 1.2}, "excitations of 'one': The value 1.2 at 0 s is outside 0 to 1"),
        ({"one": lambda t: 2.5 * t}, "excitations of 'one': The value 1.025 at 0.41 s is outside 0 to 1"),
        ({"one": float("nan")}, "excitations of 'one': The value nan at 0 s is outside 0 to 1"),
        (-0.1, "excitations: The value -0.1 at 0 s is outside 0 to 1"),
        ({"one": np.zeros(7)}, r"excitations of 'one': The shape is \(7,\). Pass one number, or 51"),
        ({"one": "strong"}, "excitations of 'one': Found 'strong'. Pass numbers"),
        ("strong", "excitations: Found 'strong'. Pass numbers"),
    ],
)
def test_bad_excitations_are_refused(excitations, message):
    with pytest.raises(SettingsError, match=message):
        table(excitations)


@pytest.mark.parametrize("stepping", ["soft", "impulse"])
def test_a_model_without_muscles_is_refused(stepping):
    with pytest.raises(ModelError, match=r"'pendulum' has no muscles to excite\. Remove the excitations"):
        run(stepping, gallery_scene("pendulum").model, duration=0.1, excitations=0.5)


def test_without_excitations_muscles_do_not_act():
    data = run("soft", floating(), duration=0.05)
    assert "muscle_force" not in data and not np.any(data["coordinate_velocity"].values)
