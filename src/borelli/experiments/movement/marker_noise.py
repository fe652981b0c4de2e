"""The noise experiment: a walk known exactly, its markers shaken, and how far the angles and torques found are off.

After Liu, Cooper and Ballard, Fig. 3 and 4: nine levels of Gaussian noise on every axis of every marker, twenty times
each, at 60 Hz. Errors are means of absolute errors over frames and joint coordinates. The root is left out, and so is
the ground: what the feet are given does not change how noise spreads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.framewise_ik import motion_from_coordinates, inverse_kinematics, make_ik_problem
from borelli.analysis.kinematics.trajectory_smoother import smooth_markers
from borelli.analysis.motion import Motion
from borelli.errors import BorelliError
from borelli.experiments.movement.analytic_walk import Walk, make_walk
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.kinematics import generalized_forces
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.recording.recording import Recording

Array = NDArray[np.float64]

LEVELS = (0.1e-3, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3)
"""[m]"""
REPEATS = 20
METHODS = ("framewise", "smoothed", "marker_driven")
PAPER_ANGLE = {1e-3: 0.02, 5e-3: 0.0175}
"""Noise [m]: mean error of angles [rad] as the paper states it, in its text and under its Fig. 3."""
PAPER_TORQUE = {1e-3: 3.0, 5e-3: 5.0}
"""[N m]; at 5 mm "between 5 and 10": the lower end is taken."""
MOVES = np.radians(5.0)
"""[rad] Coordinates that swing by more than this show a lag."""
SHOWN = ("knee_flexion_r", "hip_flexion_r")


@dataclass(frozen=True)
class Truth:
    """A motion whose every number is known."""

    walk: Walk
    torques: Array
    """(frames, coordinates) [N m or N]"""

    @property
    def joints(self) -> slice:
        """Columns of the coordinates of joints: all but the root's six."""
        return slice(6, None)


def noise_experiment(
    out: Path,
    levels: Sequence[float] = LEVELS,
    repeats: int = REPEATS,
    *,
    methods: Sequence[str] = METHODS,
    recording: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Angles and torques from markers with noise, beside the truth.

    Args:
        out: Folder for the table and the picture.
        levels: Standard deviations of the noise [m].
        repeats: How often at each level.
        methods: Ways of finding poses.
        recording: A walk to take the truth from; without it, a synthetic one.
        say: Told what is being done.
    """
    truth = _truth(recording)
    usable = [method for method in methods if method != "marker_driven" or _has_dynamic()]
    rows: list[dict[str, Any]] = []
    examples: dict[tuple[str, float], tuple[Array, Array]] = {}
    for k, level in enumerate(levels):
        for repeat in range(repeats):
            say(f"noise of {1e3 * level:g} mm, {repeat + 1} of {repeats}")
            shaken = truth.walk.record(level, seed=(k, repeat))
            for method in usable:
                row, found = _trial(truth, shaken, method)
                rows.append({"noise_mm": 1e3 * level, "repeat": repeat, "method": method, **row})
                if repeat == 0 and found is not None:
                    examples[method, level] = found
    summary = _summary(rows)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "noise.png"
    _draw(truth, summary, examples, picture)
    where = "a synthetic walk" if recording is None else f"a walk as the model follows {recording.name}"
    about = (
        f"{where}, {len(truth.walk.time)} frames at {truth.walk.rate:g} Hz; Gaussian noise on every marker axis, "
        f"{repeats} repeats a level; poses by {', '.join(usable)}; torques by inverse dynamics on coordinates "
        "low-passed at 6 Hz, no ground"
    )
    outcome = Outcome("noise", about, summary, _claims(summary, truth), (picture,))
    return write_outcome(outcome, out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    if quick:
        return noise_experiment(out, (1e-3, 8e-3), 1, recording=recording, say=say)
    return noise_experiment(out, recording=recording, say=say)


def _truth(recording: Path | None) -> Truth:
    walk = make_walk(human(75.0, 1.75, markers="cmu41")) if recording is None else _recorded(recording)
    return Truth(walk, generalized_forces(walk.model, walk.coordinates, walk.speeds, walk.accelerations))


def _recorded(path: Path) -> Walk:
    """The walk of a fitted model that follows a recording, low-passed, at 60 Hz: true by definition."""
    from borelli.analysis.fit.fit_model import fit_model
    from borelli.recording.clean import clean
    from borelli.recording.cleaning.filtering import resample
    from borelli.recording.io import read_recording

    recording = resample(clean(read_recording(path)), 60.0)
    fitted = fit_model(human(75.0, 1.75), [recording]).model
    motion = inverse_kinematics(fitted, recording, method="smoothed")
    curves = differentiate(motion)
    kept = {str(name) for name in motion.data["marker"].values}
    model = replace(fitted, markers=tuple(m for m in fitted.markers if m.name in kept))
    return Walk(model, curves.time, motion.rate, curves.coordinates, curves.speeds, curves.accelerations)


def _has_dynamic() -> bool:
    from importlib.util import find_spec

    return find_spec("borelli.analysis.stepped.marker_driven_ik") is not None


def _trial(truth: Truth, shaken: Recording, method: str) -> tuple[dict[str, float], tuple[Array, Array] | None]:
    """Errors, lag and time of one trial, and the coordinates and torques found; all not a number where it failed."""
    begun = time.process_time()
    try:
        motion = _follow(truth.walk.model, shaken, method)
        torques = _torques(motion)
    except BorelliError:
        nothing = dict.fromkeys(("angle_rad", "torque_nm", "lag_ms", "times_real_time"), float("nan"))
        return nothing, None
    seconds = time.process_time() - begun
    joints, q = truth.joints, motion.coordinates
    return {
        "angle_rad": float(np.abs(q[:, joints] - truth.walk.coordinates[:, joints]).mean()),
        "torque_nm": float(np.abs(torques[:, joints] - truth.torques[:, joints]).mean()),
        "lag_ms": lag(truth.walk, q),
        "times_real_time": len(q) / truth.walk.rate / seconds,
    }, (q, torques)


def _follow(model: Model, shaken: Recording, method: str) -> Motion:
    if method != "smoothed":
        return inverse_kinematics(model, shaken, method=method)
    problem = make_ik_problem(model, shaken)
    return motion_from_coordinates(problem, smooth_markers(problem, shaken)[0], shaken, method, ())


def _torques(motion: Motion) -> Array:
    curves = differentiate(motion)
    return generalized_forces(motion.model, curves.coordinates, curves.speeds, curves.accelerations)


def lag(walk: Walk, found: Array) -> float:
    """By how much [ms] coordinates found come after the true ones: the delay at which they agree best, in the median.

    The delay d minimises sum (found - true(t - d))^2; about zero it is that of one Newton step, refined until it stays.
    """
    true, speed = walk.coordinates, walk.speeds
    moving = [i for i in range(6, true.shape[1]) if np.ptp(true[:, i]) > MOVES]
    delays = []
    for i in moving:
        delay = 0.0
        for _ in range(8):
            at = walk.time - delay
            value = np.interp(at, walk.time, true[:, i])
            slope = np.interp(at, walk.time, speed[:, i])
            delay -= float(slope @ (found[:, i] - value) / (slope @ slope))
        delays.append(delay)
    return float(1e3 * np.median(delays))


def _summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard error of each level and method."""
    found = []
    for level, method in sorted({(row["noise_mm"], row["method"]) for row in rows}):
        same = [row for row in rows if (row["noise_mm"], row["method"]) == (level, method)]
        line: dict[str, Any] = {"noise_mm": level, "method": method, "repeats": len(same)}
        line["failed"] = sum(not np.isfinite(row["angle_rad"]) for row in same)
        for key in ("angle_rad", "torque_nm", "lag_ms"):
            values = np.array([row[key] for row in same])
            values = values[np.isfinite(values)]
            line[key] = float(values.mean()) if len(values) else float("nan")
            line[f"{key}_se"] = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
        speeds = np.array([row["times_real_time"] for row in same])
        line["times_real_time"] = float(np.median(speeds[np.isfinite(speeds)])) if line["failed"] < len(same) else 0.0
        found.append(line)
    return found


def paper_torque(noise_mm: float) -> tuple[float, str]:
    """The paper's mean error of torques [N m] at a level of noise, and how it is known.

    It states two figures; at other levels the straight line through them, both axes logarithmic, stands for it.
    """
    if noise_mm == 1.0:
        return PAPER_TORQUE[1e-3], ""
    low, high = PAPER_TORQUE[1e-3], PAPER_TORQUE[5e-3]
    return float(low * (high / low) ** (np.log(noise_mm) / np.log(5.0))), " (line through its 1 and 5 mm)"


def _claims(summary: Sequence[dict[str, Any]], truth: Truth) -> list[Claim]:
    claims = []
    frame = 1e3 / truth.walk.rate
    for line in summary:
        what, level = f"{line['method']}, {line['noise_mm']:g} mm", line["noise_mm"]
        if line["method"] == "marker_driven":
            continue
        if level == 1.0:
            claims.append(Claim(f"{what}: angles [rad]", line["angle_rad"], "0.02", line["angle_rad"] <= 0.02))
        if level <= 8.0:
            late = abs(line["lag_ms"]) < 0.1 * frame
            claims.append(Claim(f"{what}: lag [ms]", line["lag_ms"], f"none (a frame: {frame:.3g})", late))
        if line["method"] == "smoothed":
            paper, where = paper_torque(level)
            better = line["torque_nm"] < paper and not line["failed"]
            claims.append(Claim(f"{what}: torques [N m]", line["torque_nm"], f"{paper:.2g}{where}", better))
            speed = line["times_real_time"]
            claims.append(Claim(f"{what}: times real time (CPU)", speed, "1", speed >= 1.0))
    return claims


def _draw(truth: Truth, summary: Sequence[dict[str, Any]], examples: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    ink, colors = "#2b2f36", {"framewise": "#3f6fae", "smoothed": "#d9822b", "marker_driven": "#3a8f7d"}
    figure = Figure(figsize=(11.0, 7.5), layout="constrained")
    axes = figure.subplots(2, 3)
    panels = (("angle_rad", "mean error of angles [rad]"), ("torque_nm", "mean error of torques [N m]"))
    for ax, (key, label) in zip(axes[:, 0], panels, strict=True):
        for method, color in colors.items():
            lines = [line for line in summary if line["method"] == method]
            if lines:
                level = [line["noise_mm"] for line in lines]
                error, spread = ([line[k] for line in lines] for k in (key, f"{key}_se"))
                ax.errorbar(level, error, np.nan_to_num(spread), color=color, marker="o", markersize=3, label=method)
        stated = PAPER_ANGLE if key == "angle_rad" else PAPER_TORQUE
        ax.plot(
            [1e3 * noise for noise in stated], list(stated.values()), "x", color=ink, label="Liu, Cooper and Ballard"
        )
        ax.set(xscale="log", yscale="log", xlabel="noise [mm]", ylabel=label)
        ax.legend(frameon=False, fontsize=8)
    names = [c.name for c in truth.walk.model.coordinates]
    column = names.index(SHOWN[0])
    levels = sorted({level for _, level in examples})
    for ax, level in zip((axes[0, 1], axes[0, 2]), (levels[0], levels[-1]), strict=True):
        ax.plot(truth.walk.time, np.degrees(truth.walk.coordinates[:, column]), color=ink, label="truth")
        for method, color in colors.items():
            if (method, level) in examples:
                ax.plot(
                    truth.walk.time,
                    np.degrees(examples[method, level][0][:, column]),
                    color=color,
                    lw=0.9,
                    label=method,
                )
        ax.set(xlabel="time [s]", ylabel=f"{SHOWN[0]} [deg]", title=f"{1e3 * level:g} mm")
    column = names.index(SHOWN[1])
    middle = levels[len(levels) // 2]
    axes[1, 1].plot(truth.walk.time, truth.torques[:, column], color=ink, label="truth")
    for method, color in colors.items():
        if (method, middle) in examples:
            axes[1, 1].plot(truth.walk.time, examples[method, middle][1][:, column], color=color, lw=0.9)
    axes[1, 1].set(xlabel="time [s]", ylabel=f"{SHOWN[1]} torque [N m]", title=f"{1e3 * middle:g} mm")
    for method, color in colors.items():
        lines = [line for line in summary if line["method"] == method]
        if lines:
            axes[1, 2].plot(
                [li["noise_mm"] for li in lines], [li["lag_ms"] for li in lines], color=color, marker="o", ms=3
            )
    axes[1, 2].set(xscale="log", xlabel="noise [mm]", ylabel="lag [ms]")
    for ax in axes.flat:
        ax.grid(color="#e3e5e8", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
