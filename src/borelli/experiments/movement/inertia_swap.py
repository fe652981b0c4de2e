"""Motion of one person with the inertia of another: the simulation stays stable and torques remain similar.

After the tests of Liu, Cooper and Ballard on the CMU database, whose subjects have unknown inertia. Geometry is that of
the motion; masses, centers of mass and inertias are those of other bodies, scaled to its height.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.stepped_common import (
    requested_walk,
    root_deviation,
    torque_time_integral,
    with_changes,
)
from borelli.experiments.outcome import Claim, Outcome, below
from borelli.model.model import Model
from borelli.numerics.filters import lowpass
from borelli.people.human import human
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

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


def run(request: Request) -> Outcome:
    """Compute torques of a motion with its own and with other inertia, by stepped inverse dynamics on contacts."""
    motion = requested_walk(request)
    bodies = list(BODIES)[:1] if request.quick else list(BODIES)
    results: dict[str, SteppedTorques] = {}
    rows: list[dict[str, Any]] = []
    for name in ("own", *bodies):
        request.log(f"inertia: {name}")
        model = motion.model if name == "own" else with_inertia_of(motion.model, human(*BODIES[name]))
        torques = stepped_torques(with_changes(motion, model=model), forces="contacts", residual=MAX_RESIDUAL)
        results[name] = torques
        rows.append({
            "inertia": name, "mass_kg": torques.motion.model.mass,
            "leg_torque_r": _correlation(results["own"], torques),
            "torque_time_integral_nms_per_kg": torque_time_integral(torques) / torques.motion.model.mass,
            "angle_rms_deg": float(np.degrees(torques.rms_error)), "root_deviation_m": root_deviation(torques),
            "residual_moment_rms_nm": torques.residual_moment_rms,
        })  # fmt: skip
    _draw(results, request.plot)
    claims = [
        Claim(f"{row['inertia']}: correlation of leg torques with the original", row["leg_torque_r"], "identifiable",
              f"at least {MIN_CORRELATION:g}", row["leg_torque_r"] >= MIN_CORRELATION)
        for row in rows[1:]
    ]  # fmt: skip
    claims += [
        below(f"{row['inertia']}: deviation of the root from its path [m]", row["root_deviation_m"], "stable", 0.5)
        for row in rows[1:]
    ]
    source = "a synthetic walk" if request.recording is None else "a recorded motion"
    about = (
        f"{source}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, with the inertia of {', '.join(bodies)}"
    )
    return Outcome(request.name, about, rows, claims, (request.plot,))


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
    with figure(path, *(f"{coordinate} [N m/kg]" for coordinate in LEGS[:3]), size=(11.0, 3.6)) as axes:
        for (name, torques), color in zip(results.items(), (INK, BLUE, ORANGE, GREEN), strict=False):
            for ax, coordinate in zip(axes, LEGS[:3], strict=True):
                per_mass = torques.data["torque"].sel(coordinate=coordinate).values / torques.motion.model.mass
                label = name if ax is axes[0] else None
                ax.plot(torques.data["time"].values, per_mass, color=color, lw=0.9, label=label)
