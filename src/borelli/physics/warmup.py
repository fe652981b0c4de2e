"""Compile every kernel once and keep the machine code: the first use after an installation or an edit.

The parts a step is made of are compiled side by side in several processes, which leave their machine code in the cache;
the trajectory kernel only calls them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from borelli.errors import BorelliError
from borelli.jit import JIT_ON, compile_for
from borelli.physics.calls import list_parts, make_sample
from borelli.physics.measure import coordinates_of
from borelli.physics.simulate import start_state
from borelli.physics.simulation import Simulation, make_record

PARTS = {
    "solver": ("newton", "solve_piece", "refine"),
    "contacts": ("find_contacts",),
    "rows": ("fill_standing_rows",),
    "friction": ("check_friction", "update_friction", "find_answers", "settle"),
    "layout": ("read_contacts", "fill_contact_rows", "prepare_solve", "sweep_rows"),
}
"""What is compiled side by side, a process each, WORKERS at a time."""
JOINED = ("step", "coordinates")
"""What then joins their machine code."""
WORKERS = 2

# the vectorisers take a sixth of the time and make small loops no faster
COMPILER = {"NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0", "NUMBA_OPT": "2"}


def compile_part(name: str) -> None:
    """Compile one part of what a run calls into the cache."""
    sample = make_sample()
    if name in PARTS:
        for function, arguments in list_parts(sample).items():
            if function.__name__ in PARTS[name]:
                compile_for(function, arguments)
        return
    record = make_record(sample.compiled, 2)
    if name == "step":
        Simulation(sample.compiled, sample.state, sample.inputs).advance(2, record)
    else:
        start_state(sample.compiled)
        coordinates_of(sample.compiled, record.pose, record.twist)


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
        _compile_parts(tuple(PARTS), lambda what, share: report(what, 0.6 * share))
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


def _start_compiling(part: str) -> subprocess.Popen[bytes]:
    program = "import sys; from borelli.physics import warmup; warmup.compile_part(sys.argv[1])"
    package = Path(__file__).resolve().parents[2]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    environment = os.environ | COMPILER | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", program, part], env=environment, stderr=subprocess.PIPE)
