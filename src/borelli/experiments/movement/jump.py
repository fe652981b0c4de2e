"""Jump reproduced from ground contact, with a limited residual moment for balance.

After Liu, Cooper and Ballard, Fig. 2: drives track the joint angles, contacts support the body, and the only external
load besides is a moment on the pelvis of at most 100 N m. The flight phase is not prescribed: it follows from push-off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.dynamics.external_loads import foot_bodies
from borelli.analysis.motion import Motion, make_motion, to_model_axes
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.movement.stepped_common import HEIGHT, MASS, recorded_motion, root_deviation
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.kinematics import center_of_mass
from borelli.model.model import Softness
from borelli.model.people.human import human
from borelli.view.plot_style import BLUE, INK, ORANGE, style_axes

LIMITS = (100.0, 50.0)
"""Limits of the residual moment about each axis [N m]."""
CUTOFF = 12.0
"""Low-pass cutoff for jumps [Hz]: 10 to 12 retain the impact and remove noise."""
RATE = 200.0
SOLE_SOFTNESS = Softness(6e4, 2e3)
"""[N/m, N s/m]: heel pads stiffen on impact (Aerts et al. 1995); softer soles would launch the body."""
MIN_BOX_HEIGHT = 0.15
"""Height of the feet above the ground from which they stand on a box [m]."""
MAX_FLIGHT_FORCE = 0.02
"""Vertical force below which the body is airborne [body weight]."""


def jump_experiment(
    out: Path,
    motion: Motion | None = None,
    *,
    limits: Sequence[float] = LIMITS,
    log: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Reproduce a jump by stepped inverse dynamics on contacts with limited residuals.

    Args:
        out: Output folder.
        motion: Recorded jump that begins and ends on level ground or above it. Default: a synthetic one.
        limits: Limits of the residual moment about each axis [N m].
        log: Called with a description of each step.
    """
    source = "a synthetic jump" if motion is None else "a recorded jump"
    motion = motion or synthetic_jump()
    rows, results = [], {}
    for limit in limits:
        log(f"residual moment up to {limit:g} N m")
        results[limit] = stepped_torques(
            motion, forces="contacts", residual=limit, cutoff=CUTOFF, sole_softness=SOLE_SOFTNESS
        )
        rows.append({"residual_limit_nm": limit, **_metrics(results[limit])})
    out.mkdir(parents=True, exist_ok=True)
    image = out / "jump.png"
    _draw(results, image)
    first = rows[0]
    claims = [
        Claim("largest residual moment about an axis [N m]", first["residual_torque_max_nm"], "100",
              first["residual_torque_max_nm"] <= 100.0 + 1e-9),
        Claim("residual force [N]", first["residual_force_max_n"], "0", first["residual_force_max_n"] == 0.0),
        Claim("largest deviation of the root from its path [m]", first["root_deviation_m"], "not given",
              first["root_deviation_m"] < 0.15),
        Claim("angle tracking error, RMS [deg]", first["angle_rms_deg"], "not given",
              first["angle_rms_deg"] < 1.0),
    ]  # fmt: skip
    about = (
        f"{source}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, low-passed at {CUTOFF:g} Hz, on contacts"
    )
    return write_outcome(Outcome("jump", about, rows, claims, (image,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    motion = None if recording is None else from_above_ground(recorded_motion(recording))
    return jump_experiment(out, motion, limits=LIMITS[:1] if quick else LIMITS, log=log)


def from_above_ground(motion: Motion) -> Motion:
    """Return the motion from shortly before the feet first reach the ground, if it begins on a box."""
    feet = list(foot_bodies(motion.model).values())
    height = np.nanmin(motion.data["body_position"].sel(body=feet).values[..., 2], axis=1)
    low = np.nanpercentile(height, 5)
    if not height[0] > low + MIN_BOX_HEIGHT:
        return motion
    start = int(np.flatnonzero(height < low + MIN_BOX_HEIGHT)[0])
    time = motion.data["time"].values[start:]
    cut = make_motion(motion.model, motion.coordinates[start:], time, motion.rate)
    return replace(cut, recording=motion.recording)


def synthetic_jump() -> Motion:
    """Return a synthetic jump of a standard human."""
    from borelli.synthetic.jump_and_reach import JUMP_DURATION, jump_coordinates

    model = human(MASS, HEIGHT, markers="cmu41")
    time = np.arange(int(JUMP_DURATION * RATE)) / RATE
    return make_motion(model, jump_coordinates(model, time), time, RATE)


def _heights(torques: SteppedTorques) -> tuple[Any, Any]:
    """Return the height of the center of mass [m], simulated and of the reference motion."""
    data, model = torques.data, torques.motion.model
    simulated = data["coordinate_value"].values
    up = to_model_axes(model)
    return tuple(
        (center_of_mass(model, q) @ up)[:, 2] for q in (simulated, simulated - data["coordinate_error"].values)
    )  # type: ignore[return-value]


def _metrics(torques: SteppedTorques) -> dict[str, float]:
    data = torques.data
    weight = torques.motion.model.mass * 9.81
    vertical = data["ground_reaction_force"].values[..., 2].sum(axis=1) / weight
    simulated, reference = _heights(torques)
    return {
        "residual_torque_max_nm": float(np.abs(data["residual_moment"].values).max()),
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "residual_force_max_n": float(np.abs(data["residual_force"].values).max()),
        "angle_rms_deg": float(np.degrees(torques.rms_error)),
        "root_deviation_m": root_deviation(torques),
        "flight_s": float((vertical < MAX_FLIGHT_FORCE).sum() / torques.motion.rate),
        "peak_force_bw": float(vertical.max()),
        "rise_simulated_m": float(simulated.max() - simulated[0]),
        "rise_reference_m": float(reference.max() - reference[0]),
        "numerical_percent": float(data.attrs["numerical_percent"]),
    }


def _draw(results: dict[float, SteppedTorques], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    for (limit, torques), color in zip(results.items(), (BLUE, ORANGE, INK), strict=False):
        data = torques.data
        time, weight = data["time"].values, torques.motion.model.mass * 9.81
        simulated, reference = _heights(torques)
        if color == BLUE:
            axes[0].plot(time, reference, color=INK, label="reference")
        axes[0].plot(time, simulated, color=color, lw=0.9, label=f"simulated, residual up to {limit:g} N m")
        axes[1].plot(time, data["ground_reaction_force"].values[..., 2].sum(axis=1) / weight, color=color, lw=0.9)
        axes[2].plot(time, np.abs(data["residual_moment"].values).max(axis=1), color=color, lw=0.9)
    for ax, label in zip(
        axes, ("height of the center of mass [m]", "vertical force [body weight]", "residual moment [N m]"), strict=True
    ):
        ax.set(xlabel="time [s]", ylabel=label)
    axes[0].legend(frameon=False, fontsize=8)
    style_axes(axes)
    figure.savefig(path, dpi=130)
