"""Muscles in pictures and plots: where their paths are, colored by activation, seen through the bodies."""

from dataclasses import replace

import numpy as np
import pytest

import borelli as bo
from borelli.analysis.motion import to_model_axes
from borelli.errors import ModelError, SettingsError
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Frame, Model, Muscle, PathPoint, Shape
from borelli.muscles.paths import muscle_paths, path_points
from borelli.people.human import human
from borelli.view.drawing import make_drawing
from borelli.view.muscle_lines import (
    ACTIVE_COLOR,
    LINE_RADIUS,
    REST_COLOR,
    UNKNOWN_COLOR,
    activation_colors,
    muscle_lines,
    tubes,
)
from borelli.view.muscle_plots import plot_moment_arms
from borelli.view.picture import actors_at
from borelli.view.render import DECAY_LENGTH, Camera, project, render
from borelli.view.results import PosedModel, posed_model

SIZE = (480, 270)  # a line is two pixels wide
CAMERA = Camera(np.array([0.0, -2.0, 0.5]), np.array([0.0, 0.0, 0.5]))


def ball_with_muscle(depth, radius=0.2):
    """Return a ball and a muscle across the view at a depth [m] behind its center."""
    ball = body_from_shapes("ball", (Shape("sphere", (radius,)),), frame=Frame((0.0, 0.0, 0.5)))
    ends = tuple(PathPoint("ball", (x, depth, 0.0)) for x in (-0.7, 0.7))
    return Model("ball", (ball,), muscles=(Muscle("m", ends, 100.0, 0.1, 0.1),))


def pixels(activation, depth, radius=0.2, drawn=True):
    """Return the image of the ball and its muscle."""
    model = ball_with_muscle(depth, radius)
    position, upright = np.array([[[0.0, 0.0, 0.5]]]), np.array([[[1.0, 0.0, 0.0, 0.0]]])
    lines = muscle_lines(model, np.zeros((1, 0)), np.array([[activation]]), np.eye(3))
    lines = lines._replace(offset=np.zeros(3))
    posed = PosedModel(model, np.zeros(1), position, upright, muscles=lines if drawn else None)
    drawing = make_drawing(model)
    return np.asarray(render(drawing, actors_at(drawing, posed, 0), CAMERA, *SIZE)).astype(int)


def at(x, depth):
    column, row, _ = project(np.array([[x, depth, 0.5]]), CAMERA, *SIZE)[0].round().astype(int)
    return row, column


def test_colors_go_from_blue_gray_to_red():
    colors = activation_colors(np.array([0.0, 0.5, 1.0, 1.7, np.nan]))
    middle = (np.array(REST_COLOR) + ACTIVE_COLOR) / 2
    assert colors == pytest.approx(np.array([REST_COLOR, middle, ACTIVE_COLOR, ACTIVE_COLOR, UNKNOWN_COLOR]))
    assert REST_COLOR[2] > REST_COLOR[0] and ACTIVE_COLOR[0] > 3 * max(ACTIVE_COLOR[1:])


def test_muscles_are_drawn_in_the_color_of_their_activation():
    row, column = at(0.5, 0.0)  # outside of the ball
    plain = pixels(0.0, 0.0, drawn=False)
    active, rest = pixels(1.0, 0.0), pixels(0.0, 0.0)
    assert active[row, column, 0] > 1.5 * active[row, column, 2]
    assert rest[row, column, 2] > rest[row, column, 0]
    changed = np.abs(active - plain).sum(axis=2) > 20
    rows = np.flatnonzero(changed.any(axis=1))
    assert np.ptp(rows) <= 5 and changed.any(axis=0).sum() > 200  # a thin line across the picture


def test_muscles_show_through_bodies_and_fade_with_depth():
    row, column = at(0.0, 0.0)
    added = []
    for depth in (-0.3, 0.0, 0.6):  # in front of the ball, in it, behind it
        with_line, without = (pixels(1.0, depth, drawn=drawn)[row, column] for drawn in (True, False))
        added.append(float(np.abs(with_line - without).sum()))
    assert added[0] > added[1] > added[2] and added[1] > 0.1 * added[0]
    # the line behind is 0.8 m behind the surface
    assert added[2] <= 1.0 + 2.0 * np.exp(-0.8 / DECAY_LENGTH) * added[0]


def test_tubes_surround_their_segments():
    segments = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 2.0, 3.0], [1.5, 2.5, 2.0]]])
    mesh = tubes(segments)
    for k, (start, end) in enumerate(segments):
        own = mesh.vertices[k * 12 : (k + 1) * 12] - start
        along = (end - start) / np.linalg.norm(end - start)
        assert np.linalg.norm(own - np.outer(own @ along, along), axis=1) == pytest.approx(LINE_RADIUS)
        assert own[:6] @ along == pytest.approx(0.0, abs=1e-12)
        assert own[6:] @ along == pytest.approx(np.linalg.norm(end - start))
    corners = mesh.vertices[mesh.triangles]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("ti,ti->t", outward, mesh.normals[mesh.triangles[:, 0]]) > 0.0).all()


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.80665), (0.0, -9.80665, 0.0)])
def test_lines_are_the_path_points_in_lab_axes(gravity):
    model = replace(human(muscles=True), gravity=gravity)
    posed = posed_model(model)
    segments, owner = posed.muscles.segments(0)
    lines = path_points(model, [c.default for c in model.coordinates])[0]
    for k in (0, 25, len(lines) - 1):
        expected = lines[k] @ to_model_axes(model)  # v_lab = R^T v_model, as rows
        assert segments[owner == k][:, 0] == pytest.approx(expected[:-1]) and np.isfinite(expected).all()
        assert segments[owner == k][-1, 1] == pytest.approx(expected[-1])
    assert (posed.muscles.colors(0) == UNKNOWN_COLOR).all()
    moved = posed.displaced(np.array([1.0, 2.0, 3.0])).muscles.segments(0)[0]
    assert moved - segments == pytest.approx(np.broadcast_to([1.0, 2.0, 3.0], segments.shape))


def test_frames_with_unknown_coordinates_have_no_lines():
    model = human(muscles=True)
    lines = muscle_lines(model, np.full((1, len(model.coordinates)), np.nan), None, np.eye(3))
    assert len(lines.segments(0)[0]) == 0
    assert muscle_lines(human(), np.zeros((1, 54)), None, np.eye(3)) is None


def test_picture_of_a_model_with_muscles_differs():
    size = {"width": 160, "height": 120}
    bare, full = (np.asarray(bo.picture(human(muscles=m), **size)).astype(int) for m in (False, True))
    assert (np.abs(full - bare).sum(axis=2) > 20).sum() > 100


def test_moment_arms_are_derivatives_of_length():
    model = human(muscles=True)
    chosen = ["recfem_r", "gasmed_r", "bflh_r"]
    figure = plot_moment_arms(model, "knee_flexion_r", chosen, pose={"hip_flexion_r": 0.5})
    (axes,) = figure.axes
    assert axes.get_xlabel() == "knee_flexion_r [deg]" and axes.get_ylabel() == "moment arm [mm]"
    names = [c.name for c in model.coordinates]
    step = 1e-5
    for line, name in zip(axes.get_lines(), chosen, strict=True):
        assert line.get_label() == name
        x, y = line.get_data()
        k = len(x) // 3
        rows = np.tile([c.default for c in model.coordinates], (2, 1))
        rows[:, names.index("hip_flexion_r")] = 0.5
        rows[:, names.index("knee_flexion_r")] = np.radians(x[k]) + step * np.array([-1.0, 1.0])
        length = muscle_paths(model, rows, muscles=[name]).length[:, 0]
        assert y[k] == pytest.approx(-1e3 * np.diff(length)[0] / (2 * step), abs=1e-3)


def test_moment_arm_plot_takes_the_largest_by_default_and_refuses_wrong_names():
    model = human(muscles=True)
    labels = [line.get_label() for line in plot_moment_arms(model, "ankle_flexion_r").axes[0].get_lines()]
    assert len(labels) == 8 and {"soleus_r", "tibant_r"} <= set(labels)
    with pytest.raises(SettingsError, match="knee_flexion_r"):
        plot_moment_arms(model, "knee_flexoin_r")
    with pytest.raises(SettingsError, match="No muscle"):
        plot_moment_arms(model, "elbow_flexion_r")
    with pytest.raises(ModelError, match="no muscles"):
        plot_moment_arms(human(), "knee_flexion_r")
