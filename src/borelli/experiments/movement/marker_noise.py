"""Marker noise: errors of angles and torques of an exactly known walk with noise on its markers.

After Liu, Cooper and Ballard, Fig. 3 and 4: nine levels of Gaussian noise on every axis of every marker, twenty repeats
each, at 60 Hz. Errors are means of absolute errors over frames and joint coordinates. The root is excluded, and so is
the ground, which does not affect the propagation of noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.framewise_ik import make_ik_problem, motion_from_coordinates
from borelli.analysis.kinematics.trajectory_smoother import smooth_markers
from borelli.analysis.motion import Motion
from borelli.errors import BorelliError, SettingsError
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.analytic_walk import Walk, make_walk
from borelli.experiments.outcome import Claim, Outcome, Rows, near
from borelli.model.kinematics import generalized_forces
from borelli.model.model import Model
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.cleaning.filtering import resample
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

Array = NDArray[np.float64]

LEVELS = (0.1e-3, 0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3)
"""[m]"""
REPEATS = 20
METHODS = {"framewise": BLUE, "smoothed": ORANGE, "marker_driven": GREEN}
"""Inverse kinematics methods, and their colors in the plot."""
PAPER_ANGLE = {1e-3: 0.02, 5e-3: 0.0175}
"""Noise [m]: mean error of angles [rad] as stated in the text of the paper and in the caption of its Fig. 3."""
PAPER_TORQUE = {1e-3: 3.0, 5e-3: 5.0}
"""[N m]; "between 5 and 10" at 5 mm: the lower end is used."""
MIN_RANGE = np.radians(5.0)
"""Range of motion of coordinates whose lag is evaluated [rad]."""
MIN_RATE = 30.0
"""Frame rate [Hz] from which the motion at 60 Hz is that of the recording, and not of the interpolation."""
SHOWN = ("knee_flexion_r", "hip_flexion_r")
JOINTS = slice(6, None)
"""Columns of the joint coordinates: all but the six of the root."""


@dataclass(frozen=True)
class Truth:
    """Motion with exactly known torques."""

    walk: Walk
    torques: Array
    """(frames, coordinates) [N m or N]"""


def run(request: Request) -> Outcome:
    """Compare angles and torques from noisy markers with the ground truth."""
    levels, repeats = ((1e-3, 8e-3), 1) if request.quick else (LEVELS, REPEATS)
    truth = _truth(request.recording)
    rows: list[dict[str, Any]] = []
    examples: dict[tuple[str, float], tuple[Array, Array]] = {}
    for k, level in enumerate(levels):
        for repeat in range(repeats):
            request.log(f"noise of {1e3 * level:g} mm, {repeat + 1} of {repeats}")
            noisy = truth.walk.record(level, seed=(k, repeat))
            for method in METHODS:
                row, result = _trial(truth, noisy, method)
                rows.append({"noise_mm": 1e3 * level, "repeat": repeat, "method": method, **row})
                if repeat == 0 and result is not None:
                    examples[method, level] = result
    summary = _summary(rows)
    _draw(truth, summary, examples, request.plot)
    walk = "a synthetic walk"
    if request.recording is not None:
        walk = f"a walk from inverse kinematics of {request.recording.name}"
    about = (
        f"{walk}, {len(truth.walk.time)} frames at {truth.walk.rate:g} Hz; Gaussian noise on every marker axis, "
        f"{repeats} repeats per level; inverse kinematics {', '.join(METHODS)}; inverse dynamics of coordinates "
        "low-passed at 6 Hz, without ground reaction forces"
    )
    return Outcome(request.name, about, summary, _claims(summary, truth), (request.plot,))


def _truth(recording: Path | None) -> Truth:
    walk = make_walk(human(75.0, 1.75, markers="cmu41")) if recording is None else _recorded(recording)
    return Truth(walk, generalized_forces(walk.model, walk.coordinates, walk.speeds, walk.accelerations))


def _recorded(path: Path) -> Walk:
    """Return the walk of a fitted model from a recording, low-passed, at 60 Hz; it defines the ground truth."""
    read = read_recording(path)
    if not read.rate >= MIN_RATE:  # NaN for a single frame
        found = f"{read.rate:g} frames per second" if np.isfinite(read.rate) else "no frame rate"
        raise SettingsError(
            f"{path.name}: The recording has {found}; at least {MIN_RATE:g} are needed for a "
            "motion at 60 Hz. Choose another recording."
        )
    recording = resample(clean(read), 60.0)
    fitted = fit_model(human(75.0, 1.75), [recording]).model
    motion = inverse_kinematics(fitted, recording, method="smoothed")
    curves = differentiate(motion)
    kept = {str(name) for name in motion.data["marker"].values}
    model = replace(fitted, markers=tuple(m for m in fitted.markers if m.name in kept))
    return Walk(model, curves.time, motion.rate, curves.coordinates, curves.speeds, curves.accelerations)


def _trial(truth: Truth, noisy: Recording, method: str) -> tuple[dict[str, float], tuple[Array, Array] | None]:
    """Return errors, lag and speed of one trial, and its coordinates and torques; all NaN where it failed."""
    start = time.process_time()
    try:
        motion = _solve_poses(truth.walk.model, noisy, method)
        torques = _torques(motion)
    except BorelliError:
        return dict.fromkeys(("angle_rad", "torque_nm", "lag_ms", "times_real_time"), float("nan")), None
    seconds = time.process_time() - start
    q = motion.coordinates
    return {
        "angle_rad": float(np.abs(q[:, JOINTS] - truth.walk.coordinates[:, JOINTS]).mean()),
        "torque_nm": float(np.abs(torques[:, JOINTS] - truth.torques[:, JOINTS]).mean()),
        "lag_ms": lag(truth.walk, q),
        "times_real_time": len(q) / truth.walk.rate / seconds,
    }, (q, torques)


def _solve_poses(model: Model, noisy: Recording, method: str) -> Motion:
    if method != "smoothed":
        return inverse_kinematics(model, noisy, method=method)
    problem = make_ik_problem(model, noisy)
    return motion_from_coordinates(problem, smooth_markers(problem, noisy)[0], noisy, method, ())


def _torques(motion: Motion) -> Array:
    curves = differentiate(motion)
    return generalized_forces(motion.model, curves.coordinates, curves.speeds, curves.accelerations)


def lag(walk: Walk, estimate: Array) -> float:
    """Return the median delay [ms] of estimated coordinates after the true ones.

    The delay d of a coordinate minimizes sum (estimate - true(t - d))^2, by Gauss-Newton steps from zero.
    """
    true, speed = walk.coordinates, walk.speeds
    moving = [i for i in range(6, true.shape[1]) if np.ptp(true[:, i]) > MIN_RANGE]
    delays = []
    for i in moving:
        delay = 0.0
        for _ in range(8):
            at = walk.time - delay
            value = np.interp(at, walk.time, true[:, i])
            slope = np.interp(at, walk.time, speed[:, i])
            delay -= float(slope @ (estimate[:, i] - value) / (slope @ slope))
        delays.append(delay)
    return float(1e3 * np.median(delays))


def _summary(rows: Rows) -> list[dict[str, Any]]:
    """Return mean and standard error of each level and method."""
    lines = []
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
        lines.append(line)
    return lines


def paper_torque(noise_mm: float) -> tuple[float, str]:
    """Return the paper's mean torque error [N m] at a noise level, and its source.

    The paper states two values; others are interpolated linearly in logarithms.
    """
    if noise_mm == 1.0:
        return PAPER_TORQUE[1e-3], ""
    low, high = PAPER_TORQUE[1e-3], PAPER_TORQUE[5e-3]
    return float(low * (high / low) ** (np.log(noise_mm) / np.log(5.0))), " (line through its 1 and 5 mm)"


def _claims(summary: Rows, truth: Truth) -> list[Claim]:
    claims = []
    frame = 1e3 / truth.walk.rate
    for line in summary:
        label, level = f"{line['method']}, {line['noise_mm']:g} mm", line["noise_mm"]
        if line["method"] == "marker_driven":
            continue
        if level == 1.0:
            claims.append(
                Claim(f"{label}: angles [rad]", line["angle_rad"], "0.02", "at most 0.02", line["angle_rad"] <= 0.02)
            )
        if level <= 8.0:
            none = f"none (a frame: {frame:.3g})"
            claims.append(near(f"{label}: lag [ms]", line["lag_ms"], none, 0.0, 0.1 * frame))
        if line["method"] == "smoothed":
            paper, source = paper_torque(level)
            better = line["torque_nm"] < paper and not line["failed"]
            claims.append(
                Claim(
                    f"{label}: torques [N m]", line["torque_nm"], f"{paper:.2g}{source}", f"below {paper:.2g}", better
                )
            )
            speed = line["times_real_time"]
            claims.append(Claim(f"{label}: times real time (CPU)", speed, "real time", "at least 1", speed >= 1.0))
    return claims


def _draw(truth: Truth, summary: Rows, examples: Mapping[tuple[str, float], tuple[Array, Array]], path: Path) -> None:
    angle, torque = SHOWN
    labels = (
        "mean error of angles [rad]", f"{angle} [deg]", f"{angle} [deg]",
        "mean error of torques [N m]", f"{torque} torque [N m]", "lag [ms]",
    )  # fmt: skip
    with figure(path, *labels, size=(11.0, 7.5), rows=2) as axes:
        for method, color in METHODS.items():
            lines = [line for line in summary if line["method"] == method]
            noise = [line["noise_mm"] for line in lines]
            for ax, key in ((axes[0], "angle_rad"), (axes[3], "torque_nm")):
                error, spread = ([line[k] for line in lines] for k in (key, f"{key}_se"))
                ax.errorbar(noise, error, np.nan_to_num(spread), color=color, marker="o", markersize=3, label=method)
            axes[5].plot(noise, [line["lag_ms"] for line in lines], color=color, marker="o", ms=3)
        for ax, paper in ((axes[0], PAPER_ANGLE), (axes[3], PAPER_TORQUE)):
            stated = [1e3 * noise for noise in paper]
            ax.plot(stated, list(paper.values()), "x", color=INK, label="Liu, Cooper and Ballard")
            ax.set(xscale="log", yscale="log", xlabel="noise [mm]")
        axes[5].set(xscale="log", xlabel="noise [mm]")
        levels = sorted({level for _, level in examples})
        names = [c.name for c in truth.walk.model.coordinates]
        true = truth.walk.coordinates, truth.torques
        for ax, level, kind, scale in (
            (axes[1], levels[0], 0, np.degrees),
            (axes[2], levels[-1], 0, np.degrees),
            (axes[4], levels[len(levels) // 2], 1, np.asarray),
        ):
            column = names.index(SHOWN[kind])
            ax.plot(truth.walk.time, scale(true[kind][:, column]), color=INK)
            for method, color in METHODS.items():
                if (method, level) in examples:
                    ax.plot(truth.walk.time, scale(examples[method, level][kind][:, column]), color=color, lw=0.9)
            ax.set(title=f"{1e3 * level:g} mm")
