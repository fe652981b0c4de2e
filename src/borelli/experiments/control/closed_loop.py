"""A closed loop under control: one hinge of a four-bar linkage leads it, or four hinges are told what cannot all be.

Weinstein, Guendelman and Fedkiw tell of loops in section 5 and show none alone. The linkage is a parallelogram, so that
with its first hinge at an angle f the four are at f, -f, f and f (the fourth counted from the ground). What fits four
targets best, in least squares, is f = (t_1 - t_2 + t_3 + t_4) / 4.

Impulse steps take no targets that contradict each other. Four are followed by post-stabilisation alone: it finds
the velocities that come nearest to what the responses ask for, and the linkage is moved by them along its one angle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD, next_velocity
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import GRAVITY, METHODS, OURS, STABLE, TRADITIONAL, held_at
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, ORANGE, RED, tidy
from borelli.model.mechanisms import hinge
from borelli.model.model import GROUND, Body, Frame, Model, Shape, Vector
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.post_stabilization import PostStabilizer
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state, to_dataset

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(25.0)
LENGTH, STEP, SECONDS = 0.5, 1 / 240, 4.0
TARGET = 0.5
"""[rad] of the first hinge."""
CONFLICTING = {"hinge_1": 0.5, "hinge_2": 0.1, "hinge_3": 0.2, "hinge_4": 0.4}
"""[rad]"""
SIGNS = np.array([1.0, -1.0, 1.0, 1.0])
"""Of the hinges' angles, when the first is positive."""
COMPROMISE = float(SIGNS @ list(CONFLICTING.values())) / 4.0


def linkage() -> Model:
    """Three bars of one length on two pivots of the ground: up, across and down again; all hinges at zero."""
    half = 0.5 * LENGTH
    up, down, across, back = (0.0, 0.0, half), (0.0, 0.0, -half), (half, 0.0, 0.0), (-half, 0.0, 0.0)
    bodies = (
        _bar("crank", (0.0, 0.0, half), 2),
        _bar("coupler", (half, 0.0, LENGTH), 0),
        _bar("rocker", (LENGTH, 0.0, half), 2),
    )
    joints = (
        hinge("hinge_1", GROUND, "crank", (0.0, 0.0, 0.0), down),
        hinge("hinge_2", "crank", "coupler", up, back),
        hinge("hinge_3", "coupler", "rocker", across, up),
        replace(hinge("hinge_4", GROUND, "rocker", (LENGTH, 0.0, 0.0), down), closes_loop=True),
    )
    return Model("four-bar linkage", bodies, joints, gravity=(0.0, 0.0, -GRAVITY))


def _bar(name: str, middle: Vector, along: int) -> Body:
    half = [0.04, 0.04, 0.02]
    half[along] = 0.47 * LENGTH
    across = LENGTH**2 / 12.0
    own = [0.01 * across if axis == along else across for axis in range(3)]
    inertia = ((own[0], 0.0, 0.0), (0.0, own[1], 0.0), (0.0, 0.0, own[2]))
    return Body(name, 1.0, inertia=inertia, shapes=(Shape("box", tuple(half)),), frame=Frame(middle))


def loop_run(method: str, targets: Mapping[str, float], seconds: float) -> Dataset:
    """The linkage let go upright, some of its hinges with targets [rad]."""
    model = linkage()
    return track_targets(model, held_at(model, targets, GAINS), duration=seconds, step=STEP, method=method, start={})


def conflict_run(targets: Mapping[str, float], seconds: float) -> Dataset:
    """The linkage let go upright, with a target [rad] for every hinge."""
    model = linkage()
    compiled = compile_model(model, step=STEP)
    stabiliser = PostStabilizer(model, controlled=tuple(targets))
    steps = round(seconds / STEP)
    record = make_record(compiled, steps + 1)
    angle, speed = 0.0, 0.0
    for k in range(steps + 1):
        pose = {f"hinge_{n + 1}": sign * angle for n, sign in enumerate(SIGNS[:3])}
        rates = {f"hinge_{n + 1}": sign * speed for n, sign in enumerate(SIGNS[:3])}
        state = initial_state(compiled, coordinates=pose, velocities=rates)
        record.pose[k, :, :3], record.pose[k, :, 3:], record.twist[k] = state.position, state.quaternion, state.twist
        wanted = {
            name: float(next_velocity(GAINS, sign * angle, sign * speed, (target, target, target), STEP))
            for (name, target), sign in zip(targets.items(), SIGNS, strict=True)
        }
        state.twist[:, 2] -= GRAVITY * STEP
        # the crank turns about -y
        speed = -float(stabiliser.solve(state, wanted).twist[0, 4])
        angle += STEP * speed
    return to_dataset(compiled, record, STEP * np.arange(steps + 1, dtype=np.float64))


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    seconds = 1.0 if quick else SECONDS
    runs, rows = {}, []
    for name, method in METHODS.items():
        say(f"one hinge leads, {name}")
        runs[name] = loop_run(method, {"hinge_1": TARGET}, seconds)
        rows.append({"targets": "one", "method": name, **_figures(runs[name])})
    say("four hinges in conflict")
    conflict = "post-stabilised, four targets"
    runs[conflict] = conflict_run(CONFLICTING, seconds)
    rows.append({"targets": "four", "method": "post-stabilisation", **_figures(runs[conflict])})
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "loop.png"
    _draw(runs, plot)
    say("drawing")
    files = draw_runs(runs, out, "loop", (0.0, 0.2, 0.5, SECONDS), quick=quick, columns=2)
    about = (
        f"a parallelogram of three bars of {LENGTH:g} m and the ground, its first hinge to go to {TARGET:g} rad, or "
        f"all four to {', '.join(f'{t:g}' for t in CONFLICTING.values())} rad; stiffness {GAINS.stiffness:g} 1/s^2, "
        f"critical damping, gravity, {seconds:g} s in steps of 1/240 s"
    )
    return write_outcome(Outcome("loop", about, rows, _claims(rows, quick), (plot, *files)), out)


def _figures(data: Dataset) -> dict[str, float]:
    angle = data["coordinate_value"].values
    alone = TARGET * (1.0 - errors_in_time(GAINS, STEP, float(data["time"].values[-1]))[1])
    return {
        **{f"hinge_{k + 1}_rad": float(a) for k, a in enumerate(angle[-1])},
        "from_alone_rad": float(np.abs(angle[:, 0] - alone).max()),
        "not_a_parallelogram_rad": float(np.ptp(SIGNS * angle, axis=1).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    ours, four = rows[0], rows[-1]
    claims = [
        Claim("one target: from the response of one coordinate alone [rad]", ours["from_alone_rad"], "0",
              ours["from_alone_rad"] < 1e-7),
        Claim("one target: widest gap of the loop [m]", ours["joint_gap_m"], "2e-13", ours["joint_gap_m"] < 1e-11),
    ]  # fmt: skip
    if quick:
        return claims
    reached, settled = ours["hinge_1_rad"], four["hinge_1_rad"]
    return [
        *claims,
        Claim("one target: the first hinge [rad]", reached, ".49999997 of .5", abs(reached - TARGET) < 4e-8),
        Claim("four targets: where they settle [rad]", settled, ".2498 (least squares: .25)",
              abs(settled - COMPROMISE) < 1e-3),
        *(
            Claim(f"{row['method']}, one target: the first hinge [rad]", row["hinge_1_rad"], "sags past .5",
                  row["hinge_1_rad"] > TARGET + 0.05)
            for row in rows[1:3]
        ),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    one, four = figure.subplots(1, 2)
    colors = {OURS: BLUE, TRADITIONAL: RED, STABLE: GREEN}
    for name, data in runs.items():
        time, angle = data["time"].values, data["coordinate_value"].values
        if name in colors:
            one.plot(time, angle[:, 0], "--" if name == STABLE else "-", color=colors[name], label=name)
        else:
            for k, color in enumerate((BLUE, ORANGE, GREEN, RED)):
                four.plot(time, angle[:, k], color=color, label=f"hinge {k + 1}")
                four.axhline(list(CONFLICTING.values())[k], color=color, lw=0.8, ls=":")
    one.axhline(TARGET, color=INK, lw=0.6, ls=":", label="target")
    one.set(xlabel="time [s]", ylabel="first hinge, one target [rad]")
    four.set(xlabel="time [s]", ylabel="hinges, four targets (dotted) [rad]")
    for ax in (one, four):
        ax.legend(frameon=False, fontsize=8)
    tidy([one, four])
    figure.savefig(path, dpi=130)
