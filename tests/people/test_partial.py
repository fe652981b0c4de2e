"""Partial bodies: parts without markers are rigid with the rest of the body."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.model.kinematics import poses
from borelli.model.model import Marker
from borelli.people.human import human
from borelli.people.partial import PARTS, fix_unmarked_parts, is_partial

ARM = ("collar", "upper_arm", "forearm", "hand")
LEG = ("thigh", "shank", "foot", "toes")
TRUNK = ("lower_torso", "upper_torso", "neck", "head", *(f"{part}_{side}" for part in ARM for side in "rl"))


def without(*bodies: str):
    model = human(70.0, 1.75, markers="cmu41")
    return replace(model, markers=tuple(m for m in model.markers if m.body not in bodies))


def sides(parts, *letters):
    return [f"{part}_{letter}" for part in parts for letter in letters]


@pytest.mark.parametrize(
    ("bodies", "parts", "partial", "coordinates"),
    [
        ([], (), False, 54),
        (sides(ARM, "r", "l"), ("right arm", "left arm"), False, 34),
        (TRUNK, ("trunk, head and arms",), True, 22),
        (sides(LEG, "l"), ("left leg",), True, 46),
        ([*TRUNK, *sides(LEG, "l")], ("trunk, head and arms", "left leg"), True, 14),
        ([*sides(LEG, "r", "l"), "pelvis", "lower_torso"], ("right leg", "left leg", "pelvis"), True, 32),
    ],
)  # fmt: skip
def test_parts_without_markers_have_no_coordinates(bodies, parts, partial, coordinates):
    given = without(*bodies)
    model, found = fix_unmarked_parts(given)
    assert found == parts and is_partial(model) == partial and len(model.coordinates) == coordinates
    assert model.mass == pytest.approx(70.0) and (model is given or parts)


def test_fixed_parts_keep_their_rest_pose():
    given = without(*TRUNK)
    model, _ = fix_unmarked_parts(given)
    rest = [poses(one, [[c.default for c in one.coordinates]])[0] for one in (given, model)]
    assert np.abs(rest[0] - rest[1]).max() < 1e-12


def test_an_arm_alone_is_the_only_part_that_moves():
    given = without("pelvis", *sides(LEG, "r", "l"), *(b for b in TRUNK if b not in sides(ARM, "r")))
    model, parts = fix_unmarked_parts(replace(given, markers=(*given.markers, Marker("a", "upper_arm_r", (0, 0, 0)))))
    free = {c.name for joint in model.joints if joint.parent != "ground" for c in joint.coordinates}
    assert "left arm" in parts and "pelvis" in parts
    assert free and all(name.endswith("_r") and "hip" not in name for name in free)


def test_other_models_and_models_without_markers_are_unchanged():
    bare = human()
    assert fix_unmarked_parts(bare) == (bare, ()) and not is_partial(bare)
    assert set(PARTS) <= {joint.name for joint in bare.joints}
