"""Random passive mechanisms, and runs of them by both steps."""

from typing import NamedTuple

import numpy as np

from borelli.model.model import Body, Coordinate, Frame, Joint, Model
from borelli.physics import diagnostics
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.impulse_step.arrays import compile_impulse, make_target_trajectory
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

from .nets import net_model

COORDINATES = {"hinge": 1, "ball": 3, "universal": 2, "fixed": 0}


def joint(draw, name, kinds, parent, child, on_parent, on_child, *, closes_loop=False):
    """Return a joint of a random kind and orientation between points on the x axes of two bodies."""
    kind = kinds[int(draw.integers(len(kinds)))]
    axis, turn = draw.normal(size=3), draw.normal(size=4)
    return Joint(
        name, kind, parent, child, Frame((on_parent, 0.0, 0.0), tuple(turn / np.linalg.norm(turn))),
        Frame((on_child, 0.0, 0.0)), axes=(tuple(axis / np.linalg.norm(axis)),) if kind == "hinge" else (),
        coordinates=tuple(Coordinate(f"{name}_{i}") for i in range(COORDINATES[kind])), closes_loop=closes_loop,
    )  # fmt: skip


def random_tree(draw, links, *, free, kinds=("hinge", "ball")):
    """Return a tree of rods: lengths 0.02 to 1 m, masses 0.05 to 5 kg, branches; free in space or pinned."""
    bodies, joints = [], []
    lengths, masses = (
        np.exp(draw.uniform(np.log(0.02), 0.0, links)),
        0.05 * np.exp(draw.uniform(0.0, np.log(100), links)),
    )
    for k, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        slender, across = draw.uniform(0.05, 0.3) ** 2, mass * length**2 / 12.0
        inertia = across * np.diag([2.0 * slender, 1.0 + slender, 1.0 + slender])
        bodies.append(Body(f"b{k}", float(mass), inertia=tuple(map(tuple, inertia))))
        if k > 0 or not free:
            parent = int(draw.integers(max(0, k - 3), k)) if k else -1
            end = 0.5 * lengths[parent] * (1.0 if draw.random() < 0.8 else -draw.random()) if k else 0.0
            on = f"b{parent}" if k else "ground"
            joints.append(joint(draw, f"j{k}", kinds, on, f"b{k}", float(end), float(-0.5 * length)))
    return Model("tree", tuple(bodies), tuple(joints))


class Run(NamedTuple):
    """Energies, momenta and gaps of a run."""

    energy: np.ndarray
    swing: float
    """Largest change of potential or kinetic energy [J]."""
    gap: float
    status: np.ndarray
    linear: np.ndarray
    """(frames, 3) linear momentum less that of gravity."""
    angular: np.ndarray
    """(frames, 3) about the center of mass."""
    pose: np.ndarray
    iterations: np.ndarray

    @property
    def gain(self):
        """Largest energy above that at the start, relative to the swing."""
        return float((self.energy - self.energy[0]).max() / self.swing)

    @property
    def drift(self):
        return float(np.abs(self.energy - self.energy[0]).max() / self.swing)


def simulation_of(model, step, steps, *, soft=False, **start):
    """Return a simulation without controls."""
    if soft:
        compiled = compile_model(model, step=step)
        return Simulation(compiled, initial_state(compiled, **start), make_inputs(compiled))
    compiled, controls = compile_impulse(model, step=step, controlled={})
    count = len(model.coordinates)
    targets = make_target_trajectory(compiled, np.zeros((steps + 2, count)), np.zeros((steps + 2, 0, 4)))
    return ImpulseSimulation(compiled, initial_state(compiled, **start), make_inputs(compiled), controls, targets)


def run(simulation, steps):
    """Make steps and return what they conserve; the first frame is the present state."""
    compiled, state = simulation.compiled, simulation.state
    record = make_record(compiled, steps + 1)
    record.pose[0, :, :3], record.pose[0, :, 3:], record.twist[0] = state.position, state.quaternion, state.twist
    if isinstance(simulation, ImpulseSimulation):
        simulation.advance_impulses(steps, record, frame=1)
    else:
        simulation.advance(steps, record, frame=1)
    kinetic = diagnostics.kinetic_energy(compiled, record.pose, record.twist)
    potential = diagnostics.potential_energy(compiled, record.pose)
    linear, angular = diagnostics.momentum(compiled, record.pose, record.twist)
    center = diagnostics.center_of_mass(compiled, record.pose)
    weight = compiled.tables.bodies.mass.sum() * compiled.tables.gravity
    return Run(
        energy=kinetic + potential,
        swing=max(np.ptp(kinetic), np.ptp(potential)),
        gap=float(diagnostics.joint_gap(compiled, record.pose).max()),
        status=record.solver_stats[1:, 3],
        linear=linear - np.outer(compiled.step * np.arange(steps + 1), weight),
        angular=angular - np.cross(center, linear),
        pose=record.pose,
        iterations=record.solver_stats[1:, 0],
    )


def run_tree(seed, duration, *, soft=False, kinds=("hinge", "ball")):
    """Return a run of a random tree with random velocities; odd seeds are free in space."""
    draw = np.random.default_rng(seed)
    links, free, rate = int(draw.integers(3, 41)), bool(seed % 2), int(draw.choice([1000, 240, 120, 60, 30]))
    model = random_tree(draw, links, free=free, kinds=kinds)
    speeds = {c.name: float(2.0 * draw.normal()) for c in model.coordinates}
    steps = int(duration * rate)
    simulation = simulation_of(model, 1.0 / rate, steps + 1, soft=soft, velocities=speeds)
    if free:
        simulation.state.twist[:, :3] += draw.normal(size=3)
    run(simulation, 1)  # velocities satisfy the joints
    return run(simulation, steps)


def ring(bars, *, radius=0.3, pinned=True):
    """Return a closed ring of bars in the plane y = 0 on parallel hinges: three of its rows are redundant."""
    length, bodies, joints = 2.0 * radius * np.sin(np.pi / bars), [], []
    across = length**2 / 12.0
    inertia = ((0.05 * across, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across))
    for k in range(bars):
        angle = 2.0 * np.pi * (k + 0.5) / bars
        at = radius * np.cos(np.pi / bars) * np.array([np.cos(angle), 0.0, np.sin(angle)])
        half = -0.5 * (angle + 0.5 * np.pi)
        bodies.append(Body(f"b{k}", 1.0, inertia=inertia, frame=Frame(tuple(at), (np.cos(half), 0, np.sin(half), 0))))

    def hinge(name, parent, child, on_parent, **closing):
        frames = Frame(on_parent), Frame((-0.5 * length, 0.0, 0.0))
        return Joint(name, "hinge", parent, child, *frames, ((0.0, 1.0, 0.0),), (Coordinate(name),), **closing)

    end = (0.5 * length, 0.0, 0.0)
    if pinned:
        joints.append(hinge("pin", "ground", "b0", (radius, 0.0, 0.0)))
    joints += [hinge(f"j{k}", f"b{k - 1}", f"b{k}", end) for k in range(1, bars)]
    joints.append(hinge("close", f"b{bars - 1}", "b0", end, closes_loop=True))
    return Model("ring", tuple(bodies), tuple(joints))


def run_loops(seed, duration, *, soft=False):
    """Return a run of a ring of 4 to 12 bars, pinned or free in space, with random velocities."""
    draw = np.random.default_rng(seed)
    bars, pinned = int(draw.integers(4, 13)), bool(draw.random() < 0.5)
    rate = int(draw.choice([1000, 240, 120, 60, 30]))
    model, steps = ring(bars, radius=float(draw.uniform(0.05, 0.5)), pinned=pinned), int(duration * rate)
    simulation = simulation_of(model, 1.0 / rate, steps + 1, soft=soft)
    for i, body in enumerate(model.bodies):
        simulation.state.position[i], simulation.state.quaternion[i] = body.frame.position, body.frame.orientation
    simulation.state.twist[:] = draw.normal(size=(bars, 6))
    run(simulation, 1)
    return run(simulation, steps)


def run_net(seed, duration, *, soft=False):
    """Return a run of a net of 3 x 3 to 5 x 5 balls, held at two corners and released flat."""
    draw = np.random.default_rng(seed)
    rate = int(draw.choice([1000, 240, 120, 60, 30]))
    steps = int(duration * rate)
    return run(simulation_of(net_model(int(draw.integers(3, 6))), 1.0 / rate, steps + 1, soft=soft), steps)


def run_passive(seed, duration, *, soft=False):
    """Return a run of a random system, 180 trees of 200, 15 rings and 5 nets, and its kind."""
    if seed % 40 == 39:
        return run_net(seed, duration, soft=soft), "net"
    if seed % 40 in (9, 19, 29):
        return run_loops(seed, duration, soft=soft), "ring"
    return run_tree(seed, duration, soft=soft), "tree"
