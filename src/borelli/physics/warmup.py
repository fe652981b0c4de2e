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

PARTS = ("solver", "rows", "contacts", "friction", "layout")
"""What is compiled side by side, a process each, WORKERS at a time."""
JOINED = ("step", "coordinates")
"""What then joins their machine code."""
WORKERS = 2

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

    from borelli.physics import collide, compliance, contact, coulomb, friction, solver, step

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
    rows, graph, factor, touch = work.rows, work.graph, work.factor, work.touch
    kinematic = tables.bodies.kinematic
    limits = (numba.types.literal(step.PATIENCE), numba.types.literal(step.CAP))
    kernels: dict[str, tuple[tuple[Any, tuple[Any, ...]], ...]] = {
        "contacts": (
            (collide.find_contacts, (tables.shapes, state.position, scratch.rotation, 0.0, work.contacts)),
        ),
        "rows": ((step.fill_standing_rows, (tables, state, inputs, rows, scratch, 0, True)),),
        "solver": ((solver.newton, (rows, graph, factor, work.fill, work.search, work.interior, 0, *limits)),),
        "friction": (
            (friction.check_friction, (rows, graph, factor, touch, 0, 0)),
            (friction.update_friction, (rows, graph, factor, touch, 0, 0, 0.0)),
            (coulomb.settle, (rows, touch, 0, 0, 0, 0.0)),
            (compliance.find_answers, (rows, graph, factor, work.fill, touch, 0)),
        ),
        "layout": (
            (contact.read_contacts, (tables, work.contacts, 0, state, scratch.rotation, kinematic, touch)),
            (contact.fill_contact_rows, (tables, work.contacts, state, kinematic, touch, rows)),
            (step.prepare_solve, (tables, work, 0)),
        ),
    }
    for function, arguments in kernels[name]:
        function.compile(tuple(_type_in_kernel(argument) for argument in arguments))


def warm_up(
    report: Callable[[str, float], None] = lambda what, share: None, meanwhile: Callable[[], None] = lambda: None
) -> float:
    """Compile or load every kernel; the seconds it took. `report` hears what is being done and the share done.

    `meanwhile` is called while one process is at work and another core is idle.

    Raises:
        BorelliError: a part could not be compiled.
    """
    start = time.perf_counter()
    if JIT_ON:
        _compile_parts(PARTS, lambda what, share: report(what, 0.6 * share))
        joining = {part: _start_compiling(part) for part in JOINED}
        report(" and ".join(JOINED), 0.6)
        meanwhile()
        for part, process in joining.items():
            _finish(part, process)
    else:
        meanwhile()
    report("loading", 0.95)
    for part in JOINED:
        compile_part(part)
    report("done", 1.0)
    return time.perf_counter() - start


def _compile_parts(parts: tuple[str, ...], report: Callable[[str, float], None]) -> None:
    waiting, running = list(parts), dict[str, subprocess.Popen[bytes]]()
    while waiting or running:
        while waiting and len(running) < WORKERS:
            part = waiting.pop(0)
            running[part] = _start_compiling(part)
        report(" and ".join(running), 1.0 - (len(waiting) + len(running)) / len(parts))
        # whichever ends first makes room for the next
        while all(process.poll() is None for process in running.values()):
            time.sleep(0.05)
        for part, process in list(running.items()):
            if process.poll() is not None:
                _finish(part, process)
                del running[part]


def _finish(part: str, process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        raise BorelliError(f"compiling {part} failed: {errors.decode(errors='replace').strip()[-400:]}")


def _type_in_kernel(argument: Any) -> Any:
    """The type a kernel is called with: numba's own where one is given, else that of a sample."""
    import numba

    return argument if isinstance(argument, numba.types.Type) else numba.typeof(argument)


def _start_compiling(part: str) -> subprocess.Popen[bytes]:
    program = "import sys; from borelli.physics import warmup; warmup.compile_part(sys.argv[1])"
    package = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    environment = os.environ | COMPILER | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", program, part], env=environment, stderr=subprocess.PIPE)
