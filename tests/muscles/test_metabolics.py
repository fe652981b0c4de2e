"""Metabolic power: OpenSim's probes on random states, limits, smooth forms."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import butter, filtfilt

from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.muscles.hill import evaluate_curve, make_muscle_arrays
from borelli.muscles.metabolics import BASAL_RATE, MIN_HEAT_RATE, metabolic_power, muscle_mass
from tests.shared_data import shared

from .muscle_cases import MILLARD, THELEN, as_muscle, ask_opensim, model, muscle, random_cases

TERM_TOLERANCE = 1e-9  # relative, of the issue
ZERO_POWER = 1e-9  # [W] where terms of hundreds of watts cancel


def random_states(rng, arrays, frames=300):
    shape = (frames, len(arrays.names))
    most = arrays.optimal_fiber_length * arrays.max_contraction_velocity
    return {
        "excitation": rng.uniform(0.0, 1.0, shape), "activation": rng.uniform(0.0, 1.0, shape),
        "fiber_length": rng.uniform(0.5, 1.6, shape) * arrays.optimal_fiber_length,
        "fiber_velocity": rng.uniform(-0.9, 0.9, shape) * most,
        "active_force": rng.uniform(0.0, 1.4, shape) * arrays.max_isometric_force,
        "passive_force": rng.uniform(0.0, 0.5, shape) * arrays.max_isometric_force, "body_mass": 75.0,
    }  # fmt: skip


@pytest.mark.crosscheck
@pytest.mark.parametrize("kind", (THELEN, MILLARD))
def test_probes_of_opensim(kind, opensim_python, tmp_path):
    cases = random_cases(np.random.default_rng(8), kind, 60)
    answers = ask_opensim(opensim_python, tmp_path, muscles=cases, probes=True)["muscles"]
    states = answers["muscles"]

    def answered(name):
        return np.array([[state[name] for state in states]])

    arrays = make_muscle_arrays(model(*map(as_muscle, cases)))
    given = {
        "excitation": np.array([[case["excitation"] for case in cases]]), "activation": answered("activation"),
        "fiber_length": answered("fiber_length"), "fiber_velocity": answered("fiber_velocity"),
        "active_force": answered("active_fiber"), "passive_force": answered("passive_fiber"),
        "body_mass": answers["mass"], "slow_twitch": [case["slow"] for case in cases],
    }  # fmt: skip
    assert (given["fiber_velocity"] < 0.0).any() and (given["fiber_velocity"] > 0.0).any()
    for name in ("Umberger2010", "Bhargava2004"):
        power = metabolic_power(arrays, name.lower(), **given)
        total, basal, *parts = answers[name]
        np.testing.assert_allclose(power.total[0], parts, rtol=TERM_TOLERANCE, atol=ZERO_POWER)
        assert power.basal == pytest.approx(basal, rel=TERM_TOLERANCE)
        assert power.whole_body[0] == pytest.approx(total, rel=TERM_TOLERANCE)
    smoothed = metabolic_power(arrays, "bhargava2004", smooth=True, **given)
    np.testing.assert_allclose(smoothed.total[0], answers["smoothed"]["total"], rtol=TERM_TOLERANCE, atol=ZERO_POWER)
    sums = [term.sum() for term in smoothed[:4]] + [smoothed.whole_body[0]]
    np.testing.assert_allclose(sums, answers["smoothed"]["sums"], rtol=TERM_TOLERANCE)


@pytest.mark.parametrize("name", ("umberger2010", "bhargava2004"))
def test_totals_are_the_sums_of_their_terms(name):
    arrays = make_muscle_arrays(model(muscle(MILLARD, "a"), muscle(THELEN, "b", max_isometric_force=3000.0)))
    power = metabolic_power(arrays, name, **random_states(np.random.default_rng(1), arrays))
    heat = power.activation + power.maintenance + power.shortening
    least = MIN_HEAT_RATE * muscle_mass(arrays)
    np.testing.assert_allclose(power.total, np.maximum(heat, least) + power.work, rtol=1e-12)
    assert (heat + power.work >= -1e-9).all()
    np.testing.assert_allclose(power.whole_body, power.total.sum(axis=1) + BASAL_RATE * 75.0)


def test_resting_muscles_cost_the_minimum():
    arrays = make_muscle_arrays(model(muscle(MILLARD)))
    zero = np.zeros((1, 1))
    for name in ("umberger2010", "bhargava2004"):
        power = metabolic_power(
            arrays, name, excitation=zero, activation=zero, fiber_length=[[0.1]], fiber_velocity=zero,
            active_force=zero, body_mass=70.0,
        )  # fmt: skip
        assert power.total[0, 0] == pytest.approx(MIN_HEAT_RATE * muscle_mass(arrays)[0])
        assert power.whole_body[0] == pytest.approx(84.0 + power.total[0, 0])  # 1.2 W/kg


@pytest.mark.parametrize("name", ("umberger2010", "bhargava2004"))
def test_smooth_form_is_near_the_exact_one_and_smooth(name):
    """Far from all conditions (in units of their steepness) both agree; across one the smooth form has no jump."""
    arrays = make_muscle_arrays(model(muscle(MILLARD, max_isometric_force=3000.0)))
    shape = (1, 1)
    state = {
        "excitation": np.full(shape, 0.9), "activation": np.full(shape, 0.3), "fiber_length": np.full(shape, 0.065),
        "active_force": np.full(shape, 900.0), "passive_force": np.zeros(shape), "body_mass": 70.0,
    }  # fmt: skip
    fast = np.full(shape, -0.45)
    exact = metabolic_power(arrays, name, **state, fiber_velocity=fast)
    smooth = metabolic_power(arrays, name, smooth=True, **state, fiber_velocity=fast)
    assert smooth.total == pytest.approx(exact.total, rel=2e-3)
    v = np.linspace(-0.01, 0.01, 2001)[:, None]
    rows = {key: np.tile(value, (len(v), 1)) if key != "body_mass" else value for key, value in state.items()}
    total = metabolic_power(arrays, name, smooth=True, **rows, fiber_velocity=v).total[:, 0]
    slopes = np.diff(total) / np.diff(v[:, 0])
    assert np.abs(np.diff(slopes)).max() < 0.01 * np.abs(slopes).max()


def test_wrong_input_is_refused():
    arrays = make_muscle_arrays(model(muscle(MILLARD)))
    state = {k: v[:2] if np.ndim(v) else v for k, v in random_states(np.random.default_rng(0), arrays).items()}
    with pytest.raises(SettingsError, match="bhargava2004"):
        metabolic_power(arrays, "umberger", **state)
    with pytest.raises(SettingsError, match="slow_twitch"):
        metabolic_power(arrays, **state, slow_twitch=1.5)
    with pytest.raises(SettingsError, match="body_mass"):
        metabolic_power(arrays, **(state | {"body_mass": 0.0}))
    with pytest.raises(SettingsError, match="shapes"):
        metabolic_power(arrays, **(state | {"fiber_length": [[0.1]]}))


SHORTEST_ACTIVE_FIBER = 0.4441
"""Normalized fiber length at which Millard's active curve begins (Millard et al. 2013; OpenSim's default)."""


def read_sto(path):
    """Return the columns of a table by name."""
    head, *rows = path.read_text().split("endheader")[1].strip().splitlines()
    return dict(zip(head.split(), np.array([row.split() for row in rows], float).T, strict=True))


def states_from_forces(arrays, time, length, force):
    """Return activation, excitation, fiber length, velocity and active force that explain tendon forces."""
    optimal, most = arrays.optimal_fiber_length, arrays.max_isometric_force
    strain = np.linspace(1.0, 1.12, 4001)[:, None] * np.ones(len(arrays.names))
    pull = evaluate_curve(arrays, "tendon", strain)[0] * most
    tendon = np.column_stack([np.interp(force[:, j], pull[:, j], strain[:, j]) for j in range(len(arrays.names))])
    along = length - tendon * arrays.tendon_slack_length
    fiber = np.hypot(along, optimal * np.sin(arrays.pennation_angle))
    low_pass = butter(2, 15.0, fs=1.0 / (time[1] - time[0]))  # forces of CMC have steps of its 10 ms window
    velocity = np.gradient(filtfilt(*low_pass, fiber, axis=0), time, axis=0)
    v = velocity / (optimal * arrays.max_contraction_velocity)
    strength = evaluate_curve(arrays, "active", fiber / optimal)[0] * evaluate_curve(arrays, "velocity", v)[0]
    passive = evaluate_curve(arrays, "passive", fiber / optimal)[0] + arrays.damping * v
    a = np.clip((force / most * fiber / along - passive) / strength, 0.01, 1.0)
    rate = np.gradient(filtfilt(*low_pass, a, axis=0), time, axis=0)
    z = 0.5 + 1.5 * a
    u = a + rate * np.where(rate > 0.0, arrays.activation_time * z, arrays.deactivation_time / z)
    return {
        "excitation": np.clip(u, 0.0, 1.0), "activation": a, "fiber_length": fiber, "fiber_velocity": velocity,
        "active_force": a * strength * most,
    }  # fmt: skip


@pytest.mark.data
@pytest.mark.crosscheck
def test_published_walk_of_gait10dof18musc(opensim_python, tmp_path):
    """Umberger's power of a walk by CMC, from its tendon forces; path lengths by OpenSim.

    The reference is of OpenSim 3: constant fiber fractions, no basal rate, a floor of 0.1 under the active curve.

    Gluteus maximus is twice too high because activation does not follow from force below the shortest active fiber
    (0.44 of the optimal length, a quarter of the frames): the fiber is clamped there, and its tendon carries what the
    path leaves it. The probe's power in these frames is that of activations of 0.02 (the least control of CMC) to
    0.05; the inversion gives 0.2 to 0.3, and so the excess is activation heat. The sum of the other muscles is
    compared, too: theirs is 0.74 to 1.1 of the reference, so the total is right in part by cancellation.
    `CMC_controls.sto` cannot help: it is of another run, whose controls are at their minimum where these forces peak.
    """
    folder = shared("opensim/gait10dof18musc")
    motion, forces, probes = (
        read_sto(folder / f"reference/CMC_{name}.sto")
        for name in ("Kinematics_q", "Actuation_force", "MetabolicsReporter_probes")
    )
    time = np.arange(0.63, 1.889, 0.001)
    names = [name for name in motion if name != "time"]
    factors = [1.0 if name in ("pelvis_tx", "pelvis_ty") else np.pi / 180.0 for name in names]
    values = np.column_stack(
        [k * np.interp(time, motion["time"], motion[name]) for name, k in zip(names, factors, strict=True)]
    )
    path = folder / "subject01_metabolics.osim"
    asked = {"model": str(path), "coordinates": names, "values": values.tolist()}
    answer = ask_opensim(opensim_python, tmp_path, lengths=asked)["lengths"]
    found = read_model(path)
    damped = make_muscle_arrays(found, answer["names"])
    floor = replace(found, muscles=tuple(replace(m, parameters=(("fiber_damping", 0.0),)) for m in found.muscles))
    arrays = make_muscle_arrays(floor, answer["names"])._replace(damping=damped.damping)
    force = np.column_stack([np.interp(time, forces["time"], forces[name]) for name in arrays.names])
    text = (folder / "reference/metabolicsSlowTwitchRatios_gait10dof18musc.txt").read_text().split()
    fractions = dict(zip(text[::2], map(float, text[1::2]), strict=True))
    state = states_from_forces(arrays, time, np.array(answer["lengths"]), force)
    options = {
        "body_mass": found.mass, "slow_twitch": [fractions[name[:-2]] for name in arrays.names], "recruitment": False,
    }  # fmt: skip
    power = metabolic_power(arrays, **state, **options)
    expected = np.column_stack([np.interp(time, probes["time"], probes[f"metabolics_{name}"]) for name in arrays.names])
    certain = [not name.startswith("glut_max") for name in arrays.names]
    assert power.total.mean(axis=0).sum() == pytest.approx(expected.mean(axis=0).sum(), rel=0.05)
    assert power.total[:, certain].mean(axis=0).sum() == pytest.approx(expected[:, certain].mean(axis=0).sum(), rel=0.1)
    assert np.corrcoef(power.total.sum(axis=1), expected.sum(axis=1))[0, 1] > 0.9
    clamped = state["fiber_length"] < SHORTEST_ACTIVE_FIBER * arrays.optimal_fiber_length
    still = {key: np.zeros_like(force) for key in ("fiber_velocity", "active_force")}
    low, high = (
        metabolic_power(
            arrays, **(state | still | {"excitation": level, "activation": level}), **options
        ).total
        for level in (np.full_like(force, 0.02), np.full_like(force, 0.05))
    )  # fmt: skip
    for j, name in enumerate(arrays.names):
        if name.startswith("glut_max"):
            frames = clamped[:, j]
            assert 0.2 < frames.mean() < 0.3
            assert low[frames, j].mean() < expected[frames, j].mean() < high[frames, j].mean()
            assert power.total[frames, j].mean() > 3.0 * expected[frames, j].mean()
