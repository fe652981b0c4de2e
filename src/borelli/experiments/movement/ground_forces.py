"""The ground experiment: forces of the ground on each foot from the motion alone, beside those that were measured.

After Liu, Cooper and Ballard, Fig. 5: a subject shifts the weight from one balance board to another; in single stance
computed and measured forces differ by 10 %, and a residual torque of 30 N m keeps the model upright. Here somebody
walks: a synthetic walk whose forces follow from Newton's laws, seen by cameras with and without noise, or a recording
with plates, in the frames that the plates cover. How two feet share the load while both stand does not follow from
Newton's laws; the synthetic walk passes it over evenly, which real feet need not do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import Torques, inverse_dynamics
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.movement.stepped_common import BLUE, ORANGE, recorded_motion, tidy
from borelli.export.grf_agreement import compare_feet, foot_direction
from borelli.numerics.runs import find_runs
from borelli.recording.recording import MIN_PLATE_FORCE

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

NOISE = (0.0, 0.001)
"""Of the markers of the synthetic walk [m]."""
PAPER_DIFFERENCE, PAPER_TORQUE = 10.0, 30.0
"""[%] of the measured force in single stance; [N m] of residual torque."""


class Trial(NamedTuple):
    """A motion with what plates measured of it and what it tells by itself."""

    label: str
    measured: Torques
    computed: Dataset

    @property
    def weight(self) -> float:
        """Of the model [N]."""
        model = self.measured.motion.model
        return float(model.mass * np.linalg.norm(model.gravity))


def ground_experiment(
    out: Path, motions: dict[str, Motion], about: str, *, say: Callable[[str], None] = lambda _: None
) -> Outcome:
    """Ground forces of motions whose recordings have plates, from the motions alone.

    Args:
        out: Folder for the table and the picture.
        motions: By what is to be said of their markers; the first is drawn and held against the paper.
        about: What they are.
        say: Told what is being done.

    Raises:
        SettingsError: no plate measured the forces.
    """
    trials = []
    for label, motion in motions.items():
        say(f"ground forces, {label}")
        if motion.recording is None or not {"plate_force", "foot_force"} & set(motion.recording.data):
            raise SettingsError("the recording has no plates to compare with: give one that has, or none")
        measured = inverse_dynamics(motion, forces="plates")
        trials.append(Trial(label, measured, predict_grf(motion, measured.derivatives)))
    rows = [row for trial in trials for row in _rows(trial)]
    if not rows:
        raise SettingsError("plates cover no step of the recording whole: there is nothing to compare with")
    first = [row for row in rows if row["markers"] == trials[0].label]
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "ground.png"
    _draw(trials[0], first, picture)
    single = float(np.nanmean([row["single_stance_percent"] for row in first]))
    torque = first[0]["missing_moment_rms_nm"]
    claims = [
        Claim("vertical force in single stance differs by [%]", single, "10", single <= PAPER_DIFFERENCE),
        Claim("moment that the ground does not give, RMS [N m]", torque, "30 (limit)", torque <= PAPER_TORQUE),
    ]
    data = trials[0].measured.data
    told = f"; plates cover {100.0 * float(data['covered'].values.mean()):.0f} % of the frames"
    told += "".join(f"; {note.text}" for note in trials[0].measured.notes if "weigh" in note.text)
    return write_outcome(Outcome("ground", about + told, rows, claims, (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    if recording is not None:
        about = f"{recording.name}: forces of the ground from the motion of a fitted human alone, beside its plates"
        return ground_experiment(out, {"as recorded": recorded_motion(recording)}, about, say=say)
    about = "a synthetic walk, 3.2 strides at 100 Hz: forces of the ground from the motion alone, beside the true ones"
    levels = NOISE[-1:] if quick else NOISE
    return ground_experiment(out, {_label(noise): synthetic_motion(noise) for noise in levels}, about, say=say)


def synthetic_motion(noise: float) -> Motion:
    """The true body as it follows the markers of a synthetic walk with noise [m], on plates that see every step."""
    from borelli.recording.clean import clean
    from borelli.synthetic.recordings import synthetic_recording

    made = synthetic_recording("walk", noise=noise, gaps=0.0)
    return inverse_kinematics(made.model, clean(made.recording, cutoff=None))


def _label(noise: float) -> str:
    return f"{1e3 * noise:g} mm noise"


def _rows(trial: Trial) -> list[dict[str, Any]]:
    data, weight = trial.measured.data, trial.weight
    covered = data["grf_complete"].values
    theirs, ours = (one["ground_reaction_force"].sel(axis="z") for one in (data, trial.computed))
    free = (trial.computed["free_moment"] - data["free_moment"]).sel(axis="z")
    moment = np.linalg.norm(trial.computed["unexplained_moment"].values, axis=1)[covered]
    rows = []
    for one in compare_feet(data, trial.computed, weight):
        other = "left" if one.foot == "right" else "right"
        stance = covered & (theirs.sel(foot=one.foot).values >= MIN_PLATE_FORCE)
        single = stance & (theirs.sel(foot=other).values < MIN_PLATE_FORCE)
        off = np.abs((ours - theirs).sel(foot=one.foot).values[single])
        rows.append({
            "markers": trial.label, "foot": one.foot, "frames": one.frames,
            "vertical_rms_bw": one.vertical_rms, "vertical_r": one.vertical_r,
            "forward_rms_bw": one.forward_rms, "sideways_rms_bw": one.sideways_rms,
            "center_forward_rms_mm": one.center_forward, "center_sideways_rms_mm": one.center_sideways,
            "free_moment_rms_nm": float(np.sqrt(np.mean(free.sel(foot=one.foot).values[stance] ** 2))),
            "single_stance_percent": 100.0 * float(off.mean() / theirs.sel(foot=one.foot).values[single].mean())
            if single.any() else float("nan"),
            "missing_moment_rms_nm": float(np.sqrt(np.mean(moment**2))),
        })  # fmt: skip
    return rows


def _draw(trial: Trial, rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    data, computed = trial.measured.data, trial.computed
    time, ahead = data["time"].values, foot_direction(computed)
    aside = np.array([-ahead[1], ahead[0], 0.0])
    up = np.array([0.0, 0.0, 1.0])
    panels = ((axes[0, 0], up, "upward"), (axes[0, 1], ahead, "forward"), (axes[1, 0], aside, "to the left"))
    for foot, color in (("right", ORANGE), ("left", BLUE)):
        for ax, way, label in panels:
            for one, style, words in ((data, "-", "measured"), (computed, "--", "computed")):
                force = 100.0 * one["ground_reaction_force"].sel(foot=foot).values @ way / trial.weight
                ax.plot(time, force, style, color=color, lw=1.2, label=f"{foot}, {words}")
            ax.set(ylabel=f"force {label} [% of weight]")
        stance = data["ground_reaction_force"].sel(foot=foot, axis="z").values >= MIN_PLATE_FORCE
        for one, style in ((data, "-"), (computed, "--")):
            place = 1e3 * (one["center_of_pressure"].sel(foot=foot).values @ ahead)
            middle = (
                1e3 * computed["sole_position"].values[:, [foot in str(n) for n in computed["sole"].values]] @ ahead
            )
            axes[1, 1].plot(time, np.where(stance, place - middle.mean(axis=1), np.nan), style, color=color, lw=1.2)
    axes[1, 1].set(ylabel="pressure ahead of the sole's middle [mm]", xlabel="time [s]")
    axes[1, 0].set(xlabel="time [s]")
    rms = ", ".join(f"{row['foot']} {row['vertical_rms_bw']:.1f} %" for row in rows)
    axes[0, 0].set_title(f"vertical, RMS over stance: {rms}; paper: 10 % in single stance", fontsize=9)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    for ax in axes.flat:
        for start, stop in find_runs(~data["grf_complete"].values):
            ax.axvspan(time[start], time[stop - 1], color="#f0f1f3", lw=0)
    tidy(axes)
    figure.savefig(path, dpi=130)
