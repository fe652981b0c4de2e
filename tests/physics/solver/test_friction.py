"""Coulomb's law: |p_t| <= mu N, opposite to the slip while sliding; no preferred axis."""

from __future__ import annotations

from dataclasses import replace
from math import atan, cos, sin
from typing import NamedTuple

import numpy as np
import pytest

from borelli.bench import workload as job
from borelli.bench.ground_truth import motion, twists
from borelli.model.model import Surface
from borelli.numerics.quaternions import rotation_matrix
from borelli.people.human import human
from borelli.physics.arrays.compile_model import CompiledModel, compile_model
from borelli.physics.inputs import Drive
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state, simulate
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED
from borelli.physics.solver_settings import SolverSettings
from borelli.physics.state import State, make_inputs, make_state
from borelli.scenes.gallery import gallery_scene, human_drop
from borelli.scenes.scene import Scene

from ..contact_law import contact_defects
from ..worlds import GRAVITY, HALF, crate, heading, on_floor, on_slope

DIRECTIONS = (0.0, 30.0, 45.0)
"""[deg] to the world's axes and the cube's sides."""
AZIMUTHS = (0.0, 15.0, 30.0, 45.0, 60.0)
MU = 0.5
CORNERS = HALF * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


def thrown(direction: float, speed: float, h: float, duration: float):
    """Simulate a cube started at that speed [m/s] in that direction."""
    surface = Surface(friction=MU)
    twist = (*(speed * heading(direction)), 0.0, 0.0, 0.0)
    return simulate(on_floor(crate(surface), surface), duration=duration, step=h, initial_twists={"box": twist})


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sliding_box_goes_straight_and_stops_at_coulomb_distance(direction):
    """v_n = v - mu g h n: it stops after v^2 / (2 mu g) - h v / 2."""
    h, speed = 1 / 1000, 2.0
    result = thrown(direction, speed, h, 0.6)
    path = result["body_position"].values[:, 0] - result["body_position"].values[0, 0]
    along = heading(direction)
    theory = speed**2 / (2 * MU * GRAVITY)
    assert path[-1] @ along == pytest.approx(theory, rel=0.01)
    assert path[-1] @ along == pytest.approx(theory - h * speed / 2, rel=2e-3)  # friction converges to 1e-3
    sideways = path - np.outer(path @ along, along)
    assert np.linalg.norm(sideways[:, :2], axis=1).max() < 1e-3 * theory
    # no rotation: bounds off by 1e-3 can rotate it by that fraction of mu m g HALF, about I = 2/3 m HALF^2
    assert np.abs(result["body_angular_velocity"].values[:, 0, 2]).max() < 1e-3 * MU * GRAVITY / (2 / 3 * HALF) * 0.4
    assert np.linalg.norm(result["body_com_velocity"].values[-1, 0]) < 1e-6  # [m/s]


@pytest.mark.parametrize("h", [1 / 240, 1 / 1000])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_fast_box_never_leaves_the_ground(direction, h):
    result = thrown(direction, 2.0, h, 0.6)
    rotation = rotation_matrix(result["body_orientation"].values[:, 0])
    heights = result["body_position"].values[:, :1, 2] + np.einsum("fij,cj->fci", rotation, CORNERS)[..., 2]
    lower = np.sort(heights, axis=1)[:, :4]
    assert np.abs(lower).max() < 1e-4  # [m]: all four, at any time
    assert (result["ground_reaction_force"].values[1:, 0, 2] > 0.0).all()


@pytest.mark.parametrize("azimuth", AZIMUTHS)
def test_box_sticks_just_below_the_angle_of_friction(azimuth):
    result = simulate(on_slope(0.995 * atan(MU), MU, azimuth), duration=1.0, step=1 / 500)
    moved = result["body_position"].values[-1, 0] - result["body_position"].values[0, 0]
    assert np.linalg.norm(moved) < 1e-5  # [m]: it sinks in and creeps by its softness, no more


@pytest.mark.parametrize("azimuth", AZIMUTHS)
def test_box_slides_just_above_the_angle_of_friction(azimuth):
    """a = g (sin s - mu cos s) down the slope; friction converges to 1e-3 of mu g cos s."""
    slope, h, duration = 1.005 * atan(MU), 1 / 500, 1.0
    result = simulate(on_slope(slope, MU, azimuth), duration=duration, step=h)
    down = heading(azimuth) * cos(slope) - np.array([0.0, 0.0, sin(slope)])
    acceleration = result["body_com_velocity"].values[-1, 0] @ down / duration
    theory = GRAVITY * (sin(slope) - MU * cos(slope))
    assert acceleration == pytest.approx(theory, abs=SolverSettings().friction_tolerance * MU * GRAVITY * cos(slope))
    sideways = result["body_com_velocity"].values[-1, 0] - acceleration * duration * down
    assert np.linalg.norm(sideways) < 0.1 * theory * duration


def test_acceleration_on_a_steep_slope_is_independent_of_azimuth():
    slope, duration = 0.7, 0.5
    theory = GRAVITY * (sin(slope) - MU * cos(slope))
    for azimuth in AZIMUTHS:
        result = simulate(on_slope(slope, MU, azimuth), duration=duration, step=1 / 500)
        down = heading(azimuth) * cos(slope) - np.array([0.0, 0.0, sin(slope)])
        assert result["body_com_velocity"].values[-1, 0] @ down / duration == pytest.approx(theory, rel=2e-3)


def test_ground_reaction_of_a_standing_human_is_its_weight():
    """Stiff drives fix the pose; at rest the feet transmit m g, to 0.01 N."""
    model = human()
    drives = [
        Drive(c.name, c.default, stiffness=5000.0, damping=300.0)
        for c in model.coordinates
        if not c.name.startswith("root")
    ]
    result = simulate(model, duration=4.0, step=1 / 240, drives=drives)
    force = result["ground_reaction_force"].sum("body").values
    assert abs(force[-1, 2] - model.mass * GRAVITY) < 0.01  # [N]
    assert np.abs(force[-1, :2]).max() < 0.01
    touched = result["ground_reaction_force"].values[-1, :, 2] > 1e-6
    assert {str(name) for name in result.body.values[touched]} <= {"foot_l", "foot_r", "toes_l", "toes_r"}
    assert (
        abs(float(result["body_position"].sel(body="head")[-1, 2] - result["body_position"].sel(body="head")[0, 2]))
        < 0.01
    )


class Convergence(NamedTuple):
    """Convergence of friction over the steps of one run."""

    steps: int
    unsettled: int
    """Steps that report that friction did not converge."""
    wrong: int
    """Steps that report convergence, and whose contacts have defects above the tolerance."""
    momentum: float
    """Largest defect of the momentum balance, relative."""
    solves: np.ndarray
    contacts: int

    @property
    def failed(self) -> int:
        return self.unsettled + self.wrong


def converge_steps(compiled: CompiledModel, state: State, steps: int) -> Convergence:
    """Advance step by step and measure the defects of the contact laws."""
    simulation, record = Simulation(compiled, state, make_inputs(compiled)), make_record(compiled, 1)
    stats, defects = [], []
    for _ in range(steps):
        simulation.advance(1, record)
        stats.append(record.solver_stats[0].copy())
        defects.append(contact_defects(simulation))
    solves, contacts, status = (np.array(stats)[:, i] for i in (1, 2, 3))
    law = np.array([max(defect.tangent, defect.normal) for defect in defects])
    assert np.isin(status, (0, FRICTION_NOT_CONVERGED)).all()
    tolerance = 1.001 * SolverSettings().friction_tolerance  # the two sums differ by rounding
    return Convergence(
        steps,
        int((status == FRICTION_NOT_CONVERGED).sum()),
        int(((status == 0) & (law > tolerance)).sum()),
        max(defect.momentum for defect in defects),
        solves,
        int(contacts.max()),
    )


def converge_scene(scene: Scene) -> Convergence:
    compiled = compile_model(scene.model, step=scene.step, drives=scene.drives, settings=scene.settings)
    state = initial_state(compiled, coordinates=scene.coordinates, velocities=scene.speeds, twists=scene.twists)
    return converge_steps(compiled, state, round(scene.duration / scene.step))


def collapse(height: float, pitch: float, step: float) -> Scene:
    """Return a limp human dropped from a height [m], leaning by an angle [rad]."""
    scene = human_drop(height)
    return replace(scene, step=step, coordinates={**scene.coordinates, "root_pitch": pitch})


@pytest.mark.parametrize("step", [1 / 1000, 1 / 240, 1 / 120])
def test_friction_converges_on_a_collapsing_human(step):
    """The benchmark's limp human sinks onto its feet: under 0.1 % of the steps violate the contact laws."""
    poses = motion(120, 0.1)
    compiled = compile_model(job.human(), step=step)
    state = make_state(compiled)
    state.position[:], state.quaternion[:] = poses.poses[0, :, :3], poses.poses[0, :, 3:]
    state.twist[:] = twists(poses)[0]
    run = converge_steps(compiled, state, round(1.0 / step))
    assert run.contacts == 16  # feet and toes
    assert run.failed < 1e-3 * run.steps
    assert run.momentum < 1e-9


def test_friction_converges_on_a_collapsed_body():
    """Every segment hits the ground and joints reach their limits; more leans and heights in `make soak`."""
    run = converge_scene(collapse(0.1, 0.1, 1 / 240))
    assert run.failed < 1e-3 * run.steps
    assert run.momentum < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("step", [1 / 240, 1 / 120])
def test_friction_converges_over_twelve_falls(step):
    """The same over twelve falls."""
    runs = [converge_scene(collapse(h, pitch, step)) for h in (0.0, 0.1, 0.3, 0.5) for pitch in (-0.2, 0.1, 0.4)]
    steps = sum(run.steps for run in runs)
    print(f"step {step:.5f} s: {_counts(runs)}")
    assert sum(run.failed for run in runs) < 1e-3 * steps, _counts(runs)


@pytest.mark.slow
@pytest.mark.parametrize("step", [1 / 1000, 1 / 480, 1 / 240, 1 / 120, 1 / 60])
def test_friction_converges_on_a_hundred_collapses(step):
    """The same over all leans and heights; prints the number of solves."""
    runs = [converge_scene(collapse(h, pitch, step)) for h in np.linspace(0, 1, 10) for pitch in np.linspace(-1, 1, 10)]
    solves = np.concatenate([run.solves for run in runs])
    median, high = np.percentile(solves, [50, 99])
    print(
        f"step {step:.5f} s: {_counts(runs)}; solves {solves.mean():.2f} on average, {median:.0f} median, "
        f"{high:.0f} at the 99th percentile"
    )
    assert sum(run.failed for run in runs) < 1e-3 * sum(run.steps for run in runs), _counts(runs)


def _counts(runs: list[Convergence]) -> str:
    unsettled, wrong, steps = (sum(getattr(run, name) for run in runs) for name in ("unsettled", "wrong", "steps"))
    return f"{unsettled} not converged and {wrong} wrongly reported as converged of {steps} steps"


@pytest.mark.parametrize("name", ["stack", "conveyor", "ramp", "bouncing_balls"])
def test_friction_converges_in_gallery_scenes(name):
    run = converge_scene(gallery_scene(name))
    assert run.failed <= max(1, 1e-3 * run.steps), _counts([run])
