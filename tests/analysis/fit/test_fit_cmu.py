"""Fit to a measured walk, evaluated on held-out frames, on another trial and against two other solutions.

Limits are marker errors and correlations that a fit of this trial achieves which does not learn skin motion (3.0 mm
held out, 3.3 mm first half on second, 7.1 mm on another trial: up to 1.3 mm more than one that does, with hips 6 cm too
far apart; hip 0.99, knee 0.93, ankle 0.89-0.92 against the published skeleton, whose knee center moves by 5-7 mm; 0.996
against the marker triangle).
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.people.human import human
from borelli.recording.io import read_recording
from borelli.recording.recording import make_dataset

from ...shared_data import SHARED_DATA as DATA

WALK = DATA / "hdm" / "data.c3d"

pytestmark = pytest.mark.data


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


def test_held_out_frames_within_3_2_mm():
    fit = fitted()
    assert fit.held_out_rms <= 3.2e-3
    assert fit.train_rms <= 3.2e-3
    assert motion().marker_rms <= 3.2e-3  # every frame, solved again


def test_second_half_of_a_trial_within_3_5_mm_of_a_fit_to_the_first():
    half = walk().frames // 2
    fit = fit_model(human(80.0, 1.8), part(walk(), slice(0, half)))
    assert inverse_kinematics(fit.model, part(walk(), slice(half, None))).marker_rms <= 3.5e-3


def test_another_trial_within_7_5_mm():
    punch = read_recording(DATA / "cmu" / "c3d" / "02_05.c3d")
    assert inverse_kinematics(fitted().model, punch).marker_rms <= 7.5e-3


def angle(a, b):
    cosine = np.einsum("ti,ti->t", a, b) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return np.arccos(np.clip(cosine, -1.0, 1.0))


def hip_flexion(hip, other_hip, trunk, knee):
    """Return the rotation of the thigh about the line between the hips, relative to the hips and a point above them."""
    left = other_hip - hip
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    up = trunk - (hip + other_hip) / 2.0
    up -= np.einsum("ti,ti->t", up, left)[:, None] * left
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    thigh = knee - hip
    return np.unwrap(np.arctan2(np.einsum("ti,ti->t", thigh, np.cross(left, up)), -np.einsum("ti,ti->t", thigh, up)))


@pytest.mark.parametrize("side", ["r", "l"])
def test_angles_agree_with_the_published_skeleton(side):
    published = read_recording(DATA / "cmu" / "asfamc" / "02_01.amc").data["joint_center"]
    fitted_positions = motion().data["body_position"]
    other = "l" if side == "r" else "r"

    def amc(name):
        return published.sel(joint=name).values

    def fit(name):
        return fitted_positions.sel(body=name).values

    pairs = {
        "hip": (
            hip_flexion(amc(f"{side}femur"), amc(f"{other}femur"), amc("root"), amc(f"{side}tibia")),
            hip_flexion(fit(f"thigh_{side}"), fit(f"thigh_{other}"), fit("lower_torso"), fit(f"shank_{side}")),
        ),
        "knee": (
            angle(amc(f"{side}tibia") - amc(f"{side}femur"), amc(f"{side}foot") - amc(f"{side}tibia")),
            angle(fit(f"shank_{side}") - fit(f"thigh_{side}"), fit(f"foot_{side}") - fit(f"shank_{side}")),
        ),
        "ankle": (
            angle(amc(f"{side}foot") - amc(f"{side}tibia"), amc(f"{side}toes") - amc(f"{side}foot")),
            angle(fit(f"foot_{side}") - fit(f"shank_{side}"), fit(f"toes_{side}") - fit(f"foot_{side}")),
        ),
    }
    minimum = {"hip": 0.98, "knee": 0.92, "ankle": 0.85}
    for joint, curves in pairs.items():
        assert np.corrcoef(*curves)[0, 1] >= minimum[joint], joint


@pytest.mark.parametrize("side", ["R", "L"])
def test_knee_angle_agrees_with_the_triangle_of_markers(side):
    """Hip center from the waist by Bell, Pedersen and Brand 1990: 30 % of the waist's width below, 22 % behind."""
    markers = walk().data["marker_position"]

    def at(name):
        return markers.sel(marker=name).values

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
    knee = motion().data["coordinate_value"].sel(coordinate=f"knee_flexion_{side.lower()}").values
    assert np.corrcoef(triangle, knee)[0, 1] >= 0.99


SAME = 1e-6
"""[m] Difference after Newton steps that end at 1e-7 m."""


def transformed(recording, rotation, offset, names):
    markers = recording.data["marker_position"].values @ rotation.T + offset
    data = make_dataset({"marker_position": markers}, {"marker": names}, rate=recording.rate)
    return replace(recording, data=data)


def test_the_fit_does_not_depend_on_lab_axes():
    c, s = np.cos(2.5), np.sin(2.5)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    other = fit_model(human(80.0, 1.8), transformed(walk(), rotation, [4.0, -1.0, 0.0], walk().markers))
    for name, length in fitted().lengths.items():
        assert abs(other.lengths[name] - length) < SAME, name
    for one, two in zip(fitted().model.markers, other.model.markers, strict=True):
        assert np.abs(np.array(one.position) - two.position).max() < SAME, one.name


def test_the_fit_mirrors_with_the_walk():
    """Except for the marker on the right shoulder blade, which has no counterpart."""
    names = [name for name in walk().markers if name != "RBAC"]
    swap = {"R": "L", "L": "R"}
    twins = [swap.get(name[0], name[0]) + name[1:] for name in names]
    plain = walk().select_markers(names)
    one = fit_model(human(80.0, 1.8), plain)
    two = fit_model(human(80.0, 1.8), transformed(plain, np.diag([1.0, -1.0, 1.0]), np.zeros(3), twins))
    for name, length in one.lengths.items():
        side = {"_r": "_l", "_l": "_r"}.get(name[-2:], "")
        if " to " not in name:  # joints of one body may be in the other order
            assert abs(two.lengths[name[:-2] + side if side else name] - length) < SAME, name
    assert two.held_out_rms == pytest.approx(one.held_out_rms, abs=SAME)


MOVING_KNEE = pytest.mark.xfail(strict=True, reason="the published skeleton's knee moves 20 to 25 mm fore and aft")
CENTERS = [  # of the fit, of the published skeleton, and the fitted body in whose frame the two are compared
    ("thigh", "femur", "pelvis"), ("shank", "tibia", "thigh"), ("foot", "foot", "shank"),
    ("upper_arm", "humerus", "upper_torso"), ("forearm", "radius", "upper_arm"), ("hand", "wrist", "forearm"),
]  # fmt: skip


@pytest.mark.parametrize("side", ["r", "l"])
@pytest.mark.parametrize(
    ("body", "bone", "parent"), [pytest.param(*c, marks=MOVING_KNEE) if c[0] == "shank" else c for c in CENTERS]
)
def test_joint_centers_of_c3d_and_amc_differ_by_a_constant_within_15_mm(side, body, bone, parent):
    """RMS about the mean; constant offsets of 16 to 98 mm remain, two definitions of the same joint."""
    amc = read_recording(DATA / "cmu" / "asfamc" / "02_01.amc", forward="+Z").data["joint_center"]
    data = motion().data
    frame = parent if parent in data["body"].values else f"{parent}_{side}"
    apart = amc.sel(joint=f"{side}{bone}").values - data["body_position"].sel(body=f"{body}_{side}").values
    rotation = Rotation.from_quat(np.roll(data["body_orientation"].sel(body=frame).values, -1, axis=1))
    local = rotation.inv().apply(apart)
    assert np.sqrt(np.mean(np.sum((local - local.mean(axis=0)) ** 2, axis=1))) <= 0.015
