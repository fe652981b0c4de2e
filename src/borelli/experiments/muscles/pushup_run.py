"""Runs of push-ups with muscles: declared passive coordinates, compliances and metrics."""

from __future__ import annotations

from time import process_time
from typing import NamedTuple

import numpy as np
from xarray import Dataset

from borelli.control.controls import make_controls
from borelli.control.muscle_actuation.settings import MuscleActuation
from borelli.control.response import PD
from borelli.control.track_targets import track_targets
from borelli.experiments.muscles.pushup_motion import Array, PushupPath, pushup_targets
from borelli.model.model import Model
from borelli.muscles.actuation import actuation_report

PERIOD = 2.0
"""Duration of a push-up [s]."""
GAINS = PD.from_settling_time(0.2)
STRENGTH = 1.5
"""Factor of muscle strength: the sources are average men; trained arms are stronger by about half."""
RESERVE = 10.0
"""Optimal torque of declared passive coordinates [N m]."""
PASSIVE = ("index_", "middle_", "ring_", "little_", "thumb_", "toe_", "jaw_", "C0_C1_", "wrist_")
"""Coordinates that are declared passive, by the start of their names: fingers, toes and jaw, for which the model has
few muscles or none, or in one direction only; the nodding of the head, which has no flexor; and the wrists, which
the weight on a flat hand extends to where ligaments carry it."""
SPINE = ("L5_S1", "L4_L5", "L3_L4", "L2_L3", "L1_L2", "T12_L1", "T8_T9", "T4_T5")
NECK = ("C7_T1", "C5_C6", "C3_C4")
YIELD = 5e-3
"""Compliance of a control whose muscles are as strong as REFERENCE_STRENGTH [rad/s per N m s]."""
REFERENCE_STRENGTH = 100.0
"""[N m]"""
MIN_STRENGTH = 5.0
"""Least strength [N m] from which compliances are computed."""
PLANTED = ("hand_r", "hand_l", "foot_r", "foot_l")


class PushupRun(NamedTuple):
    """A run and the processor time of its steps."""

    data: Dataset
    seconds: float
    """Simulated [s]."""
    processor_time: float
    """[s]"""


def passive_coordinates(model: Model) -> tuple[str, ...]:
    """Return the coordinates that are declared passive."""
    return tuple(c.name for c in model.coordinates if c.name.startswith(PASSIVE))


def actuation(model: Model) -> MuscleActuation:
    """Return the muscles with declared passive coordinates and the discs and ligaments of spine and neck."""
    groups = [
        [f"{level}_{axis}" for level in part] for part in (SPINE, NECK) for axis in ("flexion", "bending", "rotation")
    ]
    return MuscleActuation(dict.fromkeys(passive_coordinates(model), RESERVE), groups, STRENGTH)


def compliances(path: PushupPath) -> dict[str, float]:
    """Return compliances of controls, inverse to the square of the strength of their muscles.

    Of all torques with the same motion these select the least, each relative to the strength of its muscles.
    """
    report = actuation_report(path.model, path.at(np.array([0.5]))[0])
    strength = np.maximum(np.maximum(report.positive, -report.negative), MIN_STRENGTH)
    values = YIELD * (REFERENCE_STRENGTH / strength) ** 2
    return dict(zip(report.coordinate, values.tolist(), strict=True))


def pushup_run(
    path: PushupPath, *, model: Model | None = None, seconds: float, step: float, muscles: bool = True,
    record_every: int = 1,
) -> PushupRun:  # fmt: skip
    """Simulate push-ups along a path, from the top; `model` may carry more than that of the path."""
    body = path.model if model is None else model
    targets = pushup_targets(path, PERIOD, body)
    start = dict(zip((c.name for c in path.model.coordinates), path.at(np.zeros(1))[0].tolist(), strict=True))
    begun = process_time()
    data = track_targets(
        body, make_controls(targets, GAINS), duration=seconds, step=step, initial_coordinates=start,
        contact_compliance=compliances(path), actuation=actuation(body) if muscles else None,
        record_every=record_every,
    )  # fmt: skip
    return PushupRun(data, seconds, process_time() - begun)


def slips(data: Dataset) -> Array:
    """Return the largest distance [m] of each hand and foot from where it was, over the ground."""
    position = data["body_position"].sel(body=list(PLANTED)).values[:, :, :2]
    return np.asarray(np.linalg.norm(position - position[0], axis=2).max(axis=0))


def reserve_fraction(data: Dataset, model: Model) -> float:
    """Return the largest torque of muscles missing outside declared passive coordinates, relative to its peak.

    What is missing is unattained torque, and the sum of passive torques of each group.
    """
    names = [c.name for c in model.coordinates]
    peak = np.abs(data["required_torque"].values).max(axis=0)
    missing = np.abs(data["unattained_torque"].values).max(axis=0)
    reserve = data["reserve_torque"].values
    grouped = [name for group in actuation(model).passive_groups for name in group]
    largest = 0.0
    for i, name in enumerate(names):
        if name in passive_coordinates(model) or name.startswith("root_"):
            continue
        own = 0.0 if name in grouped else float(np.abs(reserve[:, i]).max())
        largest = max(largest, (float(missing[i]) + own) / max(float(peak[i]), 1e-9))
    for group in actuation(model).passive_groups:
        columns = [names.index(name) for name in group]
        total = np.abs(reserve[:, columns].sum(axis=1)).max()
        largest = max(largest, float(total) / float(peak[columns].max()))
    return largest
