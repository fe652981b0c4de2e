"""Laws of contact: rest, bounce, rolling, belts and plates; each tolerance has its derivation next to it."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt

import numpy as np
import pytest

from borelli.model.inertia import body_from_shapes
from borelli.model.model import Frame, Model, Shape, Softness, Surface
from borelli.physics.simulate import simulate
from borelli.scenes.gallery import stack
from borelli.scenes.scene import run_scene

from .worlds import GRAVITY, HALF, ball, crate, heading, on_floor

FIRST_STEPS = 1e-3
"""Relative: contacts sink in by less than a micrometer over the first steps, which takes the weight of a few steps."""


def test_soft_ground_deforms_by_load_over_stiffness():
    """Two surfaces of stiffness k in series, at four corners: depth = m g / (4 k / 2)."""
    stiffness = 2e5
    surface = Surface(softness=Softness(stiffness, 2e3))
    box = crate(surface)
    result = simulate(on_floor(box, surface), duration=2.0, step=1 / 500)
    sunk = HALF - result["body_position"].values[-1, 0, 2]
    assert sunk == pytest.approx(box.mass * GRAVITY / (4 * stiffness / 2), rel=1e-6)
    assert result["ground_reaction_force"].values[-1, 0, 2] == pytest.approx(box.mass * GRAVITY, rel=1e-6)


def test_pressure_acts_where_the_load_is():
    """The center of pressure of a cube lies below its center of mass, which is off the midpoint."""
    box = replace(crate(), center_of_mass=(0.03, -0.02, 0.0))
    result = simulate(on_floor(box), duration=1.0, step=1 / 500)
    np.testing.assert_allclose(result["center_of_pressure"].values[-1, 0, :2], (0.03, -0.02), atol=1e-6)


@pytest.mark.parametrize("direction", [0.0, 30.0, 45.0])
def test_belt_takes_a_box_to_its_speed(direction):
    """v = mu g t until it equals the belt's speed."""
    h, mu, speed = 1 / 1000, 0.5, 1.0
    along = heading(direction)
    belt = Surface(friction=mu, velocity=tuple(speed * along))
    result = simulate(on_floor(crate(Surface(friction=mu)), belt), duration=0.4, step=h)
    velocity = result["body_com_velocity"].values[:, 0]
    n = np.arange(len(velocity))
    theory = np.minimum(mu * GRAVITY * h * n, speed)
    np.testing.assert_allclose(velocity @ along, theory, atol=FIRST_STEPS * speed + 1e-3 * theory.max())
    assert np.linalg.norm(velocity - np.outer(velocity @ along, along), axis=1).max() < 1e-3 * speed


def test_plate_moves_a_box_along_and_up():
    """A kinematic plate moves as prescribed under any load; a box on it gets its velocity."""
    mu, velocity = 0.8, (0.4, -0.3, 0.2)
    surface = Surface(friction=mu)
    plate = body_from_shapes(
        "plate", (Shape("box", (1.0, 1.0, 0.05), surface=surface),), frame=Frame((0.0, 0.0, -0.05))
    )
    model = Model("plate", (replace(plate, kinematic=True), crate(surface)), self_collision=True)
    result = simulate(model, duration=1.0, step=1 / 500, initial_twists={"plate": (*velocity, 0.0, 0.0, 0.0)})
    moved = result["body_position"].values[-1] - result["body_position"].values[0]
    np.testing.assert_allclose(moved[0], velocity, rtol=1e-9)
    np.testing.assert_allclose(result["body_com_velocity"].values[-1, 1], velocity, atol=1e-6)
    force = result["contact_force"].values[-1, 1]
    np.testing.assert_array_equal(result["contact_force"].values[-1, 0], -force)
    assert not result["ground_reaction_force"].values.any()
    np.testing.assert_allclose(force, (0.0, 0.0, model.bodies[1].mass * GRAVITY), atol=1e-3)
    # the jerk upwards gives mu times its impulse along; it slips for the rest, and loses half of that displacement
    rest = hypot(*velocity[:2]) - mu * velocity[2]
    lost = rest**2 / (2 * mu * GRAVITY)
    np.testing.assert_allclose(moved[1, :2], np.array(velocity[:2]) * (1 - lost / hypot(*velocity[:2])), rtol=2e-3)


def test_turntable_moves_a_box_in_a_circle():
    """A box on a plate that rotates at w moves with it while w^2 r < mu g."""
    spin = 1.5
    surface = Surface(friction=0.8)
    plate = body_from_shapes(
        "plate", (Shape("box", (1.0, 1.0, 0.05), surface=surface),), frame=Frame((0.0, 0.0, -0.05))
    )
    start = (0.5, 0.0, HALF)
    model = Model("table", (replace(plate, kinematic=True), crate(surface, start)), self_collision=True)
    twists = {"plate": (0.0, 0.0, 0.0, 0.0, 0.0, spin), "box": (0.0, spin * 0.5, 0.0, 0.0, 0.0, spin)}
    h = 1 / 1000
    result = simulate(model, duration=1.0, step=h, initial_twists=twists)
    place = result["body_position"].values[-1, 1]
    assert np.hypot(*place[:2]) == pytest.approx(0.5, rel=2 * spin * h)  # first order: each step ends on the tangent
    np.testing.assert_allclose(place[:2], 0.5 * np.array([np.cos(spin), np.sin(spin)]), atol=2 * spin * h * 0.5)


@pytest.mark.parametrize("surface", [Surface(), Surface(softness=Softness(erp=0.2))], ids=["default", "hard"])
@pytest.mark.parametrize("bounce", [0.3, 0.7, 1.0])
def test_ball_bounces_by_its_restitution(bounce, surface):
    """v' = -e v, at impact in every step: the rebound reaches e^2 of the height to first order in h."""
    height = 0.5
    fall = sqrt(2 * GRAVITY * height)
    for h in (1 / 240, 1 / 2000):
        lively = replace(surface, restitution=bounce)
        result = simulate(on_floor(ball(lively, (0.0, 0.0, HALF + height)), lively), duration=1.0, step=h)
        z, v = result["body_position"].values[:, 0, 2] - HALF, result["body_com_velocity"].values[:, 0, 2]
        first = int(np.argmax(v > 0.0))
        assert v[first] == pytest.approx(-bounce * v[first - 1], abs=2 * GRAVITY * h)
        top = z[first : first + int(1.5 * bounce * fall / GRAVITY / h)].max()
        assert top == pytest.approx(bounce**2 * height, abs=3 * fall * h)


def test_ball_without_restitution_stays_down():
    result = simulate(on_floor(ball(position=(0.0, 0.0, HALF + 0.5))), duration=1.0, step=1 / 500)
    after = result["body_position"].values[result.time.values > 0.4, 0, 2] - HALF
    assert np.abs(after).max() < 1e-4  # [m]


@pytest.mark.parametrize("direction", [0.0, 30.0, 45.0])
def test_rolling_friction_slows_a_ball(direction):
    """About the contact (I + m r^2) dw/dt = -rho m g, I = 2/5 m r^2: a = -5/7 rho g / r along any line."""
    h, speed, rho = 1 / 1000, 1.0, 0.005
    along = heading(direction)
    surface = Surface(friction=0.8, rolling_friction=rho)
    turning = np.cross((0.0, 0.0, 1.0), along) * speed / HALF
    twist = (*(speed * along), *turning)
    result = simulate(on_floor(ball(surface), surface), duration=1.0, step=h, initial_twists={"ball": twist})
    velocity = result["body_com_velocity"].values[:, 0]
    theory = speed - 5 / 7 * rho * GRAVITY / HALF * result.time.values
    np.testing.assert_allclose(velocity @ along, theory, atol=0.01 * (speed - theory[-1]))
    side = velocity - np.outer(velocity @ along, along)
    assert np.linalg.norm(side, axis=1).max() < 1e-3 * speed


def test_rolling_ball_keeps_its_speed_without_rolling_friction():
    speed = 1.0
    twist = (speed, 0.0, 0.0, 0.0, speed / HALF, 0.0)
    result = simulate(on_floor(ball()), duration=1.0, step=1 / 500, initial_twists={"ball": twist})
    # the ball sinks in by cfm m g h / erp, 8e-6 of its radius, and rolls on the rest
    assert result["body_com_velocity"].values[-1, 0, 0] == pytest.approx(speed, rel=1e-5)


def check_stack(duration: float) -> None:
    """Ten boxes are at rest, and each is supported by exactly its weight."""
    scene = replace(stack(10), duration=duration)
    result = run_scene(scene, record_every=24)
    drift = np.linalg.norm(result["body_position"].values - result["body_position"].values[0], axis=-1)
    assert drift.max() < 1e-3  # [m]
    assert (result["solver_status"].values == 0).all()
    # the contacts of a box sum to its own weight: the load above it passes through
    weight = scene.model.bodies[0].mass * GRAVITY
    ground, others = result["ground_reaction_force"].values[-1], result["contact_force"].values[-1]
    np.testing.assert_allclose(ground[0], (0.0, 0.0, 10 * weight), atol=1e-6 * 10 * weight)
    assert not ground[1:].any()
    late = ground + others
    np.testing.assert_allclose(late, np.tile((0.0, 0.0, weight), (10, 1)), atol=1e-6 * 10 * weight)


def test_stack_of_ten_stands():
    check_stack(5.0)


@pytest.mark.slow
def test_stack_of_ten_stands_for_a_minute():
    check_stack(60.0)
