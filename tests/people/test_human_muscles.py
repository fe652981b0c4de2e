"""Muscles of `human`: equal to their sources where the body is, mirrored, and scaled with the person."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError
from borelli.model.io import read_model
from borelli.muscles.paths import muscle_paths
from borelli.people.human import human
from borelli.people.human_muscles import add_muscles
from borelli.people.partial import fix_unmarked_parts

from ..shared_data import shared
from . import muscle_table

RANGES = {  # of random poses [deg]
    "hip_flexion": (-20, 90), "hip_adduction": (-30, 20), "hip_rotation": (-25, 25), "knee_flexion": (0, 100),
    "ankle_flexion": (-30, 20),
}  # fmt: skip
SOURCE_NAMES = {"knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle"}
MAX_RELATIVE_RMS = {"knee_flexion": 0.15}
"""Difference of moment arms per RMS arm: 10 % at hip and ankle, 15 % at the knee, whose center differs."""


@pytest.fixture(scope="module")
def body():
    return human(*muscle_table.REFERENCE_HUMAN, muscles=True)


def random_poses(model, rename, count=40):
    """Return poses of both models' legs from the same random angles."""
    names = [c.name for c in model.coordinates]
    rows = np.tile([c.default for c in model.coordinates], (count, 1))
    generator = np.random.default_rng(0)
    for name, limits in RANGES.items():
        angle = np.radians(generator.uniform(*limits, count))
        for side in "rl":
            rows[:, names.index(f"{rename.get(name, name)}_{side}")] = angle
    return rows, names


@pytest.mark.data
def test_moment_arms_are_those_of_the_source(body):
    source = read_model(shared(muscle_table.LEGS))
    muscles = [muscle.name for muscle in source.muscles]
    rows, names = random_poses(body, {})
    ours = muscle_paths(body, rows, muscles=muscles)
    rows, source_names = random_poses(source, SOURCE_NAMES)
    theirs = muscle_paths(source, rows, muscles=muscles)
    for name in RANGES:
        for side in "rl":
            arm = ours.moment_arm[:, :, names.index(f"{name}_{side}")]
            expected = theirs.moment_arm[:, :, source_names.index(f"{SOURCE_NAMES.get(name, name)}_{side}")]
            crossing = np.abs(expected).max(axis=0) > 1e-3
            difference = np.sqrt(((arm - expected)[:, crossing] ** 2).mean())
            rms = np.sqrt((expected[:, crossing] ** 2).mean())
            assert difference < MAX_RELATIVE_RMS.get(name, 0.10) * rms, name
            assert not ((arm * expected < 0.0) & (np.abs(arm) > 5e-3) & (np.abs(expected) > 5e-3)).any(), name


@pytest.mark.data
def test_fibers_have_the_normalized_lengths_of_the_source(body):
    source = read_model(shared(muscle_table.LEGS))
    muscles = [muscle.name for muscle in source.muscles]

    def normalized(model, rename):
        length = muscle_paths(model, random_poses(model, rename)[0], muscles=muscles).length
        own = [model.muscle(name) for name in muscles]
        slack, fiber = ([getattr(m, key) for m in own] for key in ("tendon_slack_length", "optimal_fiber_length"))
        return (length - slack) / fiber

    difference = normalized(body, {}) - normalized(source, SOURCE_NAMES)
    assert np.abs(difference).max() < 0.08 and np.sqrt((difference**2).mean()) < 0.02


@pytest.mark.data
def test_table_is_what_the_sources_give():
    assert muscle_table.TARGET.read_text(encoding="utf-8") == muscle_table.text()


def test_left_side_mirrors_the_right(body):
    rows, names = random_poses(body, {}, 10)
    paths = muscle_paths(body, rows)
    right, left = (np.array([name.endswith(side) for name in paths.muscle]) for side in ("_r", "_l"))
    np.testing.assert_allclose(paths.length[:, right], paths.length[:, left], atol=1e-9)
    for name in RANGES:
        arms = [paths.moment_arm[:, own, names.index(f"{name}_{side}")] for own, side in ((right, "r"), (left, "l"))]
        np.testing.assert_allclose(*arms, atol=1e-7)


@pytest.mark.parametrize(("mass", "height", "sex"), [(50.0, 1.55, "female"), (110.0, 2.0, "male")])
def test_muscles_scale_with_the_person(body, mass, height, sex):
    other = human(mass, height, sex, muscles=True)
    # Handsfield et al. (2014): volume of a leg's muscles [cm^3]
    volume = (47.05 * mass * height + 1289.6) / (47.05 * body.mass * 1.70 + 1289.6)
    for own, reference in zip(other.muscles, body.muscles, strict=True):
        ratio = own.max_isometric_force * own.optimal_fiber_length
        ratio /= reference.max_isometric_force * reference.optimal_fiber_length
        assert ratio == pytest.approx(volume, rel=1e-9), own.name
    pairs = [(other.muscle(name), body.muscle(name)) for name in ("vaslat_r", "soleus_l")]
    by_height = [own.optimal_fiber_length / reference.optimal_fiber_length for own, reference in pairs]
    assert by_height == pytest.approx([height / 1.70] * 2, rel=0.03)


def test_strength_of_the_reference_is_that_of_the_regression(body):
    """60 N/cm^2 (Rajagopal et al. 2016) times fiber length: 7316 cm^3 by regression, small muscles left out."""
    legs = [m for m in body.muscles[:40] if m.name.endswith("_r")]
    volume = sum(m.max_isometric_force * m.optimal_fiber_length for m in legs) / 60.0 * 100.0
    assert 0.93 * 7316.0 < volume < 7316.0


def test_muscles_are_added_to_a_moved_body(body):
    """Joint centers that a fit has moved carry the muscles along."""
    plain = human(*muscle_table.REFERENCE_HUMAN)
    knee = plain.joint("knee_r")
    moved = replace(knee, parent_frame=replace(knee.parent_frame, position=(0.0, 0.0, -0.46)))
    longer = add_muscles(replace(plain, joints=tuple(moved if j.name == "knee_r" else j for j in plain.joints)))
    assert longer.muscle("vaslat_r").optimal_fiber_length > 1.03 * body.muscle("vaslat_r").optimal_fiber_length
    assert longer.muscle("vaslat_l").optimal_fiber_length == pytest.approx(body.muscle("vaslat_l").optimal_fiber_length)


TRUNK_MUSCLES = 13
LEG_MUSCLES = 40


@pytest.mark.parametrize(
    ("unmarked", "count"),
    [
        (["left leg"], 2 * TRUNK_MUSCLES + LEG_MUSCLES),
        (["trunk"], 2 * LEG_MUSCLES),
        (["trunk", "left leg"], LEG_MUSCLES),
    ],
)
def test_rigid_parts_have_no_muscles_and_others_keep_theirs(unmarked, count):
    """Muscles of what is left are those of the whole body, to rounding."""
    whole = human(70.0, 1.75, markers="cmu41")
    legs = {f"{name}_{side}" for name in ("thigh", "shank", "foot", "toes") for side in "rl"}
    bodies = {
        "left leg": {name for name in legs if name.endswith("_l")},
        "trunk": {body.name for body in whole.bodies} - legs - {"pelvis"},
    }
    left_out = set().union(*(bodies[part] for part in unmarked))
    partial, _ = fix_unmarked_parts(replace(whole, markers=tuple(m for m in whole.markers if m.body not in left_out)))
    muscles, expected = add_muscles(partial).muscles, add_muscles(whole)
    assert len(muscles) == count
    for muscle in muscles:
        assert muscle.optimal_fiber_length == pytest.approx(
            expected.muscle(muscle.name).optimal_fiber_length, rel=1e-12
        )
        assert muscle.tendon_slack_length == pytest.approx(expected.muscle(muscle.name).tendon_slack_length, rel=1e-12)


def test_a_body_whose_legs_and_trunk_are_rigid_is_refused():
    whole = human(70.0, 1.75, markers="cmu41")
    arm, _ = fix_unmarked_parts(replace(whole, markers=tuple(m for m in whole.markers if m.body.endswith("arm_r"))))
    with pytest.raises(ModelError, match="Legs and trunk are rigid"):
        add_muscles(arm)


def test_other_models_are_refused():
    body = human()
    legless = replace(body, joints=tuple(j for j in body.joints if j.name != "toe_l"))
    with pytest.raises(ModelError, match="toe_l"):
        add_muscles(legless)
