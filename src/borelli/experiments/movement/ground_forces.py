"""Ground reaction forces predicted from the motion alone, compared with measured ones.

After Liu, Cooper and Ballard, Fig. 5: a subject shifts weight between two balance boards; in single stance computed and
measured forces differ by 10 %, and a residual moment of 30 N m keeps the model upright. Here the movement is a walk:
a synthetic one whose forces follow from Newton's laws, with and without marker noise, or a recording with plates, in
the frames with complete forces. The load sharing of the feet in double stance does not follow from Newton's laws; the
synthetic walk transfers it linearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from xarray import Dataset

from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError
from borelli.experiments.experiment import Request
from borelli.experiments.movement.stepped_common import recorded_motion
from borelli.experiments.outcome import Claim, Outcome, Rows
from borelli.export.grf_agreement import compare_feet, foot_direction
from borelli.numerics.runs import find_runs
from borelli.recording.clean import clean
from borelli.recording.recording import MIN_PLATE_FORCE
from borelli.synthetic.recordings import synthetic_recording
from borelli.view.plot_style import BLUE, ORANGE, save_figure, style_axes

NOISE = (0.0, 0.001)
"""Standard deviations of marker noise in the synthetic walk [m]."""
PAPER_DIFFERENCE, PAPER_TORQUE = 10.0, 30.0
"""Published difference from the measured force in single stance [%], and residual moment [N m]."""


class Trial(NamedTuple):
    """Motion with measured and predicted ground reaction forces."""

    label: str
    measured: Torques
    computed: Dataset

    @property
    def weight(self) -> float:
        """Weight of the model [N]."""
        model = self.measured.motion.model
        return float(model.mass * np.linalg.norm(model.gravity))


def run(request: Request) -> Outcome:
    """Predict ground reaction forces of motions and compare them with the plates of their recordings."""
    if request.recording is not None:
        about = f"{request.recording.name}: ground reaction forces predicted from the motion, compared with its plates"
        motions = {"as recorded": recorded_motion(request.recording)}
    else:
        about = (
            "a synthetic walk, 3.2 strides at 100 Hz: ground reaction forces predicted from the motion, and true ones"
        )
        levels = NOISE[-1:] if request.quick else NOISE
        motions = {f"{1e3 * noise:g} mm noise": synthetic_motion(noise) for noise in levels}
    trials = []
    for label, motion in motions.items():
        request.log(f"ground reaction forces, {label}")
        trials.append(make_trial(label, motion))
    rows = [row for trial in trials for row in _rows(trial)]
    if not rows:
        raise SettingsError(
            "No frame has the full ground reaction force on plates, so there is nothing to compare with. Use a trial "
            "with complete steps on the plates."
        )
    measured = trials[0].measured
    first = [row for row in rows if row["markers"] == trials[0].label]
    _draw(trials[0], first, request.plot)
    single = _mean_of_known([row["single_stance_percent"] for row in first])
    torque = first[0]["unexplained_moment_rms_nm"]
    claims = [
        Claim(
            "difference of vertical force in single stance [%]",
            single,
            "10",
            f"at most {PAPER_DIFFERENCE:g}",
            single <= PAPER_DIFFERENCE,
        ),
        Claim(
            "unexplained moment, RMS [N m]", torque, "30 (limit)", f"at most {PAPER_TORQUE:g}", torque <= PAPER_TORQUE
        ),
    ]
    about += f"; plates cover {100.0 * float(measured.data['grf_complete'].values.mean()):.0f} % of the frames"
    about += "".join(f"; {note.text}" for note in measured.notes if note.code == "plate_mass")
    return Outcome(request.name, about, rows, claims, (request.plot,))


def make_trial(label: str, motion: Motion) -> Trial:
    """Predict ground reaction forces of a motion whose recording has force plates."""
    if motion.recording is None or not {"plate_force", "ground_reaction_force"} & set(motion.recording.data):
        raise SettingsError(
            "The recording has no force plates to compare with. Use a recording with plates, or omit --recording."
        )
    measured = inverse_dynamics(motion, forces="plates")
    return Trial(label, measured, predict_grf(motion, measured.derivatives))


def synthetic_motion(noise: float) -> Motion:
    """Return inverse kinematics of a synthetic walk with marker noise [m] and plates under every step."""
    synthetic = synthetic_recording("walk", noise=noise, gaps=0.0)
    return inverse_kinematics(synthetic.model, clean(synthetic.recording, cutoff=None))


def _mean_of_known(values: list[float]) -> float:
    """Return the mean of finite values; nan if there is none (a trial without single stance on plates)."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _rows(trial: Trial) -> list[dict[str, Any]]:
    data, weight = trial.measured.data, trial.weight
    complete = data["grf_complete"].values
    measured, predicted = (one["ground_reaction_force"].sel(axis="z") for one in (data, trial.computed))
    free = (trial.computed["free_moment"] - data["free_moment"]).sel(axis="z")
    moment = np.linalg.norm(trial.computed["unexplained_moment"].values, axis=1)[complete]
    rows = []
    for one in compare_feet(data, trial.computed, weight):
        other = "left" if one.foot == "right" else "right"
        stance = complete & (measured.sel(foot=one.foot).values >= MIN_PLATE_FORCE)
        single = stance & (measured.sel(foot=other).values < MIN_PLATE_FORCE)
        error = np.abs((predicted - measured).sel(foot=one.foot).values[single])
        rows.append({
            "markers": trial.label, "foot": one.foot, "frames": one.frames,
            "vertical_rms_bw": one.vertical_rms, "vertical_r": one.vertical_r,
            "forward_rms_bw": one.forward_rms, "sideways_rms_bw": one.sideways_rms,
            "center_forward_rms_mm": one.center_forward, "center_sideways_rms_mm": one.center_sideways,
            "free_moment_rms_nm": float(np.sqrt(np.mean(free.sel(foot=one.foot).values[stance] ** 2))),
            "single_stance_percent": 100.0 * float(error.mean() / measured.sel(foot=one.foot).values[single].mean())
            if single.any() else float("nan"),
            "unexplained_moment_rms_nm": float(np.sqrt(np.mean(moment**2))),
        })  # fmt: skip
    return rows


def _draw(trial: Trial, rows: Rows, path: Path) -> None:
    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    data, computed = trial.measured.data, trial.computed
    time, ahead = data["time"].values, foot_direction(computed)
    aside = np.array([-ahead[1], ahead[0], 0.0])
    up = np.array([0.0, 0.0, 1.0])
    panels = ((axes[0, 0], up, "upward"), (axes[0, 1], ahead, "forward"), (axes[1, 0], aside, "to the left"))
    for foot, color in (("right", ORANGE), ("left", BLUE)):
        for ax, direction, label in panels:
            for one, style, words in ((data, "-", "measured"), (computed, "--", "predicted")):
                force = 100.0 * one["ground_reaction_force"].sel(foot=foot).values @ direction / trial.weight
                ax.plot(time, force, style, color=color, lw=1.2, label=f"{foot}, {words}")
            ax.set(ylabel=f"force {label} [% of body weight]")
        stance = data["ground_reaction_force"].sel(foot=foot, axis="z").values >= MIN_PLATE_FORCE
        soles = [foot in str(name) for name in computed["sole"].values]
        center = 1e3 * computed["sole_position"].values[:, soles] @ ahead
        for one, style in ((data, "-"), (computed, "--")):
            pressure = 1e3 * (one["center_of_pressure"].sel(foot=foot).values @ ahead)
            axes[1, 1].plot(time, np.where(stance, pressure - center.mean(axis=1), np.nan), style, color=color, lw=1.2)
    axes[1, 1].set(ylabel="center of pressure, from the center of the sole [mm]", xlabel="time [s]")
    axes[1, 0].set(xlabel="time [s]")
    rms = ", ".join(f"{row['foot']} {row['vertical_rms_bw']:.1f} %" for row in rows)
    axes[0, 0].set_title(f"vertical, RMS over stance: {rms}; paper: 10 % in single stance", fontsize=9)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    for ax in axes.flat:
        for start, end in find_runs(~data["grf_complete"].values):
            ax.axvspan(time[start], time[end - 1], color="#f0f1f3", lw=0)
    style_axes(axes)
    save_figure(figure, path)
