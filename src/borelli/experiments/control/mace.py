"""A skeleton that swings a mace: 118 controlled degrees of freedom, and a chain of point joints that nothing controls.

After Weinstein, Guendelman and Fedkiw, Fig. 9. The arm follows functions of time, all other joints keep their pose, the
pelvis is held. The mace does what it must, and the arm goes where it goes without one: what differs is the effort.
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
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import METHODS, OURS, STABLE
from borelli.experiments.movement.stepped_common import BLUE, GREEN, INK, tidy
from borelli.model.mechanisms import with_mace
from borelli.model.model import Frame, Model
from borelli.model.people.full_skeleton import full_skeleton
from borelli.view.panels import View

if TYPE_CHECKING:
    from xarray import Dataset

GAINS = PD(100.0)
STEP, SECONDS = 1 / 240, 4.0
TURN = 2.0 * pi * 1.1
"""How fast the arm circles [rad/s]."""
GRIP = Frame((-0.05, 0.0, -0.07))
"""Where the handle begins, in the hand: it goes forward from the fist."""
HOLDING = {f"{finger}_{part}_r": angle for finger, parts in FIST.items() for part, angle in parts.items()}
"""Angles of the fingers that hold it [rad]."""
ARM = ("shoulder_flexion_r", "shoulder_adduction_r", "elbow_flexion_r", "elbow_pronation_r", "T12_L1_rotation")


def standing_skeleton() -> Model:
    """The skeleton with its pelvis held in the air, so that nothing but its own weight acts on it."""
    model = full_skeleton()
    root = replace(model.joints[0], coordinates=tuple(replace(c, locked=True) for c in model.joints[0].coordinates))
    return replace(model, joints=(root, *model.joints[1:]), ground=())


def swing(model: Model) -> Targets:
    """Of all joints of the skeleton: an arm circles overhead, the trunk turns with it, a fist, the rest still."""

    def rising(t: float, size: float) -> float:
        """From nought to a size [rad] within the first second."""
        s = min(t, 1.0)
        return size * s**3 * (10.0 - 15.0 * s + 6.0 * s * s)

    moving: dict[str, Callable[[float], float]] = {
        "shoulder_flexion_r": lambda t: rising(t, 2.1) + rising(t, 0.35) * sin(TURN * t),
        "shoulder_adduction_r": lambda t: rising(t, -0.3) + rising(t, 0.35) * cos(TURN * t),
        "elbow_flexion_r": lambda t: 0.3 + rising(t, 0.4) + rising(t, 0.2) * cos(TURN * t),
        "elbow_pronation_r": lambda t: rising(t, 0.3) * sin(TURN * t),
        "T12_L1_rotation": lambda t: rising(t, 0.04) * sin(TURN * t),
    }
    still = {
        c.name: HOLDING.get(c.name, c.default)
        for joint in model.joints
        for c in joint.coordinates
        if not c.locked and not joint.name.startswith("mace")
    }
    return targets_from_functions(model, {name: moving.get(name, _always(value)) for name, value in still.items()})


def _always(value: float) -> Callable[[float], float]:
    return lambda t: value


def swing_controls(model: Model) -> tuple[Control, ...]:
    """The mace's joints are left alone."""
    return make_controls(swing(model), GAINS)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    seconds = 0.2 if quick else SECONDS
    bare = standing_skeleton()
    armed = with_mace(bare, "hand_r", at=GRIP)
    runs = {}
    for name, method in ((OURS, "impulse"), (STABLE, "stable")):
        say(f"with the mace, {name}")
        runs[name] = track_targets(
            armed, swing_controls(armed), duration=seconds, step=STEP, method=METHODS.get(name, method)
        )
    say("without the mace")
    alone = track_targets(bare, swing_controls(bare), duration=seconds, step=STEP)
    rows = [{"method": name, "mace": "in the hand", **_figures(data, alone)} for name, data in runs.items()]
    rows.append({"method": OURS, "mace": "none", **_figures(alone, alone)})
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "mace.png"
    _draw(runs, alone, plot)
    say("drawing")
    times = np.linspace(0.0, SECONDS, 9)[1:]
    files = draw_runs(
        runs, out, "mace", tuple(times), quick=quick, view=View(width=280, height=380, azimuth=-35.0, elevation=6.0)
    )
    about = (
        f"a skeleton of {len(bare.joints) - 1} joints and {_controlled(alone).sum()} controlled coordinates, pelvis "
        f"held, swings a mace of {len(armed.joints) - len(bare.joints)} joints, {seconds:g} s in steps of 1/240 s, "
        f"stiffness {GAINS.stiffness:g} 1/s^2, critical damping"
    )
    return write_outcome(Outcome("mace", about, rows, _claims(rows, quick), (plot, *files)), out)


def _controlled(data: Dataset) -> Any:
    return np.isfinite(data["coordinate_target"].values[0])


def _figures(data: Dataset, alone: Dataset) -> dict[str, float]:
    names = alone["coordinate"].values[_controlled(alone)]
    value, target = (data[what].sel(coordinate=names).values for what in ("value", "target"))
    head = data["body_position"].sel(body="mace_head").values if "mace_head" in data["body"].values else None
    free = [n for n in data["coordinate"].values if str(n).startswith("mace")]
    return {
        "largest_error_rad": float(np.abs(value - target).max()),
        "from_without_mace_rad": float(np.abs(value - alone["coordinate_value"].sel(coordinate=names).values).max()),
        "effort_of_arm_nms": float(np.abs(data["torque"].sel(coordinate=list(ARM)).values).sum() * STEP),
        "force_on_free_joints": float(np.abs(data["torque"].sel(coordinate=free).values).max(initial=0.0)),
        "head_fastest_m_s": 0.0 if head is None else float(np.linalg.norm(np.diff(head, axis=0), axis=1).max() / STEP),
        "joint_gap_m": float(data["joint_gap"].values.max()),
    }


def _claims(rows: Sequence[Mapping[str, Any]], quick: bool) -> list[Claim]:
    ours, springs, none = rows
    more = ours["effort_of_arm_nms"] / none["effort_of_arm_nms"]
    claims = [
        Claim("ours: largest error of a controlled joint [rad]", ours["largest_error_rad"], "0: starts on its targets",
              ours["largest_error_rad"] < 1e-9),
        Claim("ours: from the motion without the mace [rad]", ours["from_without_mace_rad"], "0",
              ours["from_without_mace_rad"] < 1e-9),
        Claim("force on the mace's joints [N m]", ours["force_on_free_joints"], "0: free",
              ours["force_on_free_joints"] == 0.0),
        Claim("widest gap of a joint [m]", ours["joint_gap_m"], "joints hold", ours["joint_gap_m"] < 1e-9),
        Claim("effort of the arm, with the mace against without", more, "more", more > 1.02),
    ]  # fmt: skip
    if quick:
        return claims
    return [
        *claims,
        Claim("the mace's head, fastest [m/s]", ours["head_fastest_m_s"], "swings", ours["head_fastest_m_s"] > 3.0),
        Claim("stable PD: largest error [rad]", springs["largest_error_rad"], "sags and lags",
              springs["largest_error_rad"] > 0.05),
    ]  # fmt: skip


def _draw(runs: Mapping[str, Dataset], alone: Dataset, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    angle, torque, head = figure.subplots(1, 3)
    shoulder = {"coordinate": ARM[0]}
    for name, data in runs.items():
        color, time = {OURS: BLUE, STABLE: GREEN}[name], data["time"].values
        angle.plot(time, np.degrees(data["coordinate_value"].sel(shoulder).values), color=color, label=name)
        torque.plot(time[1:], data["torque"].sel(shoulder).values[1:], color=color, label=name)
        place = data["body_position"].sel(body="mace_head").values
        head.plot(place[:, 1], place[:, 2], color=color, lw=0.8, label=name)
    time = alone["time"].values
    angle.plot(time, np.degrees(alone["coordinate_target"].sel(shoulder).values), ":", color=INK, label="target")
    torque.plot(time[1:], alone["torque"].sel(shoulder).values[1:], ":", color=INK, label=f"{OURS}, no mace")
    angle.set(xlabel="time [s]", ylabel="flexion of the right shoulder [deg]")
    torque.set(xlabel="time [s]", ylabel="its torque [N m]")
    head.set(xlabel="left [m]", ylabel="height of the mace's head, seen from the front [m]", aspect="equal")
    for ax in (angle, torque, head):
        ax.legend(frameon=False, fontsize=8)
    tidy([angle, torque, head])
    figure.savefig(path, dpi=130)
