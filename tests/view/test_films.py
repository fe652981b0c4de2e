"""Films: the figure fills the picture and stays in it; a perturbed figure has a ghost; rare colors survive."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.control.animate import animate
from borelli.control.perturbations import Obstacle, Push
from borelli.model.kinematics import poses
from borelli.model.model import Frame, Shape
from borelli.numerics.quaternions import rotation_matrix
from borelli.people.human import human
from borelli.scenes.gallery import gallery_scene
from borelli.synthetic.walk import walk_coordinates
from borelli.view.camera_path import camera_path
from borelli.view.picture import actors_at, drawing_with_floor, picture
from borelli.view.render import project
from borelli.view.results import posed_model
from borelli.view.video import video

WIDTH, HEIGHT = 320, 180
MODEL = human()


@cache
def walk(seconds):
    time = np.arange(round(seconds * 60.0) + 1) / 60.0
    return make_motion(MODEL, walk_coordinates(MODEL, time).coordinates, time, 60.0)


@pytest.mark.parametrize("azimuth", [-62.0, 0.0, 90.0])
def test_walker_fills_the_picture_and_stays_in_it(azimuth):
    posed = posed_model(walk(5.0))
    drawing = drawing_with_floor(posed)
    camera = camera_path(drawing, posed, WIDTH / HEIGHT, azimuth, 9.0)
    for frame, time in enumerate(posed.time):
        column, row, _ = project(actors_at(drawing, posed, frame).vertices, camera(time), WIDTH, HEIGHT).T
        assert column.min() > 0.0 and column.max() < WIDTH and row.min() > 0.0 and row.max() < HEIGHT
        assert np.ptp(row) > 0.55 * HEIGHT
    # the camera does not shake: it accelerates by less than 2 m/s^2
    eyes = np.array([camera(time).eye for time in posed.time])
    assert np.abs(np.diff(eyes, 2, axis=0)).max() * 60.0**2 < 2.0


def test_camera_of_a_scene_with_objects_on_the_ground_is_fixed():
    scene = gallery_scene("conveyor")
    posed = posed_model(scene)
    posed = posed._replace(
        time=np.array([0.0, 1.0]),
        position=np.concatenate([posed.position, posed.position + np.array([5.0, 0.0, 0.0])]),
        orientation=np.concatenate([posed.orientation] * 2),
    )
    camera = camera_path(drawing_with_floor(posed), posed, 1.8, -62.0, 9.0)
    np.testing.assert_array_equal(camera(0.0).eye, camera(1.0).eye)


def test_perturbed_animation_has_the_ghost_of_its_motion():
    """The ghost stands where the tracked motion is, whatever the figure does, and obstacles have none."""
    box = Obstacle(Shape("box", (0.1, 0.1, 0.1)), Frame((0.0, 3.0, 0.1)))
    found = animate(walk(1.0), [Push("pelvis", (0.0, 400.0, 0.0), 0.3, 0.2), box])
    posed = posed_model(found)
    position, orientation = posed.ghost
    target = found.data["coordinate_target"].values
    own, turned = poses(MODEL, target)
    count = len(MODEL.bodies)
    np.testing.assert_allclose(position[:, :count], own, atol=1e-9)
    np.testing.assert_allclose(rotation_matrix(orientation[:, :count]), turned, atol=1e-9)
    assert np.isnan(position[:, count:]).all()
    away = np.abs(position - posed.position)[:, :count].max(axis=(1, 2))
    assert away[: round(0.3 * 240)].max() < 1e-3 < 0.02 < away.max()
    frame = int(away.argmax())
    drawn, plain = (
        np.asarray(picture(one, time=posed.time[frame], width=WIDTH, height=HEIGHT)).astype(int)
        for one in (found, found.data.assign_attrs(perturbations="[]"))
    )
    changed = np.abs(drawn - plain).sum(axis=2) > 30
    assert 20 < changed.sum() < 0.2 * changed.size
    assert (drawn[changed].sum(axis=1) < plain[changed].sum(axis=1)).mean() > 0.9
    assert posed_model(animate(walk(1.0))).ghost is None


def test_short_push_is_red_in_a_film(tmp_path):
    """The arrow of a push that acts for a fraction of the film keeps its color in the film's palette."""
    from PIL import Image

    found = animate(walk(2.0), [Push("pelvis", (0.0, 400.0, 0.0), 0.3, 0.1)])
    with Image.open(video(found, tmp_path / "walk.gif", width=WIDTH, height=HEIGHT, rate=10.0)) as film:
        film.seek(4)
        pixels = np.asarray(film.convert("RGB")).astype(int)
    assert ((pixels[..., 0] > 140) & (pixels[..., 1] < 90) & (pixels[..., 2] < 90)).sum() > 20
