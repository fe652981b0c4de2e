"""Jump reproduced from ground contact, with a limited residual moment for balance.

After Liu, Cooper and Ballard, Fig. 2: drives track the joint angles, contacts support the body, and the only external
load besides is a moment on the pelvis of at most 100 N m. The flight phase is not prescribed: it follows from push-off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.dynamics.external_loads import foot_bodies
from borelli.analysis.motion import Motion, make_motion, to_model_axes
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.stepped_common import HEIGHT, MASS, recorded_motion, root_deviation
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, below
from borelli.model.kinematics import center_of_mass
from borelli.model.model import Softness
from borelli.people.human import human
from borelli.synthetic.jump_and_reach import JUMP_DURATION, jump_coordinates
from borelli.view.plot_style import BLUE, INK, ORANGE

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


def run(request: Request) -> Outcome:
    """Reproduce a jump by stepped inverse dynamics on contacts with limited residuals."""
    kind, motion = "synthetic", synthetic_jump()
    if request.recording is not None:
        kind, motion = "recorded", from_above_ground(recorded_motion(request.recording))
    results = {}
    for limit in LIMITS[:1] if request.quick else LIMITS:
        request.log(f"residual moment up to {limit:g} N m")
        results[limit] = reproduce(motion, limit)
    rows = [{"residual_limit_nm": limit, **metrics(torques)} for limit, torques in results.items()]
    _draw(results, request.plot)
    first = rows[0]
    claims = [
        Claim("largest residual moment about an axis [N m]", first["residual_torque_max_nm"], "100",
              "at most 100", first["residual_torque_max_nm"] <= 100.0 + 1e-9),
        Claim("residual force [N]", first["residual_force_max_n"], "0", "0",
              first["residual_force_max_n"] == 0.0),
        below("largest deviation of the root from its path [m]", first["root_deviation_m"], NOT_GIVEN, 0.15),
        below("angle tracking error, RMS [deg]", first["angle_rms_deg"], NOT_GIVEN, 1.0),
    ]  # fmt: skip
    about = (
        f"a {kind} jump, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, "
        f"low-passed at {CUTOFF:g} Hz, on contacts"
    )
    return Outcome(request.name, about, rows, claims, (request.plot,))


def reproduce(motion: Motion, limit: float) -> SteppedTorques:
    """Return stepped torques of a jump, for a limit of the residual moment about each axis [N m]."""
    return stepped_torques(motion, forces="contacts", residual=limit, cutoff=CUTOFF, sole_softness=SOLE_SOFTNESS)


def from_above_ground(motion: Motion) -> Motion:
    """Return the motion from shortly before the feet first reach the ground, if it begins on a box."""
    feet = list(foot_bodies(motion.model).values())
    height = np.fmin.reduce(motion.data["body_position"].sel(body=feet).values[..., 2], axis=1)
    known = np.isfinite(height)
    if not known[0]:
        return motion
    low = np.percentile(height[known], 5)
    if not height[0] > low + MIN_BOX_HEIGHT:
        return motion
    start = int(np.flatnonzero(height < low + MIN_BOX_HEIGHT)[0])
    time = motion.data["time"].values[start:]
    cut = make_motion(motion.model, motion.coordinates[start:], time, motion.rate)
    return replace(cut, recording=motion.recording)


def synthetic_jump() -> Motion:
    """Return a synthetic jump of a standard human."""
    model = human(MASS, HEIGHT, markers="cmu41")
    time = np.arange(int(JUMP_DURATION * RATE)) / RATE
    return make_motion(model, jump_coordinates(model, time), time, RATE)


def _heights(torques: SteppedTorques) -> tuple[Any, Any]:
    """Return the height of the center of mass [m], simulated and of the reference motion."""
    data, model = torques.data, torques.motion.model
    simulated = data["coordinate_value"].values
    up = to_model_axes(model)
    reference = simulated - data["coordinate_error"].values
    return (center_of_mass(model, simulated) @ up)[:, 2], (center_of_mass(model, reference) @ up)[:, 2]


def _vertical_force(torques: SteppedTorques) -> Any:
    """Return the vertical ground reaction force [body weight]."""
    weight = torques.motion.model.mass * 9.81
    return torques.data["ground_reaction_force"].values[..., 2].sum(axis=1) / weight


def metrics(torques: SteppedTorques) -> dict[str, float]:
    """Return the residuals, errors, flight time and rise of a jump, by name with unit."""
    data = torques.data
    vertical = _vertical_force(torques)
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


def _draw(results: Mapping[float, SteppedTorques], path: Path) -> None:
    labels = "height of the center of mass [m]", "vertical force [body weight]", "residual moment [N m]"
    with figure(path, *labels, size=(11.0, 3.8)) as (heights, forces, moments):
        for (limit, torques), color in zip(results.items(), (BLUE, ORANGE), strict=False):
            time = torques.data["time"].values
            simulated, reference = _heights(torques)
            if color == BLUE:
                heights.plot(time, reference, color=INK, label="reference")
            heights.plot(time, simulated, color=color, lw=0.9, label=f"simulated, residual up to {limit:g} N m")
            forces.plot(time, _vertical_force(torques), color=color, lw=0.9)
            moments.plot(time, np.abs(torques.data["residual_moment"].values).max(axis=1), color=color, lw=0.9)
