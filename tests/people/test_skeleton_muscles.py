"""Muscles of `full_skeleton`: those of their sources where the body is, mirrored, inside published ranges."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError
from borelli.model.io import read_model
from borelli.muscles.paths import muscle_paths
from borelli.people.full_skeleton import full_skeleton
from borelli.people.human_muscles import add_muscles

from ..shared_data import shared
from . import muscle_table, skeleton_muscle_table

LEG_RANGES = {  # of random poses [deg]
    "hip_flexion": (-20, 90), "hip_adduction": (-30, 20), "hip_rotation": (-25, 25), "knee_flexion": (0, 100),
    "ankle_flexion": (-30, 20), "ankle_inversion": (-15, 15),
}  # fmt: skip
LEG_NAMES = {"knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle", "ankle_inversion": "subtalar_angle"}
ARM_RANGES = {
    "shoulder_flexion": (-30, 90), "shoulder_rotation": (-30, 30), "elbow_flexion": (0, 120),
    "elbow_pronation": (-50, 50), "wrist_flexion": (-40, 40),
}  # fmt: skip
MAX_RELATIVE_RMS = {
    "hip_flexion": 0.10, "hip_adduction": 0.10, "hip_rotation": 0.10, "knee_flexion": 0.15, "ankle_flexion": 0.10,
    "ankle_inversion": 0.20, "elbow_flexion": 0.10, "elbow_pronation": 0.20, "wrist_flexion": 0.10,
    "shoulder_flexion": 0.15, "shoulder_rotation": 0.15,
}  # fmt: skip
"""Difference of moment arms from the source per RMS arm: what different joint centers and axes leave."""
POSES = 40


@pytest.fixture(scope="module")
def body():
    return full_skeleton(*muscle_table.REFERENCE_HUMAN, muscles=True)


def unlocked(model):
    """Return the model with all coordinates free: arms of locked ones are zero."""
    joints = (replace(j, coordinates=tuple(replace(c, locked=False) for c in j.coordinates)) for j in model.joints)
    return replace(model, joints=tuple(joints))


def random_angles(ranges, count=POSES):
    """Return random poses [deg] by name without side."""
    generator = np.random.default_rng(0)
    values = {name: generator.uniform(*limits, count) for name, limits in ranges.items()}
    return [{name: float(v[k]) for name, v in values.items()} for k in range(count)]


def coordinate_rows(model, poses, rename=None):
    """Return coordinates of both sides in poses [deg]."""
    names = {c.name: i for i, c in enumerate(model.coordinates)}
    rows = np.tile([c.default for c in model.coordinates], (len(poses), 1))
    for row, pose in zip(rows, poses, strict=True):
        for name, angle in pose.items():
            for side in "rl":
                row[names[f"{(rename or {}).get(name, name)}_{side}"]] = np.radians(angle)
    return rows


def arms(model, rows, muscles, coordinate):
    """Return moment arms (poses, muscles) [m]; of a muscle that is divided, the mean over its parts."""
    paths = muscle_paths(model, rows)
    own = paths.moment_arm[:, :, paths.coordinate.index(coordinate)]
    parts = [
        [paths.muscle.index(name)] if name in paths.muscle
        else [paths.muscle.index(f"{name.removesuffix('_r')}_{toe}_r") for toe in (2, 3, 4, 5)]
        for name in muscles
    ]  # fmt: skip
    return np.stack([own[:, part].mean(axis=1) for part in parts], axis=1)


def legs(body):
    """Return own and the source's moment arms of the right leg, and muscles, by coordinate."""
    source = unlocked(read_model(shared(muscle_table.LEGS)))
    muscles = [m.name for m in source.muscles if m.name.endswith("_r")]
    poses = random_angles(LEG_RANGES)
    own, theirs = coordinate_rows(body, poses), coordinate_rows(source, poses, LEG_NAMES)
    return {
        name: (
            arms(body, own, muscles, f"{name}_r"),
            arms(source, theirs, muscles, f"{LEG_NAMES.get(name, name)}_r"),
            muscles,
        )
        for name in LEG_RANGES
    }


def upper_limbs(body):
    source = skeleton_muscle_table.arm_source()
    frames = skeleton_muscle_table.ArmFrames(source)
    muscles = [m.name for m in source.model.muscles]
    poses = random_angles(ARM_RANGES)
    own, theirs = coordinate_rows(body, poses), skeleton_muscle_table.arm_rows(source, frames, poses)
    rename = skeleton_muscle_table.ARM_NAMES
    return {
        name: (
            arms(body, own, muscles, f"{name}_r"),
            arms(source.model, theirs, muscles, f"{rename.get(name, name)}_r"),
            muscles,
        )
        for name in ARM_RANGES
    }


@pytest.mark.data
@pytest.mark.parametrize("limbs", [legs, upper_limbs])
def test_moment_arms_are_those_of_the_source(body, limbs):
    for name, (own, source, muscles) in limbs(body).items():
        crossing = np.abs(source).max(axis=0) > 1e-3
        difference = np.sqrt(((own - source)[:, crossing] ** 2).mean())
        rms = np.sqrt((source[:, crossing] ** 2).mean())
        flips = (own * source < 0.0) & (np.abs(own) > 5e-3) & (np.abs(source) > 5e-3)
        assert difference < MAX_RELATIVE_RMS[name] * rms, name
        assert not flips.any(), [muscles[m] for m in np.flatnonzero(flips.any(axis=0))]
