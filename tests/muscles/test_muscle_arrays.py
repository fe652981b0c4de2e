"""Arrays of muscles: order, parameters of files, and errors and warnings that name the muscle."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.io import read_model
from borelli.muscles.hill import make_muscle_arrays, muscle_warnings
from borelli.muscles.hill_kernels.arrays import HillArrays
from borelli.muscles.muscle_arrays import MuscleArrays
from tests.shared_data import UNREADABLE_MODELS, shared

from .muscle_cases import DE_GROOTE, KINDS, MILLARD, MUJOCO, THELEN, model, muscle


def test_fields_are_those_of_the_kernels():
    assert MuscleArrays._fields == ("names", *HillArrays._fields)


def test_muscles_come_in_the_order_of_their_names():
    both = model(muscle(THELEN, "a", max_isometric_force=1.0), muscle(MILLARD, "b", max_isometric_force=2.0))
    arrays = make_muscle_arrays(both, ["b", "a"])
    assert arrays.names == ("b", "a")
    assert arrays.max_isometric_force.tolist() == [2.0, 1.0]
    with pytest.raises(SettingsError, match="did you mean 'a'"):
        make_muscle_arrays(both, ["a_"])
    assert make_muscle_arrays(both, []).names == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("optimal_fiber_length", 0.0), ("optimal_fiber_length", -0.1), ("optimal_fiber_length", float("nan")),
        ("max_isometric_force", float("inf")), ("max_contraction_velocity", 0.0), ("tendon_slack_length", -0.01),
        ("tendon_slack_length", float("nan")), ("pennation_angle", pi / 2), ("pennation_angle", float("nan")),
        ("activation_time", -0.01), ("default_activation", float("nan")),
    ],
)  # fmt: skip
def test_bad_values_are_refused_with_the_muscle(field, value):
    bad = replace(muscle(MILLARD, "soleus_r"), **{field: value})
    with pytest.raises(ModelError, match=rf"'soleus_r'.*{field}"):
        make_muscle_arrays(model(muscle(MILLARD, "good"), bad))


@pytest.mark.parametrize(
    "parameters", [{"fiber_damping": -0.1}, {"minimum_activation": 1.5}, {"maximum_pennation_angle": 0.1}]
)
def test_bad_parameters_are_refused_with_the_muscle(parameters):
    with pytest.raises(ModelError, match="'soleus_r'"):
        make_muscle_arrays(model(muscle(MILLARD, "soleus_r", **parameters)))


def test_zero_tendon_is_rigid_and_reported():
    found = model(muscle(THELEN, "short", tendon_slack_length=0.0))
    arrays = make_muscle_arrays(found)
    assert arrays.rigid_tendon.all()
    (warning,) = muscle_warnings(found, arrays)
    assert "short" in warning and "rigid" in warning


def test_lengths_thirty_times_off_are_reported():
    """As in models converted between programs (myo_sim issue 119)."""
    good, long = muscle(MILLARD, "good"), muscle(MILLARD, "long", optimal_fiber_length=0.1 / 30.0)
    found = model(good, long)
    arrays = make_muscle_arrays(found)
    length = np.linspace(0.26, 0.34, 9)[:, None] * np.ones(2)
    (warning,) = muscle_warnings(found, arrays, length)
    assert "'long'" in warning and "optimal_fiber_length" in warning


def test_substituted_curves_are_reported():
    found = model(muscle("Schutte1993Muscle_Deprecated", "deltoid"), muscle("", "biceps"), muscle(THELEN, "soleus"))
    warnings = muscle_warnings(found, make_muscle_arrays(found))
    assert len(warnings) == 2
    assert any("biceps" in text and "Millard" in text for text in warnings)
    assert any("deltoid" in text and "Thelen" in text for text in warnings)


def test_defaults_of_the_classes():
    arrays = make_muscle_arrays(model(*(muscle(kind, kind) for kind in KINDS)))
    at = {kind: i for i, kind in enumerate(KINDS)}
    assert arrays.damping[at[MILLARD]] == 0.1 and arrays.damping[at[THELEN]] == 0.0
    assert arrays.min_activation[at[THELEN]] == 0.01 and arrays.min_activation[at[DE_GROOTE]] == 0.0
    assert arrays.rigid_tendon.tolist() == [kind == MUJOCO for kind in KINDS]


@pytest.mark.data
def test_every_model_gives_arrays():
    """Muscles of public models, with their own curve parameters."""
    paths = [
        *shared("muscle_models/osim").glob("*.osim"), *shared("opensim").glob("*/*.osim"),
        *shared("muscle_models/mjcf").glob("**/*.xml"),
    ]  # fmt: skip
    count = 0
    for path in paths:
        if path.name in UNREADABLE_MODELS:
            continue
        try:
            found = read_model(path)
        except Exception as error:  # parts of MJCF models are no models of their own
            assert path.suffix == ".xml", error
            continue
        arrays = make_muscle_arrays(found)
        count += len(arrays.names)
        assert np.isfinite(arrays.curve).all()
        if path.name == "gait2392_thelen2003muscle.osim":
            np.testing.assert_allclose(arrays.curve[:, :3], [[0.5, 0.3, 1.8]] * len(arrays.names))
    assert count > 2000
