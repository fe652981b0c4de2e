"""Everything attached to a stretched body keeps its relative position."""

import numpy as np
import pytest

from borelli.errors import ModelError
from borelli.model import (
    Frame,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    Shape,
    body_from_shapes,
    extent,
    resize_body,
    validate,
)
from borelli.people.human import human

FACTORS = (1.1, 0.9, 1.3)
ALONG_X = (0.5**0.5, 0.0, 0.5**0.5, 0.0)  # z rotated to x


def two_bodies(shape: Shape) -> Model:
    a = body_from_shapes("a", [shape])
    b = body_from_shapes("b", [Shape("sphere", (0.1,))])
    return Model(
        "pair",
        (a, b),
        joints=(Joint("j", "fixed", "a", "b", Frame((0.1, 0.2, 0.3)), Frame((0.4, 0.5, 0.6))),),
        markers=(Marker("on_a", "a", (0.1, 0.1, 0.1)), Marker("on_b", "b", (0.1, 0.1, 0.1))),
        muscles=(Muscle("m", (PathPoint("a", (1.0, 1.0, 1.0)), PathPoint("b", (1.0, 1.0, 1.0))), 100.0, 0.1, 0.2),),
    )


def test_only_points_on_the_body_move() -> None:
    model = resize_body(two_bodies(Shape("box", (0.1, 0.2, 0.3))), "a", FACTORS)
    assert model.joint("j").parent_frame.position == pytest.approx((0.11, 0.18, 0.39))
    assert model.joint("j").child_frame.position == (0.4, 0.5, 0.6)
    assert model.marker("on_a").position == pytest.approx((0.11, 0.09, 0.13))
    assert model.marker("on_b").position == (0.1, 0.1, 0.1)
    assert model.muscles[0].path[0].position == pytest.approx(FACTORS)
    assert model.muscles[0].path[1].position == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "shape",
    [
        Shape("box", (0.1, 0.2, 0.3), Frame((0.2, 0.0, 0.1), ALONG_X)),
        Shape("ellipsoid", (0.1, 0.2, 0.3), Frame((0.2, 0.0, 0.1), ALONG_X)),
        Shape(
            "mesh", vertices=((0, 0, 0), (0.3, 0, 0), (0, 0.2, 0), (0.1, 0.1, 0.5)), frame=Frame((0.2, 0, 0), ALONG_X)
        ),
    ],
    ids=lambda shape: shape.kind,
)
def test_mass_and_extent_follow_the_shape(shape: Shape) -> None:
    before = two_bodies(shape).body("a")
    after = resize_body(two_bodies(shape), "a", FACTORS).body("a")
    rebuilt = body_from_shapes("a", after.shapes)
    assert after.mass == pytest.approx(rebuilt.mass)
    assert after.center_of_mass == pytest.approx(rebuilt.center_of_mass)
    assert np.array(after.inertia) == pytest.approx(np.array(rebuilt.inertia), abs=1e-12 * np.trace(rebuilt.inertia))
    assert extent(after)[1] == pytest.approx(np.array(FACTORS) * extent(before)[1])


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder"])
def test_round_shapes_scale_exactly_with_equal_factors(kind: str) -> None:
    shape = Shape(kind, (0.1, 0.2)[: 1 if kind == "sphere" else 2], Frame((0.2, 0.0, 0.1), ALONG_X))
    after = resize_body(two_bodies(shape), "a", (1.2, 1.2, 1.2)).body("a")
    rebuilt = body_from_shapes("a", after.shapes)
    assert after.mass == pytest.approx(rebuilt.mass)
    assert np.array(after.inertia) == pytest.approx(np.array(rebuilt.inertia), abs=1e-12)


def test_inverse_resizing_restores_the_model() -> None:
    model = human(markers="cmu41")
    back = resize_body(resize_body(model, "thigh_r", FACTORS), "thigh_r", [1.0 / f for f in FACTORS])
    assert back.body("thigh_r").mass == pytest.approx(model.body("thigh_r").mass)
    assert np.array(back.body("thigh_r").inertia) == pytest.approx(np.array(model.body("thigh_r").inertia))
    assert back.joint("knee_r").parent_frame.position == pytest.approx(model.joint("knee_r").parent_frame.position)


def test_model_with_a_longer_thigh_is_valid() -> None:
    model = resize_body(human(), "thigh_r", (1.0, 1.0, 1.1))
    validate(model)
    assert model.joint("knee_r").parent_frame.position[2] == pytest.approx(
        1.1 * human().joint("knee_r").parent_frame.position[2]
    )


@pytest.mark.parametrize("factors", [(1.0, 1.0), (1.0, 0.0, 1.0), (1.0, float("nan"), 1.0), (1.0, float("inf"), 1.0)])
def test_bad_factors_are_refused(factors) -> None:
    with pytest.raises(ModelError, match=r"'pelvis'.*Give three positive numbers"):
        resize_body(human(), "pelvis", factors)


def test_unknown_body_suggests_the_nearest_name() -> None:
    with pytest.raises(ModelError, match="did you mean 'pelvis'"):
        resize_body(human(), "pelvs", (1.0, 1.0, 1.0))
