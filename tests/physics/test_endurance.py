"""A human with random drives and applied forces for very long: no divergence, no memory leak, repeatable.

`make soak` runs a million steps; every test run makes a slice of them.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from borelli.model.model import Coordinate, Model
from borelli.people.human import human
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import joint_gap
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.soft_step import FRICTION_NOT_CONVERGED
from borelli.physics.state import make_inputs

from .worlds import fingerprint

STEP = 1 / 240
"""[s]"""
PERIOD = 60
"""Number of steps between changes of drives and forces: 0.25 s."""
LARGEST_GAP = 0.02
"""[m] of a joint: limbs flung at 40 rad/s leave gaps of r (w h)^2 / 2 a step, of which erp = 0.2 is closed each."""
MEMORY_NOISE = 4096
"""[kB] by which the largest memory may still grow after the first tenth: a leak of 5 bytes a step would show."""
LARGEST_TWIST = 200.0
"""[m/s or rad/s] beyond which a body has been shot off: forces and drives result in a tenth of it."""


@dataclass
class Course:
    """A run of the human; `go` continues it."""

    simulation: Simulation
    unsettled: int = 0
    worst_gap: float = 0.0
    worst_twist: float = 0.0
    largest_memory: list[int] = field(default_factory=list)
    """[kB] at the end of each tenth of a call to `go`."""

    def go(self, steps: int) -> None:
        simulation = self.simulation
        compiled = simulation.compiled
        record = make_record(compiled, PERIOD)
        periods = steps // PERIOD
        for period in range(periods):
            put_inputs(simulation)
            simulation.advance(PERIOD, record)
            assert np.isfinite(record.pose).all() and np.isfinite(record.twist).all()
            self.unsettled += int((record.solver_stats[:, 3] == FRICTION_NOT_CONVERGED).sum())
            self.worst_gap = max(self.worst_gap, float(joint_gap(compiled, record.pose).max()))
            self.worst_twist = max(self.worst_twist, float(np.abs(record.twist).max()))
            if (period + 1) % max(periods // 10, 1) == 0:
                self.largest_memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def driven(model: Model) -> list[Coordinate]:
    """Return the driven coordinates: all but the root's."""
    return [c for c in model.coordinates if not c.name.startswith("root")]


def put_inputs(simulation: Simulation) -> None:
    """Set new random targets and a new force, seeded by the time: the same wherever a run starts."""
    compiled = simulation.compiled
    rng = np.random.default_rng(int(simulation.state.clock[0]))
    uniform = rng.uniform
    drives = [
        Drive(c.name, uniform(max(c.lower, -1.0), min(c.upper, 1.0)), stiffness=300.0, damping=15.0, max_force=120.0)
        for c in driven(compiled.model)
    ]
    bodies = [body.name for body in compiled.model.bodies]
    shove = AppliedForce(
        bodies[rng.integers(len(bodies))], tuple(rng.normal(0.0, 60.0, 3)), tuple(rng.normal(0.0, 3.0, 3))
    )
    simulation.inputs = make_inputs(compiled, drives=drives, forces=(shove,))


def start() -> Course:
    """Return a run of the standing human."""
    model = human()
    compiled = compile_model(model, step=STEP, drives=[Drive(c.name) for c in driven(model)])
    return Course(Simulation(compiled, initial_state(compiled), make_inputs(compiled)))


def endure(steps: int) -> Course:
    """Run `steps` steps; check that a run restored at half time with new work arrays has the same bits."""
    course, half, tail = start(), steps // 2, min(steps // 2, 19_200)
    begun = time.process_time()
    course.go(half)
    kept = course.simulation.state.copy()
    course.go(tail)
    later = fingerprint(course.simulation.state)
    course.go(half - tail)
    made = int(course.simulation.state.clock[0])
    print(
        f"{made} steps, {1e6 * (time.process_time() - begun) / made:.0f} us each with checks; "
        f"widest gap {1e3 * course.worst_gap:.2f} mm, fastest {course.worst_twist:.1f} m/s or rad/s, "
        f"friction unsettled in {100 * course.unsettled / made:.3f} %, memory {course.largest_memory[-1] / 1024:.0f} MB"
    )
    restored = Course(Simulation(course.simulation.compiled, kept, course.simulation.inputs))
    restored.go(tail)
    assert fingerprint(restored.simulation.state) == later
    return course


def check(course: Course) -> None:
    assert course.worst_gap < LARGEST_GAP
    assert course.worst_twist < LARGEST_TWIST
    memory = course.largest_memory
    assert memory[-1] - memory[1] < MEMORY_NOISE, memory


def test_human_with_random_drives_and_forces_for_long():
    check(endure(19_200))


@pytest.mark.slow
def test_human_with_random_drives_and_forces_for_a_million_steps():
    check(endure(1_008_000))
