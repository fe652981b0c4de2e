"""Compile every kernel once and keep the machine code: the first use after an installation or an edit.

The parts a step is made of are compiled side by side in several processes, which leave their machine code in the cache;
the trajectory kernel then only has to join them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from borelli.errors import BorelliError
from borelli.jit import JIT_ON
from borelli.model.inertia import body_of_shapes
from borelli.model.model import Coordinate, Joint, Marker, Model, Shape, Softness
from borelli.physics.simulation import Simulation, make_record
from borelli.physics.state import make_inputs, make_state
from borelli.physics.tables import compile_model

PARTS = {"contacts": 1.0, "rows": 0.8, "solver": 1.2}
"""What is compiled side by side, and about how much of the work each is."""


def sample() -> Simulation:
    """A swinging box above the ground: small, and with every kind of table a step reads."""
    body = body_of_shapes("box", (Shape("box", (0.1, 0.1, 0.1)),))
    joint = Joint("hinge", "hinge", "ground", "box", coordinates=(Coordinate("angle"),))
    model = Model("sample", (body,), (joint,), (Marker("m", "box", (0.0, 0.0, 0.0)),), ground=(Shape("plane"),))
    compiled = compile_model(model, step=0.001, anchors=Softness(100.0, 1.0))
    return Simulation(compiled, make_state(compiled), make_inputs(compiled))


def compile_part(name: str) -> None:
    """Compile one part of the step into the cache."""
    import numba

    from borelli.physics import collide, step

    simulation = sample()
    tables, state, inputs, work = simulation.compiled.tables, simulation.state, simulation.inputs, simulation.work
    scratch = work.scratch
    kernels: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "contacts": (
            collide.find_contacts,
            (tables.shapes, state.position, scratch.rotation, 0.0, work.contacts),
        ),
        "rows": (step.fill_standing_rows, (tables, state, inputs, work.rows, scratch, 0, True)),
        "solver": (step.solve_step, (tables, state, work, scratch.told)),
    }
    function, arguments = kernels[name]
    function.compile(tuple(numba.typeof(argument) for argument in arguments))


def warm_up(report: Callable[[str, float], None] = lambda what, share: None) -> float:
    """Compile or load every kernel; the seconds it took. `report` hears what is being done and the share done.

    Raises:
        BorelliError: a part could not be compiled.
    """
    start = time.perf_counter()
    if JIT_ON:
        report("contacts, rows and solver", 0.05)
        program = "import sys; from borelli.physics.warmup import compile_part; compile_part(sys.argv[1])"
        package = Path(__file__).resolve().parents[2]
        path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
        running = {
            name: subprocess.Popen(
                [sys.executable, "-c", program, name], env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE
            )
            for name in PARTS
        }
        done = 0.05
        for name, process in running.items():
            _, errors = process.communicate()
            if process.returncode != 0:
                raise BorelliError(f"compiling {name} failed: {errors.decode(errors='replace').strip()[-400:]}")
            done += 0.5 * PARTS[name] / sum(PARTS.values())
            report(f"{name} compiled", done)
    report("the step", 0.6)
    simulation = sample()
    record = make_record(simulation.compiled, 2)
    simulation.advance(2, record)
    report("coordinates", 0.9)
    from borelli.physics.measure import coordinates_of
    from borelli.physics.simulate import start_state

    start_state(simulation.compiled)
    coordinates_of(simulation.compiled, record.pose, record.twist)
    report("done", 1.0)
    return time.perf_counter() - start
