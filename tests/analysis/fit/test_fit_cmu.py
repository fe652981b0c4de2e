"""The fit on a real walk, judged by frames and trials it has not seen and by two other solutions.

Figures: marker errors and correlations that a careful fit of this trial reaches (a prototype: 2.4 mm held out, 2.9 mm
first half on second, 5.8 mm on another trial; hip 0.99, knee 0.94, ankle 0.89-0.92 against the published skeleton,
whose knee centre wanders by 5-7 mm; 0.996 against the marker triangle).
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.model.people.human import human
from borelli.recording.io import read_recording
from borelli.recording.recording import make_dataset

from ...shared_data import SHARED_DATA as DATA

WALK = DATA / "hdm" / "data.c3d"

pytestmark = [pytest.mark.data, pytest.mark.skipif(not WALK.exists(), reason="no recordings: set BORELLI_DATA")]


@cache
def walk():
    return read_recording(WALK)


@cache
def fitted():
    return fit_model(human(80.0, 1.8), walk())


@cache
def motion():
    return inverse_kinematics(fitted().model, walk())


def part(recording, frames):
    return replace(recording, data=recording.data.isel(time=frames))


def test_held_out_frames_within_3_mm():
    fit = fitted()
    assert fit.held_out_rms <= 3e-3
    assert fit.train_rms <= 3e-3
    assert motion().marker_rms <= 3e-3  # every frame, posed anew


def test_fitted_on_the_first_half_and_tested_on_the_second_within_3_5_mm():
    half = walk().frames // 2
    fit = fit_model(human(80.0, 1.8), part(walk(), slice(0, half)))
    assert inverse_kinematics(fit.model, part(walk(), slice(half, None))).marker_rms <= 3.5e-3


def test_another_trial_within_7_mm():
    punch = read_recording(DATA / "cmu" / "c3d" / "02_05.c3d")
    assert inverse_kinematics(fitted().model, punch).marker_rms <= 7e-3


def angle(a, b):
    cosine = np.einsum("ti,ti->t", a, b) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def hip_flexion(hip, other_hip, middle, knee):
    """The thigh's turn about the line between the hips, from a pelvis of the hips and a third point above them."""
    left = other_hip - hip
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    up = middle - (hip + other_hip) / 2.0
    up -= np.einsum("ti,ti->t", up, left)[:, None] * left
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    thigh = knee - hip
    return np.unwrap(np.arctan2(np.einsum("ti,ti->t", thigh, np.cross(left, up)), -np.einsum("ti,ti->t", thigh, up)))


@pytest.mark.parametrize("side", ["r", "l"])
def test_angles_agree_with_the_published_skeleton(side):
    theirs = read_recording(DATA / "cmu" / "asfamc" / "02_01.amc").data["joint_center"]
    ours = motion().data["body_position"]
    other = "l" if side == "r" else "r"

    def them(name):
        return theirs.sel(joint=name).values

    def us(name):
        return ours.sel(body=name).values

    pairs = {
        "hip": (
            hip_flexion(them(f"{side}femur"), them(f"{other}femur"), them("root"), them(f"{side}tibia")),
            hip_flexion(us(f"thigh_{side}"), us(f"thigh_{other}"), us("lower_torso"), us(f"shank_{side}")),
        ),
        "knee": (
            angle(them(f"{side}tibia") - them(f"{side}femur"), them(f"{side}foot") - them(f"{side}tibia")),
            angle(us(f"shank_{side}") - us(f"thigh_{side}"), us(f"foot_{side}") - us(f"shank_{side}")),
        ),
        "ankle": (
            angle(them(f"{side}foot") - them(f"{side}tibia"), them(f"{side}toes") - them(f"{side}foot")),
            angle(us(f"foot_{side}") - us(f"shank_{side}"), us(f"toes_{side}") - us(f"foot_{side}")),
        ),
    }
    least = {"hip": 0.98, "knee": 0.93, "ankle": 0.85}
    for joint, (theirs_, ours_) in pairs.items():
        r = np.corrcoef(theirs_, ours_)[0, 1]
        assert r >= least[joint], joint


@pytest.mark.parametrize("side", ["R", "L"])
def test_the_knee_agrees_with_the_triangle_of_markers(side):
    """Hip centre from the waist by Bell, Pedersen and Brand 1990: 30 % of the waist's width below, 22 % behind."""
    seen = walk().data["marker_position"]

    def at(name):
        return seen.sel(marker=name).values

    across = at("LFWT") - at("RFWT")
    width = np.linalg.norm(across, axis=1, keepdims=True)
    across /= width
    back = (at("LBWT") + at("RBWT") - at("LFWT") - at("RFWT")) / 2.0
    back -= np.einsum("ti,ti->t", back, across)[:, None] * across
    back /= np.linalg.norm(back, axis=1, keepdims=True)
    up = np.cross(across, back)  # left cross back
    up *= np.sign(up[:, 2:])
    inward = across if side == "R" else -across
    hip = at(f"{side}FWT") + width * (0.14 * inward - 0.30 * up + 0.22 * back)
    triangle = np.pi - angle(hip - at(f"{side}KNE"), at(f"{side}ANK") - at(f"{side}KNE"))
    ours = motion().data["coordinate_value"].sel(coordinate=f"knee_flexion_{side.lower()}").values
    assert np.corrcoef(triangle, ours)[0, 1] >= 0.99


SAME = 1e-6
"""[m] What is left of a rotation of the lab after Newton's steps have ended at 1e-7 m."""


def changed(recording, turn, shift, names):
    seen = recording.data["marker_position"].values @ turn.T + shift
    data = make_dataset({"marker_position": seen}, {"marker": names}, rate=recording.rate)
    return replace(recording, data=data)


def test_the_fit_turns_and_shifts_with_the_lab():
    c, s = np.cos(2.5), np.sin(2.5)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    other = fit_model(human(80.0, 1.8), changed(walk(), turn, [4.0, -1.0, 0.0], walk().markers))
    for name, length in fitted().lengths.items():
        assert abs(other.lengths[name] - length) < SAME, name
    for one, two in zip(fitted().model.markers, other.model.markers, strict=True):
        assert np.abs(np.array(one.position) - two.position).max() < SAME, one.name


def test_the_fit_mirrors_with_the_walk():
    """But for the marker on the right shoulder blade, which has no twin."""
    names = [name for name in walk().markers if name != "RBAC"]
    swap = {"R": "L", "L": "R"}
    twins = [swap.get(name[0], name[0]) + name[1:] for name in names]
    plain = walk().select_markers(names)
    one = fit_model(human(80.0, 1.8), plain)
    two = fit_model(human(80.0, 1.8), changed(plain, np.diag([1.0, -1.0, 1.0]), np.zeros(3), twins))
    for name, length in one.lengths.items():
        side = {"_r": "_l", "_l": "_r"}.get(name[-2:], "")
        if " to " not in name:  # joints of one body may stand in the other order
            assert abs(two.lengths[name[:-2] + side if side else name] - length) < SAME, name
    assert two.held_out_rms == pytest.approx(one.held_out_rms, abs=SAME)


WANDERS = pytest.mark.xfail(strict=True, reason="the published skeleton's knee wanders 20 to 25 mm fore and aft")
CENTRES = [  # of the fit, of the published skeleton, and the fitted body in whose frame the two are compared
    ("thigh", "femur", "pelvis"), ("shank", "tibia", "thigh"), ("foot", "foot", "shank"),
    ("upper_arm", "humerus", "upper_torso"), ("forearm", "radius", "upper_arm"), ("hand", "wrist", "forearm"),
]  # fmt: skip


@pytest.mark.parametrize("side", ["r", "l"])
@pytest.mark.parametrize(
    ("body", "bone", "parent"), [pytest.param(*c, marks=WANDERS) if c[0] == "shank" else c for c in CENTRES]
)
def test_joint_centres_of_c3d_and_amc_keep_their_places_within_15_mm(side, body, bone, parent):
    """Root mean square about the mean; constant offsets of 16 to 98 mm remain, two ideas of the same joint."""
    amc = read_recording(DATA / "cmu" / "asfamc" / "02_01.amc", forward="+Z").data["joint_center"]
    data = motion().data
    frame = parent if parent in data["body"].values else f"{parent}_{side}"
    apart = amc.sel(joint=f"{side}{bone}").values - data["body_position"].sel(body=f"{body}_{side}").values
    turn = Rotation.from_quat(data["body_orientation"].sel(body=frame).values, scalar_first=True)
    local = turn.inv().apply(apart)
    assert np.sqrt(np.mean(np.sum((local - local.mean(axis=0)) ** 2, axis=1))) <= 0.015
