"""Force elements: closed forms, work and energy, momentum of internal forces, and their errors."""

from __future__ import annotations

from dataclasses import replace
from math import cos, exp, pi, sin, sqrt

import numpy as np
import pytest

from borelli.control.track_targets import track_targets
from borelli.errors import ModelError, SettingsError
from borelli.model.functions import Function
from borelli.model.model import GROUND, Body, Coordinate, Frame, Joint, Ligament, Model, PathPoint
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.force_elements.elements import Bushing, DriveSchedule, ForceFunction, ForceTable, Spring
from borelli.physics.force_elements.evaluate import Elements
from borelli.physics.inputs import Drive
from borelli.physics.simulate import simulate

BLOCK = Body("block", 2.0, inertia=((0.02, 0.0, 0.0), (0.0, 0.03, 0.0), (0.0, 0.0, 0.04)))
WEIGHTLESS = (0.0, 0.0, 0.0)


def one_block(**options: object) -> Model:
    return Model("block", (replace(BLOCK, **options),), gravity=WEIGHTLESS)


@pytest.mark.parametrize("damping", [0.0, 1.5])
def test_oscillator_has_its_closed_form(damping):
    """x = e^(-d t) (cos w t + d/w sin w t): frequency, amplitude and decay, to second and first order in h."""
    k, m, start, step = 50.0, 2.0, 0.3, 5e-4
    spring = Spring("spring", "block", GROUND, to_point=(5.0, 0.0, 0.0), rest_length=5.0, stiffness=k, damping=damping)
    model = one_block(frame=Frame((start, 0.0, 0.0)))
    result = simulate(model, duration=2.0, step=step, elements=[spring], record_every=20)
    decay = damping / (2.0 * m)
    w = sqrt(k / m - decay**2)
    expected = [start * exp(-decay * t) * (cos(w * t) + decay / w * sin(w * t)) for t in result["time"].values]
    found = result["body_position"].values[:, 0, 0]
    assert np.abs(found - expected).max() < 2.0 * step  # first order: half a step of velocity times the frequency
    np.testing.assert_allclose(result["spring_length"].values[:, 0], 5.0 - found, rtol=1e-12)


def two_tumbling_bodies() -> Model:
    other = replace(BLOCK, name="other", mass=1.2, frame=Frame((0.6, 0.1, -0.2)))
    return Model("two", (BLOCK, other), gravity=WEIGHTLESS)


ELEMENTS = {
    "spring": Spring("s", "block", "other", (0.1, 0.0, 0.05), (0.0, -0.1, 0.0), 0.4, 30.0),
    "table": Spring(
        "s", "block", "other", (0.1, 0.0, 0.05), force_length=((0.3, 0.0), (0.5, 8.0), (0.9, 40.0)), slack=True
    ),
    "bushing": Bushing(
        "b", "block", "other", Frame((0.2, 0.0, 0.0), (0.9, 0.1, -0.3, 0.3)), Frame((-0.2, 0.1, 0.0)),
        (20.0, 35.0, 50.0), rotational_stiffness=(0.5, 1.0, 2.0),
    ),
}  # fmt: skip
TWISTS = {"block": (0.1, 0.0, 0.2, 1.0, -2.0, 0.5), "other": (-0.1, 0.3, 0.0, 0.0, 1.0, 2.0)}


@pytest.mark.parametrize("name", ELEMENTS)
def test_internal_forces_keep_momentum_and_energy(name):
    """Momentum to rounding; energy, with that of the element, to first order in the step."""
    drifts = []
    for step in (2e-3, 1e-3):
        result = simulate(
            two_tumbling_bodies(), duration=1.0, step=step, elements=[ELEMENTS[name]], initial_twists=TWISTS
        )
        linear = result["linear_momentum"].values
        np.testing.assert_allclose(linear, np.broadcast_to(linear[0], linear.shape), atol=1e-12)
        angular = result["angular_momentum"].values
        assert np.abs(angular - angular[0]).max() < 5.0 * step
        total = (result["kinetic_energy"] + result["elastic_energy"]).values
        drifts.append(np.abs(total - total[0]).max() / total[0])
        assert np.ptp(result["elastic_energy"].values) > 0.1 * total[0]  # energy was exchanged
    assert drifts[1] < 0.02 and drifts[1] < 0.7 * drifts[0]


@pytest.mark.parametrize("name", ELEMENTS)
def test_forces_are_the_slope_of_the_energy(name):
    """Central differences of the elastic energy along random twists give the power of the wrenches, with a sign."""
    model, rng = two_tumbling_bodies(), np.random.default_rng(3)
    elements = Elements(model, [ELEMENTS[name]])
    quaternion = rng.normal(size=(2, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1, keepdims=True)
    position, rotation = np.array([[0.0, 0.0, 0.0], [0.6, 0.1, -0.2]]), rotation_matrix(quaternion)
    wrench = elements.wrenches(0.0, position, rotation, np.zeros((2, 6)))
    from scipy.spatial.transform import Rotation

    def energy(move: np.ndarray) -> float:
        moved = np.array([Rotation.from_rotvec(m[3:]).as_matrix() @ r for m, r in zip(move, rotation, strict=True)])
        _, springs, bushings = elements._passive((position + move[:, :3])[None], moved[None], np.zeros((1, 2, 6)))
        return float(springs[..., 2].sum() + bushings[..., 6].sum())

    step = 1e-5
    for _ in range(5):
        twist = rng.normal(size=(2, 6))
        slope = (energy(step * twist) - energy(-step * twist)) / (2.0 * step)
        assert -np.sum(wrench * twist) == pytest.approx(slope, abs=1e-7)


def test_damper_loses_what_its_power_says():
    """Work and energy: kinetic energy lost = integral of damping times rate squared."""
    damper = replace(ELEMENTS["spring"], stiffness=0.0, rest_length=0.0, damping=2.0)
    result = simulate(two_tumbling_bodies(), duration=0.5, step=1e-4, elements=[damper], initial_twists=TWISTS)
    length, time = result["spring_length"].values[:, 0], result["time"].values
    lost = np.trapezoid(2.0 * np.gradient(length, time) ** 2, time)
    kinetic = result["kinetic_energy"].values
    assert kinetic[0] - kinetic[-1] == pytest.approx(lost, rel=1e-3)


def test_slack_element_only_pulls():
    rope = Spring("rope", "block", GROUND, to_point=(1.0, 0.0, 0.0), rest_length=1.5, stiffness=100.0, slack=True)
    result = simulate(
        one_block(), duration=0.2, step=1e-3, elements=[rope], initial_twists={"block": (-1, 0, 0, 0, 0, 0)}
    )
    assert (result["spring_tension"].values[result["spring_length"].values <= 1.5] == 0.0).all()
    np.testing.assert_allclose(result["body_com_velocity"].values[:, 0, 0], -1.0, atol=1e-14)


def test_force_table_gives_its_impulse():
    """A triangle of 10 N over 0.4 s: the impulse is 2 N s, to the first order of its ends."""
    table = ForceTable("block", (0.1, 0.3, 0.5), ((0.0, 0.0, 0.0), (0.0, 10.0, 0.0), (0.0, 0.0, 0.0)))
    result = simulate(one_block(), duration=0.8, step=1e-3, elements=[table])
    assert result["linear_momentum"].values[-1, 1] == pytest.approx(2.0, abs=1e-9)
    assert result["linear_momentum"].values[100, 1] == 0.0


def test_force_function_of_time_and_state():
    """Viscous drag: v = v0 e^(-c t / m); the function gets the velocity of its point."""
    drag = ForceFunction("block", lambda body: -3.0 * body.velocity)
    result = simulate(
        one_block(), duration=1.0, step=1e-4, elements=[drag], initial_twists={"block": (2, 0, 0, 0, 0, 0)}
    )
    assert result["body_com_velocity"].values[-1, 0, 0] == pytest.approx(2.0 * exp(-1.5), rel=2e-4)
    bad = ForceFunction("block", lambda body: [np.nan, 0.0, 0.0])
    with pytest.raises(SettingsError, match="finite force"):
        simulate(one_block(), duration=0.1, elements=[bad])


def hinged() -> Model:
    joint = Joint("pivot", "hinge", GROUND, "block", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate("angle"),))
    return Model("hinged", (BLOCK,), (joint,), gravity=WEIGHTLESS)


def test_drive_schedule_moves_the_target():
    """A ramp of the target is followed without lag by spring and damper, once the start has decayed."""
    schedule = DriveSchedule("angle", (0.0, 4.0), target=(0.0, 2.0))
    drive = Drive("angle", stiffness=20.0, damping=2.0)
    result = simulate(hinged(), duration=3.0, step=1e-3, drives=[drive], schedules=[schedule])
    late = result.sel(time=slice(2.0, 3.0))
    np.testing.assert_allclose(late["coordinate_value"].values[:, 0], 0.5 * late["time"].values, atol=1e-3)


def test_drive_schedule_changes_gains_and_offset():
    """At rest a spring balances the offset: q = offset / stiffness, with the gains of the end."""
    schedule = DriveSchedule("angle", (0.0, 0.5), stiffness=(5.0, 20.0), damping=(2.0, 1.0), offset=(0.0, 3.0))
    result = simulate(hinged(), duration=4.0, step=1e-3, drives=[Drive("angle", stiffness=1.0)], schedules=[schedule])
    assert result["coordinate_value"].values[-1, 0] == pytest.approx(3.0 / 20.0, abs=1e-6)


def test_impulse_steps_have_elements_too():
    spring = Spring("spring", "block", GROUND, to_point=(5.0, 0.0, 0.0), rest_length=5.0, stiffness=50.0)
    model = one_block(frame=Frame((0.3, 0.0, 0.0)))
    result = track_targets(model, (), duration=1.0, step=1e-3, elements=[spring])
    expected = 0.3 * np.cos(5.0 * result["time"].values)
    assert np.abs(result["body_position"].values[:, 0, 0] - expected).max() < 3e-3


def test_bushing_oscillates_about_each_axis():
    """A body on a torsion bushing: period 2 pi sqrt(I / k) about a principal axis."""
    bushing = Bushing("b", GROUND, "block", rotational_stiffness=(2.0, 3.0, 4.0))
    for axis, (inertia, stiffness) in enumerate(zip((0.02, 0.03, 0.04), (2.0, 3.0, 4.0), strict=True)):
        twist = [0.0] * 6
        twist[3 + axis] = 1.0
        period = 2.0 * pi * sqrt(inertia / stiffness)
        result = simulate(
            one_block(), duration=round(period, 4), step=1e-4, elements=[bushing], initial_twists={"block": twist}
        )
        assert result["body_angular_velocity"].values[-1, 0, axis] == pytest.approx(1.0, abs=1e-3)
        moment = result["bushing_moment"].values[:, 0, axis]
        assert abs(moment[0]) < 1e-12 and np.abs(moment).max() == pytest.approx(sqrt(inertia * stiffness), rel=1e-2)


def test_ligaments_act_without_muscles():
    """A block on a linear ligament oscillates about its equilibrium: z = z_eq (1 - cos w t), to first order."""
    stiffness, rest = 100.0 * 2.0 / 0.9, 0.9
    path = (PathPoint(GROUND, (0.0, 0.0, 1.0)), PathPoint("block", (0.0, 0.0, 0.0)))
    ligament = Ligament("ligament", path, rest, 100.0, Function((1.0, 2.0), ((0.0, 2.0),)))
    model = Model("hanging", (BLOCK,), ligaments=(ligament,))
    result = simulate(model, duration=0.5, step=1e-3, excitations={})
    equilibrium = 1.0 - (rest + BLOCK.mass * 9.81 / stiffness)
    expected = equilibrium * (1.0 - np.cos(sqrt(stiffness / BLOCK.mass) * result["time"].values))
    assert np.abs(result["body_position"].values[:, 0, 2] - expected).max() < 2e-4
    np.testing.assert_allclose(result["ligament_force"].values[0], stiffness * (1.0 - rest), rtol=1e-12)


def test_errors_name_the_element():
    model = two_tumbling_bodies()
    cases = [
        (Spring("s", "block", "nobody"), ModelError, "nobody"),
        (Spring("s", "block", "block"), ModelError, "itself"),
        (Spring("s", "block", "other", stiffness=-1.0), SettingsError, "stiffness is -1"),
        (Spring("s", "block", "other", force_length=((1.0, 2.0),)), SettingsError, "force_length"),
        (ForceTable("block", (1.0, 0.0), ((0.0, 0.0, 0.0),) * 2), SettingsError, "ascending"),
        (ForceTable("block", (0.0, 1.0)), SettingsError, "no values"),
        (Bushing("b", "block", "other", stiffness=(-1.0, 0.0, 0.0)), SettingsError, "0 or larger"),
        (Spring("s", "block", "other", stiffness=1e6), SettingsError, "too large for the step"),
        (Spring("s", "block", "other", damping=1e4), SettingsError, "too large for the step"),
    ]
    for element, error, text in cases:
        with pytest.raises(error, match=text):
            simulate(model, duration=0.1, elements=[element])
    with pytest.raises(SettingsError, match="no drive"):
        simulate(hinged(), duration=0.1, schedules=[DriveSchedule("angle", (0.0, 1.0), (0.0, 1.0))])
