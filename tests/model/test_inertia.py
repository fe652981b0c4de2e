"""Mass properties against closed forms, limits and each other."""

from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from borelli.errors import ModelError
from borelli.model import Body, Frame, Model, Shape, body_from_shapes, mass_of_shapes, scale_mass, shape_mass

size = st.floats(0.01, 2.0)
offset = st.tuples(*[st.floats(-3.0, 3.0)] * 3)
quaternion = (
    st.tuples(*[st.floats(-1.0, 1.0)] * 4)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: tuple(float(c) for c in np.array(q) / np.linalg.norm(q)))
)


def corners(x: float, y: float, z: float) -> tuple[tuple[float, float, float], ...]:
    return tuple((a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1))


def test_textbook_values() -> None:
    r, h, density = 0.3, 0.7, 800.0
    cylinder = shape_mass(Shape("cylinder", (r, h / 2), density=density))
    m = density * pi * r * r * h
    assert cylinder.mass == pytest.approx(m)
    assert np.diag(cylinder.inertia) == pytest.approx(
        [m * (3 * r * r + h * h) / 12, m * (3 * r * r + h * h) / 12, m * r * r / 2]
    )
    sphere = shape_mass(Shape("sphere", (r,)))
    assert sphere.mass == pytest.approx(1000 * 4 / 3 * pi * r**3)
    assert np.diag(sphere.inertia) == pytest.approx([0.4 * sphere.mass * r * r] * 3)
    box = shape_mass(Shape("box", (0.1, 0.2, 0.3)))
    assert np.diag(box.inertia) == pytest.approx(
        box.mass / 12 * np.array([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2])
    )


@given(size)
def test_ellipsoid_with_equal_axes_is_a_sphere(r: float) -> None:
    ball, ellipsoid = shape_mass(Shape("sphere", (r,))), shape_mass(Shape("ellipsoid", (r, r, r)))
    assert ellipsoid.mass == pytest.approx(ball.mass)
    assert ellipsoid.inertia == pytest.approx(ball.inertia)


@given(size, size)
def test_capsule_is_a_cylinder_and_two_hemispheres(radius: float, half: float) -> None:
    """Each half ball: center of mass 3/8 r from its flat side, moment 83/320 m r^2 across."""
    capsule = shape_mass(Shape("capsule", (radius, half), density=1.0))
    tube = shape_mass(Shape("cylinder", (radius, half), density=1.0))
    cap = 2 / 3 * pi * radius**3
    across = tube.inertia[0, 0] + 2 * cap * (83 / 320 * radius**2 + (half + 3 / 8 * radius) ** 2)
    assert capsule.mass == pytest.approx(tube.mass + 2 * cap)
    assert capsule.inertia[0, 0] == pytest.approx(across)
    assert capsule.inertia[2, 2] == pytest.approx(tube.inertia[2, 2] + 2 * cap * 0.4 * radius**2)


@given(size, size, size, offset, quaternion)
def test_mesh_of_a_box_is_the_box(x, y, z, position, orientation) -> None:
    frame = Frame(position, orientation)
    box, mesh = (
        shape_mass(Shape("box", (x, y, z), frame)),
        shape_mass(Shape("mesh", (), frame, vertices=corners(x, y, z))),
    )
    assert mesh.mass == pytest.approx(box.mass)
    assert mesh.center == pytest.approx(box.center, abs=1e-9)
    assert mesh.inertia == pytest.approx(box.inertia, abs=1e-9 * np.trace(box.inertia))


@given(size, size, size, offset)
def test_inertia_of_an_offset_mesh(x, y, z, shift) -> None:
    here = shape_mass(Shape("mesh", vertices=corners(x, y, z)))
    there = shape_mass(Shape("mesh", vertices=tuple(tuple(np.add(c, shift)) for c in corners(x, y, z))))
    assert there.center == pytest.approx(shift, abs=1e-9)
    assert there.inertia == pytest.approx(here.inertia, abs=1e-7 * np.trace(here.inertia))


@given(size, size, size)
def test_two_half_boxes_equal_the_box(x, y, z) -> None:
    whole = shape_mass(Shape("box", (x, y, z)))
    halves = mass_of_shapes([Shape("box", (x / 2, y, z), Frame((s * x / 2, 0.0, 0.0))) for s in (-1, 1)])
    assert halves.mass == pytest.approx(whole.mass)
    assert halves.center == pytest.approx(np.zeros(3), abs=1e-12)
    assert halves.inertia == pytest.approx(whole.inertia)


@given(size, size, offset, quaternion)
def test_subtraction_inverts_addition(radius, half, position, orientation) -> None:
    part = shape_mass(Shape("capsule", (radius, half), Frame(position, orientation)))
    rest = shape_mass(Shape("box", (0.4, 0.5, 0.6)))
    back = (rest + part) - part
    scale = np.trace(rest.inertia) + np.trace(part.inertia) + part.mass * np.dot(position, position)
    assert back.mass == pytest.approx(rest.mass, rel=1e-9)
    assert back.inertia == pytest.approx(rest.inertia, abs=1e-9 * scale)


@given(quaternion)
def test_rotation_keeps_the_principal_moments(orientation) -> None:
    straight, turned = (
        shape_mass(Shape("box", (0.1, 0.2, 0.3), frame)) for frame in (Frame(), Frame((0, 0, 0), orientation))
    )
    assert np.linalg.eigvalsh(turned.inertia) == pytest.approx(np.linalg.eigvalsh(straight.inertia))


@given(size, size, size, st.tuples(size, size, size))
def test_stretching_a_box_gives_the_stretched_box(x, y, z, factors) -> None:
    shift = (0.3, -0.2, 0.5)
    stretched = shape_mass(Shape("box", (x, y, z), Frame(shift))).stretched(factors)
    a, b, c = factors
    direct = shape_mass(Shape("box", (a * x, b * y, c * z), Frame((a * shift[0], b * shift[1], c * shift[2]))))
    assert stretched.mass == pytest.approx(direct.mass)
    assert stretched.center == pytest.approx(direct.center)
    assert stretched.inertia == pytest.approx(direct.inertia, abs=1e-9 * np.trace(direct.inertia))


def test_given_mass_scales_the_inertia() -> None:
    shapes = [Shape("box", (0.1, 0.2, 0.3)), Shape("sphere", (0.1,), Frame((0.0, 0.0, 0.4)), density=500.0)]
    free, given_mass = body_from_shapes("a", shapes), body_from_shapes("a", shapes, mass=7.0)
    assert given_mass.mass == 7.0
    assert given_mass.center_of_mass == pytest.approx(free.center_of_mass)
    assert np.array(given_mass.inertia) / 7.0 == pytest.approx(np.array(free.inertia) / free.mass)


def test_scale_mass_leaves_kinematic_bodies_alone() -> None:
    shapes = [Shape("sphere", (0.1,))]
    plate = Body("plate", 50.0, kinematic=True)
    model = Model("m", (body_from_shapes("a", shapes), body_from_shapes("b", shapes, mass=3.0), plate))
    scaled = scale_mass(model, 70.0)
    assert scaled.mass == pytest.approx(70.0, abs=1e-12)
    assert scaled.body("plate") == plate
    assert scaled.body("b").mass / scaled.body("a").mass == pytest.approx(3.0 / model.body("a").mass)
    factor = 70.0 / model.mass
    assert np.array(scaled.body("b").inertia) == pytest.approx(factor * np.array(model.body("b").inertia))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: body_from_shapes("a", []), "'a' has neither shapes"),
        (lambda: body_from_shapes("a", [Shape("sphere", (1.0,))], mass=0.0), "'a' has a mass of 0.0"),
        (lambda: shape_mass(Shape("plane")), "plane has no volume"),
        (lambda: shape_mass(Shape("cone", (1.0,))), "Unknown kind of shape 'cone'"),
        (lambda: shape_mass(Shape("mesh", vertices=((0, 0, 0), (1, 0, 0), (0, 1, 0)))), "span no volume"),
        (lambda: scale_mass(Model("m", ()), 70.0), "no moving body with mass"),
        (lambda: scale_mass(Model("m", (Body("a", 1.0),)), -70.0), "total mass is -70.0"),
    ],
)
def test_undefined_masses_are_refused(call, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        call()
