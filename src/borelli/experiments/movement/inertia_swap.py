"""Motion of one person with the inertia of another: the simulation stays stable and torques remain similar.

After the tests of Liu, Cooper and Ballard on the CMU database, whose subjects have unknown inertia. Geometry is that of
the motion; masses, centers of mass and inertias are those of other bodies, scaled to its height.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.motion import Motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.movement.stepped_common import (
    recorded_motion,
    root_deviation,
    synthetic_walk,
    torque_time_integral,
    with_changes,
)
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.numerics.filters import lowpass
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE, style_axes

BODIES: Mapping[str, tuple[float, float, str]] = {
    "slight woman": (50.0, 1.60, "female"),
    "tall man": (85.0, 1.92, "male"),
    "heavy man": (120.0, 1.75, "male"),
}
"""Mass [kg], height [m] and sex of the bodies whose inertia is used."""
LEGS = ("hip_flexion_r", "knee_flexion_r", "ankle_flexion_r", "hip_flexion_l", "knee_flexion_l", "ankle_flexion_l")
MIN_CORRELATION = 0.7
"""Correlation of leg torques with those of the original body."""
MAX_RESIDUAL = 100.0
"""Residual moment about each axis [N m]."""
CUTOFF = 10.0
"""Low-pass cutoff of the torques that are compared [Hz]."""


def inertia_swap_experiment(
    out: Path,
    motion: Motion | None = None,
    *,
    bodies: Mapping[str, tuple[float, float, str]] = BODIES,
    log: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Compute torques of a motion with its own and with other inertia, by stepped inverse dynamics on contacts.

    Args:
        out: Output folder.
        motion: Recorded motion of a fitted human. Default: a synthetic walk.
        bodies: Mass, height and sex by name.
        log: Called with a description of each step.
    """
    source = "a recorded motion" if motion is not None and motion.recording is not None else "a synthetic walk"
    motion = motion or synthetic_walk()
    results: dict[str, SteppedTorques] = {}
    for name in ("own", *bodies):
        log(f"inertia: {name}")
        model = motion.model if name == "own" else with_inertia_of(motion.model, human(*bodies[name]))
        results[name] = stepped_torques(with_changes(motion, model=model), forces="contacts", residual=MAX_RESIDUAL)
    rows: list[dict[str, Any]] = []
    for name, torques in results.items():
        correlation = _correlation(results["own"], torques)
        rows.append({
            "inertia": name, "mass_kg": torques.motion.model.mass, "leg_torque_r": correlation,
            "torque_time_integral_nms_per_kg": torque_time_integral(torques) / torques.motion.model.mass,
            "angle_rms_deg": float(np.degrees(torques.rms_error)), "root_deviation_m": root_deviation(torques),
            "residual_moment_rms_nm": torques.residual_moment_rms,
        })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    image = out / "foreign_body.png"
    _draw(results, image)
    claims = [
        Claim(f"{row['inertia']}: correlation of leg torques with the original", row["leg_torque_r"], "identifiable",
              row["leg_torque_r"] >= MIN_CORRELATION)
        for row in rows[1:]
    ]  # fmt: skip
    claims += [
        Claim(f"{row['inertia']}: deviation of the root from its path [m]", row["root_deviation_m"], "stable",
              row["root_deviation_m"] < 0.5)
        for row in rows[1:]
    ]  # fmt: skip
    about = (
        f"{source}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, with the inertia of {', '.join(bodies)}"
    )
    return write_outcome(Outcome("foreign-body", about, rows, claims, (image,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, log: Callable[[str], None]) -> Outcome:
    """Run the experiment as listed in the catalog."""
    motion = (synthetic_walk(1.5) if quick else None) if recording is None else recorded_motion(recording)
    bodies = dict(list(BODIES.items())[:1]) if quick else BODIES
    return inertia_swap_experiment(out, motion, bodies=bodies, log=log)


def with_inertia_of(model: Model, other: Model) -> Model:
    """Return the model with the masses of another, whose centers and inertias are scaled by the ratio of heights."""
    size = _height(model) / _height(other)
    bodies = []
    for body in model.bodies:
        given = other.body(body.name)
        x, y, z = (size * value for value in given.center_of_mass)
        inertia = tuple(tuple(size**2 * value for value in row) for row in given.inertia)
        bodies.append(replace(body, mass=given.mass, center_of_mass=(x, y, z), inertia=inertia))  # type: ignore[arg-type]
    return replace(model, bodies=tuple(bodies), name=f"{model.name} with the inertia of {other.name}")


def _height(model: Model) -> float:
    """Return the distance from ankles to the head joint in the reference pose [m]."""
    return model.body("head").frame.position[2] - model.body("foot_r").frame.position[2]


def _correlation(one: SteppedTorques, other: SteppedTorques) -> float:
    """Return the mean correlation of leg torques, low-passed to remove contact noise."""
    a, b = (lowpass(t.data["torque"].sel(coordinate=list(LEGS)).values, t.motion.rate, CUTOFF) for t in (one, other))
    return float(np.mean([np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(len(LEGS))]))


def _draw(results: Mapping[str, SteppedTorques], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for (name, torques), color in zip(results.items(), (INK, BLUE, ORANGE, GREEN), strict=False):
        for ax, coordinate in zip(axes, LEGS[:3], strict=True):
            per_mass = torques.data["torque"].sel(coordinate=coordinate).values / torques.motion.model.mass
            ax.plot(torques.data["time"].values, per_mass, color=color, lw=0.9, label=name)
            ax.set(xlabel="time [s]", ylabel=f"{coordinate} [N m/kg]")
    axes[0].legend(frameon=False, fontsize=8)
    style_axes(axes)
    figure.savefig(path, dpi=130)
