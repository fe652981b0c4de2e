"""A chain of planks that carries a block: heavy where the controller does not know of it, effortless where it does.

After Weinstein, Guendelman and Fedkiw, Fig. 1. The chain is to stay level. The block lies loose on the fourth plank;
or is fastened to it, outside the controller's world; or fastened, inside that world; and springs carry it too.

Outside, the block's weight is what the controller does not hold up. It asks for accelerations -k E of its joints, k as
`asked_pull` has it, for the masses it knows, so that the chain rests where

    k M(q) E = -dz/dq m g,

with M the mass matrix of the planks alone, and m and z the mass and height of the block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fsolve

from borelli.control.response import PD
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import GRAVITY, OURS, TRADITIONAL, asked_pull, held_at, mass_matrix, planks, tip_heights
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, ORANGE, RED, tidy
from borelli.model.mechanisms import with_block
from borelli.model.model import Frame, Model

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

GAINS = PD(100.0)
COUNT, LENGTH, STEP, SECONDS = 5, 0.5, 1 / 240, 4.0
FINER = 20
"""By how much shorter the steps of springs are, which else chatter."""
UNDER = 4
"""The plank that the block lies on."""
MASS, HALF = 3.0, 0.12
"""Of the block [kg], and half its side [m]."""
THICK = 0.03 * LENGTH
"""Half the thickness of a plank [m]."""
LOOSE, OUTSIDE, INSIDE, SPRINGS = "lying loose", "fastened, outside", "fastened, inside", TRADITIONAL
KNOWN = 1e-9
"""[rad] that a chain may be off its target when the controller knows all it carries."""


def block_model(fastened: bool) -> Model:
    """Level planks with a block on one of them."""
    on = Frame((0.0, 0.0, THICK + HALF))
    model = with_block(planks(COUNT, LENGTH, friction=1.0), f"link_{UNDER}", mass=MASS, at=on, size=2.0 * HALF)
    if fastened:
        return model
    return replace(model, joints=model.joints[:-1], self_collision=True)


def block_run(way: str, step: float, seconds: float) -> Dataset:
    """The chain with its block, let go level."""
    model = block_model(way != LOOSE)
    return track_targets(
        model,
        held_at(model, {c.name: 0.0 for c in model.coordinates}, GAINS),
        duration=seconds,
        step=step / FINER if way == SPRINGS else step,
        method="traditional" if way == SPRINGS else "impulse",
        every=FINER if way == SPRINGS else 1,
        start={},
        outside=("block",) if way == OUTSIDE else (),
    )


def resting_outside(step: float) -> Array:
    """Angles [rad] at which the chain rests under a block that the controller does not know of."""
    reach = LENGTH * (np.arange(COUNT) < UNDER) - 0.5 * LENGTH * (np.arange(COUNT) == UNDER - 1)

    def imbalance(q: Array) -> Array:
        slope = np.cumsum(q)
        lift = reach * np.cos(slope) - (np.arange(COUNT) == UNDER - 1) * (THICK + HALF) * np.sin(slope)
        weight = MASS * GRAVITY * np.cumsum(lift[::-1])[::-1]  # a hinge lifts all that is beyond it
        return np.asarray(asked_pull(GAINS, step) * mass_matrix(q, LENGTH) @ q + weight)

    found: Array = fsolve(imbalance, np.full(COUNT, -0.1), xtol=1e-13)
    return found


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    seconds = 1.0 if quick else SECONDS
    runs, rows = {}, []
    for way in (OUTSIDE, LOOSE, INSIDE, SPRINGS):
        say(f"the block {way}")
        data = runs[way] = block_run(way, STEP, seconds)
        angle = data["coordinate_value"].values
        rows.append({
            "block": way, "method": SPRINGS if way == SPRINGS else OURS,
            "largest_error_deg": float(np.degrees(np.abs(angle[-1]).max())),
            "largest_error_ever_rad": float(np.abs(angle).max()),
            "tip_height_m": float(tip_heights(data, COUNT, LENGTH)[-1]),
            "block_height_m": float(data["body_position"].sel(body="block", axis="z").values[-1]),
            "from_rest_rad": float(np.abs(angle[-1] - resting_outside(STEP)).max()),
            "first_hinge_nm": float(data["torque"].values[-1, 0]),
        })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "carry-block.png"
    _draw(runs, plot)
    say("drawing")
    files = draw_runs(runs, out, "carry-block", (0.0, 0.2, 0.5, SECONDS), quick=quick, columns=2)
    about = (
        f"{COUNT} planks of {LENGTH:g} m and 1 kg held level, a block of {MASS:g} kg on the fourth, stiffness "
        f"{GAINS.stiffness:g} 1/s^2, critical damping, {seconds:g} s in steps of 1/240 s"
    )
    return write_outcome(Outcome("carry-block", about, rows, _claims(rows, quick), (plot, *files)), out)


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    found = {row["block"]: row for row in rows}
    inside = found[INSIDE]
    weights = GRAVITY * (COUNT * 0.5 * COUNT * LENGTH + MASS * (UNDER - 0.5) * LENGTH)
    claims = [
        Claim("inside: largest error ever [rad]", inside["largest_error_ever_rad"], "does not sag",
              inside["largest_error_ever_rad"] < KNOWN),
        Claim("inside: torque of the first hinge [N m]", inside["first_hinge_nm"], f"{weights:.4f}, by statics",
              abs(inside["first_hinge_nm"] - weights) < 1e-3),
    ]  # fmt: skip
    if quick:
        return claims
    outside, loose, springs = found[OUTSIDE], found[LOOSE], found[SPRINGS]
    return [
        *claims,
        Claim("outside: from where it must rest [rad]", outside["from_rest_rad"], "0: moments in balance",
              outside["from_rest_rad"] < 1e-5),
        Claim("outside: the block has come down [m]", THICK + HALF - outside["block_height_m"], "sags",
              outside["block_height_m"] < THICK + HALF - 0.05),
        Claim("lying loose: the block has come down [m]", THICK + HALF - loose["block_height_m"], "sags",
              loose["block_height_m"] < THICK + HALF - 0.05),
        Claim("springs: height of the tip [m]", springs["tip_height_m"], "lower than ours outside",
              springs["tip_height_m"] < outside["tip_height_m"]),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    heights, torques = figure.subplots(1, 2)
    for (way, data), color in zip(runs.items(), (ORANGE, INK, BLUE, GREEN), strict=True):
        time = data["time"].values
        style = "--" if way == LOOSE else "-"
        heights.plot(time, data["body_position"].sel(body="block", axis="z").values, style, color=color, label=way)
        torques.plot(time[1:], data["torque"].values[1:, 0], style, color=color, label=way)
    heights.axhline(THICK + HALF, color=RED, lw=0.6, label="level")
    heights.set(xlabel="time [s]", ylabel="height of the block [m]")
    torques.set(xlabel="time [s]", ylabel="torque of the first hinge [N m]")
    heights.legend(frameon=False, fontsize=8)
    tidy([heights, torques])
    figure.savefig(path, dpi=130)
