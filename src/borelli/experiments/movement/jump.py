"""The jump experiment: a jump reproduced from what the ground gives, with a limited torque to keep upright.

After Liu, Cooper and Ballard, Fig. 2: drives lead the joints, contacts carry the body, and the only force that nature
did not supply is a torque on the pelvis of at most 100 N m. The flight is nobody's command: it comes of the push.
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
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.movement.stepped_common import BLUE, HEIGHT, INK, MASS, ORANGE, recorded_motion, root_deviation, tidy
from borelli.model.kinematics import center_of_mass
from borelli.model.model import Softness
from borelli.model.people.human import human

LIMITS = (100.0, 50.0)
"""[N m] of the residual about each axis."""
CUTOFF = 12.0
"""[Hz] for jumps: 10 to 12 keep the impact and lose the noise."""
RATE = 200.0
FIRM = Softness(6e4, 2e3)
"""[N/m, N s/m] of soles: a heel pad that is hit stiffens (Aerts et al. 1995), and soft ones would throw the body up."""
ON_A_BOX = 0.15
"""[m] that feet are above the ground while they stand on something else."""
AIRBORNE = 0.02
"""Part of body weight below which the feet are in the air."""


def jump_experiment(
    out: Path,
    motion: Motion | None = None,
    *,
    limits: Sequence[float] = LIMITS,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """A jump stepped on contacts with limited residuals.

    Args:
        out: Folder for the table and the picture.
        motion: A recorded jump that begins and ends on level ground or above it; a synthetic one by default.
        limits: Of the residual torque about each axis [N m].
        say: Told what is being done.
    """
    where = "a synthetic jump" if motion is None else "a recorded jump"
    motion = motion or synthetic_jump()
    rows, found = [], {}
    for limit in limits:
        say(f"residual torque up to {limit:g} N m")
        found[limit] = stepped_torques(motion, forces="contacts", residual=limit, cutoff=CUTOFF, sole=FIRM)
        rows.append({"residual_limit_nm": limit, **_figures(found[limit])})
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "jump.png"
    _draw(found, picture)
    first = rows[0]
    claims = [
        Claim("largest residual torque about an axis [N m]", first["residual_torque_max_nm"], "100",
              first["residual_torque_max_nm"] <= 100.0 + 1e-9),
        Claim("residual force [N]", first["residual_force_max_n"], "0", first["residual_force_max_n"] == 0.0),
        Claim("root from its path, at most [m]", first["root_deviation_m"], "not given",
              first["root_deviation_m"] < 0.15),
        Claim("angles from those asked for, RMS [deg]", first["angle_rms_deg"], "not given",
              first["angle_rms_deg"] < 1.0),
    ]  # fmt: skip
    about = (
        f"{where}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, low-passed at {CUTOFF:g} Hz, on contacts"
    )
    return write_outcome(Outcome("jump", about, rows, claims, (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    motion = None if recording is None else from_above_ground(recorded_motion(recording))
    return jump_experiment(out, motion, limits=LIMITS[:1] if quick else LIMITS, say=say)


def from_above_ground(motion: Motion) -> Motion:
    """The motion from shortly before the feet first come down to the ground, where it begins on a box."""
    feet = list(foot_bodies(motion.model).values())
    height = np.nanmin(motion.data["body_position"].sel(body=feet).values[..., 2], axis=1)
    low = np.nanpercentile(height, 5)
    if not height[0] > low + ON_A_BOX:
        return motion
    start = int(np.flatnonzero(height < low + ON_A_BOX)[0])
    time = motion.data["time"].values[start:]
    cut = make_motion(motion.model, motion.coordinates[start:], time, motion.rate)
    return replace(cut, recording=motion.recording)


def synthetic_jump() -> Motion:
    """A jump of a standard human that was made, not measured."""
    from borelli.synthetic.jump_and_reach import JUMP_DURATION, jump_coordinates

    model = human(MASS, HEIGHT, markers="cmu41")
    time = np.arange(int(JUMP_DURATION * RATE)) / RATE
    return make_motion(model, jump_coordinates(model, time), time, RATE)


def _heights(torques: SteppedTorques) -> tuple[Any, Any]:
    """Of the centre of mass [m]: as made, and as asked for."""
    data, model = torques.data, torques.motion.model
    made = data["coordinate_value"].values
    up = to_model_axes(model)
    return tuple((center_of_mass(model, q) @ up)[:, 2] for q in (made, made - data["deviation"].values))  # type: ignore[return-value]


def _figures(torques: SteppedTorques) -> dict[str, float]:
    data = torques.data
    weight = torques.motion.model.mass * 9.81
    vertical = data["ground_reaction_force"].values[..., 2].sum(axis=1) / weight
    made, asked = _heights(torques)
    return {
        "residual_torque_max_nm": float(np.abs(data["residual_moment"].values).max()),
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "residual_force_max_n": float(np.abs(data["residual_force"].values).max()),
        "angle_rms_deg": float(np.degrees(torques.rms_error)),
        "root_deviation_m": root_deviation(torques),
        "flight_s": float((vertical < AIRBORNE).sum() / torques.motion.rate),
        "peak_force_bw": float(vertical.max()),
        "rise_made_m": float(made.max() - made[0]),
        "rise_asked_m": float(asked.max() - asked[0]),
        "numerical_percent": float(data.attrs["numerical_percent"]),
    }


def _draw(found: dict[float, SteppedTorques], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    for (limit, torques), color in zip(found.items(), (BLUE, ORANGE, INK), strict=False):
        data = torques.data
        time, weight = data["time"].values, torques.motion.model.mass * 9.81
        made, asked = _heights(torques)
        if color == BLUE:
            axes[0].plot(time, asked, color=INK, label="asked for")
        axes[0].plot(time, made, color=color, lw=0.9, label=f"made, residual up to {limit:g} N m")
        axes[1].plot(time, data["ground_reaction_force"].values[..., 2].sum(axis=1) / weight, color=color, lw=0.9)
        axes[2].plot(time, np.abs(data["residual_moment"].values).max(axis=1), color=color, lw=0.9)
    for ax, label in zip(
        axes, ("height of the centre of mass [m]", "vertical force [body weight]", "residual torque [N m]"), strict=True
    ):
        ax.set(xlabel="time [s]", ylabel=label)
    axes[0].legend(frameon=False, fontsize=8)
    tidy(axes)
    figure.savefig(path, dpi=130)
