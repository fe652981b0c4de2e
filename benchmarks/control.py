"""Impulse steps against real time, on one core: a controlled skeleton, a net, chains of controlled hinges.

    python benchmarks/control.py

CPU time of a step, all six stages, from runs of two lengths whose difference leaves compiling the model and labelling
the result out. The least of the rounds counts, since neighbours only add; the largest error of the targets and the
widest gap of a joint stand beside it. Kernels are compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import borelli as bo
from borelli.control.controls import Control, make_controls
from borelli.control.example_motions import march
from borelli.control.targets import targets_from_functions
from borelli.control.track_targets import track_targets
from borelli.model.mechanisms import net, planks
from borelli.model.model import Model

ROUNDS = 5
CHAINS = (10, 30, 100, 300, 1000)


def measure(model: Model, controls: Sequence[Control], step: float, steps: int) -> tuple[float, float, float]:
    """Seconds a step, the largest error of a target [rad or m] and the widest gap of a joint [m]."""
    runs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        spent = []
        for count in (steps, 3 * steps):
            start = time.process_time()
            found = track_targets(model, controls, duration=count * step, step=step, record_every=count)
            spent.append(time.process_time() - start)
        runs.append((spent[0], spent[1]))
    short, long = (min(run[i] for run in runs) for i in range(2))
    error: NDArray[np.float64] = np.abs(found["coordinate_value"] - found["coordinate_target"]).values
    widest = float(found["joint_gap"].max())
    return (long - short) / (2 * steps), float(np.nanmax(error, initial=0.0)), widest


def tell(name: str, step: float, seconds: float, error: float, gap: float) -> None:
    """One line."""
    print(
        f"{name}: {1e6 * seconds:.0f} us a step of {1e3 * step:.2f} ms, {step / seconds:.1f} times real time; "
        f"targets missed by {error:.1e}, joints by {gap:.1e} m"
    )


if __name__ == "__main__":
    skeleton = bo.full_skeleton()
    bare = replace(skeleton, bodies=tuple(replace(body, shapes=()) for body in skeleton.bodies))
    for inverse in (60, 240):
        marching = make_controls(march(bare))
        tell("skeleton, 74 joints, without contact", 1 / inverse, *measure(bare, marching, 1 / inverse, 240))
    tell("net, 960 joints", 1 / 60, *measure(net(16, 16), (), 1 / 60, 60))
    for links in CHAINS:
        model = planks(links)
        waves = {c.name: (lambda t: 0.1 * np.sin(2.0 * t)) for c in model.coordinates}
        found = measure(model, make_controls(targets_from_functions(model, waves)), 1 / 240, max(300, 6000 // links))
        tell(f"chain of {links} hinges ({1e6 * found[0] / links:.2f} us a joint)", 1 / 240, *found)
