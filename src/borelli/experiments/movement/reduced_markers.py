"""Reduced marker set: poses from markers on head, hands and feet only.

After Liu, Cooper and Ballard, Fig. 8 and 9.
Joint limits and springs to a rest pose determine what no marker does. The *zero* pose has locked knees, at their joint
limit; the *neutral* pose is upright with flexed knees; the *task* pose is the mean pose of the movement itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.kinematics.framewise_ik import MARKER_STIFFNESS
from borelli.analysis.motion import Motion, match_markers, to_model_axes
from borelli.experiments.experiment import Request, figure
from borelli.experiments.movement.analytic_walk import make_walk
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome
from borelli.model.kinematics import coupled_coordinates, marker_positions, root_coordinates
from borelli.model.model import Model
from borelli.numerics.quaternions import conjugate, quaternion_product
from borelli.people.human import human
from borelli.recording.clean import clean
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording
from borelli.view.plot_style import BLUE, GREEN, INK, ORANGE

Array = NDArray[np.float64]

KEPT_BODIES = ("head", "hand", "forearm", "foot", "toes")
WRIST_BAR = ("WRA", "WRB")
"""Markers of the forearm that are kept with the hand: they are on a bar at the wrist."""
PARTS = {"legs": ("hip", "knee", "ankle"), "arms": ("shoulder", "elbow", "wrist")}
UNLOCKED = {"hip_flexion": 10.0, "knee_flexion": 15.0, "ankle_flexion": 5.0}
"""Angles of the neutral pose [deg]. Knee = hip + ankle: upright trunk over flat feet. The 15 deg were chosen on the CMU
walk 02_01; straight knees give 17 deg for its legs instead of 11."""
MASS, HEIGHT = 80.0, 1.8
"""Body mass [kg] and height [m] of the subject."""
MAX_ROTATION_RMS = {"neutral": 12.0, "task": 9.0}
"""Required RMS error of joint rotations [deg], by rest pose."""


def run(request: Request) -> Outcome:
    """Compare joint rotations from few markers with those from all."""
    request.log("inverse kinematics with all markers, then with few")
    model, trial, about = _subject(request.recording)
    trial = trial.with_data(trial.data.isel(time=slice(0, None, 4 if request.quick else 1)))
    full = inverse_kinematics(model, trial)
    kept = kept_markers(model, trial)
    flexed = {f"{name}_{side}": float(np.radians(angle)) for name, angle in UNLOCKED.items() for side in "rl"}
    poses = {"zero": None, "neutral": flexed, "task": task_pose(full)}
    rows: list[dict[str, Any]] = []
    claims, motions = [], {}
    for name, rest in poses.items():
        motion = inverse_kinematics(model, trial, weights=dict.fromkeys(kept, MARKER_STIFFNESS), rest=rest)
        motions[name] = motion
        distance = np.linalg.norm(_all_markers(motion, trial) - full.data["marker_position"].values, axis=-1)
        row: dict[str, Any] = {"rest_pose": name, "markers": len(kept), "of": full.data.sizes["marker"]}
        for part, joints in PARTS.items():
            error = row[f"{part}_rms_deg"] = rotation_rms(full, motion, joints)
            if limit := MAX_ROTATION_RMS.get(name):
                claims.append(
                    Claim(f"{name} rest pose, {part} [deg]", error, NOT_GIVEN, f"at most {limit:g}", error <= limit)
                )
        row["marker_rms_mm"] = float(1e3 * np.sqrt(np.nanmean(distance**2)))
        rows.append(row)
    _draw(full, motions, request.plot)
    about = f"{about}; {len(kept)} markers of head, hands and feet against all {full.data.sizes['marker']}"
    return Outcome(request.name, about, rows, claims, (request.plot,))


def _subject(recording: Path | None) -> tuple[Model, Recording, str]:
    """Return the model, the recording and a description of the subject."""
    if recording is None:
        walk = make_walk(human(MASS, HEIGHT, markers="cmu41"))
        return walk.model, walk.record(1e-3), "a synthetic walk, 1 mm noise"
    trial = clean(read_recording(recording))
    return fit_model(human(MASS, HEIGHT), trial).model, trial, recording.name


def kept_markers(model: Model, trial: Recording) -> list[str]:
    """Return the names of markers on head, hands (with the bar at the wrist) and feet."""
    matched = match_markers(model.markers, trial.markers)
    return [
        marker.name
        for marker, index in zip(model.markers, matched, strict=True)
        if index >= 0
        and marker.body.startswith(KEPT_BODIES)
        and (not marker.body.startswith("forearm") or marker.name.endswith(WRIST_BAR))
    ]


def task_pose(motion: Motion) -> dict[str, float]:
    """Return the mean pose of a motion by coordinate, except the root."""
    root = root_coordinates(motion.model)
    mean = np.nanmean(motion.coordinates, axis=0)
    return {c.name: float(value) for c, value in zip(motion.model.coordinates, mean, strict=True) if c.name not in root}


def rotation_rms(full: Motion, other: Motion, joints: tuple[str, ...]) -> float:
    """Return the RMS angle [deg] between the rotations of joints in two motions, over frames, joints and sides."""
    bodies = [str(name) for name in full.data["body"].values]
    angles = []
    for joint in full.model.joints:
        if joint.name.startswith(joints):
            pair = [bodies.index(joint.parent), bodies.index(joint.child)]
            rotations = []
            for motion in (full, other):
                parent, child = (motion.data["body_orientation"].values[:, k] for k in pair)
                rotations.append(quaternion_product(conjugate(parent), child))
            angles.append(2.0 * np.arccos(np.clip(np.abs((rotations[0] * rotations[1]).sum(axis=-1)), 0.0, 1.0)))
    return float(np.degrees(np.sqrt(np.nanmean(np.square(angles)))))


def _all_markers(motion: Motion, trial: Recording) -> Array:
    """Return the positions of all recorded markers of the model, including those not tracked."""
    recorded = [i for i, k in enumerate(match_markers(motion.model.markers, trial.markers)) if k >= 0]
    positions = marker_positions(motion.model, coupled_coordinates(motion.model, motion.coordinates))
    return positions[:, recorded] @ to_model_axes(motion.model)


def _draw(full: Motion, motions: Mapping[str, Motion], path: Path) -> None:
    shown = [f"{name}_flexion_r" for name in ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")]
    names = [c.name for c in full.model.coordinates]
    time = full.data["time"].values
    with figure(path, *(f"{name} [deg]" for name in shown), size=(11.0, 5.5), rows=2) as axes:
        for ax, name in zip(axes, shown, strict=True):
            column, first = names.index(name), ax is axes[0]
            ax.plot(time, np.degrees(full.coordinates[:, column]), color=INK, label="all markers" if first else None)
            for (rest, motion), color in zip(motions.items(), (GREEN, BLUE, ORANGE), strict=True):
                label = f"few, {rest} rest pose" if first else None
                ax.plot(time, np.degrees(motion.coordinates[:, column]), color=color, lw=1.0, label=label)
