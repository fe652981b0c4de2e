"""Few markers: poses from head, hands and feet alone, beside those from all (Liu, Cooper and Ballard, Fig. 8, 9).

What no marker tells, stops and the springs to a rest pose do. The model's *zero* stands with locked knees, at the
knees' stop; *neutral* stands upright with knees unlocked; the *task* pose is the mean pose of the movement itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS, inverse_kinematics, root_coordinates
from borelli.analysis.motion import Motion, match_markers, to_model_axes
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.model.kinematics import coupled_coordinates, marker_positions
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.recording.recording import Recording

Array = NDArray[np.float64]

KEPT_BODIES = ("head", "hand", "forearm", "foot", "toes")
WRIST_BAR = ("WRA", "WRB")
"""The only markers of the forearm that count to the hand: they sit on a bar at the wrist."""
PARTS = {"legs": ("hip", "knee", "ankle"), "arms": ("shoulder", "elbow", "wrist")}
UNLOCKED = {"hip_flexion": 10.0, "knee_flexion": 15.0, "ankle_flexion": 5.0}
"""[deg] Knee = hip + ankle: the trunk upright over flat feet. That it is 15 was chosen on the CMU walk 02_01; straight
knees give 17 deg for its legs instead of 11."""
ASKED = {"neutral": 12.0, "task": 9.0}
"""[deg] RMS of a joint's rotation that is asked for, by rest pose (spec mocap, section 4)."""


def reduced_markers_experiment(
    out: Path, *, recording: Path | None = None, mass: float = 80.0, height: float = 1.8, stride: int = 1
) -> Outcome:
    """Joint rotations from few markers against those from all.

    Args:
        out: Folder for the table and the picture.
        recording: A recording with a full set of markers; without it, a synthetic walk.
        mass: Of the subject [kg].
        height: Of the subject [m].
        stride: Only every so many frames are looked at.
    """
    model, trial, about = _subject(recording, mass, height, stride)
    full = inverse_kinematics(model, trial)
    kept = kept_markers(model, trial)
    bent = {f"{name}_{side}": float(np.radians(angle)) for name, angle in UNLOCKED.items() for side in "rl"}
    poses = {"zero": None, "neutral": bent, "task": task_pose(full)}
    rows: list[dict[str, Any]] = []
    found = {}
    for name, rest in poses.items():
        motion = inverse_kinematics(model, trial, weights=dict.fromkeys(kept, MARKER_STIFFNESS), rest=rest)
        found[name] = motion
        hidden = np.linalg.norm(_all_markers(motion, trial) - full.data["marker_position"].values, axis=-1)
        row = {"rest_pose": name, "markers": len(kept), "of": full.data.sizes["marker"]}
        for part, joints in PARTS.items():
            row[f"{part}_rms_deg"] = rotation_rms(full, motion, joints)
        row["marker_rms_mm"] = float(1e3 * np.sqrt(np.nanmean(hidden**2)))
        rows.append(row)
    claims = [
        Claim(f"{row['rest_pose']} rest pose, {part} [deg]", value, f"<= {ASKED[row['rest_pose']]:g}", value <= asked)
        for row in rows
        if row["rest_pose"] in ASKED
        for part in PARTS
        for value, asked in [(row[f"{part}_rms_deg"], ASKED[row["rest_pose"]])]
    ]
    out.mkdir(parents=True, exist_ok=True)
    picture = out / "reduced-markers.png"
    _draw(full, found, picture)
    said = f"{about}; {len(kept)} markers of head, hands and feet against all {full.data.sizes['marker']}"
    return write_outcome(Outcome("reduced-markers", said, rows, claims, (picture,)), out)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    say("following all markers, then few")
    return reduced_markers_experiment(out, recording=recording, stride=4 if quick else 1)


def _subject(recording: Path | None, mass: float, height: float, stride: int) -> tuple[Model, Recording, str]:
    if recording is None:
        from borelli.experiments.movement.analytic_walk import make_walk

        walk = make_walk(human(mass, height, markers="cmu41"))
        made = walk.record(1e-3)
        return walk.model, made.with_data(made.data.isel(time=slice(0, None, stride))), "a synthetic walk, 1 mm noise"
    from borelli.analysis.fit.fit_model import fit_model
    from borelli.recording.clean import clean
    from borelli.recording.io import read_recording

    trial = clean(read_recording(recording))
    model = fit_model(human(mass, height), trial).model
    return model, trial.with_data(trial.data.isel(time=slice(0, None, stride))), recording.name


def kept_markers(model: Model, trial: Recording) -> list[str]:
    """Names of the markers on head, hands (with the bar at the wrist) and feet."""
    seen = match_markers(model.markers, trial.markers)
    kept = []
    for marker, at in zip(model.markers, seen, strict=True):
        if at < 0 or not marker.body.startswith(KEPT_BODIES):
            continue
        if marker.body.startswith("forearm") and not marker.name.endswith(WRIST_BAR):
            continue
        kept.append(marker.name)
    return kept


def task_pose(motion: Motion) -> dict[str, float]:
    """The mean pose of a motion by coordinate, but for the root."""
    root = root_coordinates(motion.model)
    mean = np.nanmean(motion.coordinates, axis=0)
    return {c.name: float(value) for c, value in zip(motion.model.coordinates, mean, strict=True) if c.name not in root}


def rotation_rms(full: Motion, other: Motion, joints: tuple[str, ...]) -> float:
    """RMS of the angle [deg] between the rotations of joints in two motions, over frames, joints and sides."""
    bodies = [str(name) for name in full.data["body"].values]
    angles = []
    for joint in full.model.joints:
        if joint.name.startswith(joints):
            pair = [bodies.index(joint.parent), bodies.index(joint.child)]
            turns = []
            for motion in (full, other):
                parent, child = (motion.data["body_orientation"].values[:, k] for k in pair)
                turns.append(_relative(parent, child))
            angles.append(2.0 * np.arccos(np.clip(np.abs((turns[0] * turns[1]).sum(axis=-1)), 0.0, 1.0)))
    return float(np.degrees(np.sqrt(np.nanmean(np.square(angles)))))


def _relative(parent: Array, child: Array) -> Array:
    """The quaternion of the child in the parent."""
    w, v = parent[:, :1], -parent[:, 1:]
    s, u = child[:, :1], child[:, 1:]
    real = w * s - (v * u).sum(axis=-1, keepdims=True)
    return np.concatenate([real, w * u + s * v + np.cross(v, u)], axis=-1)


def _all_markers(motion: Motion, trial: Recording) -> Array:
    """Where a motion puts all of the model's markers, also those it did not follow."""
    worn = [i for i, k in enumerate(match_markers(motion.model.markers, trial.markers)) if k >= 0]
    return marker_positions(motion.model, coupled_coordinates(motion.model, motion.coordinates))[:, worn] @ to_model_axes(
        motion.model
    )


def _draw(full: Motion, found: Mapping[str, Motion], path: Path) -> None:
    from matplotlib.figure import Figure

    shown = (
        "hip_flexion_r",
        "knee_flexion_r",
        "ankle_flexion_r",
        "shoulder_flexion_r",
        "elbow_flexion_r",
        "wrist_flexion_r",
    )
    names = [c.name for c in full.model.coordinates]
    time = full.data["time"].values
    figure = Figure(figsize=(11.0, 5.5), layout="constrained")
    for ax, name in zip(figure.subplots(2, 3).flat, shown, strict=True):
        if name in names:
            column = names.index(name)
            ax.plot(time, np.degrees(full.coordinates[:, column]), color="#2b2f36", label="all markers")
            for (rest, motion), color in zip(found.items(), ("#3a8f7d", "#3f6fae", "#d9822b"), strict=True):
                ax.plot(
                    time, np.degrees(motion.coordinates[:, column]), color=color, lw=1.0, label=f"few, {rest} rest pose"
                )
        ax.set(xlabel="time [s]", ylabel=f"{name} [deg]")
        ax.grid(color="#e3e5e8", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)
