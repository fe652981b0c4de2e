"""Three push-ups of the full skeleton by its muscles, hands and feet on the ground by contact.

After Weinstein, Guendelman and Fedkiw, section 6 and Fig. 11: 228 muscles, 3 minutes of computation a frame. The paper
gives no forces, activations, step or contact; required values are those of a usable result. With a vest of 200 kg the
same muscles are too weak, and the body sinks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.muscles.pushup_motion import PushupPath, pushup_model, pushup_path
from borelli.experiments.muscles.pushup_run import (
    PERIOD,
    PushupRun,
    passive_coordinates,
    pushup_run,
    reserve_fraction,
    slips,
)
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, INK, ORANGE

STEP = 1 / 180
COUNT = 3
VEST_MASS = 200.0
"""[kg]"""
VEST_SECONDS = 0.5
SAME_MOTION = 1e-3
"""Difference [rad] between motions by muscles and by torques: a twentieth of the admitted error. Friction is solved to
a tolerance, from another start when muscles replace torques."""
FRAME_RATE = 30.0
"""Frames of a film per second."""
SHOWN = ("TRIlong_r", "TRIlat_r", "DELT1_r", "PECM1_r", "SerratusAnterior_M_r", "external_oblique_lateral_r")
LIFTED = "T1_T4"
"""Body whose height is reported."""


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    request.log("inverse kinematics of a push-up")
    path = pushup_path(pushup_model())
    seconds = 0.25 if request.quick else COUNT * PERIOD
    pushup_run(path, seconds=2 * STEP, step=STEP)  # compiles
    request.log("push-ups by muscles")
    muscles = pushup_run(path, seconds=seconds, step=STEP)
    request.log("push-ups by torques")
    torques = pushup_run(path, seconds=seconds, step=STEP, muscles=False)
    request.log("with the vest")
    vest = pushup_run(path, model=pushup_model(VEST_MASS), seconds=0.1 if request.quick else VEST_SECONDS, step=STEP)
    rows = [_row("muscles", muscles, path), _row("torques", torques, path), _row("muscles, vest of 200 kg", vest, path)]
    _draw(muscles.data, vest.data, request.plot)
    view = View(width=420, height=240, azimuth=-8.0, elevation=12.0)
    shown = {"push-ups by muscles": muscles.data, "vest of 200 kg": vest.data}
    files = draw_runs(request, shown, (0.0, 0.5, 1.0, 1.5), columns=1, view=view)
    names = passive_coordinates(path.model)
    about = (
        f"{len(path.model.muscles)} muscles move the full skeleton ({len(path.model.bodies)} bodies, "
        f"{len(path.model.coordinates) - 6} joint coordinates) through {seconds / PERIOD:g} push-ups, hands and feet "
        f"on the ground by contact, steps of 1/{1 / STEP:.0f} s; {len(names)} coordinates (fingers, toes, jaw, "
        "nodding, wrists) are declared passive, and discs and ligaments transmit torque between vertebrae"
    )
    return Outcome(
        request.name, about, rows, _claims(rows, muscles, torques, vest, path, request.quick), (request.plot, *files)
    )


def _row(name: str, one: PushupRun, path: PushupPath) -> dict[str, Any]:
    data, by_muscles = one.data, "muscle_activation" in one.data
    height = data["body_position"].sel(body=LIFTED, axis="z").values
    hands = data["ground_reaction_force"].sel(body=["hand_r", "hand_l"], axis="z").values[1:].sum(axis=1)
    return {
        "run": name,
        "seconds": one.seconds,
        "processor_time_per_second": one.processor_time / one.seconds,
        "largest_error_rad": float(np.nanmax(np.abs(data["coordinate_error"].values))),
        "largest_slip_mm": 1e3 * float(slips(data).max()),
        "lowest_height_m": float(height.min()),
        "highest_height_m": float(height.max()),
        "hands_mean_n": float(hands.mean()),
        "largest_activation": float(data["muscle_activation"].max()) if by_muscles else float("nan"),
        "least_activation": float(data["muscle_activation"].min()) if by_muscles else float("nan"),
        "steps_attained": float((data["sharing_status"].values[1:] == 0).mean()) if by_muscles else float("nan"),
        "missing_torque_fraction": reserve_fraction(data, path.model) if by_muscles else float("nan"),
    }


def _claims(
    rows: Rows, muscles: PushupRun, torques: PushupRun, vest: PushupRun, path: PushupPath, quick: bool
) -> list[Claim]:
    by_muscles, _, with_vest = rows
    largest, least = by_muscles["largest_activation"], by_muscles["least_activation"]
    motions = [one.data["coordinate_value"].values for one in (muscles, torques)]
    claims = [
        above("muscles", float(len(path.model.muscles)), "228", 227.0),
        below("largest joint error [rad]", by_muscles["largest_error_rad"], NOT_GIVEN, 0.02),
        below("largest slip of a hand or foot [mm]", by_muscles["largest_slip_mm"], NOT_GIVEN, 5.0),
        Claim("largest activation", largest, NOT_GIVEN, "within 0 and 1", bool(largest <= 1.0 and least >= 0.0)),
        below("torque that muscles miss outside declared passive coordinates, over its peak",
              by_muscles["missing_torque_fraction"], NOT_GIVEN, 0.05),
        below("difference from the motion by torques [rad]", float(np.abs(motions[0] - motions[1]).max()),
              NOT_GIVEN, SAME_MOTION, "0, but for the tolerance of friction"),
    ]  # fmt: skip
    if quick:
        return claims
    warned = "too weak" in vest.data.attrs["notes"]
    return [
        *claims,
        below("processor time per frame of 1/30 s [s]", by_muscles["processor_time_per_second"] / FRAME_RATE,
              "180", 1 / FRAME_RATE),
        above("descent of the upper thorax [m]", by_muscles["highest_height_m"] - by_muscles["lowest_height_m"],
              NOT_GIVEN, 0.1),
        above("vest of 200 kg: descent below the lowest point of a push-up [m]",
              by_muscles["lowest_height_m"] - with_vest["lowest_height_m"], NOT_GIVEN, 0.0),
        Claim("vest of 200 kg: warnings", float(warned), NOT_GIVEN, "1: warned", warned),
    ]  # fmt: skip


def _draw(muscles: Dataset, vest: Dataset, path: Path) -> None:
    labels = "height of the upper thorax [m]", "vertical force [N]", "activation"
    with figure(path, *labels, size=(13.0, 4.0)) as (height, force, activation):
        for name, data, color in (("push-ups", muscles, BLUE), ("vest of 200 kg", vest, ORANGE)):
            height.plot(data["time"], data["body_position"].sel(body=LIFTED, axis="z"), color=color, label=name)
        time = muscles["time"].values[1:]
        for name, bodies, color in (("hands", ["hand_r", "hand_l"], INK), ("feet", ["foot_r", "foot_l"], ORANGE)):
            load = muscles["ground_reaction_force"].sel(body=bodies, axis="z").sum("body").values[1:]
            force.plot(time, load, color=color, label=name)
        for name in SHOWN:
            activation.plot(time, muscles["muscle_activation"].sel(muscle=name).values[1:], lw=1.0, label=name)
        activation.set(ylim=(0.0, 1.05))
