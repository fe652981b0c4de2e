"""Demonstration: analyses of a synthetic walk, jump and reach, and simulated scenes, compared with known results.

The ground truth of the recordings is known, since `borelli.synthetic` creates them; the scenes have analytical results.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from borelli.analysis.motion import Motion
from borelli.files.netcdf_writer import write_netcdf
from borelli.files.results_folder import check_results, results_folders
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import FIT_FILES, TRIAL_FILES, Analysis, analyze
from borelli.scenes.gallery import gallery_scene
from borelli.scenes.scene import Scene, run_scene
from borelli.scenes.scene_files import with_changes
from borelli.synthetic.recordings import SyntheticRecording, synthetic_recording
from borelli.view.picture import strobe
from borelli.view.plots import plot
from borelli.view.video import video

if TYPE_CHECKING:
    from xarray import Dataset

Log = Callable[[str], None]

TASKS = ("walk", "jump", "reach")
"""Synthetic recordings that are analyzed."""
SCENE_FILES = ("human.png", "human.gif", "human-plot.png", "human.nc")
"""Files of the falling human."""
CUTOFFS = {"jump": 12.0}
"""Low-pass cutoff of coordinates [Hz] for tasks too fast for the default of 6 Hz."""


class Finding(NamedTuple):
    """Computed value and the expected one."""

    scene: str
    name: str
    value: str
    expected: str


def run_demo(folder: Path, log: Log = lambda _: None, *, overwrite: bool = False) -> tuple[list[Finding], list[Path]]:
    """Analyze recordings, run scenes and write the results.

    Args:
        folder: Folder for the results.
        log: Callback with the running task.
        overwrite: Replace files of the folder that are not results of the demonstration.

    Returns:
        Computed and expected values, and the files to look at.
    """
    check_results({folder / task: (*FIT_FILES, *TRIAL_FILES) for task in TASKS}, "analyze", overwrite=overwrite)
    findings: list[Finding] = []
    files: list[Path] = []
    outputs = {folder: (*(f"{task}.nc" for task in TASKS), *SCENE_FILES)}
    with results_folders(outputs, "demo", overwrite=overwrite):
        for task in TASKS:
            log(f"analyzing a synthetic {task}")
            values, page = analyze_task(task, folder, overwrite=overwrite)
            findings += values
            files.append(page)
        values, images = run_scenes(folder, log)
    return findings + values, files + images


def analyze_task(task: str, folder: Path, *, overwrite: bool = False) -> tuple[list[Finding], Path]:
    """Create a synthetic recording, analyze it like any other and compare the results with the ground truth."""
    truth = synthetic_recording(task)
    file = folder / f"{task}.nc"
    truth.recording.to_netcdf(file)
    result = analyze(file, folder / task, AnalysisSettings(cutoff=CUTOFFS.get(task)), overwrite=overwrite)[0]
    return _analysis_findings(task, truth, result), result.folder / "report.html"


def run_scenes(folder: Path, log: Log = lambda _: None) -> tuple[list[Finding], list[Path]]:
    """Run scenes and draw the falling human."""
    log("loading kernels")
    scene = gallery_scene("human_drop")
    run_scene(with_changes(scene, duration=scene.step))
    log("simulating a falling human")
    start = perf_counter()
    human = run_scene(scene)
    findings = _human_findings(scene, human, perf_counter() - start)
    for name, compare in (
        ("pendulum", _pendulum_findings),
        ("spinning_top", _top_findings),
        ("stack", _stack_findings),
        ("four_bar", _loop_findings),
    ):
        log(f"simulating {name}")
        scene = gallery_scene(name)
        findings += compare(scene, run_scene(scene))
    log("drawing")
    files = [folder / name for name in SCENE_FILES]
    strobe(human, files[0], times=(0.0, 0.25, 0.45, 0.62, 0.78, 1.5), height=600)
    video(human, files[1], rate=10.0, width=480, height=270)
    plot(human, files[2])
    write_netcdf(files[3], {"/": human})
    return findings, files


def _analysis_findings(task: str, truth: SyntheticRecording, result: Analysis) -> list[Finding]:
    summary, motion = result.summary, result.energy.torques.motion
    noise = 1e3 * float(truth.recording.metadata["noise_m"]) * 3.0**0.5
    findings = [
        Finding(task, "marker error, RMS", f"{summary['marker_rms_mm']:.2f} mm", f"{noise:.2f} mm, the noise"),
        Finding(task, "leg angle error without offset, RMS", f"{_angle_error(truth, motion):.2f} deg", "0"),
        Finding(task, "residual force, RMS", f"{summary['residual_force_rms_bw']:.1f} % BW", "0"),
    ]
    if summary["grf_vertical_rms_bw"] is not None:
        error = f"{summary['grf_vertical_rms_bw']:.1f} % BW"
        findings.append(Finding(task, "predicted vertical GRF error, RMS", error, "0"))
    runtime = sum(value for value in summary["runtime_s"].values() if value is not None)
    findings.append(Finding(task, "run time", f"{runtime:.1f} s", f"{summary['duration_s']:.1f} s recorded"))
    return findings


def _angle_error(truth: SyntheticRecording, motion: Motion) -> float:
    """Return the RMS error [deg] of hip, knee and ankle flexion after subtracting the mean error of each angle."""
    names = [c.name for c in motion.model.coordinates]
    legs = [f"{joint}_flexion_{side}" for joint in ("hip", "knee", "ankle") for side in "rl"]
    columns = [names.index(name) for name in legs]
    error = np.degrees(motion.coordinates[:, columns] - truth.coordinates[:, columns])
    return float(np.sqrt(np.nanmean((error - np.nanmean(error, axis=0)) ** 2)))


def _human_findings(scene: Scene, result: Dataset, seconds: float) -> list[Finding]:
    weight = scene.model.mass * -scene.model.gravity[2]
    force = result["ground_reaction_force"].sel(axis="z").sum("body")
    at_rest = float(force.where(result["time"] >= scene.duration - 0.25).mean())
    impulse = float(force[1:].sum()) * scene.step
    momentum = result["linear_momentum"].sel(axis="z").values
    expected = weight * scene.duration + float(momentum[-1] - momentum[0])
    name = "falling human"
    return [
        Finding(name, "final ground reaction force", f"{at_rest:.1f} N", f"{weight:.1f} N, the weight"),
        Finding(name, "impulse of the ground", f"{impulse:.6f} N s", f"{expected:.6f} N s"),
        Finding(name, "largest joint gap", f"{1e3 * float(result['joint_gap'].max()):.2f} mm", "0"),
        Finding(name, "speed", f"{scene.duration / seconds:.1f} x real time", ""),
    ]


def _pendulum_findings(scene: Scene, result: Dataset) -> list[Finding]:
    """Compare the period with that of a physical pendulum, T = 4 sqrt(I / (m g d)) K(sin^2(angle / 2))."""
    from scipy.special import ellipk

    body, pivot = scene.model.bodies[0], scene.model.joints[0]
    arm = pivot.child_frame.position[2] - body.center_of_mass[2]
    inertia = body.inertia[1][1] + body.mass * arm**2
    amplitude = next(iter(scene.coordinates.values()))
    inverse_frequency = np.sqrt(inertia / (body.mass * -scene.model.gravity[2] * arm))
    exact = 4.0 * inverse_frequency * ellipk(np.sin(amplitude / 2) ** 2)
    angle, time = result["coordinate_value"].values[:, 0], result["time"].values
    falls = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    crossings = time[falls] + np.diff(time)[falls] * angle[falls] / (angle[falls] - angle[falls + 1])
    period = float(np.diff(crossings).mean())
    return [Finding("pendulum", "period", f"{period:.4f} s", f"{exact:.4f} s")]


def _top_findings(scene: Scene, result: Dataset) -> list[Finding]:
    """Compare the precession rate with that of the initial state."""
    x, y = (result["center_of_mass"].sel(axis=a).values for a in "xy")
    azimuth = np.unwrap(np.arctan2(y, x))
    rate = float(np.polyfit(result["time"].values, azimuth, 1)[0])
    vx, _, _, *_ = scene.twists["top"]
    exact = vx / -y[0]
    energy = (result["kinetic_energy"] + result["potential_energy"]).values
    drift = 100.0 * float(energy[-1] / energy[0] - 1.0)
    return [
        Finding("spinning top", "precession", f"{rate:.4f} rad/s", f"{exact:.4f} rad/s"),
        Finding("spinning top", "energy drift in 3 s", f"{abs(drift):.1g} %", "0"),
    ]


def _stack_findings(scene: Scene, result: Dataset) -> list[Finding]:
    displacement = np.linalg.norm(result["body_position"].values - result["body_position"].values[0], axis=-1).max()
    return [Finding("stack of 10", "largest displacement in 2 s", f"{1e3 * float(displacement):.3f} mm", "0")]


def _loop_findings(scene: Scene, result: Dataset) -> list[Finding]:
    speed = float(result["coordinate_velocity"].sel(coordinate="crank").values[-len(result["time"]) // 2 :].mean())
    target = scene.drives[0].velocity
    gap = 1e3 * float(result["joint_gap"].max())
    return [
        Finding("four-bar loop", "crank speed", f"{speed:.3f} rad/s", f"{target:.3f} rad/s"),
        Finding("four-bar loop", "largest joint gap", f"{gap:.3f} mm", "0"),
    ]
