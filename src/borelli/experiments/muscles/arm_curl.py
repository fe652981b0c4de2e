"""Forearm curled by muscles, with weights in the hand (Weinstein, Guendelman and Fedkiw, section 6).

The skeleton stands with its pelvis fixed; the right elbow flexes and extends, all other joints keep their pose. All
muscles act, as in push-ups. The paper shows activations but no numbers: required is the motion of joint torques, larger
activations of flexors with heavier weights, and that muscles supply the energy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.controls import make_controls
from borelli.control.muscle_actuation.settings import MuscleActuation
from borelli.control.response import PD
from borelli.control.targets import Targets
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.experiment import Request, figure
from borelli.experiments.muscles.pushup_run import RESERVE, actuation
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below
from borelli.model.mechanisms import with_block
from borelli.model.model import Frame, Model
from borelli.people.full_skeleton import full_skeleton
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

GAINS = PD.from_settling_time(0.2)
STEP, PERIOD = 1 / 240, 2.0
WEIGHTS = (0.0, 2.0, 4.0)
"""In the hand [kg]."""
GRIP = Frame((0.0, 0.03, -0.07))
"""Center of the weight in the hand, in front of the palm."""
LOWEST, HIGHEST = 0.3, 1.9
"""Elbow flexion [rad]."""
FLEXORS, EXTENSORS = ("BIClong_r", "BICshort_r", "BRA_r", "BRD_r"), ("TRIlong_r", "TRIlat_r", "TRImed_r")
ELBOW = "elbow_flexion_r"
PASSIVE = ("index_", "middle_", "ring_", "little_", "thumb_", "toe_", "jaw_", "C0_C1_")
"""Coordinates declared passive, by the start of their names: muscles pull them in one direction only, or not at all."""
SAME_MOTION = 1e-5
"""[rad] Load sharing attains torques to 1e-9 of the strength, about 5e-7 N m in the spine: over the inertia of a
vertebra, 1e-4 kg m^2, and the stiffness of the response, 900 1/s^2, half of this."""


def curl_model(weight: float) -> Model:
    """Return the full skeleton with muscles, its pelvis fixed, and a weight [kg] in the right hand."""
    model = full_skeleton(muscles=True)
    root = replace(model.joints[0], coordinates=tuple(replace(c, locked=True) for c in model.joints[0].coordinates))
    model = replace(model, joints=(root, *model.joints[1:]), ground=())
    return with_block(model, "hand_r", mass=weight, at=GRIP, size=0.05, name="weight") if weight else model


def curl_targets(model: Model) -> Targets:
    """Return targets of all joints: the right elbow moves, the others stay a little inside their limits."""
    free = [c for c in model.coordinates if not c.locked]
    rest = np.array([np.clip(c.default, c.lower + 0.02, c.upper - 0.02) for c in free])
    column = [c.name for c in free].index(ELBOW)

    def curve(time: Any) -> Any:
        values = np.repeat(rest[None], len(time), axis=0)
        values[:, column] = LOWEST + (HIGHEST - LOWEST) * (0.5 - 0.5 * np.cos(2.0 * np.pi * time / PERIOD))
        return values

    return Targets(model, tuple(c.name for c in free), curve)


def curl_run(weight: float, seconds: float, *, muscles: bool = True) -> Dataset:
    """Simulate the curl with a weight [kg], by muscles or by torques."""
    model = curl_model(weight)
    reserves = {c.name: RESERVE for c in model.coordinates if c.name.startswith(PASSIVE)}
    own = MuscleActuation(reserves, actuation(model).passive_groups)
    return track_targets(
        model, make_controls(curl_targets(model), GAINS), duration=seconds, step=STEP,
        actuation=own if muscles else None,
    )  # fmt: skip


def energy_balance(data: Dataset) -> tuple[float, float]:
    """Return the work of muscles and reserves, and the gain of energy [J], up to the highest energy.

    Torques act from the start to the end of a step: their work is torque times change of the coordinate.
    """
    names = [name for name in data["coordinate"].values if not str(name).startswith("root_")]
    moved = np.diff(data["coordinate_value"].sel(coordinate=names).values, axis=0)
    work = np.cumsum((data["torque"].sel(coordinate=names).values[1:] * moved).sum(axis=1))
    energy = (data["kinetic_energy"] + data["potential_energy"]).values
    top = int(np.argmax(energy))
    return float(work[top - 1]), float(energy[top] - energy[0])


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 0.1 if request.quick else PERIOD
    runs, rows = {}, []
    for weight in WEIGHTS:
        request.log(f"weight {weight:g} kg")
        data = runs[f"{weight:g} kg"] = curl_run(weight, seconds)
        torques = curl_run(weight, seconds, muscles=False)
        work, gain = energy_balance(data)
        activation = data["muscle_activation"]
        rows.append({
            "weight_kg": weight,
            "largest_error_rad": float(np.nanmax(np.abs(data["coordinate_error"].values))),
            "from_torques_rad": float(np.abs(data["coordinate_value"] - torques["coordinate_value"]).max()),
            "peak_elbow_torque_nm": float(data["torque"].sel(coordinate=ELBOW).max()),
            "peak_flexor_activation": float(activation.sel(muscle=list(FLEXORS)).max()),
            "peak_extensor_activation": float(activation.sel(muscle=list(EXTENSORS)).max()),
            "steps_attained": float((data["sharing_status"].values[1:] == 0).mean()),
            "work_j": work,
            "energy_gain_j": gain,
        })  # fmt: skip
    _draw(runs, request.plot)
    shown = {name: runs[name] for name in (f"{WEIGHTS[0]:g} kg", f"{WEIGHTS[-1]:g} kg")}
    view = View(width=260, height=420, azimuth=-60.0, elevation=5.0)
    files = draw_runs(request, shown, (0.0, 0.4, 0.7, 1.0), view=view)
    about = f"an elbow curled by {len(curl_model(0.0).muscles)} muscles with weights in the hand, {seconds:g} s"
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    claims = [
        below("largest joint error [rad]", max(row["largest_error_rad"] for row in rows), NOT_GIVEN, 0.02),
        below("difference from the motion by torques [rad]", max(row["from_torques_rad"] for row in rows), NOT_GIVEN,
              SAME_MOTION, "0"),
    ]  # fmt: skip
    if quick:
        return claims
    flexors = [row["peak_flexor_activation"] for row in rows]
    worst = max(abs(row["work_j"] / row["energy_gain_j"] - 1.0) for row in rows)
    return [
        *claims,
        above("increase of flexor activation by 4 kg", flexors[-1] - flexors[0], NOT_GIVEN, 0.05),
        Claim("largest activation of flexors", flexors[-1], NOT_GIVEN, "at most 1", flexors[-1] <= 1.0),
        below("work of muscles and reserves relative to the gain of energy, less 1", worst, NOT_GIVEN, 0.01),
    ]


def _draw(runs: Mapping[str, Dataset], path: Path) -> None:
    labels = "elbow flexion [deg]", "elbow torque [N m]", "activation of flexors", "activation of extensors"
    with figure(path, *labels, size=(14.0, 3.6)) as (angle, torque, flexors, extensors):
        for (name, data), color in zip(runs.items(), (BLUE, GREEN, ORANGE), strict=True):
            time = data["time"].values[1:]
            angle.plot(
                time, np.degrees(data["coordinate_value"].sel(coordinate=ELBOW).values[1:]), color=color, label=name
            )
            torque.plot(time, data["torque"].sel(coordinate=ELBOW).values[1:], color=color, label=name)
            for panel, muscles in ((flexors, FLEXORS), (extensors, EXTENSORS)):
                for muscle, style in zip(muscles, ("-", "--", ":", "-."), strict=False):
                    values = data["muscle_activation"].sel(muscle=muscle).values[1:]
                    panel.plot(time, values, style, color=color, lw=1.0, label=f"{muscle}, {name}")
        angle.axhline(np.degrees(HIGHEST), color=INK, lw=0.5)
