"""Closed loop under control: one hinge of a four-bar linkage is driven, or four hinges have conflicting targets.

Weinstein, Guendelman and Fedkiw describe loops in section 5 without a figure. The linkage is a parallelogram: with its
first hinge at an angle f the four are at f, -f, f and f (the fourth counted from the ground). The least-squares fit of
four targets is f = (t_1 - t_2 + t_3 + t_4) / 4.

Impulse steps reject conflicting targets. Four targets are tracked by post-stabilization alone: it finds the velocities
nearest to the commanded ones, and the linkage is integrated with them along its one degree of freedom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from xarray import Dataset

from borelli.control.response import PD, next_velocity
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.pd_convergence import errors_in_time
from borelli.experiments.control.planks import COLORS, GRAVITY, METHODS, STABLE, track_angles
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below, near
from borelli.model.mechanisms import hinge
from borelli.model.model import GROUND, Body, Frame, Model, Shape, Vector
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.post_stabilization import PostStabilizer
from borelli.physics.run_soft_steps import make_record
from borelli.physics.simulate import initial_state, to_dataset
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE, RED

GAINS = PD(25.0)
LENGTH, STEP, SECONDS = 0.5, 1 / 240, 4.0
TARGET = 0.5
"""Target of the first hinge [rad]."""
CONFLICTING = {"hinge_1": 0.5, "hinge_2": 0.1, "hinge_3": 0.2, "hinge_4": 0.4}
"""Targets [rad]."""
SIGNS = np.array([1.0, -1.0, 1.0, 1.0])
"""Signs of the hinge angles when the first is positive."""
LEAST_SQUARES_ANGLE = float(SIGNS @ list(CONFLICTING.values())) / 4.0


def linkage() -> Model:
    """Return three bars of equal length on two pivots of the ground: up, across and down; all hinges at zero."""
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


def _bar(name: str, center: Vector, along: int) -> Body:
    half = [0.04, 0.04, 0.02]
    half[along] = 0.47 * LENGTH
    across = LENGTH**2 / 12.0
    own = [0.01 * across if axis == along else across for axis in range(3)]
    inertia = ((own[0], 0.0, 0.0), (0.0, own[1], 0.0), (0.0, 0.0, own[2]))
    return Body(name, 1.0, inertia=inertia, shapes=(Shape("box", tuple(half)),), frame=Frame(center))


def conflict_run(targets: Mapping[str, float], seconds: float) -> Dataset:
    """Simulate the linkage, released upright, with a target [rad] for every hinge."""
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
        commanded = {
            name: float(next_velocity(GAINS, sign * angle, sign * speed, (target, target, target), STEP))
            for (name, target), sign in zip(targets.items(), SIGNS, strict=True)
        }
        state.twist[:, 2] -= GRAVITY * STEP
        # the crank rotates about -y
        speed = -float(stabiliser.solve(state, commanded).twist[0, 4])
        angle += STEP * speed
    return to_dataset(compiled, record, STEP * np.arange(steps + 1, dtype=np.float64))


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 1.0 if request.quick else SECONDS
    runs, rows = {}, []
    for name, method in METHODS.items():
        request.log(f"one hinge driven, {name}")
        target = {"hinge_1": TARGET}
        runs[name] = track_angles(linkage(), target, GAINS, duration=seconds, step=STEP, method=method)
        rows.append({"targets": "one", "method": name, **_metrics(runs[name])})
    request.log("four hinges in conflict")
    conflict = "post-stabilized, four targets"
    runs[conflict] = conflict_run(CONFLICTING, seconds)
    rows.append({"targets": "four", "method": "post-stabilization", **_metrics(runs[conflict])})
    _draw(runs, request.plot)
    files = draw_runs(request, runs, (0.0, 0.2, 0.5, SECONDS), columns=2)
    about = (
        f"a parallelogram of three bars of {LENGTH:g} m and the ground, target of the first hinge {TARGET:g} rad, or "
        f"of all four {', '.join(f'{t:g}' for t in CONFLICTING.values())} rad; stiffness {GAINS.stiffness:g} 1/s^2, "
        f"critical damping, gravity, {seconds:g} s in steps of 1/240 s"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _metrics(data: Dataset) -> dict[str, float]:
    angle = data["coordinate_value"].values
    single = TARGET * (1.0 - errors_in_time(GAINS, STEP, float(data["time"].values[-1]))[1])
    return {
        **{f"hinge_{k + 1}_rad": float(a) for k, a in enumerate(angle[-1])},
        "from_single_joint_rad": float(np.abs(angle[:, 0] - single).max()),
        "not_a_parallelogram_rad": float(np.ptp(SIGNS * angle, axis=1).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    impulse, traditional, stable, four = rows
    claims = [
        below("one target: difference from the response of a single joint [rad]", impulse["from_single_joint_rad"],
              NOT_GIVEN, 1e-7, "0"),
        below("one target: largest gap of the loop [m]", impulse["joint_gap_m"], NOT_GIVEN, 1e-11, "2e-13"),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        near("one target: the first hinge [rad]", impulse["hinge_1_rad"], NOT_GIVEN, TARGET, 4e-8, ".49999997 of .5"),
        near("four targets: final angle [rad]", four["hinge_1_rad"], NOT_GIVEN, LEAST_SQUARES_ANGLE, 1e-3,
             ".2498 (least squares: .25)"),
        *(
            above(f"{row['method']}, one target: the first hinge [rad]", row["hinge_1_rad"], NOT_GIVEN, TARGET + 0.05,
                  "sags past .5")
            for row in (traditional, stable)
        ),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    with figure(path, "first hinge, one target [rad]", "hinges, four targets (dotted) [rad]") as (one, four):
        for name, data in runs.items():
            time, angle = data["time"].values, data["coordinate_value"].values
            if name in COLORS:
                one.plot(time, angle[:, 0], "--" if name == STABLE else "-", color=COLORS[name], label=name)
                continue
            for k, color in enumerate((BLUE, ORANGE, GREEN, RED)):
                four.plot(time, angle[:, k], color=color, label=f"hinge {k + 1}")
                four.axhline(list(CONFLICTING.values())[k], color=color, lw=0.8, ls=":")
        one.axhline(TARGET, color=INK, lw=0.6, ls=":", label="target")
