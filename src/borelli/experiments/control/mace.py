"""Skeleton that swings a mace: 118 controlled degrees of freedom, and a chain of uncontrolled ball joints.

After Weinstein, Guendelman and Fedkiw, Fig. 9. The arm tracks functions of time, all other joints keep their pose, the
pelvis is fixed. The arm moves as it does without a mace: only its torques differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.controls import make_controls
from borelli.control.example_motions import FIST
from borelli.control.response import PD
from borelli.control.targets import Targets, targets_from_functions
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import COLORS, IMPULSE, METHODS, STABLE
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, Rows, above, below
from borelli.model.mechanisms import with_mace
from borelli.model.model import Frame, Model
from borelli.people.full_skeleton import full_skeleton
from borelli.view.panels import View
from borelli.view.plot_style import INK

GAINS = PD(100.0)
STEP, SECONDS = 1 / 240, 4.0
ARM_RATE = 2.0 * pi * 1.1
"""Angular velocity of the circling arm [rad/s]."""
GRIP = Frame((-0.05, 0.0, -0.07))
"""Pose of the handle in the hand; it points forward from the fist."""
GRIP_ANGLES = {f"{finger}_{part}_r": angle for finger, parts in FIST.items() for part, angle in parts.items()}
"""Angles of the fingers around the handle [rad]."""
ARM = ("shoulder_flexion_r", "shoulder_adduction_r", "elbow_flexion_r", "elbow_pronation_r", "T12_L1_rotation")


def fixed_pelvis_skeleton() -> Model:
    """Return the skeleton with its pelvis fixed and no ground."""
    model = full_skeleton()
    root = replace(model.joints[0], coordinates=tuple(replace(c, locked=True) for c in model.joints[0].coordinates))
    return replace(model, joints=(root, *model.joints[1:]), ground=())


def swing(model: Model) -> Targets:
    """Return targets of all joints: one arm circles overhead, the trunk rotates with it, a fist, the rest constant."""

    def rising(t: float, size: float) -> float:
        """Return a minimum-jerk rise from 0 to `size` [rad] within the first second."""
        s = min(t, 1.0)
        return size * s**3 * (10.0 - 15.0 * s + 6.0 * s * s)

    def always(angle: float) -> Callable[[float], float]:
        return lambda _: angle

    moving: dict[str, Callable[[float], float]] = {
        "shoulder_flexion_r": lambda t: rising(t, 2.1) + rising(t, 0.35) * sin(ARM_RATE * t),
        "shoulder_adduction_r": lambda t: rising(t, -0.3) + rising(t, 0.35) * cos(ARM_RATE * t),
        "elbow_flexion_r": lambda t: 0.3 + rising(t, 0.4) + rising(t, 0.2) * cos(ARM_RATE * t),
        "elbow_pronation_r": lambda t: rising(t, 0.3) * sin(ARM_RATE * t),
        "T12_L1_rotation": lambda t: rising(t, 0.04) * sin(ARM_RATE * t),
    }
    constant = {
        c.name: always(GRIP_ANGLES.get(c.name, c.default))
        for joint in model.joints
        for c in joint.coordinates
        if not c.locked and not joint.name.startswith("mace")
    }
    return targets_from_functions(model, constant | moving)


def swing_run(model: Model, name: str, seconds: float) -> Dataset:
    """Simulate the swing with controls of all joints except those of the mace."""
    controls = make_controls(swing(model), GAINS)
    return track_targets(model, controls, duration=seconds, step=STEP, method=METHODS[name])


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 0.2 if request.quick else SECONDS
    bare = fixed_pelvis_skeleton()
    armed = with_mace(bare, "hand_r", at=GRIP)
    runs = {}
    for name in (IMPULSE, STABLE):
        request.log(f"with the mace, {name}")
        runs[name] = swing_run(armed, name, seconds)
    request.log("without the mace")
    without = swing_run(bare, IMPULSE, seconds)
    rows = [{"method": name, "mace": "in the hand", **_metrics(data, without)} for name, data in runs.items()]
    rows.append({"method": IMPULSE, "mace": "none", **_metrics(without, without)})
    _draw(runs, without, request.plot)
    times = np.linspace(0.0, SECONDS, 9)[1:]
    files = draw_runs(request, runs, tuple(times), view=View(width=280, height=380, azimuth=-35.0, elevation=6.0))
    about = (
        f"a skeleton of {len(bare.joints) - 1} joints and {_controlled(without).sum()} controlled coordinates, pelvis "
        f"fixed, swings a mace of {len(armed.joints) - len(bare.joints)} joints, {seconds:g} s in steps of 1/240 s, "
        f"stiffness {GAINS.stiffness:g} 1/s^2, critical damping"
    )
    return Outcome(request.name, about, rows, _claims(rows, request.quick), (request.plot, *files))


def _controlled(data: Dataset) -> Any:
    return np.isfinite(data["coordinate_target"].values[0])


def _metrics(data: Dataset, without: Dataset) -> dict[str, float]:
    names = without["coordinate"].values[_controlled(without)]
    value, target = (data[name].sel(coordinate=names).values for name in ("coordinate_value", "coordinate_target"))
    heads = data["body_position"].sel(body=[n for n in data["body"].values if n == "mace_head"]).values
    free = [n for n in data["coordinate"].values if str(n).startswith("mace")]
    return {
        "largest_error_rad": float(np.abs(value - target).max()),
        "from_without_mace_rad": float(np.abs(value - without["coordinate_value"].sel(coordinate=names).values).max()),
        "arm_torque_time_integral_nms": float(np.abs(data["torque"].sel(coordinate=list(ARM)).values).sum() * STEP),
        "force_on_free_joints": float(np.abs(data["torque"].sel(coordinate=free).values).max(initial=0.0)),
        "head_speed_max_m_s": float(np.linalg.norm(np.diff(heads, axis=0), axis=2).max(initial=0.0) / STEP),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Rows, quick: bool) -> list[Claim]:
    impulse, stable, without = rows
    ratio = impulse["arm_torque_time_integral_nms"] / without["arm_torque_time_integral_nms"]
    claims = [
        below("impulse-based PD: largest error of a controlled joint [rad]", impulse["largest_error_rad"],
              "follows its targets", 1e-9, "0: starts on them"),
        below("impulse-based PD: difference from the motion without the mace [rad]", impulse["from_without_mace_rad"],
              NOT_GIVEN, 1e-9, "0"),
        Claim("force on the mace's joints [N m]", impulse["force_on_free_joints"], "free",
              "0", impulse["force_on_free_joints"] == 0.0),
        below("largest joint gap [m]", impulse["joint_gap_m"], NOT_GIVEN, 1e-9),
        above("time integral of arm torque, with over without the mace", ratio, "larger", 1.02),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        above("maximum speed of the mace head [m/s]", impulse["head_speed_max_m_s"], "swings", 3.0),
        above("stable PD: largest error [rad]", stable["largest_error_rad"], "sags and lags", 0.05),
    ]


def _draw(runs: Mapping[str, Dataset], without: Dataset, path: Path) -> None:
    labels = "flexion of the right shoulder [deg]", "torque of the right shoulder [N m]", "height of the mace head [m]"
    shoulder = {"coordinate": ARM[0]}
    with figure(path, *labels, size=(12.0, 4.0)) as (angle, torque, head):
        for name, data in runs.items():
            color, time = COLORS[name], data["time"].values
            angle.plot(time, np.degrees(data["coordinate_value"].sel(shoulder).values), color=color, label=name)
            torque.plot(time[1:], data["torque"].sel(shoulder).values[1:], color=color, label=name)
            position = data["body_position"].sel(body="mace_head").values
            head.plot(position[:, 1], position[:, 2], color=color, lw=0.8, label=name)
        time = without["time"].values
        angle.plot(time, np.degrees(without["coordinate_target"].sel(shoulder).values), ":", color=INK, label="target")
        torque.plot(time[1:], without["torque"].sel(shoulder).values[1:], ":", color=INK, label=f"{IMPULSE}, no mace")
        head.set(xlabel="lateral position of the mace head [m]", aspect="equal")
