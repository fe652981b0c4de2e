"""Lengths and moment arms of symbolic muscles: exact for points, fitted within a gate where paths are not smooth."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.functions import linear, natural_cubic_spline
from borelli.model.model import CoordinateRange, Model, Muscle, PathPoint, TransformAxis
from borelli.muscles.fitted_paths import fit_paths
from borelli.muscles.paths import muscle_paths
from borelli.optimal.symbolic_dynamics.force_curves import with_de_groote_muscles
from borelli.optimal.symbolic_dynamics.muscle_group import make_muscle_group
from borelli.optimal.symbolic_dynamics.muscle_lengths import (
    PathGate,
    _degrees,
    coordinate_ranges,
    fit_lengths,
    is_polyline,
)

from .trees import GAIT10, RAJAGOPAL, at, mixed_tree, random_motion, stored

EXACT = 1e-12
"""[m]"""
FIBER = 0.5
"""[m] Optimal fiber length of the made muscle, long for the large motions of its bodies."""
WALKING = {
    GAIT10: {f"hip_flexion_{side}": (-0.6, 1.2) for side in "rl"},
    RAJAGOPAL: {
        f"{name}_{side}": span
        for name, span in (("hip_flexion", (-0.5, 1.6)), ("hip_adduction", (-0.5, 0.4)), ("hip_rotation", (-0.5, 0.5)))
        for side in "rl"
    },
}
"""Ranges [rad] of walking and stair climbing, within which all muscles of a model are fitted."""


def moving_point_model() -> Model:
    """Return a tree with a muscle over four bodies, one point of which moves with a spline of a coordinate.

    Its fiber has the optimal length at the default pose.
    """
    x = np.linspace(-1.0, 1.0, 5)
    motion = (
        TransformAxis((1.0, 0.0, 0.0), natural_cubic_spline(x, 0.02 * x**2), "flexion"),
        TransformAxis((0.0, 1.0, 0.0), linear(0.03, 0.01), "bending"),
        TransformAxis((0.0, 0.0, 1.0), linear(0.0, 0.05)),
    )
    path = (
        PathPoint("ball", (0.1, 0.0, 0.2)),
        PathPoint("root", (0.0, 0.1, 0.0)),
        PathPoint("root", (0.1, 0.1, 0.0)),
        PathPoint("knee", (0.0, 0.01, 0.05), motion=motion),
        PathPoint("planar", (0.2, -0.1, 0.1)),
    )
    muscle = Muscle("m", path, 1000.0, FIBER, 0.5, kind="DeGrooteFregly2016Muscle")
    model = replace(mixed_tree(), muscles=(muscle,))
    length = float(muscle_paths(model, [c.default for c in model.coordinates]).length[0, 0])
    return replace(model, muscles=(replace(muscle, tendon_slack_length=length - FIBER),))


def check_against_paths(model, names, group, tolerance) -> None:
    """Assert that lengths and moment arms are those of `muscle_paths`."""
    q, _, _, free = random_motion(model, 10)
    expected = muscle_paths(model, q, muscles=names)
    listed = [muscle.name for muscle in group.muscles]
    for k, row in enumerate(q):
        lengths, slopes = at(group.lengths, row[free]), np.array(group.slopes(row[free]))
        for m, name in enumerate(names):
            own = listed.index(name)
            assert lengths[own] == pytest.approx(expected.length[k, m], abs=tolerance), name
            assert -slopes[own] == pytest.approx(expected.moment_arm[k, m, free], abs=10.0 * tolerance), name


def test_points_on_four_bodies_and_a_moving_one():
    model = moving_point_model()
    check_against_paths(model, ["m"], make_muscle_group(model, "rigid"), EXACT)


@pytest.mark.data
@pytest.mark.parametrize("name", [GAIT10, RAJAGOPAL])
def test_muscles_through_points_of_files_are_exact(name):
    model = with_de_groote_muscles(stored(name))
    names = [muscle.name for muscle in model.muscles if is_polyline(muscle)]
    assert len(names) >= 8
    check_against_paths(model, names, make_muscle_group(model, "rigid", ranges=WALKING[name]), 1e-10)


@pytest.mark.data
@pytest.mark.parametrize("name", [GAIT10, RAJAGOPAL])
def test_fitted_lengths_are_the_polynomials_within_the_gate(name):
    """Symbolic values are those of `FittedPaths.evaluate`; on other poses than the fit's, the gate holds."""
    model = with_de_groote_muscles(stored(name))
    rough = [muscle.name for muscle in model.muscles if not is_polyline(muscle)]
    paths = fit_lengths(model, rough, WALKING[name])
    group = make_muscle_group(model, "rigid", paths=paths)
    names = [c.name for c in model.coordinates]
    ranges, free = coordinate_ranges(model, WALKING[name]), [names.index(n) for n in group.coordinates]
    rng = np.random.default_rng(7)
    q = np.array([[c.default for c in model.coordinates]] * 300, float)
    for i in free:
        low, high = ranges[model.coordinates[i].name]
        q[:, i] = rng.uniform(low, high, len(q)) if np.isfinite(high - low) else q[:, i]
    listed = [[muscle.name for muscle in group.muscles].index(name) for name in rough]
    found = np.array([at(group.lengths, row[free])[listed] for row in q])
    own, exact = paths.evaluate(q), muscle_paths(model, q, muscles=rough)
    assert np.abs(found - own.length).max() < 1e-11
    gate = PathGate()
    rms = np.sqrt(np.mean((found - exact.length) ** 2, axis=0))
    assert rms.max() < 1.2 * gate.length_error  # other poses of the same ranges: the same error but for chance
    angles = [i for i in free if model.coordinates[i].rotational]
    for m in range(len(rough)):
        used = [i for i in angles if np.any(own.moment_arm[:, m, i])]
        error = (own.moment_arm - exact.moment_arm)[:, m][:, used]
        assert np.sqrt(np.mean(error**2)) < 1.2 * gate.arm_error, rough[m]


@pytest.mark.data
def test_gate_names_muscles_and_errors():
    """Iliopsoas of gait10dof18musc has points that come and go within its range of 240 degrees."""
    model = with_de_groote_muscles(stored(GAIT10))
    with pytest.raises(ModelError, match=r"'iliopsoas_r' .* mm.*narrower `ranges`"):
        make_muscle_group(model, "rigid")


def test_conditional_points_are_fitted():
    model = moving_point_model()
    (muscle,) = model.muscles
    path = (*muscle.path[:2], replace(muscle.path[2], only_within=CoordinateRange("b0", -0.1, 0.1)), *muscle.path[3:])
    model = replace(model, muscles=(replace(muscle, path=path),))
    assert not is_polyline(model.muscles[0])
    for gate in (PathGate(1e-9, 1.0), PathGate(1.0, 1e-9)):
        with pytest.raises(ModelError, match="'m'"):
            make_muscle_group(model, "rigid", gate=gate, ranges={"p0": (-0.1, 0.1), "p1": (-0.1, 0.1)})


def test_degree_falls_with_the_number_of_coordinates():
    """Terms of degree d in n coordinates are binomial(n + d, d); at most 500 are fitted."""
    assert _degrees(1) == _degrees(4) == [5, 6, 7, 8]
    assert _degrees(5) == [5, 6]
    assert _degrees(7) == [4]
    assert _degrees(40) == [1]


def test_given_paths_replace_the_model_s():
    model = moving_point_model()
    poses = np.random.default_rng(0).uniform(-0.2, 0.2, (400, len(model.coordinates)))
    fitted = fit_paths(model, poses, degree=2)
    group = make_muscle_group(model, "rigid", paths=fitted)
    row = poses[5]
    free = [[c.name for c in model.coordinates].index(name) for name in group.coordinates]
    assert at(group.lengths, row[free])[0] == pytest.approx(fitted.evaluate(row).length[0, 0], abs=EXACT)
    assert at(group.lengths, row[free])[0] != pytest.approx(muscle_paths(model, row).length[0, 0], abs=1e-9)


def test_a_muscle_depends_on_the_joints_it_crosses_only():
    model = moving_point_model()
    group = make_muscle_group(model, "rigid")
    pattern = np.array(ca.DM(group.lengths.jac_sparsity(0, 0), 1).full())[0]
    used = {name for name, one in zip(group.coordinates, pattern, strict=True) if one}
    assert used == {"b0", "b1", "b2", "flexion", "p0", "p1", "p2"}


@pytest.mark.parametrize(("ranges", "words"), [({"nose": (0.0, 1.0)}, "nose"), ({"b0": (1.0, 0.0)}, "lower")])
def test_bad_ranges(ranges, words):
    with pytest.raises(SettingsError, match=words):
        coordinate_ranges(mixed_tree(), ranges)


def test_unknown_tendon_and_no_muscles():
    with pytest.raises(SettingsError, match="elastic"):
        make_muscle_group(moving_point_model(), "compliant")
    with pytest.raises(SettingsError, match="has none"):
        make_muscle_group(mixed_tree(), "rigid")
