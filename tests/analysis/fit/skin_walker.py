"""Synthetic subjects of known joint centers, whose skin slides and turns with their gait.

Bodies have other proportions than the tables: hips off the regression, knees and ankles off their landmarks, segments
longer or shorter, markers off the places of their set. The skin of the thigh slides along it by 8 mm (RMS), a quarter
cycle from hip flexion, and turns about it by 4 degrees; that of the shank by half as much, which is the shape of skin
motion that fluoroscopy shows (Barre et al. 2017).
"""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from borelli.analysis.motion import make_motion
from borelli.model.kinematics import with_default_frames
from borelli.model.resize import resize_body
from borelli.people.human import human
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.recording import Recording, make_dataset

RATE = 60.0
SLIDE, TURN = 0.008, np.radians(4.0)
"""[m], [rad] RMS of the skin of a thigh along and about its long axis."""
HIP_ERROR = 0.008
"""[m] of the hips from the regression, along each axis, the same on both sides (Fiorentino et al. 2016)."""
LANDMARK_ERROR = 0.006
"""[m] of knees and ankles from the midpoints of their landmarks along each axis, palpation included."""
PLACEMENT = {"cluster": 0.02, "wand": 0.02, "landmark": 0.002}
"""[m] of markers from the places of their set along each axis; palpation is part of the errors above."""
SETS = ("plugin_gait", "opencap_mocap", "qualisys_cast")
BODIES = (
    (80.0, 1.80, "male"), (55.0, 1.58, "female"), (95.0, 1.88, "male"), (62.0, 1.70, "female"), (70.0, 1.68, "male"),
)  # fmt: skip
GAITS = {"normal": (1.0, 1.0, 1.2), "slow": (0.7, 0.7, 0.7), "stiff": (0.8, 0.5, 1.0)}
"""Cadence [strides/s], fraction of the usual range of motion, speed [m/s]."""

SWING = {  # mean, swing, second harmonic [degrees] and its phase
    "hip_flexion": (10, 22, 4, 1.0), "hip_adduction": (0, 5, 2, 0.4), "hip_rotation": (0, 5, 2, 2.0),
    "knee_flexion": (25, 20, 14, 2.2), "knee_rotation": (0, 4, 2, 1.0), "ankle_flexion": (0, 9, 8, 0.5),
    "ankle_inversion": (0, 4, 2, 1.5), "toe_extension": (8, 9, 6, 0.0), "shoulder_flexion": (0, 22, 3, 0.0),
    "shoulder_adduction": (-8, 4, 2, 0.3), "elbow_flexion": (35, 15, 4, 0.8), "elbow_pronation": (20, 12, 4, 0.2),
    "sacral_bending": (0, 3, 1, 0.2), "sacral_flexion": (2, 2, 1, 0.2), "lumbar_rotation": (0, 5, 1, 0.2),
    "root_roll": (0, 3, 1, 0.0), "root_pitch": (3, 2, 1, 0.0), "root_yaw": (0, 5, 1, 0.0),
}  # fmt: skip
STAR = {"hip_flexion": (15, 25), "hip_adduction": (-10, 20)}
"""Mean and range [degrees] of a star-arc trial: flexion, abduction and half circles between them."""


def subject(number, marker_set, regular=False):
    """Return a subject with markers, and the generic human of the same mass and height that is to be fitted.

    The joints of a regular subject are where regressions and landmarks say, so that errors are those of the skin alone.
    """
    mass, height, sex = BODIES[number]
    rng = np.random.default_rng(100 + number)
    model = human(mass, height, sex, markers=marker_set)
    for bone in ("thigh", "shank", "upper_arm", "forearm"):
        factor = 1.0 + rng.normal(0.0, 0.03)
        for side in "rl":
            model = resize_body(model, f"{bone}_{side}", (1.0, 1.0, factor))
    off = {"hip": rng.normal(0.0, HIP_ERROR, 3)} | {
        name: rng.normal(0.0, LANDMARK_ERROR, 3) for name in ("knee", "ankle")
    }
    joints = []
    for joint in model.joints:
        shift = off.get(joint.name[:-2])
        if shift is not None and not regular:
            at = np.array(joint.parent_frame.position) + shift * ([1.0, -1.0, 1.0] if joint.name.endswith("l") else 1.0)
            joint = replace(joint, parent_frame=replace(joint.parent_frame, position=tuple(at)))
        joints.append(joint)
    kinds = [one.kind for one in interpret_labels([marker.name for marker in model.markers]).readings]
    markers = tuple(
        replace(m, position=tuple(np.array(m.position) + rng.normal(0.0, PLACEMENT.get(k, 0.01), 3)))
        for m, k in zip(model.markers, kinds, strict=True)
    )
    return with_default_frames(replace(model, joints=tuple(joints), markers=markers)), human(mass, height, sex)


def gait(model, name, seconds=3.0):
    """Return coordinates of a gait (frames, coordinates), and slide and turn of the skin of each side, of RMS 1."""
    cadence, fraction, speed = GAITS[name]
    t = np.arange(int(seconds * RATE)) / RATE
    q = np.tile([c.default for c in model.coordinates], (len(t), 1))
    phase = {side: 2.0 * np.pi * cadence * t + late for side, late in (("r", 0.0), ("l", np.pi))}
    for i, coordinate in enumerate(model.coordinates):
        stem, _, side = coordinate.name.rpartition("_")
        key = stem if side in phase and stem in SWING else coordinate.name
        if key in SWING:
            mean, first, second, lag = SWING[key]
            angle = phase.get(side, phase["r"]) + (np.pi if stem.startswith(("shoulder", "elbow")) else 0.0)
            q[:, i] = np.radians(mean + fraction * (first * np.sin(angle) + second * np.sin(2.0 * angle + lag)))
    q[:, 0] += speed * t
    return q, {side: _skin(angle) for side, angle in phase.items()}


def _skin(phase):
    """Return slide, a quarter cycle from flexion, and turn, both of RMS 1."""
    return np.sqrt(2.0) * np.cos(phase), np.sqrt(2.0) * np.sin(phase + 0.7)


def star_arc(model, seconds=8.0):
    """Return coordinates of a star-arc trial of both hips, one after the other, and the motion of the skin."""
    half = int(seconds * RATE) // 2
    q = np.tile([c.default for c in model.coordinates], (2 * half, 1))
    names = [c.name for c in model.coordinates]
    u = np.linspace(0.0, 2.0 * np.pi, half, endpoint=False)
    waves = {"hip_flexion": np.sin(3.0 * u) * np.sin(u / 2.0), "hip_adduction": np.cos(2.0 * u) * np.sin(u / 2.0)}
    skin = {}
    for side, first in (("r", 0), ("l", half)):
        for stem, (mean, reach) in STAR.items():
            q[first : first + half, names.index(f"{stem}_{side}")] = np.radians(
                mean * np.sin(u / 2.0) + reach * waves[stem]
            )
        skin[side] = np.zeros((2, 2 * half))  # the skin of the other leg is at rest
        skin[side][:, first : first + half] = np.array(_skin(3.0 * u)) * np.sin(u / 2.0)
    return q, skin


def skinned(model, skin, scale):
    """Return marker offsets (frames, markers, 3) on their bodies, with the skin displaced."""
    frames = len(skin["r"][0])
    at = np.tile([m.position for m in model.markers], (frames, 1, 1)).astype(float)
    for bone, part in (("thigh", 1.0), ("shank", 0.5)):
        for side in "rl":
            own = [i for i, m in enumerate(model.markers) if m.body == f"{bone}_{side}"]
            slide, turn = scale * part * SLIDE * skin[side][0], scale * part * TURN * skin[side][1]
            x, y = at[:, own, 0].copy(), at[:, own, 1].copy()
            c, s = np.cos(turn)[:, None], np.sin(turn)[:, None]
            at[:, own, 0], at[:, own, 1] = c * x - s * y, s * x + c * y
            at[:, own, 2] += slide[:, None]
    return at


def record(model, motion, scale=1.0, noise=0.001, seed=5):
    """Return a recording of a motion (coordinates, skin) with skin motion and white noise [m]."""
    q, skin = motion
    offsets = skinned(model, skin, scale)
    motion = make_motion(model, q, np.arange(len(q)) / RATE, RATE).data
    body = [[b.name for b in model.bodies].index(m.body) for m in model.markers]
    rotation = Rotation.from_quat(motion["body_orientation"].values[:, body][..., [1, 2, 3, 0]].reshape(-1, 4))
    measured = motion["body_position"].values[:, body] + rotation.apply(offsets.reshape(-1, 3)).reshape(offsets.shape)
    measured += noise * np.random.default_rng(seed).standard_normal(measured.shape)
    names = [marker.name for marker in model.markers]
    return Recording(make_dataset({"marker_position": measured}, {"marker": names}, rate=RATE), "synthetic skin")


def static(model):
    """Return a static trial."""
    q = np.tile([c.default for c in model.coordinates], (20, 1))
    return record(model, (q, {side: np.zeros((2, 20)) for side in "rl"}))
