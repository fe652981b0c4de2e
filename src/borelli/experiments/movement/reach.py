"""Reaching: cost of reaching for targets near and far, low and high.

After Liu, Cooper and Ballard, Fig. 6: a standing subject reaches for targets, ten times each, ranked by the time
integral of torque. Here the hand moves to the target and back on a minimum-jerk path, feet and (weakly) pelvis are
fixed, and the rest of the body follows by springs to the standing pose. Balance is not enforced, so torques come from
the Newton-Euler method with predicted ground reaction forces; what contact cannot supply is the residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.stepped_common import HEIGHT, MASS, RATE, torque_time_integral
from borelli.experiments.outcome import Claim, Outcome, Rows, above
from borelli.model.kinematics import marker_positions
from borelli.model.model import Model
from borelli.people.human import human
from borelli.recording.recording import Recording, make_dataset
from borelli.view.plot_style import BLUE, GREEN, ORANGE

Array = NDArray[np.float64]

DISTANCES = (0.4, 0.65, 0.9)
"""Horizontal distances of the target from the right shoulder of the standing body [m]."""
HEIGHTS = (0.6, 1.1, 1.6)
"""Heights of the target above the ground [m]."""
TRIALS = 10
TARGET_SD = 0.02
"""Standard deviation of the target between trials, along each axis [m]."""
SECONDS = 2.4
"""Duration of a trial [s]: rest, reach, rest, return, rest."""
HAND, PELVIS, FEET = 1000.0, 30.0, 1000.0
"""Stiffness of the markers that drive the pose [N/m]."""
HAND_MARKER = "RFIN"
PELVIS_MARKERS = ("LFWT", "RFWT", "LBWT", "RBWT")
FOOT_MARKERS = ("LHEE", "LTOE", "LMT5", "LANK", "RHEE", "RTOE", "RMT5", "RANK")
STIFFNESS = {"shoulder": 0.5, "elbow": 0.5, "clavicle": 5.0, "wrist": 5.0}
TRUNK_AND_LEGS = 20.0
"""Stiffness of the springs to the standing pose [N m/rad]: the arm moves first, the trunk once it is extended."""
SOFT_KNEES = {"hip_flexion": 0.15, "knee_flexion": 0.3, "ankle_flexion": 0.15, "elbow_flexion": 0.3}
STANDING_POSE = {f"{name}_{side}": angle for side in "lr" for name, angle in SOFT_KNEES.items()}
"""Angles [rad]."""


def run(request: Request) -> Outcome:
    """Compute the cost of reaching for each target."""
    trials, distances, heights = (1, DISTANCES[::2], HEIGHTS[1:]) if request.quick else (TRIALS, DISTANCES, HEIGHTS)
    model = human(MASS, HEIGHT, markers="cmu41")
    rows: list[dict[str, Any]] = []
    for number, (distance, height) in enumerate(product(distances, heights)):
        request.log(f"target {number + 1}: {distance:g} m away, {height:g} m high")
        costs, residuals, errors = [], [], []
        for trial in range(trials):
            random = np.random.default_rng((number, trial))
            target = np.array([distance, -0.18, height]) + random.normal(0.0, TARGET_SD, 3)
            motion, error = reach_motion(model, target)
            torques = inverse_dynamics(motion, forces="predicted")
            costs.append(torque_time_integral(torques))
            residuals.append(torques.residual_moment_rms)
            errors.append(error)
        spread = float(np.std(costs, ddof=1) / np.sqrt(trials)) if trials > 1 else float("nan")
        rows.append({
            "target": number + 1, "distance_m": distance, "height_m": height, "trials": trials,
            "torque_time_integral_nms": float(np.mean(costs)), "torque_time_integral_nms_se": spread,
            "hand_from_target_m": float(np.mean(errors)), "residual_moment_rms_nm": float(np.mean(residuals)),
        })  # fmt: skip
    _draw(rows, distances, heights, request.plot)
    about = (
        f"synthetic reaches of a human of {MASS:g} kg, {trials} trials per target, time integral of torque over "
        f"{SECONDS:g} s, predicted ground reaction forces, standard deviation of targets {1e3 * TARGET_SD:g} mm"
    )
    return Outcome(request.name, about, rows, _claims(rows, distances, heights), (request.plot,))


def reach_motion(model: Model, target: Array) -> tuple[Motion, float]:
    """Return a reach to a target [m] and back, and the distance between hand and target [m]."""
    time = np.arange(int(SECONDS * RATE)) / RATE
    names = [marker.name for marker in model.markers]
    standing, upright = (
        marker_positions(model, [[pose.get(c.name, c.default) for c in model.coordinates]])[0]
        for pose in (STANDING_POSE, {})
    )
    # bent knees let the feet rise: back to the ground
    feet = [names.index(name) for name in FOOT_MARKERS]
    standing[:, 2] -= standing[feet, 2].mean() - float(upright[feet, 2].mean())
    points = np.tile(standing, (len(time), 1, 1))
    hand = names.index(HAND_MARKER)
    share = _minimum_jerk(time, 0.3, 1.0) - _minimum_jerk(time, 1.3, 2.0)
    points[:, hand] += share[:, None] * (target - standing[hand])
    weights = {HAND_MARKER: HAND} | dict.fromkeys(PELVIS_MARKERS, PELVIS) | dict.fromkeys(FOOT_MARKERS, FEET)
    data = make_dataset({"marker_position": points}, {"marker": names}, rate=RATE)
    joints = [c.name for c in model.coordinates if not c.name.startswith("root_")]
    stiffness = {name: STIFFNESS.get(name.split("_")[0], TRUNK_AND_LEGS) for name in joints}
    motion = inverse_kinematics(
        model, Recording(data, "synthetic reach"), weights=weights, pose_stiffness=stiffness, rest=STANDING_POSE
    )
    return motion, float(motion.data["marker_error"].sel(marker=HAND_MARKER).values[int(1.15 * RATE)])


def _minimum_jerk(time: Array, start: float, end: float) -> Array:
    """Return the minimum-jerk transition from 0 to 1 (Flash and Hogan 1985)."""
    s = np.clip((time - start) / (end - start), 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def _claims(rows: Rows, distances: Sequence[float], heights: Sequence[float]) -> list[Claim]:
    cost = {(row["distance_m"], row["height_m"]): row["torque_time_integral_nms"] for row in rows}
    farther = min(cost[b, h] - cost[a, h] for a, b in pairwise(distances) for h in heights)
    claims = [above("cost rises with distance at every height: smallest rise [N m s]", farther, "rises", 0.0)]
    if len(heights) > 2:
        cheapest = min(heights, key=lambda h: float(np.mean([cost[d, h] for d in distances])))
        claims.append(
            Claim("cheapest height, mean over distances [m]", cheapest, "middle: neither crouching nor stretching",
                  f"{heights[1]:g}, the second of three", cheapest == heights[1])
        )  # fmt: skip
    else:
        higher = min(cost[distances[-1], b] - cost[distances[-1], a] for a, b in pairwise(heights))
        claims.append(above("far targets: rise with height [N m s]", higher, "rises", 0.0))
    return claims


def _draw(rows: Rows, distances: Sequence[float], heights: Sequence[float], path: Path) -> None:
    label, xlabel = "time integral of torque [N m s]", "distance of the target [m]"
    with figure(path, label, size=(6.5, 3.8), xlabel=xlabel) as (ax,):
        for height, color in zip(heights, (GREEN, BLUE, ORANGE), strict=False):
            own = [row for row in rows if row["height_m"] == height]
            distance, cost, spread = (
                [row[key] for row in own]
                for key in ("distance_m", "torque_time_integral_nms", "torque_time_integral_nms_se")
            )
            ax.errorbar(distance, cost, np.nan_to_num(spread), color=color, marker="o", label=f"{height:g} m high")
        ax.set(xticks=list(distances))
