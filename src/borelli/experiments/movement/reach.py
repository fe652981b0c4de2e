"""The reaching experiment: what it costs to touch targets near and far, low and high.

After Liu, Cooper and Ballard, Fig. 6: a standing body reaches for targets, ten times each, and the integrated torque
ranks them. Here the hand goes to the target and back on a path of least jerk, feet and (weakly) pelvis stay, and the
rest of the body follows as its springs to the standing pose let it. Nobody makes it keep its balance, so torques are
those of the smooth method, with the ground forces that the motion needs; what the ground cannot give is the residual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import inverse_dynamics
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.movement.stepped_common import BLUE, GREEN, HEIGHT, MASS, ORANGE, RATE, effort, tidy
from borelli.model.kinematics import marker_positions
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.recording.recording import Recording, make_dataset

Array = NDArray[np.float64]

DISTANCES = (0.4, 0.65, 0.9)
"""[m] of the target before the right shoulder's standing place, horizontally."""
HEIGHTS = (0.6, 1.1, 1.6)
"""[m] above the ground."""
TRIALS = 10
SPREAD = 0.02
"""[m] by which the hand of one trial ends elsewhere than that of another, standard deviation along each axis."""
SECONDS = 2.4
"""Of a trial: still, there, still, back, still."""
HAND, PELVIS, FEET = 1000.0, 30.0, 1000.0
"""[N/m] of the markers that lead the pose."""
HELD = {"hand": ("RFIN",), "pelvis": ("LFWT", "RFWT", "LBWT", "RBWT")}
FOOT_MARKERS = ("LHEE", "LTOE", "LMT5", "LANK", "RHEE", "RTOE", "RMT5", "RANK")


STIFFNESS = {"shoulder": 0.5, "elbow": 0.5, "clavicle": 5.0, "wrist": 5.0}
TRUNK_AND_LEGS = 20.0
"""[N m/rad] of the springs to the standing pose: the arm reaches first, the body when the arm is out."""
SOFT_KNEES = {"hip_flexion": 0.15, "knee_flexion": 0.3, "ankle_flexion": 0.15, "elbow_flexion": 0.3}
STANDING = {f"{name}_{side}": angle for side in "lr" for name, angle in SOFT_KNEES.items()}
"""[rad]"""


def reach_experiment(
    out: Path,
    *,
    trials: int = TRIALS,
    distances: Sequence[float] = DISTANCES,
    heights: Sequence[float] = HEIGHTS,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """The cost of reaching, by target.

    Args:
        out: Folder for the table and the picture.
        trials: Of each target.
        distances: Of the targets [m].
        heights: Of the targets [m].
        say: Told what is being done.
    """
    model = human(MASS, HEIGHT, markers="cmu41")
    rows: list[dict[str, Any]] = []
    for number, (distance, height) in enumerate(product(distances, heights)):
        say(f"target {number + 1}: {distance:g} m away, {height:g} m high")
        costs, residuals, missed = [], [], []
        for trial in range(trials):
            chance = np.random.default_rng((number, trial))
            target = _target(distance, height) + chance.normal(0.0, SPREAD, 3)
            motion, miss = reach_motion(model, target)
            torques = inverse_dynamics(motion, forces="contacts")
            costs.append(effort(torques))
            residuals.append(torques.residual_moment_rms)
            missed.append(miss)
        spread = float(np.std(costs, ddof=1) / np.sqrt(trials)) if trials > 1 else float("nan")
        rows.append({
            "target": number + 1, "distance_m": distance, "height_m": height, "trials": trials,
            "effort_nms": float(np.mean(costs)), "effort_nms_se": spread,
            "hand_from_target_m": float(np.mean(missed)), "residual_moment_rms_nm": float(np.mean(residuals)),
        })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "reach.png"
    _draw(rows, distances, heights, picture)
    about = (
        f"synthetic reaches of a human of {MASS:g} kg, {trials} trials a target, integrated torque over {SECONDS:g} s, "
        f"ground forces from the motion, targets spread by {1e3 * SPREAD:g} mm"
    )
    return write_outcome(Outcome("reach", about, rows, _claims(rows, distances, heights), (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    if quick:
        return reach_experiment(out, trials=1, distances=DISTANCES[::2], heights=HEIGHTS[1:], say=say)
    return reach_experiment(out, say=say)


def reach_motion(model: Model, target: Array) -> tuple[Motion, float]:
    """A reach to a target [m] and back; how far the hand stays away from it [m]."""
    time = np.arange(int(SECONDS * RATE)) / RATE
    names = [marker.name for marker in model.markers]
    standing = marker_positions(model, [[STANDING.get(c.name, c.default) for c in model.coordinates]])[0]
    # bent knees let the feet rise: back to the ground
    standing[:, 2] -= standing[[names.index(name) for name in FOOT_MARKERS], 2].mean() - _foot_height(model, names)
    points = np.tile(standing, (len(time), 1, 1))
    hand = names.index(HELD["hand"][0])
    share = _least_jerk(time, 0.3, 1.0) - _least_jerk(time, 1.3, 2.0)
    points[:, hand] += share[:, None] * (target - standing[hand])
    weights = (
        dict.fromkeys(HELD["hand"], HAND) | dict.fromkeys(HELD["pelvis"], PELVIS) | dict.fromkeys(FOOT_MARKERS, FEET)
    )
    data = make_dataset({"marker_position": points}, {"marker": names}, rate=RATE)
    motion = inverse_kinematics(
        model, Recording(data, "synthetic reach"), weights=weights, pose_stiffness=_stiffness(model), rest=STANDING
    )
    there = motion.data["marker_error"].sel(marker=HELD["hand"][0]).values[int(1.15 * RATE)]
    return motion, float(there)


def _stiffness(model: Model) -> dict[str, float]:
    names = [c.name for c in model.coordinates if not c.name.startswith("root_")]
    return {name: STIFFNESS.get(name.split("_")[0], TRUNK_AND_LEGS) for name in names}


def _foot_height(model: Model, names: Sequence[str]) -> float:
    upright = marker_positions(model, [[c.default for c in model.coordinates]])[0]
    return float(upright[[names.index(name) for name in FOOT_MARKERS], 2].mean())


def _target(distance: float, height: float) -> Array:
    return np.array([distance, -0.18, height])


def _least_jerk(time: Array, start: float, stop: float) -> Array:
    """From 0 to 1 with the least jerk (Flash and Hogan 1985)."""
    s = np.clip((time - start) / (stop - start), 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def _claims(rows: Sequence[dict[str, Any]], distances: Sequence[float], heights: Sequence[float]) -> list[Claim]:
    cost = {(row["distance_m"], row["height_m"]): row["effort_nms"] for row in rows}
    farther = [cost[b, h] - cost[a, h] for a, b in pairwise(distances) for h in heights]
    claims = [
        Claim("cost rises with distance at every height: least rise [N m s]", float(min(farther)), "rises",
              min(farther) > 0.0),
    ]  # fmt: skip
    higher = [cost[distances[-1], b] - cost[distances[-1], a] for a, b in pairwise(heights)]
    means = {h: float(np.mean([cost[d, h] for d in distances])) for h in heights}
    cheapest = min(means, key=lambda h: means[h])
    if len(heights) > 2:
        claims.append(
            Claim("cheapest height, mean over distances [m]", cheapest, "the middle: neither crouch nor stretch",
                  cheapest == heights[1])
        )  # fmt: skip
    else:
        claims.append(Claim("far targets: rise with height [N m s]", float(min(higher)), "rises", min(higher) > 0.0))
    return claims


def _draw(rows: Sequence[dict[str, Any]], distances: Sequence[float], heights: Sequence[float], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for height, color in zip(heights, (GREEN, BLUE, ORANGE), strict=False):
        own = [row for row in rows if row["height_m"] == height]
        ax.errorbar(
            [row["distance_m"] for row in own], [row["effort_nms"] for row in own],
            np.nan_to_num([row["effort_nms_se"] for row in own]), color=color, marker="o", label=f"{height:g} m high",
        )  # fmt: skip
    ax.set(xlabel="distance of the target [m]", ylabel="integrated torque [N m s]", xticks=list(distances))
    ax.legend(frameon=False, fontsize=8)
    tidy(ax)
    figure.savefig(path, dpi=130)
