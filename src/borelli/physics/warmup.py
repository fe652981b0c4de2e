"""Compile every kernel once and keep the machine code: the first use after an installation or an edit.

The parts a step is made of are compiled side by side in several processes, which leave their machine code in the cache;
the trajectory kernel then has only to join them.
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
from borelli.physics.measure import coordinates_of
from borelli.physics.simulate import start_state
from borelli.physics.simulation import Simulation, make_record
from borelli.physics.state import make_inputs, make_state
from borelli.physics.tables import compile_model

WAVES = (("solver", "contacts rows"), ("step", "coordinates"))
"""What is compiled side by side: one process for each, two at a time, the second pair from the first's machine code."""

# the vectorisers take a sixth of the time and make small loops no faster
COMPILER = {"NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0", "NUMBA_OPT": "2"}


def sample() -> Simulation:
    """A swinging box above the ground: small, and with every kind of table a step reads."""
    body = body_of_shapes("box", (Shape("box", (0.1, 0.1, 0.1)),))
    joint = Joint("hinge", "hinge", "ground", "box", coordinates=(Coordinate("angle"),))
    model = Model("sample", (body,), (joint,), (Marker("m", "box", (0.0, 0.0, 0.0)),), ground=(Shape("plane"),))
    compiled = compile_model(model, step=0.001, anchors=Softness(100.0, 1.0))
    return Simulation(compiled, make_state(compiled), make_inputs(compiled))


def compile_part(name: str) -> None:
    """Compile one part of what a run calls into the cache."""
    import numba

    from borelli.physics import collide, step

    simulation = sample()
    tables, state, inputs, work = simulation.compiled.tables, simulation.state, simulation.inputs, simulation.work
    scratch = work.scratch
    record = make_record(simulation.compiled, 2)
    if name == "step":
        simulation.advance(2, record)
        return
    if name == "coordinates":
        start_state(simulation.compiled)
        coordinates_of(simulation.compiled, record.pose, record.twist)
        return
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
    done = 0.0
    for wave in WAVES if JIT_ON else ():
        report(" and ".join(wave), done)
        running = [(parts, _start_compiling(parts)) for parts in wave]
        for parts, process in running:
            _, errors = process.communicate()
            if process.returncode != 0:
                raise BorelliError(f"compiling {parts} failed: {errors.decode(errors='replace').strip()[-400:]}")
        done += 0.6 if wave is WAVES[0] else 0.35
    report("loading", 0.95)
    for part in ("step", "coordinates"):
        compile_part(part)
    report("done", 1.0)
    return time.perf_counter() - start


def _start_compiling(parts: str) -> subprocess.Popen[bytes]:
    program = "import sys; from borelli.physics import warmup; [warmup.compile_part(p) for p in sys.argv[1].split()]"
    package = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    environment = os.environ | COMPILER | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", program, parts], env=environment, stderr=subprocess.PIPE)
