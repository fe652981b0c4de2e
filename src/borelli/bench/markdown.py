"""Benchmark results as Markdown tables, for docs/performance.md."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from borelli.bench.load_sharing import TITLES
from borelli.bench.metrics import JOBS
from borelli.bench.muscle_paths import MODELS
from borelli.bench.poses import POSE_METHODS

STEP_ENGINES = {"": "borelli", "ode_": "ODE dWorldStep", "ode_quick_": "ODE QuickStep", "mujoco_": "MuJoCo"}
TORQUE_ENGINES = STEP_ENGINES | {"mujoco_": "MuJoCo mj_inverse", "pinocchio_": "Pinocchio rnea"}
CHAIN_ENGINES = STEP_ENGINES | {"pinocchio_aba_": "Pinocchio aba"}
POSE_COLUMNS = {"us": "us per frame", "angle_rms_deg": "angle error, deg", "torque_rms_nm": "torque error, N m"}
TRIAL_COLUMNS = {
    "ik_us": "inverse kinematics, us per frame",
    "id_us": "inverse dynamics, us per frame",
    "times_real_time": "times real time",
}
PATH_COLUMNS = {
    "muscles": "muscles",
    "us": "us per frame",
    "us_per_muscle": "us per muscle",
    "mujoco_us_per_muscle": "MuJoCo, us per muscle",
    "virtual_work_m": "largest \\|R + dl/dq\\|, m",
}
SHARING_COLUMNS = {
    "us": "us per frame",
    "opensim_us": "OpenSim, us per frame",
    "opensim_times": "ratio",
    "opensim_activation_difference": "activation difference",
    "opensim_force_difference_n": "force difference, N",
}
"""Key of a metric: heading of its column."""


def markdown(result: dict[str, Any]) -> str:
    """Return tables of steps, torques, poses and chains, headed by date and processor."""
    torques = {"us per frame": "us", "error, % of RMS": "error_percent"}
    steps = [(job.title, result[job.name]) for job in JOBS]
    parts = [
        f"{date.today():%d %B %Y}, {_processor()}, Python {platform.python_version()}; kernels compiled in "
        f"{result['compile_s']:.0f} s.",
        "## One step of the human [us]",
        _table("job", STEP_ENGINES, [(title, entry, "us") for title, entry in steps]),
        "## Marker error, RMS [mm]",
        _table("job", STEP_ENGINES, [(t, e, "marker_rms_mm") for t, e in steps if "marker_rms_mm" in e]),
        "## Torques from exact poses",
        _table("", TORQUE_ENGINES, [(title, result["torques"], key) for title, key in torques.items()]),
        "## Torques from exact coordinates",
        _table("", TORQUE_ENGINES, [(title, result["rnea"], key) for title, key in torques.items()]),
        "## Poses from 41 markers",
        _plain("", POSE_COLUMNS, {POSE_METHODS[name]: entry for name, entry in result["poses"].items()}),
        "## Poses and torques of a trial",
        _plain("", TRIAL_COLUMNS, {"synthetic walk with plates": result["pipeline"]}),
        "## Chains [us per step]",
        _table("links", CHAIN_ENGINES, [(links, entry, "us") for links, entry in result["chain"].items()]),
        "## Muscles: lengths and moment arms",
        _plain("model", PATH_COLUMNS, {MODELS[name][0]: entry for name, entry in result["muscle_paths"].items()}),
        "## Muscles: load sharing",
        _plain("problem", SHARING_COLUMNS, {TITLES[name]: entry for name, entry in result["load_sharing"].items()}),
    ]
    return "\n\n".join(parts)


def _table(first: str, engines: dict[str, str], lines: Sequence[tuple[str, dict[str, float], str]]) -> str:
    """Return a table with one line per (title, metrics, key) and one column per engine that has any of them."""
    shown = [prefix for prefix in engines if any(prefix + key in entry for _, entry, key in lines)]
    rows = [[first, *(engines[prefix] for prefix in shown)], ["---", *("---:" for _ in shown)]]
    rows += [[title, *(_number(entry.get(prefix + key)) for prefix in shown)] for title, entry, key in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _plain(first: str, columns: dict[str, str], entries: dict[str, dict[str, float]]) -> str:
    """Return a table with one line per entry and one column per key."""
    rows = [[first, *columns.values()], ["---", *("---:" for _ in columns)]]
    rows += [[title, *(_number(entry.get(key)) for key in columns)] for title, entry in entries.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
