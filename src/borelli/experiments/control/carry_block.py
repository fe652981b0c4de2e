"""Chain of planks that carries a block: it sags if the controller does not know the block, and not if it does.

After Weinstein, Guendelman and Fedkiw, Fig. 1. The target of the chain is level. The block lies loose on the fourth
plank; or is fastened to it, unknown to the controller; or fastened and known; or the joints are springs.

The weight of an unknown block is not compensated. The controller commands joint accelerations -k E, with k of
`stiffness_at_rest`, for the masses it knows, so that the chain rests where

    k M(q) E = -dz/dq m g,

with M the mass matrix of the planks alone, and m and z the mass and height of the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import fsolve
from xarray import Dataset

from borelli.control.response import PD
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import (
    GRAVITY,
    IMPULSE,
    TRADITIONAL,
    Array,
    mass_matrix,
    planks,
    stiffness_at_rest,
    tip_heights,
    track_angles,
)
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, below, near
from borelli.model.mechanisms import with_block
from borelli.model.model import Frame, Model
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE, RED

GAINS = PD(100.0)
COUNT, LENGTH, STEP, SECONDS = 5, 0.5, 1 / 240, 4.0
FINER = 20
"""Factor by which the steps of springs are shorter, to avoid chatter."""
LOADED_PLANK = 4
"""Number of the plank under the block."""
MASS, HALF = 3.0, 0.12
"""Mass [kg] and half side [m] of the block."""
HALF_THICKNESS = 0.03 * LENGTH
"""Of a plank [m]."""
LOOSE, UNKNOWN, KNOWN, SPRINGS = "loose", "fastened, unknown", "fastened, known", TRADITIONAL
KNOWN_TOLERANCE = 1e-9
"""Largest error [rad] of a chain whose controller knows the block."""


def block_model(fastened: bool) -> Model:
    """Return level planks with a block on one of them."""
    on = Frame((0.0, 0.0, HALF_THICKNESS + HALF))
    model = with_block(planks(COUNT, LENGTH, friction=1.0), f"link_{LOADED_PLANK}", mass=MASS, at=on, size=2.0 * HALF)
    if fastened:
        return model
    return replace(model, joints=model.joints[:-1], self_collision=True)


def block_run(block: str, step: float, seconds: float) -> Dataset:
    """Simulate the chain with its block, released level."""
    finer = FINER if block == SPRINGS else 1
    return track_angles(
        block_model(block != LOOSE),
        0.0,
        GAINS,
        duration=seconds,
        step=step / finer,
        method="traditional" if block == SPRINGS else "impulse",
        record_every=finer,
        outside=("block",) if block == UNKNOWN else (),
    )


def rest_pose_unknown(step: float) -> Array:
    """Return the angles [rad] at which the chain rests under a block unknown to the controller."""
    arm = LENGTH * (np.arange(COUNT) < LOADED_PLANK) - 0.5 * LENGTH * (np.arange(COUNT) == LOADED_PLANK - 1)

    def imbalance(q: Array) -> Array:
        slope = np.cumsum(q)
        lift = arm * np.cos(slope) - (np.arange(COUNT) == LOADED_PLANK - 1) * (HALF_THICKNESS + HALF) * np.sin(slope)
        weight = MASS * GRAVITY * np.cumsum(lift[::-1])[::-1]  # a hinge lifts everything distal to it
        return np.asarray(stiffness_at_rest(GAINS, step) * mass_matrix(q, LENGTH) @ q + weight)

    angles: Array = fsolve(imbalance, np.full(COUNT, -0.1), xtol=1e-13)
    return angles


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 1.0 if request.quick else SECONDS
    runs, rows = {}, []
    for block in (UNKNOWN, LOOSE, KNOWN, SPRINGS):
        request.log(f"block {block}")
        data = runs[block] = block_run(block, STEP, seconds)
        angle = data["coordinate_value"].values
        rows.append({
            "block": block, "method": SPRINGS if block == SPRINGS else IMPULSE,
            "largest_error_deg": float(np.degrees(np.abs(angle[-1]).max())),
            "largest_error_ever_rad": float(np.abs(angle).max()),
            "tip_height_m": float(tip_heights(data, COUNT, LENGTH)[-1]),
            "block_height_m": float(data["body_position"].sel(body="block", axis="z").values[-1]),
            "from_rest_rad": float(np.abs(angle[-1] - rest_pose_unknown(STEP)).max()),
            "first_hinge_nm": float(data["torque"].values[-1, 0]),
        })  # fmt: skip
    _draw(runs, request.plot)
    files = draw_runs(request, runs, (0.0, 0.2, 0.5, SECONDS), columns=2)
    about = (
        f"{COUNT} planks of {LENGTH:g} m and 1 kg controlled to stay level, a block of {MASS:g} kg on the fourth, "
        f"stiffness {GAINS.stiffness:g} 1/s^2, critical damping, {seconds:g} s in steps of 1/240 s"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    by_block = {row["block"]: row for row in rows}
    known, unknown, loose, springs = (by_block[name] for name in (KNOWN, UNKNOWN, LOOSE, SPRINGS))
    weights = GRAVITY * (COUNT * 0.5 * COUNT * LENGTH + MASS * (LOADED_PLANK - 0.5) * LENGTH)
    claims = [
        below("known: largest error at any time [rad]", known["largest_error_ever_rad"], "does not sag",
              KNOWN_TOLERANCE),
        near("known: torque of the first hinge [N m]", known["first_hinge_nm"], NOT_GIVEN, weights, 1e-3,
             f"{weights:.4f}, by statics"),
    ]  # fmt: skip
    if quick:
        return claims
    level = HALF_THICKNESS + HALF
    return [
        *claims,
        below("unknown: distance from static equilibrium [rad]", unknown["from_rest_rad"], NOT_GIVEN, 1e-5,
              "0: moments in balance"),
        *(
            Claim(f"{block}: descent of the block [m]", level - row["block_height_m"], "sags",
                  "above 0.05", row["block_height_m"] < level - 0.05)
            for block, row in (("unknown", unknown), ("loose", loose))
        ),
        below("springs: height of the tip [m]", springs["tip_height_m"], "lower than impulse-based PD",
              unknown["tip_height_m"]),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    with figure(path, "height of the block [m]", "torque of the first hinge [N m]") as (heights, torques):
        for (block, data), color in zip(runs.items(), (ORANGE, INK, BLUE, GREEN), strict=True):
            time = data["time"].values
            style = "--" if block == LOOSE else "-"
            height = data["body_position"].sel(body="block", axis="z").values
            heights.plot(time, height, style, color=color, label=block)
            torques.plot(time[1:], data["torque"].values[1:, 0], style, color=color)
        heights.axhline(HALF_THICKNESS + HALF, color=RED, lw=0.6, label="level")
