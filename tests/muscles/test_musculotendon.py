"""Forces of fiber and tendon: equilibrium, statuses, OpenSim as referee."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.muscles.activation import activation_rate
from borelli.muscles.hill import (
    STATUS,
    elastic_tendon_force,
    evaluate_curve,
    fiber_velocity,
    make_muscle_arrays,
    rigid_tendon_force,
    status_warnings,
)

from .muscle_cases import (
    DE_GROOTE,
    ELASTIC,
    KINDS,
    MILLARD,
    MUJOCO,
    OLD_THELEN,
    RAJAGOPAL,
    THELEN,
    as_muscle,
    ask_opensim,
    model,
    muscle,
    random_cases,
)

RESIDUAL = 1e-9  # [max isometric forces] of the issue
OPENSIM_FORCE = 1e-7  # [max isometric forces] OpenSim ends its own equilibrium at 1e-8
CODES = {text: code for code, text in STATUS.items()}


def fiber_minus_tendon(arrays, length, fiber, velocity, activation):
    """Return the residual [max isometric forces] by the equations, written again with numpy."""
    optimal, slack = arrays.optimal_fiber_length, arrays.tendon_slack_length
    cosine = np.sqrt(1.0 - (optimal * np.sin(arrays.pennation_angle) / fiber) ** 2)
    v = velocity / (optimal * arrays.max_contraction_velocity)
    force = activation * evaluate_curve(arrays, "active", fiber / optimal)[0]
    force = force * evaluate_curve(arrays, "velocity", v, activation)[0]
    force += evaluate_curve(arrays, "passive", fiber / optimal)[0] + arrays.damping * v
    return force * cosine - evaluate_curve(arrays, "tendon", (length - fiber * cosine) / slack)[0]


@st.composite
def random_muscles(draw):
    kind = draw(st.sampled_from(ELASTIC))
    optimal, ratio = draw(st.floats(0.005, 0.5)), draw(st.floats(0.02, 20.0))
    found = muscle(
        kind, pennation=draw(st.floats(0.0, 1.2)), optimal_fiber_length=optimal, tendon_slack_length=ratio * optimal,
        max_isometric_force=draw(st.floats(1.0, 1e4)), max_contraction_velocity=draw(st.floats(2.0, 20.0)),
    )  # fmt: skip
    # from a slack path to fibers at twice their optimal length
    length = (ratio + draw(st.floats(-0.2, 2.0)) * np.cos(found.pennation_angle)) * optimal
    return found, length, draw(st.floats(-10.0, 10.0)) * optimal, draw(st.floats(0.0, 1.0))


@given(random_muscles())
@settings(deadline=None, max_examples=400)
def test_equilibrium_or_a_status(case):
    found, length, velocity, activation = case
    arrays = make_muscle_arrays(model(found))
    result = elastic_tendon_force(arrays, [[length]], [[velocity]], [[activation]])
    status = STATUS[int(result.status[0, 0])]
    assert status in ("converged", "slack", "below minimum fiber length")
    if status == "converged":
        error = fiber_minus_tendon(arrays, length, result.fiber_length, result.fiber_velocity, np.array([[activation]]))
        assert abs(error[0, 0]) <= RESIDUAL
        assert result.force[0, 0] >= 0.0
    elif status == "slack":
        assert result.force[0, 0] == 0.0
        # no taut tendon balances: at the slack length fibers do not pull, or they are at their minimum there
        along = length - arrays.tendon_slack_length[0]
        width = found.optimal_fiber_length * np.sin(found.pennation_angle)
        fiber = np.hypot(along, width) if along > 0.0 else 0.0
        if fiber > arrays.min_fiber_length[0]:
            cosine = along / fiber
            pull = fiber_minus_tendon(
                arrays, length, np.array([[fiber]]), np.array([[velocity * cosine]]), np.array([[activation]])
            )
            assert pull[0, 0] <= RESIDUAL
    else:
        assert result.fiber_length[0, 0] == arrays.min_fiber_length[0]


@given(random_muscles(), st.floats(0.5, 1.6))
@settings(deadline=None, max_examples=200)
def test_fiber_velocity_balances_or_has_a_status(case, normalized):
    found, length, _, activation = case
    arrays = make_muscle_arrays(model(found))
    fiber = normalized * found.optimal_fiber_length
    assume(fiber > arrays.min_fiber_length[0] and length > fiber)
    velocity, status = fiber_velocity(arrays, [[length]], [[fiber]], [[activation]])
    if STATUS[int(status[0, 0])] == "converged":
        error = fiber_minus_tendon(arrays, length, np.array([[fiber]]), velocity, np.array([[activation]]))
        # forces of stretched tendons reach thousands of maximum isometric forces
        scale = 1.0 + abs(evaluate_curve(arrays, "tendon", [[length / found.tendon_slack_length]])[0][0, 0])
        assert abs(error[0, 0]) <= RESIDUAL * scale
    else:
        assert STATUS[int(status[0, 0])] == "fiber velocity out of range"


@pytest.mark.crosscheck
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [(THELEN, {}), (THELEN, OLD_THELEN), (MILLARD, {}), (MILLARD, RAJAGOPAL), (DE_GROOTE, {"fiber_damping": 0.02})],
    ids=("thelen", "thelen of gait2392", "millard", "rajagopal", "de groote"),
)
def test_states_of_opensim(kind, parameters, opensim_python, tmp_path):
    rigid = kind == DE_GROOTE  # its elastic state is the tendon force
    cases = random_cases(np.random.default_rng(5), kind, 40, rigid, parameters)
    still = [case | {"velocity": 0.0} for case in cases]
    asked = {"muscles": cases} | ({} if rigid else {"equilibrium": still})
    answers = ask_opensim(opensim_python, tmp_path, **asked)

    def given_(name):
        return np.array([[case[name] for case in cases]])

    def answered(name):
        return np.array([[answer[name] for answer in answers["muscles"]["muscles"]]], float)

    arrays = make_muscle_arrays(model(*map(as_muscle, cases)))
    force, activation = arrays.max_isometric_force, given_("activation")
    rates = activation_rate(arrays, activation, given_("excitation"))[0]
    np.testing.assert_allclose(rates, answered("rate"), rtol=1e-12)
    stiff = rigid_tendon_force(arrays, given_("length"), given_("velocity"))
    # OpenSim 4.6 has cos(phi) in Thelen's muscle and leaves it out in De Groote's; in Millard's pennated muscles its
    # value is neither (up to 0.3 % from the one without)
    along = stiff.active_force if kind == THELEN else stiff.active_force / stiff.pennation_cosine
    compared = stiff.pennation_cosine == 1.0 if kind == MILLARD else np.isfinite(along)
    expected = answered("inextensible") / force
    np.testing.assert_allclose((along / force)[compared], expected[compared], atol=OPENSIM_FORCE)
    assert compared.sum() >= 10
    if rigid:
        np.testing.assert_allclose(stiff.fiber_length, answered("fiber_length"), rtol=1e-12)
        np.testing.assert_allclose(stiff.fiber_velocity, answered("fiber_velocity"), atol=1e-12)
        np.testing.assert_allclose(stiff.active_force * activation, answered("active"), rtol=1e-9)
        passive = stiff.passive_force + stiff.damping_force
        np.testing.assert_allclose(passive, answered("passive"), rtol=1e-9, atol=1e-9)
        return
    velocity, status = fiber_velocity(arrays, given_("length"), given_("fiber_length"), activation)
    assert not status.any()
    speed = arrays.optimal_fiber_length * arrays.max_contraction_velocity
    np.testing.assert_allclose(velocity / speed, answered("fiber_velocity") / speed, atol=1e-8, rtol=1e-8)
    balanced = elastic_tendon_force(arrays, given_("length"), 0.0 * given_("length"), activation)
    expected = np.array([[answer["force"] for answer in answers["equilibrium"]]])
    np.testing.assert_allclose(balanced.force / force, expected / force, atol=OPENSIM_FORCE)


@pytest.mark.crosscheck
def test_rigid_millard_of_opensim(opensim_python, tmp_path):
    cases = random_cases(np.random.default_rng(6), MILLARD, 40, True, RAJAGOPAL)
    answers = ask_opensim(opensim_python, tmp_path, muscles=cases)["muscles"]["muscles"]
    arrays = make_muscle_arrays(model(*map(as_muscle, cases)))
    length, velocity, activation = (np.array([[c[k] for c in cases]]) for k in ("length", "velocity", "activation"))
    stiff = rigid_tendon_force(arrays, length, velocity)
    total = (stiff.active_force * activation + stiff.passive_force + stiff.damping_force) / arrays.max_isometric_force
    expected = np.array([[answer["tendon_force"] for answer in answers]]) / arrays.max_isometric_force
    np.testing.assert_allclose(np.maximum(total, 0.0), expected, atol=OPENSIM_FORCE)
    combined = elastic_tendon_force(arrays, length, velocity, activation).force / arrays.max_isometric_force
    np.testing.assert_allclose(combined, expected, atol=OPENSIM_FORCE)


@pytest.mark.crosscheck
def test_force_of_a_mujoco_muscle():
    mujoco = pytest.importorskip("mujoco")
    span, prm = np.array([0.21, 0.42]), np.array([0.75, 1.05, 850.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2])
    optimal = (span[1] - span[0]) / (prm[1] - prm[0])
    stated = {"range0": prm[0], "range1": prm[1], "lengthrange0": span[0], "lengthrange1": span[1]}
    found = muscle(
        MUJOCO, max_isometric_force=850.0, optimal_fiber_length=optimal, tendon_slack_length=0.0,
        max_contraction_velocity=1.5, lmin=prm[4], lmax=prm[5], fpmax=prm[7], fvmax=prm[8], **stated,
    )  # fmt: skip
    assert span[0] - prm[0] * optimal < 0.0  # a negative tendon, as in converted models
    arrays = make_muscle_arrays(model(found))
    for length in np.linspace(0.1, 0.6, 30):
        for velocity in (-0.8, -0.2, 0.0, 0.3):
            result = rigid_tendon_force(arrays, [[length]], [[velocity]])
            gain, bias = (
                mujoco.mju_muscleGain(length, velocity, span, 1.0, prm),
                mujoco.mju_muscleBias(length, span, 1.0, prm),
            )
            assert result.active_force == pytest.approx(-gain, abs=1e-9)
            assert result.passive_force == pytest.approx(-bias, abs=1e-9)


def test_short_paths_are_slack_and_give_no_force():
    arrays = make_muscle_arrays(model(*(muscle(kind, kind) for kind in KINDS)))
    length = np.full((1, len(KINDS)), 0.19)
    stiff = rigid_tendon_force(arrays, length, 0.0 * length)
    soft = elastic_tendon_force(arrays, length, 0.0 * length, 0.0 * length + 1.0)
    for result in (stiff.status, soft.status):
        assert (result == CODES["slack"]).all()
    assert not stiff.active_force.any() and not stiff.passive_force.any() and not soft.force.any()
    (warning,) = status_warnings(arrays, soft.status)
    assert "slack" in warning and f"{MILLARD} (100%)" in warning


def test_short_fibers_are_evaluated_at_their_minimum():
    """The undamped elastic muscle keeps the floor of 0.1 that its file states."""
    arrays = make_muscle_arrays(model(muscle(MILLARD, fiber_damping=0.0)))
    result = rigid_tendon_force(arrays, [[0.22]], [[0.0]])
    assert result.status == CODES["below minimum fiber length"]
    assert result.fiber_length == arrays.min_fiber_length[0] == pytest.approx(0.04441)
    assert result.active_force[0, 0] == pytest.approx(100.0 * result.pennation_cosine[0, 0])


def test_nan_is_reported_and_not_spread():
    arrays = make_muscle_arrays(model(*(muscle(kind, kind) for kind in KINDS)))
    length = np.full((3, len(KINDS)), 0.3)
    length[1] = np.nan
    activation = 0.0 * length + 0.5
    activation[1] = 0.5
    for result in (
        rigid_tendon_force(arrays, length, 0.0 * length),
        elastic_tendon_force(arrays, length, 0.0 * length, activation),
    ):
        assert (result.status[1] == CODES["invalid input"]).all()
        assert np.isnan(result[0][1]).all()
        assert np.isfinite(result[0][[0, 2]]).all()


def test_activation_raises_force_and_stretches_the_tendon():
    arrays = make_muscle_arrays(model(*(muscle(kind, kind) for kind in ELASTIC)))
    activation = np.linspace(0.01, 1.0, 30)[:, None] * np.ones(len(ELASTIC))
    result = elastic_tendon_force(arrays, np.full(activation.shape, 0.3), 0.0 * activation, activation)
    assert (np.diff(result.force, axis=0) > 0.0).all()
    assert (np.diff(result.fiber_length, axis=0) < 0.0).all()


def test_wrong_shapes_and_activations_are_refused():
    arrays = make_muscle_arrays(model(muscle(MILLARD, "soleus_r")))
    with pytest.raises(SettingsError, match=r"length.*\(frames, 1\)"):
        rigid_tendon_force(arrays, [[0.3, 0.3]], [[0.0, 0.0]])
    with pytest.raises(SettingsError, match="frames"):
        rigid_tendon_force(arrays, [[0.3]], [[0.0], [0.0]])
    with pytest.raises(SettingsError, match="'soleus_r'"):
        elastic_tendon_force(arrays, [[0.3]], [[0.0]], [[1.5]])
    with pytest.raises(SettingsError, match="rigid"):
        fiber_velocity(make_muscle_arrays(model(muscle(MUJOCO))), [[0.3]], [[0.1]], [[0.5]])
