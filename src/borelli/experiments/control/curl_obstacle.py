"""Planks that are to curl but find an immovable block in the way: they press on it, and curl up when it goes.

After Weinstein, Guendelman and Fedkiw, Fig. 8, top. Eight planks, 40 degrees at every hinge, as in the experiment
`chain`; the block is drawn away three seconds after the start. While planks press on it and rest, each hinge asks for
the acceleration -k E (k as `asked_pull` has it), and the block's push must take it: about the first hinge its moment is
that of k M E, with M the mass matrix. Traditional PD would need steps of 1/10000 s here; stable PD stands beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import radians
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.control.response import PD
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import METHODS, OURS, STABLE, asked_pull, held_at, mass_matrix, planks
from borelli.experiments.movement.stepped_common import BLUE, GREEN, tidy
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Frame, Model, Shape, Surface
from borelli.physics.state import State

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(25.0)
COUNT, LENGTH, STEP = 8, 0.5, 1 / 240
CURL = radians(40.0)
GOES, SECONDS = 3.0, 8.0
"""When the block goes, and how long it all takes [s]."""
AWAY, LEAVING = 3.0, 0.4
"""How fast the block is drawn away [m/s], and for how long [s]."""
BLOCK, HALF = (0.7, 0.0, 1.0), (0.25, 0.25, 0.25)
"""Where its middle is, and half its sides [m]."""
FRICTION = 0.3
PRESSED = 0.3
"""Seconds before the block goes over which it is looked at how the planks press on it."""


def obstacle_model() -> Model:
    """Level planks below a block that nothing moves."""
    chain = planks(COUNT, LENGTH, friction=FRICTION)
    shape = Shape("box", HALF, surface=Surface(friction=FRICTION))
    block = replace(body_from_shapes("block", (shape,), kinematic=True), frame=Frame(BLOCK))
    return replace(chain, name="planks and an obstacle", bodies=(*chain.bodies, block), self_collision=True)


def obstacle_run(method: str, seconds: float, goes: float) -> Dataset:
    """The planks curl; the block goes after a time [s]."""
    model = obstacle_model()

    def steer(state: State, time: float) -> None:
        state.twist[COUNT, 1] = AWAY if goes <= time < goes + LEAVING else 0.0

    return track_targets(
        model,
        held_at(model, {c.name: CURL for c in model.coordinates}, GAINS),
        duration=seconds,
        step=STEP,
        method=method,
        start={},
        steer=steer,
    )


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    goes, seconds = (1.5, 2.0) if quick else (GOES, SECONDS)
    runs = {}
    for name in (OURS,) if quick else (OURS, STABLE):
        say(name)
        runs[name] = obstacle_run(METHODS[name], seconds, goes)
    rows = [{"method": name, **_figures(data, goes)} for name, data in runs.items()]
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "curl-obstacle.png"
    _draw(runs, goes, plot)
    say("drawing")
    files = draw_runs(runs, out, "curl-obstacle", (0.0, 0.4, 1.0, 2.9, 3.4, 4.0, SECONDS), quick=quick)
    about = (
        f"{COUNT} planks of {LENGTH:g} m curl by 40 degrees a hinge against a block that nothing moves, which goes "
        f"after {goes:g} s; stiffness {GAINS.stiffness:g} 1/s^2, critical damping, steps of 1/240 s"
    )
    return write_outcome(Outcome("curl-obstacle", about, rows, _claims(rows, quick), (plot, *files)), out)


def pressing(data: Dataset) -> Array:
    """The force of all planks on the block [N] at every instant: what contacts do to each other they do to nobody."""
    return np.asarray(np.linalg.norm(data["ground_reaction_force"].values.sum(axis=1), axis=1))


def _moments(data: Dataset) -> Array:
    """Of what pushes planks, about the first hinge [N m], counted as its angle is; at every instant."""
    points = np.nan_to_num(data["center_of_pressure"].values[:, :COUNT])
    return np.asarray(-np.cross(points, data["ground_reaction_force"].values[:, :COUNT])[..., 1].sum(axis=1))


def _figures(data: Dataset, goes: float) -> dict[str, float]:
    time, error = data["time"].values, data["coordinate_value"].values - CURL
    held = (time > goes - PRESSED) & (time <= goes)
    force = pressing(data)[held]
    before = np.abs(error[time <= goes][-1])
    return {
        "pressing_n": float(force.mean()),
        "pressing_least_n": float(force.min()),
        "largest_force_n": float(pressing(data).max()),
        "moment_nm": float(_moments(data)[held][-1]),
        "moment_asked_nm": float((mass_matrix(data["coordinate_value"].values[held][-1], LENGTH) @ error[held][-1])[0])
        * asked_pull(GAINS, STEP),
        "moving_while_pressing_rad_s": float(np.abs(data["coordinate_velocity"].values[held]).max()),
        "block_moved_m": float(np.abs(data["body_position"].sel(body="block").values[time <= goes] - BLOCK).max()),
        "kept_from_target_deg": float(np.degrees(before.max())),
        "left_at_end_rad": float(np.abs(error[-1]).max()),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    ours = rows[0]
    claims = [
        Claim("the block has moved [m]", ours["block_moved_m"], "immovable", ours["block_moved_m"] == 0.0),
        Claim("force on the block, least [N]", ours["pressing_least_n"], "presses", ours["pressing_least_n"] > 1.0),
        Claim("kept from the target [deg]", ours["kept_from_target_deg"], "obstructed",
              ours["kept_from_target_deg"] > 10.0),
        Claim("widest gap of a joint [m]", ours["joint_gap_m"], "joints hold", ours["joint_gap_m"] < 1e-9),
    ]  # fmt: skip
    if quick:
        return claims
    moment, wanted = ours["moment_nm"], ours["moment_asked_nm"]
    return [
        *claims,
        Claim("moment of the block's push about the first hinge [N m]", moment, f"{wanted:.4f}, as asked for",
              abs(moment / wanted - 1.0) < 1e-3),
        Claim("from the target when the block is gone [rad]", ours["left_at_end_rad"], "1e-6: recovers",
              ours["left_at_end_rad"] < 1e-6),
        Claim("stable PD: from the target at the end [deg]", float(np.degrees(rows[1]["left_at_end_rad"])),
              "sags", rows[1]["left_at_end_rad"] > radians(5.0)),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], goes: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    errors, forces = figure.subplots(1, 2)
    for name, data in runs.items():
        color = {OURS: BLUE, STABLE: GREEN}[name]
        time = data["time"].values
        error = np.degrees(np.abs(data["coordinate_value"].values - CURL).max(axis=1))
        errors.semilogy(time, np.maximum(error, 1e-9), color=color, label=name)
        forces.plot(time[1:], pressing(data)[1:], color=color, lw=0.8, label=name)
    for ax in (errors, forces):
        ax.axvline(goes, color="#9aa0a8", lw=0.8, ls=":", label="the block goes")
        ax.legend(frameon=False, fontsize=8)
    rest = max(_figures(data, goes)["pressing_n"] for data in runs.values())
    forces.set(xlabel="time [s]", ylabel="force of planks on the block [N]", ylim=(0.0, 3.0 * rest))
    errors.set(xlabel="time [s]", ylabel="largest error of a hinge [deg]")
    tidy([errors, forces])
    figure.savefig(path, dpi=130)
