"""Arguments of a wrong type: every public function refuses them in a sentence that names the argument and the type."""

import inspect
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import borelli as bo
from borelli.errors import SettingsError
from borelli.files.argument_types import expected_type

from .test_names import PACKAGES

ANY_OBJECT = {
    "picture.result": "results of every kind are drawn; others are refused by the list of what can be drawn",
    "plot.result": "as in picture",
    "show.result": "as in picture",
    "strobe.result": "as in picture",
    "video.result": "as in picture",
    "view.write_frames.result": "as in picture",
    "inverse_dynamics.residual": "settings of each method, which checks them",
    "model.model_from_table.path": "only a name for messages",
    "model.model_from_text.path": "only a name for messages",
}
"""Arguments that admit any object, and why."""
ADMIT_TEXT = re.compile(r"\b(str|Path|PathLike|Any|object|Forces)\b")
"""In an annotation without its brackets: types of which text is one. `Forces` names where forces come from."""
METHODS = [
    bo.Recording.with_data,
    bo.Recording.with_notes,
    bo.Recording.select_markers,
    bo.Recording.to_netcdf,
    bo.Fit.draw,
    bo.analysis.Loads.at,
    bo.analysis.Loads.moved,
    bo.analysis.Loads.smoothed,
    bo.analysis.Loads.matched,
    bo.analysis.MonteCarloResult.to_dataset,
    bo.control.Control.coordinates,
    bo.control.Control.max_forces,
    bo.control.MuscleActuation.check,
    bo.control.MuscleActuation.reserve_torques,
    bo.model.ModelComparison.quantity,
    bo.model.ModelComparison.worst,
    bo.model.ModelComparison.tables,
    bo.model.ModelComparison.text,
    bo.muscles.MusclePaths.to_dataset,
    bo.optimal.Certificate.check,
    bo.optimal.Phase.bounds_of,
    bo.optimal.Problem.phase,
    bo.optimal.Problem.continuous_states,
    bo.optimal.PredictedWalk.joint_range,
    bo.optimal.PredictedWalk.metabolic_cost,
    bo.optimal.PredictedWalk.motion,
    bo.optimal.Solution.phase,
    bo.optimal.Solution.value,
    bo.optimal.Solution.plot,
    bo.optimal.Solution.save,
    bo.optimal.TrackedMotion.coordinates,
    bo.optimal.TrackedMotion.motion,
    bo.optimal.TrackedMotion.plot,
    bo.optimal.WhatIf.plot,
]


class Foreign:
    """Object of a type that borelli does not know."""


def public_functions():
    found = {}
    for package in ("", *PACKAGES):
        module = import_module(f"borelli.{package}".rstrip("."))
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isroutine(function) and function not in found.values():
                found[f"{package}.{name}".lstrip(".")] = function
    return found


def arguments():
    """Yield a function and each of its arguments; options that are passed on are checked by the receiver.

    Any number of arguments after another one cannot be passed alone, so that only those that are first are here.
    """
    functions = public_functions() | {method.__qualname__: method for method in METHODS}
    for name, function in functions.items():
        parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
        for parameter in parameters:
            alone = parameter.kind is not parameter.VAR_POSITIONAL or parameter is parameters[0]
            if alone and parameter.kind is not parameter.VAR_KEYWORD:
                yield pytest.param(function, parameter, id=f"{name}.{parameter.name}")


ARGUMENTS = list(arguments())
CHECKED = [one for one in ARGUMENTS if one.id not in ANY_OBJECT]
NO_TEXT = [one for one in CHECKED if not ADMIT_TEXT.search(re.sub(r"\[.*?\](?=$| \|)", "", one.values[1].annotation))]


def refusal(function, parameter, value):
    """Return the message for one wrong argument; a method is called for no object."""
    first = [None] if next(iter(inspect.signature(function).parameters)) == "self" else []
    with pytest.raises(SettingsError) as caught:
        if parameter.kind is parameter.VAR_POSITIONAL:
            function(*first, value)
        else:
            function(*first, **{parameter.name: value})
    return str(caught.value)


def test_every_public_function_checks_its_arguments():
    functions = public_functions()
    top = {name for name in bo.__all__ if inspect.isroutine(getattr(bo, name))}
    assert top <= set(functions) and len(functions) > 150
    assert [name for name, function in functions.items() if not hasattr(function, "__wrapped__")] == []
    unchecked = {one.id for one in ARGUMENTS if one.values[1].annotation in ("Any", "object")}
    assert set(ANY_OBJECT) == unchecked
    assert len(NO_TEXT) > 300


@pytest.mark.parametrize(("function", "parameter"), CHECKED)
def test_object_of_a_foreign_type_is_refused(function, parameter):
    message = refusal(function, parameter, Foreign())
    assert re.match(rf"\S*{function.__name__}: {parameter.name}: Expected .+, got a Foreign\. \S", message), message


@pytest.mark.parametrize(("function", "parameter"), NO_TEXT)
def test_text_is_refused_where_there_can_be_none(function, parameter):
    message = refusal(function, parameter, "knee")
    assert re.match(rf"\S*{function.__name__}: {parameter.name}: Expected .+, got the str 'knee'\. \S", message), (
        message
    )


@pytest.mark.parametrize("name", [name for name, why in ANY_OBJECT.items() if "picture" in why or "drawn" in why])
def test_object_that_cannot_be_drawn_is_refused(name, tmp_path):
    function = public_functions()[name.removesuffix(".result")]
    path = [tmp_path / "a.gif"] if list(inspect.signature(function).parameters)[1] in ("path", "folder") else []
    with pytest.raises(SettingsError, match=r"^result: A Foreign cannot be .* Use one of: "):
        function(Foreign(), *path)
    with pytest.raises(
        SettingsError, match=r"^result: The str 'walk\.c3d' .* Read the file first with bo\.read_recording"
    ):
        function("walk.c3d", *path)


def test_an_unchecked_function_would_fail_these_tests():
    human = inspect.unwrap(bo.human)
    with pytest.raises(TypeError, match="must be real number"):
        human(mass=Foreign())


@pytest.fixture(scope="module")
def model():
    return bo.human()


@pytest.fixture(scope="module")
def recording():
    return bo.synthetic_recording("walk").recording


def test_path_names_the_function_that_reads_it(model):
    for path in ("walk.c3d", Path("walk.c3d")):
        with pytest.raises(SettingsError, match=r"Read it first: bo\.read_recording\('walk\.c3d'\)\.$"):
            bo.clean(path)
    with pytest.raises(SettingsError, match=r"recordings: .* Read it first: bo\.read_recording"):
        bo.fit_model(model, "walk.c3d")


def test_swapped_arguments_are_named(model, recording):
    with pytest.raises(
        SettingsError, match=r"^inverse_kinematics: model: Expected a Model, got a Recording\. It is swapped"
    ) as e:
        bo.inverse_kinematics(recording, model)
    assert "inverse_kinematics(model, recording)" in str(e.value)
    with pytest.raises(SettingsError, match=r"Pass recording first: write_recording\(recording, path\)\.$"):
        bo.write_recording("walk.c3d", recording)
    with pytest.raises(SettingsError, match=r"swapped with recording\. Exchange them"):
        bo.inverse_kinematics(model=recording, recording=model)


def test_remedies(model, recording):
    with pytest.raises(SettingsError, match=r"^human: mass: .* Pass the number: mass=80\.$"):
        bo.human(mass="80")
    with pytest.raises(SettingsError, match=r"Pass a list: \['LKNE'\]"):
        bo.identify_marker_set("LKNE")
    with pytest.raises(SettingsError, match=r"^simulate: drives\[0\]: Expected a Drive, got the str 'knee_r'"):
        bo.simulate(model, duration=1.0, drives=["knee_r"])
    with pytest.raises(SettingsError, match=r"^simulate: initial_coordinates\['knee_r'\]: Expected a number"):
        bo.simulate(model, duration=1.0, initial_coordinates={"knee_r": "bent"})
    with pytest.raises(SettingsError, match=r"^inverse_dynamics: motion: .* Pass what bo\.inverse_kinematics returns"):
        bo.inverse_dynamics(recording)
    with pytest.raises(SettingsError, match=r"^clean: recording: .*SyntheticRecording\. Pass its recording\.$"):
        bo.clean(bo.synthetic_recording("walk"))
    with pytest.raises(SettingsError, match=r"^picture: time: Expected a number, got the str 'late'"):
        bo.picture(model, time="late")
    with pytest.raises(SettingsError, match=r"^read_recording: path: .* got None\. See help\(bo\.read_recording\)\.$"):
        bo.read_recording(None)
    with pytest.raises(SettingsError, match=r"the class Recording\. Pass an instance"):
        bo.clean(bo.Recording)


@pytest.mark.parametrize(
    ("annotation", "admitted", "refused"),
    [
        (float, (1, 1.0, np.float32(1.0), np.array(1.0)), ("1", None, [1.0], np.ones(2), np.str_("1"))),
        (int, (1, np.int64(1)), (1.0, "1", None)),
        (bool, (True, np.True_), (1, "yes", None)),
        (list[float], ([1.0], (1,), np.ones(3)), ("12", ["1"], 1.0, {"a": 1.0})),
        (dict[str, float] | None, ({"a": 1}, None), ([1.0], {"a": "b"}, 1.0)),
        (Path, ("a", Path("a")), (1, b"a", None)),
        (str | list[str], ("a", ["a"]), ([1], 1)),
    ],
)
def test_annotation_admits(annotation, admitted, refused):
    expected = expected_type(annotation)
    assert all(expected.admits(value) for value in admitted)
    assert not any(expected.admits(value) for value in refused)


def test_checked_functions_are_one_object_that_can_be_pickled():
    assert bo.clean is bo.recording.clean and bo.Drive is bo.physics.Drive
    assert all(pickle.loads(pickle.dumps(function)) is function for function in public_functions().values())


def test_annotations_are_not_evaluated_on_import():
    code = "import sys, borelli as bo; bo.recording.make_dataset, bo.write_report; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
