"""Benchmark of every engine on every job, in one run, on one thread, in CPU time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from borelli.bench import load_sharing, muscle_paths, peers_mujoco, peers_ode, peers_pinocchio, poses, run_borelli
from borelli.bench.ground_truth import Motion, motion
from borelli.bench.metrics import JOBS, Measurement
from borelli.bench.trial import measure_trial

CHAIN_STEPS = {10: 400, 20: 400, 40: 400, 80: 200, 100: 150, 160: 60, 320: 20, 1000: 3}
"""Links: steps measured. Direct solvers of peers cost the cube of the links, seconds per step at 1000."""
QUICK_CHAINS, QUICK_STEPS, QUICK_SECONDS, QUICK_FRAMES = (10, 20), 20, 0.25, 24

ROUNDS = 5
"""Rounds in which the engines take turns, since the clock of a busy machine drifts by more than they differ."""

ENGINES = {"": "borelli", "ode_": "ODE dWorldStep", "ode_quick_": "ODE QuickStep 20", "mujoco_": "MuJoCo mj_step"}
"""Prefix of the keys of an engine in the result: heading of its column."""

RNEA_PEERS = ("mujoco_", "pinocchio_")
"""Prefixes of the engines that compute torques in generalized coordinates."""

Result = dict[str, Any]


def run(
    peers: bool, quick: bool = False, progress: Callable[[str], None] | None = None, data: Path | None = None
) -> Result:
    """Run the benchmark.

    Args:
        peers: Also measure ODE, MuJoCo and Pinocchio, where installed; others are listed under "absent".
        quick: Use 0.25 s of motion and two short chains, for tests only.
        progress: Called with a description of each measurement.
        data: Folder of public models, for muscles; those it lacks are listed under "missing_data".

    Returns:
        All results in a form that JSON can represent; times are medians [us per step].
    """
    log = progress or (lambda _: None)
    recording = motion(seconds=QUICK_SECONDS) if quick else motion()
    log("compiling borelli's kernels")
    result: Result = {"compile_s": run_borelli.compile_seconds(fresh=not quick)}
    present = {"borelli"}
    if peers:
        reasons = {peer.NAME: peer.absent() for peer in (peers_ode, peers_mujoco, peers_pinocchio)}
        present |= {name for name, reason in reasons.items() if reason is None}
        result["absent"] = {name: reason for name, reason in reasons.items() if reason is not None}
    rounds = 1 if quick else ROUNDS
    for job in JOBS:
        log(job.title)
        result[job.name] = _entry(_calls("measure_job", present, job, recording), rounds)
    if "pinocchio" in present:
        result["joints"]["pinocchio_aba_us"] = peers_pinocchio.measure_accelerations(recording).us
    log("torques")
    result["torques"] = _entry(_calls("measure_torques", present, recording), rounds)
    log("torques in generalized coordinates")
    result["rnea"] = _entry(_rnea_calls(present, recording), rounds)
    log("poses from markers")
    result["poses"] = poses.measure_all(recording)
    result["smoothed"] = result["poses"]["smoothed"]
    log("inverse kinematics and inverse dynamics of a trial")
    result["pipeline"] = measure_trial(rounds=2 if quick else ROUNDS)
    result["chain"] = {}
    for links, steps in CHAIN_STEPS.items():
        if not quick or links in QUICK_CHAINS:
            log(f"chain of {links}")
            result["chain"][str(links)] = _entry(_chain_calls(links, QUICK_STEPS if quick else steps, present))
    _measure_muscles(result, data, rounds, quick, present, log)
    return result


def _measure_muscles(
    result: Result, data: Path | None, rounds: int, quick: bool, present: set[str], log: Callable[[str], None]
) -> None:
    """Add paths and load sharing; the quick run leaves out the files and OpenSim."""
    log("muscle paths")
    folder, frames = (None, QUICK_FRAMES) if quick else (data, muscle_paths.FRAMES)
    paths, missing, skeleton = muscle_paths.measure_all(folder, rounds, frames, "mujoco" in present)
    log("load sharing")
    sharing, others = load_sharing.measure_all(skeleton, folder, peers="absent" in result and not quick)
    result["muscle_paths"], result["load_sharing"] = paths, sharing
    if "opensim" in others:
        result["absent"]["opensim"] = others.pop("opensim")
    result["missing_data"] = {} if quick else missing | others


def _calls(measure: str, present: set[str], *arguments: Any) -> dict[str, Callable[[], Measurement]]:
    """Return a call of the function `measure` of every engine that is present and has it, by the prefix of its keys."""
    engines = {
        "": (run_borelli, "borelli", ()), "ode_": (peers_ode, "ode", ()), "ode_quick_": (peers_ode, "ode", ("quick",)),
        "mujoco_": (peers_mujoco, "mujoco", ()), "pinocchio_": (peers_pinocchio, "pinocchio", ()),
    }  # fmt: skip
    return {
        prefix: partial(getattr(engine, measure), *arguments, *options)
        for prefix, (engine, name, options) in engines.items()
        if name in present and hasattr(engine, measure)
    }


def _rnea_calls(present: set[str], recording: Motion) -> dict[str, Callable[[], Measurement]]:
    calls = {"": partial(poses.measure_rnea, recording)}
    return calls | {
        prefix: call for prefix, call in _calls("measure_torques", present, recording).items() if prefix in RNEA_PEERS
    }


def _chain_calls(links: int, steps: int, present: set[str]) -> dict[str, Callable[[], Measurement]]:
    calls = _calls("measure_chain", present, links, steps)
    aba = calls.pop("pinocchio_", None)
    if aba is not None and links <= peers_pinocchio.MAX_CHAIN_LINKS:
        calls["pinocchio_aba_"] = aba
    return calls


def _entry(calls: dict[str, Callable[[], Measurement]], rounds: int = 1) -> dict[str, float]:
    """Return the metrics of one job: medians over rounds, in which engines take turns to share the machine's load."""
    results = [{prefix: call() for prefix, call in calls.items()} for _ in range(rounds)]
    entry = {}
    for prefix, measured in results[-1].items():
        entry[f"{prefix}us"] = median(result[prefix].us for result in results)
        for name, value in measured.accuracy.items():
            entry[f"{prefix}{name}"] = value
    return entry


def print_report(result: Result, console: Console | None = None) -> None:
    """Print tables of times, of ratios to borelli, and of accuracy."""
    console = console or Console()
    console.print(_step_table(result))
    console.print(_torque_table(result))
    console.print(_pose_table(result))
    trial = result["pipeline"]
    console.print(
        f"Poses and torques of a trial of {trial['frames']} frames with plates: {trial['ik_us']:.0f} and "
        f"{trial['id_us']:.0f} us per frame, {trial['times_real_time']:.0f} times real time"
    )
    console.print(_chain_table(result))
    console.print(_muscle_table(result))
    console.print(_sharing_table(result))
    console.print(f"kernels compiled in {result['compile_s']:.1f} s")
    for name, reason in result.get("absent", {}).items():
        console.print(f"{name} was not measured: {reason}")
    for name, reason in result["missing_data"].items():
        console.print(f"muscles of {name} were not measured: {reason}")


def _engines_in(entry: dict[str, float]) -> dict[str, str]:
    return {prefix: title for prefix, title in ENGINES.items() if f"{prefix}us" in entry}


def _table(title: str, first: str, headings: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _time(entry: dict[str, float], prefix: str) -> str:
    """Return the time [us] and its ratio to that of borelli."""
    value = entry[f"{prefix}us"]
    text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
    if not prefix:
        return text
    ratio = value / entry["us"]
    return f"{text} ({ratio:.0f}x)" if ratio >= 10 else f"{text} ({ratio:.2g}x)"


def _step_table(result: Result) -> Table:
    engines = _engines_in(result["joints"])
    table = _table("One step of the 21-segment human, us", "job", engines.values())
    for job in JOBS:
        entry = result[job.name]
        cells = []
        for prefix in engines:
            lines = [_time(entry, prefix)]
            if f"{prefix}marker_rms_mm" in entry:
                lines.append(f"{entry[prefix + 'marker_rms_mm']:.3f} mm, {entry[prefix + 'angle_rms_deg']:.3f} deg")
            cells.append("\n".join(lines))
        table.add_row(job.title, *cells)
    return table


def _torque_table(result: Result) -> Table:
    entry = result["torques"]
    titles = ENGINES | {"mujoco_": "MuJoCo mj_inverse", "pinocchio_": "Pinocchio rnea"}
    engines = {prefix: title for prefix, title in titles.items() if f"{prefix}us" in entry}
    table = _table("Torques from the recorded motion", "", [*engines.values(), "borelli, generalized coordinates"])
    rnea = result["rnea"]
    table.add_row("us per frame", *(_time(entry, prefix) for prefix in engines), f"{rnea['us']:.2f}")
    errors = [entry[prefix + "error_percent"] for prefix in engines]
    table.add_row("error, % of RMS", *(f"{error:.4f}" for error in (*errors, rnea["error_percent"])))
    return table


def _pose_table(result: Result) -> Table:
    table = _table("Poses from 41 markers", "", ("us per frame", "angle error, deg", "torque error, N m"))
    for name, entry in result["poses"].items():
        torque = f"{entry['torque_rms_nm']:.3f}" if "torque_rms_nm" in entry else "-"
        table.add_row(poses.POSE_METHODS[name], f"{entry['us']:.0f}", f"{entry['angle_rms_deg']:.2g}", torque)
    return table


def _chain_table(result: Result) -> Table:
    chains = result["chain"]
    engines = _engines_in(next(iter(chains.values())))
    if any("pinocchio_aba_us" in entry for entry in chains.values()):
        engines["pinocchio_aba_"] = "Pinocchio aba"
    table = _table("Chain of ball-jointed links, us per step", "links", engines.values())
    for links, entry in chains.items():
        table.add_row(links, *(_time(entry, prefix) if f"{prefix}us" in entry else "-" for prefix in engines))
    return table


def _muscle_table(result: Result) -> Table:
    headings = ("muscles", "us per frame", "us per muscle", "MuJoCo, us per muscle", "virtual work error, m")
    table = _table("Lengths and moment arms", "model", headings)
    for name, entry in result["muscle_paths"].items():
        peer = f"{entry['mujoco_us_per_muscle']:.3f}" if "mujoco_us_per_muscle" in entry else "-"
        own = f"{entry['muscles']:.0f}", f"{entry['us']:.1f}", f"{entry['us_per_muscle']:.3f}"
        table.add_row(muscle_paths.MODELS[name][0], *own, peer, f"{entry['virtual_work_m']:.1g}")
    return table


def _sharing_table(result: Result) -> Table:
    headings = ("us per frame", "frames/s", "OpenSim, us per frame", "force difference, N")
    table = _table("Load sharing", "problem", headings)
    for name, entry in result["load_sharing"].items():
        peer = f"{entry['opensim_us']:.0f} ({entry['opensim_times']:.0f}x)" if "opensim_us" in entry else "-"
        difference = f"{entry['opensim_force_difference_n']:.1f}" if "opensim_us" in entry else "-"
        table.add_row(load_sharing.TITLES[name], f"{entry['us']:.0f}", f"{1e6 / entry['us']:.0f}", peer, difference)
    return table
