"""The arm swing experiment: what walking costs with the arms clamped, and with joints that are held stiff.

After Liu, Cooper and Ballard, Fig. 7: the same walk, its arms kept still against the trunk. Ortega, Fehlman and Farley
(2008) measured 6 % more metabolic power in people who held their arms. The cost is integrated net torque;
co-contraction adds what antagonists pull against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from borelli.analysis.energetics.cocontraction import cocontraction
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.motion import Motion
from borelli.analysis.stepped.stepped_torques import SteppedTorques, stepped_torques
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.movement.stepped_common import (
    BLUE,
    ORANGE,
    changed,
    effort,
    positive_work,
    recorded_motion,
    root_deviation,
    synthetic_walk,
    tidy,
)

ARMS = ("shoulder_", "elbow_", "wrist_")
LEVELS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""[N m] by which antagonists of the arm's joints pull against each other."""
CLAMPING = 1.0
"""[N m] with which arms are held still."""
SETTLING = 0.25
"""[s] at either end that are not counted."""
RESIDUAL = 100.0
"""[N m]"""


def armswing_experiment(
    out: Path,
    motion: Motion | None = None,
    *,
    levels: Sequence[float] = LEVELS,
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """A walk with arms that swing and with arms that are clamped, stepped on contacts.

    Args:
        out: Folder for the table and the picture.
        motion: A recorded walk; a synthetic one by default.
        levels: Of co-contraction in the clamped arms' joints [N m].
        say: Told what is being done.
    """
    measured = motion is not None and motion.recording is not None
    where = "a recorded walk" if measured else "a synthetic walk"
    motion = motion or synthetic_walk()
    found = {}
    for arms, course in (("swinging", motion), ("clamped", clamp_arms(motion))):
        say(f"arms {arms}")
        found[arms] = stepped_torques(course, forces="contacts", residual=RESIDUAL)
    rows: list[dict[str, Any]] = [
        {"arms": arms, "cocontraction_nm": 0.0, **_figures(torques)} for arms, torques in found.items()
    ]
    names = [c.name for c in motion.model.coordinates if c.name.startswith(ARMS)]
    books = compute_energy(found["clamped"])
    base = cocontraction(books, 0.0)["torque_time_integral"]
    for level in levels[1:]:
        extra = cocontraction(books, dict.fromkeys(names, level))["torque_time_integral"] / base
        rows.append(rows[1] | {"cocontraction_nm": level, "effort_nms": rows[1]["effort_nms"] * extra})
    for row in rows:
        row["effort_percent"] = 100.0 * (row["effort_nms"] / rows[0]["effort_nms"] - 1.0)
        row["work_percent"] = 100.0 * (row["positive_work_j"] / rows[0]["positive_work_j"] - 1.0)
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "armswing.png"
    _draw(rows, picture)
    rise = np.diff([row["effort_percent"] for row in rows[1:]])
    # who clamps his arms does so by co-contraction; a synthetic walk's trunk does not know its arms
    stiff = next(row for row in rows[1:] if row["cocontraction_nm"] >= CLAMPING)
    claims = [
        Claim(f"arms clamped by {stiff['cocontraction_nm']:g} N m of co-contraction cost more [%]",
              stiff["effort_percent"], "6.1 (Ortega 2008: 6)", stiff["effort_percent"] > 0.0),
        Claim("cost rises with co-contraction: least rise of a level [%]", float(rise.min()) if len(rise) else 0.0,
              "rises", bool((rise > 0.0).all())),
    ]  # fmt: skip
    if measured:
        own = rows[1]["effort_percent"]
        claims.insert(0, Claim("clamped arms cost more, net torque alone [%]", own, "6.1 (Ortega 2008: 6)", own > 0.0))
    about = (
        f"{where}, {motion.data.sizes['time']} frames at {motion.rate:g} Hz, on contacts with a residual torque of up "
        f"to {RESIDUAL:g} N m; clamped: shoulders, elbows and wrists kept at their mean angles"
    )
    return write_outcome(Outcome("armswing", about, rows, claims, (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    motion = (synthetic_walk(1.5) if quick else None) if recording is None else recorded_motion(recording)
    return armswing_experiment(out, motion, levels=LEVELS[:3] if quick else LEVELS, say=say)


def clamp_arms(motion: Motion) -> Motion:
    """The motion with the angles of shoulders, elbows and wrists kept at their means."""
    q = motion.coordinates.copy()
    for i, coordinate in enumerate(motion.model.coordinates):
        if coordinate.name.startswith(ARMS):
            q[:, i] = np.nanmean(q[:, i])
    return changed(motion, q)


def _figures(torques: SteppedTorques) -> dict[str, float]:
    time = torques.data["time"].values
    return {
        "effort_nms": effort(torques, SETTLING, float(np.ptp(time)) - SETTLING),
        "positive_work_j": positive_work(torques),
        "residual_moment_rms_nm": torques.residual_moment_rms,
        "root_deviation_m": root_deviation(torques),
    }


def _draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    axes[0].bar([row["arms"] for row in rows[:2]], [row["effort_nms"] for row in rows[:2]], color=[BLUE, ORANGE])
    axes[0].set(ylabel="integrated torque [N m s]", title=f"clamped: {rows[1]['effort_percent']:+.1f} %; paper +6.1 %")
    held = rows[1:]
    axes[1].plot([row["cocontraction_nm"] for row in held], [row["effort_percent"] for row in held], "o-", color=ORANGE)
    axes[1].set(xlabel="co-contraction in the arms [N m]", ylabel="cost above swinging arms [%]")
    tidy(axes)
    figure.savefig(path, dpi=130)
