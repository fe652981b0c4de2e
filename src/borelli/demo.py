"""The demonstration: a walk, a jump and a reach analysed and held against the truth; a body falls, a top spins.

The recordings are made by `borelli.synthetic`, so that what an analysis should find is known; the scenes have theory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from borelli.analysis.motion import Motion
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import Analysis, analyze
from borelli.scenes.gallery import gallery_scene
from borelli.scenes.scene import Scene, run_scene
from borelli.scenes.scene_files import with_changes
from borelli.synthetic.recordings import SyntheticRecording, synthetic_recording
from borelli.view.picture import strobe
from borelli.view.plots import plot
from borelli.view.video import video

if TYPE_CHECKING:
    from xarray import Dataset

Report = Callable[[str], None]

CUTOFFS = {"jump": 12.0}
"""Of the low-pass on coordinates [Hz] where a task is too quick for the usual 6."""


class Finding(NamedTuple):
    """One line of the demonstration's table."""

    scene: str
    text: str
    got: str
    expected: str


def run_demo(folder: Path, report: Report = lambda _: None) -> tuple[list[Finding], list[Path]]:
    """Analyse recordings, play scenes, write all into `folder`; findings, and the files to look at, the best first."""
    folder.mkdir(parents=True, exist_ok=True)
    findings: list[Finding] = []
    files: list[Path] = []
    for task in ("walk", "jump", "reach"):
        report(f"making and analysing a {task}")
        found, page = analyse_task(task, folder)
        findings += found
        files.append(page)
    scenes, pictures = play_scenes(folder, report)
    return findings + scenes, files + pictures


def analyse_task(task: str, folder: Path) -> tuple[list[Finding], Path]:
    """Make a recording, analyse it as one of a stranger would be, and hold the result against the truth."""
    made = synthetic_recording(task)
    file = folder / f"{task}.nc"
    made.recording.to_netcdf(file)
    result = analyze([file], folder / task, AnalysisSettings(cutoff=CUTOFFS.get(task)))[0]
    return _analysis_findings(task, made, result), result.folder / "report.html"


def play_scenes(folder: Path, report: Report = lambda _: None) -> tuple[list[Finding], list[Path]]:
    """Play scenes and draw the falling human."""
    report("loading kernels")
    scene = gallery_scene("human_drop")
    run_scene(with_changes(scene, duration=scene.step))
    report("dropping a human")
    start = perf_counter()
    human = run_scene(scene)
    findings = _human_findings(scene, human, perf_counter() - start)
    for name, measure in (
        ("pendulum", _pendulum_findings),
        ("spinning_top", _top_findings),
        ("stack", _stack_findings),
        ("four_bar", _loop_findings),
    ):
        report(f"running {name}")
        scene = gallery_scene(name)
        findings += measure(scene, run_scene(scene))
    report("drawing")
    files = [folder / name for name in ("human.png", "human.gif", "human-plot.png", "human.nc")]
    strobe(human, files[0], times=(0.0, 0.25, 0.45, 0.62, 0.78, 1.5), height=600)
    video(human, files[1], rate=10.0, width=480, height=270)
    plot(human, files[2])
    human.to_netcdf(files[3], engine="h5netcdf")
    return findings, files


def _analysis_findings(task: str, made: SyntheticRecording, result: Analysis) -> list[Finding]:
    """Angles, markers and forces that were found, and what was put in."""
    summary, motion = result.summary, result.energy.torques.motion
    noise = 1e3 * float(made.recording.metadata["noise_m"]) * 3.0**0.5
    findings = [
        Finding(task, "markers off, rms", f"{summary['marker_rms_mm']:.2f} mm", f"{noise:.2f} mm of noise put in"),
        Finding(task, "leg angles off, rms, zero aside", f"{_angle_error(made, motion):.2f} deg", "0"),
        Finding(task, "residual force, rms", f"{summary['residual_force_rms_bw']:.1f} % BW", "0"),
    ]
    if summary["grf_vertical_rms_bw"] is not None:
        off = f"{summary['grf_vertical_rms_bw']:.1f} % BW"
        findings.append(Finding(task, "vertical force without plates, off", off, "0"))
    seconds = sum(value for value in summary["seconds"].values() if value is not None)
    findings.append(Finding(task, "analysed in", f"{seconds:.1f} s", f"{summary['duration_s']:.1f} s recorded"))
    return findings


def _angle_error(made: SyntheticRecording, motion: Motion) -> float:
    """Root mean square difference [deg] of hip, knee and ankle flexion from the truth, their means taken off."""
    names = [c.name for c in motion.model.coordinates]
    legs = [f"{joint}_flexion_{side}" for joint in ("hip", "knee", "ankle") for side in "rl"]
    columns = [names.index(name) for name in legs]
    off = np.degrees(motion.coordinates[:, columns] - made.coordinates[:, columns])
    return float(np.sqrt(np.nanmean((off - np.nanmean(off, axis=0)) ** 2)))


def _human_findings(scene: Scene, result: Dataset, seconds: float) -> list[Finding]:
    weight = scene.model.mass * -scene.model.gravity[2]
    force = result["ground_reaction_force"].sel(axis="z").sum("body")
    at_rest = float(force.where(result["time"] >= scene.duration - 0.25).mean())
    pushed = float(force[1:].sum()) * scene.step
    gained = result["linear_momentum"].sel(axis="z").values
    owed = weight * scene.duration + float(gained[-1] - gained[0])
    name = "falling human"
    return [
        Finding(name, "final ground force", f"{at_rest:.1f} N", f"{weight:.1f} N, its weight"),
        Finding(name, "impulse of ground", f"{pushed:.6f} N s", f"{owed:.6f} N s"),
        Finding(name, "widest joint gap", f"{1e3 * float(result['joint_error'].max()):.2f} mm", "0"),
        Finding(name, "speed", f"{scene.duration / seconds:.1f} x real time", ""),
    ]


def _pendulum_findings(scene: Scene, result: Dataset) -> list[Finding]:
    """The period against the exact one of a physical pendulum, T = 4 sqrt(I / (m g d)) K(sin^2(angle / 2))."""
    from scipy.special import ellipk

    body, pivot = scene.model.bodies[0], scene.model.joints[0]
    arm = pivot.child_frame.position[2] - body.center_of_mass[2]
    inertia = body.inertia[1][1] + body.mass * arm**2
    amplitude = next(iter(scene.coordinates.values()))
    slow = np.sqrt(inertia / (body.mass * -scene.model.gravity[2] * arm))
    exact = 4.0 * slow * ellipk(np.sin(amplitude / 2) ** 2)
    angle, clock = result["coordinate_value"].values[:, 0], result["time"].values
    falls = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = clock[falls] + np.diff(clock)[falls] * angle[falls] / (angle[falls] - angle[falls + 1])
    period = float(np.diff(crossings).mean())
    return [Finding("pendulum", "period", f"{period:.4f} s", f"{exact:.4f} s")]


def _top_findings(scene: Scene, result: Dataset) -> list[Finding]:
    """The rate at which the axis goes round, against the steady rate the scene was started with."""
    x, y = (result["center_of_mass"].sel(axis=a).values for a in "xy")
    azimuth = np.unwrap(np.arctan2(y, x))
    rate = float(np.polyfit(result["time"].values, azimuth, 1)[0])
    vx, _, _, *_ = scene.twists["top"]
    exact = vx / -y[0]
    energy = (result["kinetic_energy"] + result["potential_energy"]).values
    drift = 100.0 * float(energy[-1] / energy[0] - 1.0)
    return [
        Finding("spinning top", "precession", f"{rate:.4f} rad/s", f"{exact:.4f} rad/s"),
        Finding("spinning top", "energy drift in 3 s", f"{drift:+.3f} %", "0"),
    ]


def _stack_findings(scene: Scene, result: Dataset) -> list[Finding]:
    moved = np.linalg.norm(result["body_position"].values - result["body_position"].values[0], axis=-1).max()
    return [Finding("stack of 10", "largest move in 2 s", f"{1e3 * float(moved):.3f} mm", "0")]


def _loop_findings(scene: Scene, result: Dataset) -> list[Finding]:
    speed = float(result["coordinate_velocity"].sel(coordinate="crank").values[-len(result["time"]) // 2 :].mean())
    wanted = scene.drives[0].velocity
    gap = 1e3 * float(result["joint_gap"].max())
    return [
        Finding("four-bar loop", "crank speed", f"{speed:.3f} rad/s", f"{wanted:.3f} rad/s"),
        Finding("four-bar loop", "widest joint gap", f"{gap:.3f} mm", "0"),
    ]
