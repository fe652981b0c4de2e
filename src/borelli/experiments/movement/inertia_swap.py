"""The foreign body experiment: one person's motion with another's masses: stable, and torques that are still its own.

After Liu, Cooper and Ballard's tests on the CMU database, whose subjects' inertia nobody knows. The geometry stays that
of the motion; masses, centres of mass and inertias are those of other bodies, brought to its lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.motion import Motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.movement.stepped_common import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    changed,
    effort,
    recorded_motion,
    root_deviation,
    synthetic_walk,
    tidy,
)
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.numerics.filters import lowpass

BODIES: Mapping[str, tuple[float, float, str]] = {
    "slight woman": (50.0, 1.60, "female"),
    "tall man": (85.0, 1.92, "male"),
    "heavy man": (120.0, 1.75, "male"),
}
"""Mass [kg], height [m] and sex of those whose inertia is taken."""
LEGS = ("hip_flexion_r", "knee_flexion_r", "ankle_flexion_r", "hip_flexion_l", "knee_flexion_l", "ankle_flexion_l")
ALIKE = 0.7
"""Correlation of leg torques with the own body's at which they count as the same motion's."""
RESIDUAL = 100.0
"""[N m]"""
CUTOFF = 10.0
"""[Hz] of torques that are compared."""


def foreign_body_experiment(
    out: Path,
    motion: Motion | None = None,
    *,
    bodies: Mapping[str, tuple[float, float, str]] = BODIES,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """A motion stepped on contacts with its own and with other bodies' inertia.

    Args:
        out: Folder for the table and the picture.
        motion: A recorded motion of a fitted human; a synthetic walk by default.
        bodies: Mass, height and sex by name.
        say: Told what is being done.
    """
    where = "a recorded motion" if motion is not None and motion.recording is not None else "a synthetic walk"
    motion = motion or synthetic_walk()
    found: dict[str, SteppedTorques] = {}
    for name in ("own", *bodies):
        say(f"inertia: {name}")
        model = motion.model if name == "own" else with_inertia_of(motion.model, human(*bodies[name]))
        found[name] = stepped_torques(changed(motion, model=model), forces="contacts", residual=RESIDUAL)
    rows: list[dict[str, Any]] = []
    for name, torques in found.items():
        alike = _correlation(found["own"], torques)
        rows.append({
            "inertia": name, "mass_kg": torques.motion.model.mass, "leg_torque_r": alike,
            "effort_nms_per_kg": effort(torques) / torques.motion.model.mass,
            "angle_rms_deg": float(np.degrees(torques.rms_error)), "root_deviation_m": root_deviation(torques),
            "residual_moment_rms_nm": torques.residual_moment_rms,
        })  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "foreign_body.png"
    _draw(found, picture)
    claims = [
        Claim(f"{row['inertia']}: leg torques like the own body's [r]", row["leg_torque_r"], "identifiable",
              row["leg_torque_r"] >= ALIKE)
        for row in rows[1:]
    ]  # fmt: skip
    claims += [
        Claim(f"{row['inertia']}: stable, root from its path [m]", row["root_deviation_m"], "stable",
              row["root_deviation_m"] < 0.5)
        for row in rows[1:]
    ]  # fmt: skip
    about = (
        f"{where}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, with the inertia of {', '.join(bodies)}"
    )
    return write_outcome(Outcome("foreign-body", about, rows, claims, (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    motion = (synthetic_walk(1.5) if quick else None) if recording is None else recorded_motion(recording)
    bodies = dict(list(BODIES.items())[:1]) if quick else BODIES
    return foreign_body_experiment(out, motion, bodies=bodies, say=say)


def with_inertia_of(model: Model, other: Model) -> Model:
    """The model with the masses of another, whose centres and inertias are brought to its heights by the ratio."""
    size = _height(model) / _height(other)
    bodies = []
    for body in model.bodies:
        given = other.body(body.name)
        x, y, z = (size * value for value in given.center_of_mass)
        inertia = tuple(tuple(size**2 * value for value in row) for row in given.inertia)
        bodies.append(replace(body, mass=given.mass, center_of_mass=(x, y, z), inertia=inertia))  # type: ignore[arg-type]
    return replace(model, bodies=tuple(bodies), name=f"{model.name} with the inertia of {other.name}")


def _height(model: Model) -> float:
    """[m] between the ankles and the head's joint, in the reference configuration."""
    return model.body("head").frame.position[2] - model.body("foot_r").frame.position[2]


def _correlation(one: SteppedTorques, other: SteppedTorques) -> float:
    """Mean correlation of leg torques, low-passed: what contacts do from frame to frame is theirs."""
    a, b = (lowpass(t.data["torque"].sel(coordinate=list(LEGS)).values, t.motion.rate, CUTOFF) for t in (one, other))
    return float(np.mean([np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(len(LEGS))]))


def _draw(found: Mapping[str, SteppedTorques], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for (name, torques), color in zip(found.items(), (INK, BLUE, ORANGE, GREEN), strict=False):
        for ax, coordinate in zip(axes, LEGS[:3], strict=True):
            per_mass = torques.data["torque"].sel(coordinate=coordinate).values / torques.motion.model.mass
            ax.plot(torques.data["time"].values, per_mass, color=color, lw=0.9, label=name)
            ax.set(xlabel="time [s]", ylabel=f"{coordinate} [N m/kg]")
    axes[0].legend(frameon=False, fontsize=8)
    tidy(axes)
    figure.savefig(path, dpi=130)
