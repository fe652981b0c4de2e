"""Skeleton that swings a mace: 118 controlled degrees of freedom, and a chain of uncontrolled ball joints.

After Weinstein, Guendelman and Fedkiw, Fig. 9. The arm tracks functions of time, all other joints keep their pose, the
pelvis is fixed. The arm moves as it does without a mace: only its torques differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.control.controls import Control, make_controls
from borelli.control.example_motions import FIST
from borelli.control.response import PD
from borelli.control.targets import Targets, targets_from_functions
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.planks import IMPULSE, METHODS, STABLE
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.mechanisms import with_mace
from borelli.model.model import Frame, Model
from borelli.model.people.full_skeleton import full_skeleton
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, GREEN, INK, style_axes

if TYPE_CHECKING:
    from xarray import Dataset

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

    moving: dict[str, Callable[[float], float]] = {
        "shoulder_flexion_r": lambda t: rising(t, 2.1) + rising(t, 0.35) * sin(ARM_RATE * t),
        "shoulder_adduction_r": lambda t: rising(t, -0.3) + rising(t, 0.35) * cos(ARM_RATE * t),
        "elbow_flexion_r": lambda t: 0.3 + rising(t, 0.4) + rising(t, 0.2) * cos(ARM_RATE * t),
        "elbow_pronation_r": lambda t: rising(t, 0.3) * sin(ARM_RATE * t),
        "T12_L1_rotation": lambda t: rising(t, 0.04) * sin(ARM_RATE * t),
    }
    constant = {
        c.name: GRIP_ANGLES.get(c.name, c.default)
        for joint in model.joints
        for c in joint.coordinates
        if not c.locked and not joint.name.startswith("mace")
    }
    return targets_from_functions(model, {name: moving.get(name, _always(value)) for name, value in constant.items()})


def _always(value: float) -> Callable[[float], float]:
    return lambda t: value


def swing_controls(model: Model) -> tuple[Control, ...]:
    """Return controls of all joints except those of the mace."""
    return make_controls(swing(model), GAINS)


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    seconds = 0.2 if quick else SECONDS
    bare = fixed_pelvis_skeleton()
    armed = with_mace(bare, "hand_r", at=GRIP)
    runs = {}
    for name, method in ((IMPULSE, "impulse"), (STABLE, "stable")):
        log(f"with the mace, {name}")
        runs[name] = track_targets(
            armed, swing_controls(armed), duration=seconds, step=STEP, method=METHODS.get(name, method)
        )
    log("without the mace")
    without = track_targets(bare, swing_controls(bare), duration=seconds, step=STEP)
    rows = [{"method": name, "mace": "in the hand", **_metrics(data, without)} for name, data in runs.items()]
    rows.append({"method": IMPULSE, "mace": "none", **_metrics(without, without)})
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "mace.png"
    _draw(runs, without, plot)
    log("drawing")
    times = np.linspace(0.0, SECONDS, 9)[1:]
    files = draw_runs(
        runs, out, "mace", tuple(times), quick=quick, view=View(width=280, height=380, azimuth=-35.0, elevation=6.0)
    )
    about = (
        f"a skeleton of {len(bare.joints) - 1} joints and {_controlled(without).sum()} controlled coordinates, pelvis "
        f"fixed, swings a mace of {len(armed.joints) - len(bare.joints)} joints, {seconds:g} s in steps of 1/240 s, "
        f"stiffness {GAINS.stiffness:g} 1/s^2, critical damping"
    )
    return write_outcome(Outcome("mace", about, rows, _claims(rows, quick), (plot, *files)), out)


def _controlled(data: Dataset) -> Any:
    return np.isfinite(data["coordinate_target"].values[0])


def _metrics(data: Dataset, without: Dataset) -> dict[str, float]:
    names = without["coordinate"].values[_controlled(without)]
    value, target = (data[name].sel(coordinate=names).values for name in ("coordinate_value", "coordinate_target"))
    head = data["body_position"].sel(body="mace_head").values if "mace_head" in data["body"].values else None
    free = [n for n in data["coordinate"].values if str(n).startswith("mace")]
    return {
        "largest_error_rad": float(np.abs(value - target).max()),
        "from_without_mace_rad": float(np.abs(value - without["coordinate_value"].sel(coordinate=names).values).max()),
        "arm_torque_time_integral_nms": float(np.abs(data["torque"].sel(coordinate=list(ARM)).values).sum() * STEP),
        "force_on_free_joints": float(np.abs(data["torque"].sel(coordinate=free).values).max(initial=0.0)),
        "head_speed_max_m_s": 0.0
        if head is None
        else float(np.linalg.norm(np.diff(head, axis=0), axis=1).max() / STEP),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    impulse, stable, without = rows
    ratio = impulse["arm_torque_time_integral_nms"] / without["arm_torque_time_integral_nms"]
    claims = [
        Claim("impulse-based PD: largest error of a controlled joint [rad]", impulse["largest_error_rad"],
              "0: starts on its targets",
              impulse["largest_error_rad"] < 1e-9),
        Claim("impulse-based PD: difference from the motion without the mace [rad]", impulse["from_without_mace_rad"],
              "0",
              impulse["from_without_mace_rad"] < 1e-9),
        Claim("force on the mace's joints [N m]", impulse["force_on_free_joints"], "0: free",
              impulse["force_on_free_joints"] == 0.0),
        Claim("largest joint gap [m]", impulse["joint_gap_m"], "joints closed", impulse["joint_gap_m"] < 1e-9),
        Claim("time integral of arm torque, with over without the mace", ratio, "larger", ratio > 1.02),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        Claim("maximum speed of the mace head [m/s]", impulse["head_speed_max_m_s"], "swings",
              impulse["head_speed_max_m_s"] > 3.0),
        Claim("stable PD: largest error [rad]", stable["largest_error_rad"], "sags and lags",
              stable["largest_error_rad"] > 0.05),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], without: Dataset, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    angle, torque, head = figure.subplots(1, 3)
    shoulder = {"coordinate": ARM[0]}
    for name, data in runs.items():
        color, time = {IMPULSE: BLUE, STABLE: GREEN}[name], data["time"].values
        angle.plot(time, np.degrees(data["coordinate_value"].sel(shoulder).values), color=color, label=name)
        torque.plot(time[1:], data["torque"].sel(shoulder).values[1:], color=color, label=name)
        position = data["body_position"].sel(body="mace_head").values
        head.plot(position[:, 1], position[:, 2], color=color, lw=0.8, label=name)
    time = without["time"].values
    angle.plot(time, np.degrees(without["coordinate_target"].sel(shoulder).values), ":", color=INK, label="target")
    torque.plot(time[1:], without["torque"].sel(shoulder).values[1:], ":", color=INK, label=f"{IMPULSE}, no mace")
    angle.set(xlabel="time [s]", ylabel="flexion of the right shoulder [deg]")
    torque.set(xlabel="time [s]", ylabel="torque of the right shoulder [N m]")
    head.set(xlabel="lateral position of the mace head [m]", ylabel="height of the mace head [m]", aspect="equal")
    for ax in (angle, torque, head):
        ax.legend(frameon=False, fontsize=8)
    style_axes([angle, torque, head])
    figure.savefig(path, dpi=130)
