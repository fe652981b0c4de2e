"""Images: geometry against closed forms, shading against simple scenes."""

import numpy as np
import pytest
from PIL import Image

from borelli.errors import SettingsError
from borelli.model.inertia import body_from_shapes
from borelli.model.kinematics import with_default_frames
from borelli.model.model import Body, Frame, Joint, Model, Shape
from borelli.numerics.quaternions import rotate
from borelli.physics.simulate import simulate
from borelli.view.drawing import body_colors, make_drawing, transform_vertices
from borelli.view.mesh import shape_mesh
from borelli.view.picture import actors_at, picture, side_view, strobe
from borelli.view.render import SUN, Camera, camera_for, project, render
from borelli.view.results import posed_model
from borelli.view.video import video, write_frames

from .conftest import still

TILTED = Frame((0.3, -0.2, 0.5), (0.5, 0.5, 0.5, 0.5))
SOLIDS = {
    "sphere": ((0.3,), 4 / 3 * np.pi * 0.3**3),
    "box": ((0.1, 0.2, 0.3), 8 * 0.1 * 0.2 * 0.3),
    "capsule": ((0.1, 0.2), np.pi * 0.1**2 * (0.4 + 4 / 3 * 0.1)),
    "cylinder": ((0.1, 0.2), np.pi * 0.1**2 * 0.4),
    "ellipsoid": ((0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.1 * 0.2 * 0.3),
}
FACETS = 0.03  # fraction of the volume that facets and bevels remove from a solid
GROUND_PLANE = Shape("plane", frame=Frame((0.0, -5.0, 0.0), (0.5**0.5, -(0.5**0.5), 0.0, 0.0)))
"""With normal y."""
SMALL = {"width": 96, "height": 54}


def mesh_volume(mesh):
    """Return the volume by the divergence theorem; positive only if all triangles face outward."""
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


@pytest.mark.parametrize("kind", SOLIDS)
def test_mesh_encloses_the_solid(kind):
    size, volume = SOLIDS[kind]
    mesh = shape_mesh(Shape(kind, size, TILTED))
    assert volume * (1 - FACETS) < mesh_volume(mesh) <= volume * (1 + 1e-12)


@pytest.mark.parametrize("kind", SOLIDS)
def test_normals_are_unit_and_agree_with_the_triangles(kind):
    mesh = shape_mesh(Shape(kind, SOLIDS[kind][0], TILTED))
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1.0)
    a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    big = np.linalg.norm(flat, axis=1) > 1e-12  # triangles at a pole have no area
    mean = mesh.normals[mesh.triangles].sum(axis=1)
    assert (np.einsum("ij,ij->i", flat, mean)[big] > 0).all()


def test_hull_of_a_tetrahedron():
    corners = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert mesh_volume(shape_mesh(Shape("mesh", vertices=corners))) == pytest.approx(1 / 6)


@pytest.mark.parametrize("azimuth", [-62.0, 30.0, 180.0])
def test_camera_shows_every_point(azimuth):
    points = np.random.default_rng(1).normal(size=(200, 3)) * [3.0, 0.5, 1.0]
    camera = camera_for(points, 16 / 9, azimuth=azimuth)
    column, row, inverse = project(points, camera, 160, 90).T
    assert (inverse > 0).all()
    assert column.min() > 0 and column.max() < 159 and row.min() > 0 and row.max() < 89
    # and fills the image in one direction
    assert max(np.ptp(column) / 160, np.ptp(row) / 90) > 0.7


def ball_model(*positions, plane=False):
    bodies = [
        body_from_shapes(f"ball_{k}", (Shape("sphere", (0.2,)),), frame=Frame(p)) for k, p in enumerate(positions)
    ]
    return Model("balls", tuple(bodies), ground=(Shape("plane"),) if plane else ())


def pixels_of(model, **options):
    drawing = make_drawing(model)
    actors = actors_at(drawing, posed_model(still(model)), 0)
    camera = camera_for(actors.vertices, 96 / 54, **options)
    return np.asarray(render(drawing, actors, camera, **SMALL)).astype(int), camera


def test_near_body_hides_far_one():
    """From -y, the amber ball is in front of the blue one: no pixel is more blue than red where they overlap."""
    image, camera = pixels_of(ball_model((0.0, -1.0, 0.5), (0.0, 1.0, 0.5)), azimuth=-90.0, elevation=0.0)
    column, row, _ = project(np.array([[0.0, -1.0, 0.5]]), camera, 96, 54)[0].astype(int)
    assert image[row, column, 0] > image[row, column, 2]
    image, _ = pixels_of(ball_model((0.0, -1.0, 0.5), (0.0, 1.0, 0.5)), azimuth=90.0, elevation=0.0)
    assert image[row, column, 0] < image[row, column, 2]


def test_ball_casts_its_shadow_away_from_the_sun():
    """The center of the shadow is dark; the ground at the same distance on the side of the sun is not."""
    model = ball_model((0.0, 0.0, 0.6), plane=True)
    drawing = make_drawing(model)
    camera = Camera(np.array([0.0, -0.1, 6.0]), np.zeros(3))
    image = np.asarray(render(drawing, actors_at(drawing, posed_model(still(model)), 0), camera, **SMALL)).astype(int)
    shadow = np.array([0.0, 0.0, 0.6]) - SUN * 0.6 / SUN[2]
    brightness = []
    for point in (shadow, shadow * [-1.0, -1.0, 1.0]):
        column, row, _ = project(point[None], camera, 96, 54)[0].round().astype(int)
        brightness.append(image[row, column].sum())
    assert brightness[0] < 0.9 * brightness[1]


def test_picture_and_strobe_have_the_requested_size_and_are_not_empty(person, tmp_path):
    picture(person, tmp_path / "a.png", **SMALL)
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (96, 54)
    wide = np.asarray(strobe(person, times=(0.0, 1.0), **SMALL))
    assert wide.shape == (54, 96, 3) and wide.std() > 5


def test_same_result_same_pixels(person):
    assert np.array_equal(np.asarray(picture(person, **SMALL)), np.asarray(picture(person, **SMALL)))


def test_strobe_needs_an_instant(person):
    with pytest.raises(SettingsError, match="instant"):
        strobe(person, times=())


@pytest.mark.parametrize("suffix", [".gif", ".webp"])
def test_video_has_the_frames_and_lasts_as_long_as_the_motion(suffix, tmp_path):
    result = still(ball_model((0.0, 0.0, 0.5), plane=True), np.linspace(0, 1, 11), rise=0.3)
    path = video(result, tmp_path / f"v{suffix}", rate=10.0, **SMALL)
    with Image.open(path) as image:
        assert image.n_frames == 11
        total = 0
        for index in range(image.n_frames):
            image.seek(index)
            image.load()
            total += image.info["duration"]
    assert total == pytest.approx(1100, abs=20)


def test_frames_are_numbered_and_differ(tmp_path):
    result = still(ball_model((0.0, 0.0, 0.5), plane=True), (0.0, 1.0), rise=1.0)
    paths = write_frames(result, tmp_path / "new", rate=1.0, **SMALL)
    assert [path.name for path in paths] == ["frame-0000.png", "frame-0001.png"]
    assert paths[0].read_bytes() != paths[1].read_bytes()


def test_unknown_video_format_is_refused(person, tmp_path):
    with pytest.raises(SettingsError, match=r"\.mp4"):
        video(person, tmp_path / "v.mp4")


def test_dataset_without_a_model_is_refused(person):
    del person.attrs["model"]
    with pytest.raises(SettingsError, match="model"):
        picture(person)


def test_trees_and_sides_have_different_colors(person):
    from borelli.people.human import human

    colors = body_colors(human())
    assert colors["thigh_l"] != colors["thigh_r"]
    assert len(set(body_colors(ball_model((0, 0, 0.5), (1, 0, 0.5))).values())) == 2


def test_body_without_shapes_is_a_sphere():
    model = Model("dot", (Body("dot", 1.0),))
    assert len(make_drawing(model).triangles) > 0


def test_model_with_another_vertical_axis_is_drawn_upright():
    """A tilted box that falls along -y and drifts along x: drawn, it falls along -z, with its corners and ground."""
    box = body_from_shapes("box", (Shape("box", (0.1, 0.2, 0.3)),), frame=Frame((0.0, 1.0, 0.0), (0.8, 0.0, 0.0, 0.6)))
    fallen = simulate(
        Model("box", (box,), gravity=(0.0, -9.81, 0.0), ground=(GROUND_PLANE,)),
        duration=0.1,
        initial_twists={"box": (0.5, 0.0, 0.2, 1.0, 2.0, 3.0)},
    )
    shown = posed_model(fallen)
    np.testing.assert_allclose(shown.position[..., [0, 2]], fallen["body_position"].values[..., [0, 1]])
    np.testing.assert_allclose(make_drawing(shown.model).planes[0, 2], [0.0, 0.0, 1.0], atol=1e-15)
    corner = np.array([0.1, 0.2, 0.3])
    there = rotate(shown.orientation, corner) + shown.position
    here = rotate(fallen["body_orientation"].values, corner) + fallen["body_position"].values
    np.testing.assert_allclose(there, np.stack([here[..., 0], -here[..., 2], here[..., 1]], -1), atol=1e-12)
    assert side_view(fallen)[0] == pytest.approx(np.degrees(np.arctan2(-0.2, 0.5)) - 90.0)


def test_body_with_nan_position_is_collapsed():
    pair = Model("pair", tuple(body_from_shapes(name, (Shape("sphere", (0.1,)),)) for name in "ab"))
    drawing = make_drawing(pair)
    position, upright = np.array([[0.0, 0.0, 1.0], [np.nan, np.nan, np.nan]]), np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    vertices, _ = transform_vertices(drawing, position, upright)
    assert np.isfinite(vertices).all()
    # all of its triangles are one vertex of the other body
    assert len(np.unique(vertices[drawing.body == 1], axis=0)) == 1
    assert np.linalg.norm(vertices - [0.0, 0.0, 1.0], axis=1).max() <= 0.1 + 1e-12


def test_bodies_without_shapes_are_rods_between_joints():
    up, on = Frame((0.1, -0.3, 0.4)), Frame((0.0, 0.0, -0.2))
    joints = (
        Joint("a", "fixed", "ground", "upper", child_frame=on),
        Joint("b", "fixed", "upper", "lower", parent_frame=up),
    )
    drawing = make_drawing(with_default_frames(Model("arm", (Body("upper", 1.0), Body("lower", 1.0)), joints)))
    rod, ball = (drawing.vertices[drawing.body == i] for i in range(2))
    axis = np.array([0.1, -0.3, 0.6])
    along = (rod - [0.0, 0.0, -0.2]) @ axis / (axis @ axis)
    off = np.linalg.norm(rod - [0.0, 0.0, -0.2] - np.clip(along, 0.0, 1.0)[:, None] * axis, axis=1)
    np.testing.assert_allclose(off, 0.02, atol=2e-4)
    assert along.min() < 0.0 and along.max() > 1.0
    np.testing.assert_allclose(np.linalg.norm(ball, axis=1), 0.03, atol=2e-4)
