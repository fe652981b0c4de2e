"""Jump report, fitted paths and warnings about bad paths."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.model import Pulley
from borelli.model.validate import validate
from borelli.muscles.fitted_paths import fit_paths
from borelli.muscles.path_checks import check_paths
from borelli.muscles.path_jumps import find_path_jumps
from borelli.muscles.paths import muscle_paths

from .sample_models import at, free_body_model, moving_and_conditional_model, over, random_rows, stored, surface


def test_jumps_are_found_where_they_are_built_in():
    model = moving_and_conditional_model()
    jumps = find_path_jumps(model)
    assert sorted(round(jump.at, 9) for jump in jumps) == [0.0, 1.0]
    for jump in jumps:
        sides = muscle_paths(model, [[jump.at - 1e-9], [jump.at + 1e-9]]).length[:, 0]
        assert jump.size == pytest.approx(sides[1] - sides[0], abs=1e-8)
        assert "conditional point" in jump.cause and "q = " in str(jump)


def test_a_smooth_path_has_no_jumps():
    thing = surface("sphere", 0.03)
    model = free_body_model([at(-0.06, 0.02, 0), at(0.06, 0.025, 0.01, "b")], over(thing), [thing])
    rz = replace(model.joints[0].coordinates[5], lower=-0.4, upper=0.4)
    joint = replace(model.joints[0], coordinates=(*model.joints[0].coordinates[:5], rz))
    jumps = find_path_jumps(replace(model, joints=(joint,)))
    assert not [jump for jump in jumps if jump.coordinate == "rz"]


def test_a_point_that_enters_its_surface_is_named():
    thing = surface("cylinder", 0.03, 1.0)
    model = free_body_model([at(-0.06, 0.01, 0), at(0.06, 0.0, 0, "b")], over(thing), [thing])
    jumps = [jump for jump in find_path_jumps(model, step=0.01) if jump.coordinate == "tx"]
    assert any("'s' is wrapped before" in jump.cause or "inside" in jump.cause for jump in jumps)


@pytest.mark.data
def test_known_jump_of_arm26():
    """TRIlong jumps in OpenSim by 7.9 mm, BIClong by 1.7 mm; exact paths still jump where a wrap begins."""
    jumps = find_path_jumps(stored("opensim/arm26/arm26.osim"), geometry="opensim", muscles=["TRIlong", "BIClong"])
    assert {jump.muscle for jump in jumps} & {"TRIlong", "BIClong"}
    assert all(abs(jump.size) >= 0.001 for jump in jumps)


@pytest.mark.data
def test_fitted_paths_state_their_errors():
    model = stored("opensim/gait2354/gait2354_simbody.osim")
    names = ["soleus_r", "glut_med1_r", "bifemsh_r"]
    rest = np.array([c.default for c in model.coordinates])
    rows = rest + 0.25 * (random_rows(model, 800) - rest)  # about the range of walking
    fitted = fit_paths(model, rows, degree=6, muscles=names)
    others = rest + 0.2 * (random_rows(model, 200, seed=9) - rest)
    exact, found = muscle_paths(model, others, muscles=names), fitted.evaluate(others)
    for m, path in enumerate(fitted.path):
        error = np.abs(found.length - exact.length)[:, m]
        assert error.max() < 3.0 * path.max_length_error + 1e-6, "held-out errors describe other poses"
        assert path.max_length_error < 2e-3 and path.rms_length_error <= path.max_length_error
        assert path.rms_arm_error <= path.max_arm_error < 0.02
    # the polynomial's own virtual work
    h, c = 1e-6, [x.name for x in model.coordinates].index("ankle_angle_r")
    up, down = others.copy(), others.copy()
    up[:, c] += h
    down[:, c] -= h
    slope = (fitted.evaluate(up).length - fitted.evaluate(down).length) / (2 * h)
    assert np.abs(slope + found.moment_arm[:, :, c]).max() < 1e-7


def test_fit_refuses_too_few_poses():
    model = moving_and_conditional_model()
    with pytest.raises(SettingsError, match=r"Muscle 'm': .* need more than 4 poses"):
        fit_paths(model, [[0.1], [0.2], [0.3], [0.4]], degree=8)


def codes(model):
    return [warning.code for warning in check_paths(model)]


def test_bad_paths_are_warned_about():
    thing = surface("cylinder", 0.03, 1.0)
    good = [at(-0.06, 0.01, 0, name="P1"), at(0.06, 0.0, 0, "b", name="P2")]
    assert codes(free_body_model(good, over(thing), [thing])) == []
    inside = [at(-0.02, 0.01, 0, name="P1"), good[1]]
    (warning,) = check_paths(free_body_model(inside, over(thing), [thing]))
    assert warning.code == "point_inside_wrap"
    assert str(warning).startswith("Muscle 'm': Point 'P1' is 7.64 mm inside wrap object 's'")
    assert codes(free_body_model([good[0], good[0], good[1]])) == ["repeated_point"]
    assert codes(free_body_model(good, over(thing, thing), [thing])) == ["repeated_wrap"]
    idle = surface("cylinder", 0.03, 1.0, active=False)
    assert codes(free_body_model(good, over(idle), [idle])) == ["inactive_wrap"]
    for kind, sizes in (("sphere", (0.03,)), ("ellipsoid", (0.03, 0.02, 0.04)), ("torus", (0.02, 0.025))):
        other = surface(kind, *sizes)
        assert codes(free_body_model(inside, over(other), [other])) == ["point_inside_wrap"]


@pytest.mark.parametrize(
    ("pulleys", "message"),
    [((Pulley(1, 0.0),), "Divisors"), ((Pulley(5, 2.0),), "numbered 0 to 1"), ((Pulley(1), Pulley(1)), "increasing")],
)
def test_bad_pulleys_are_refused(pulleys, message):
    model = free_body_model([at(0, 0, 0), at(1, 0, 0, "b")], pulleys=pulleys)
    with pytest.raises(ModelError, match=f"Muscle 'm': .*{message}"):
        validate(model)
