"""Marker sets: complete, symmetric, and on the landmarks they are named after."""

import numpy as np
import pytest

from borelli.errors import FileFormatError
from borelli.model import Body, Frame, Model, Shape, add_marker_set, body_from_shapes, extent, list_marker_sets
from borelli.people.human import human

MIRROR = np.array([1.0, -1.0, 1.0])
COUNTS = {
    "cmu41": 41, "plugin_gait": 39, "helen_hayes": 15, "opensim_gait": 49, "qualisys_cast": 49, "rajagopal": 54,
    "rajagopal_trial": 47, "full_body_2009": 38, "helen_hayes_cortex": 33, "opencap_mocap": 51, "motion_monitor": 27,
    "sprint_full_body": 48, "joint_centers": 23, "joint_centers_of_bones": 25,
}  # fmt: skip
ONE_SIDED = ("RBAC", "R.Offset", "L.TH4", "R.SH4")
"""Worn on one side only; so are further thigh and shank markers of opencap_mocap."""


def place(model: Model, name: str) -> np.ndarray:
    marker = model.marker(name)
    return np.array(model.body(marker.body).frame.position) + marker.position


def test_all_marker_sets_are_listed() -> None:
    assert set(list_marker_sets()) == set(COUNTS)
    for name, count in COUNTS.items():
        assert len(human(markers=name).markers) == count


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("height", [1.5, 1.9])
def test_left_mirrors_right(name: str, height: float) -> None:
    model = human(height=height, markers=name)
    twins = {marker.name[1:]: marker.name for marker in model.markers if marker.name[0] in "Rr"}
    alone = [marker.name for marker in model.markers if marker.name in ONE_SIDED or "_sh" in marker.name[1:4]]
    alone += [f"{side}_thigh{i}" for side in "Lr" for i in (3, 4, 5)]
    lefts = [marker.name for marker in model.markers if marker.name[0] == "L" and marker.name not in alone]
    assert lefts
    for left in lefts:
        assert place(model, left) == pytest.approx(MIRROR * place(model, twins[left[1:]]), abs=1e-12)
    paired = {*lefts, *(twins[left[1:]] for left in lefts)}
    for marker in model.markers:
        if marker.name not in paired and marker.name not in alone:
            assert place(model, marker.name)[1] == pytest.approx(0.0, abs=1e-12), marker.name


# marker, the joint whose center is near it, and the largest distance [m] from it along x, y, z in a 1.75 m man
LANDMARKS = {
    "cmu41": {
        "RKNE": ("shank_r", (0.01, 0.08, 0.01)),
        "RANK": ("foot_r", (0.01, 0.05, 0.01)),
        "RELB": ("forearm_r", (0.01, 0.06, 0.01)),
        "RWRA": ("hand_r", (0.05, 0.01, 0.01)),
        "RSHO": ("upper_arm_r", (0.01, 0.02, 0.06)),
    },
    "plugin_gait": {"LKNE": ("shank_l", (0.01, 0.08, 0.01)), "LTOE": ("toes_l", (0.02, 0.02, 0.05))},
    "joint_centers": {
        "R.Hip.Center": ("thigh_r", (0.01, 0.01, 0.01)),
        "L.Ankle.Center": ("foot_l", (0.01, 0.01, 0.01)),
    },
    "joint_centers_of_bones": {
        "R.Knee.Center": ("shank_r", (0.01, 0.01, 0.01)),
        "L.Elbow.Center": ("forearm_l", (0.01, 0.01, 0.01)),
    },
    "opensim_gait": {"R.Knee.Med": ("shank_r", (0.01, 0.08, 0.01)), "R.Ankle.Med": ("foot_r", (0.01, 0.05, 0.02))},
}


@pytest.mark.parametrize(("name", "marker"), [(n, m) for n, markers in LANDMARKS.items() for m in markers])
def test_landmarks_are_near_their_joints(name: str, marker: str) -> None:
    model = human(markers=name)
    body, allowed = LANDMARKS[name][marker]
    distance = np.abs(place(model, marker) - model.body(body).frame.position)
    assert (distance <= allowed).all(), distance


def test_landmarks_have_the_correct_relative_positions() -> None:
    model = human(markers="cmu41")
    assert place(model, "RHEE")[0] < place(model, "RANK")[0] < place(model, "RMT5")[0] < place(model, "RTOE")[0]
    assert place(model, "RMT5")[1] < place(model, "RTOE")[1] < 0.0 < place(model, "LTOE")[1]
    assert place(model, "C7")[0] < 0.0 < place(model, "CLAV")[0]
    assert place(model, "STRN")[2] < place(model, "CLAV")[2] < place(model, "C7")[2] < place(model, "RFHD")[2]
    assert place(model, "RBWT")[0] < 0.0 < place(model, "RFWT")[0]
    assert place(model, "RHEE")[2] < 0.06


@pytest.mark.parametrize("name", COUNTS)
def test_markers_are_on_or_just_outside_the_skin(name: str) -> None:
    """Only the wands of Helen Hayes are away from the skin.

    The box of the pelvis is centered at the hips; the posterior spines are 30 mm behind it (Harrington et al. 2007).
    """
    model = human(markers=name)
    for marker in model.markers:
        middle, half = extent(model.body(marker.body))
        beyond = np.max(np.abs(np.array(marker.position) - middle) - half)
        wand = name == "helen_hayes" and marker.name[1:] in ("THI", "TIB")
        behind = marker.body == "pelvis" and marker.position[0] < -half[0]
        assert beyond < (0.12 if wand else 0.032 if behind else 0.015), marker.name


def test_marker_set_from_a_file(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'format = "borelli-markers"\nversion = 1\nname = "mine"\n'
        '[[markers]]\nname = "RX"\nmirror = "LX"\nmirror_aliases = ["LY"]\nbody = "hand_r"\nat = [1, -1, 0]\n'
    )
    model = human(markers=path)
    assert [(m.name, m.body, m.aliases) for m in model.markers] == [("RX", "hand_r", ()), ("LX", "hand_l", ("LY",))]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('name = "A"\nbody = "hnad_r"\nat = [0, 0, 0]', "mine.toml: Unknown body 'hnad_r'.*did you mean 'hand_r'"),
        ('name = "A"\nbody = "hand_r"\nat = [0, 0]', r"markers\[0\] 'A': at: Expected 3 entries"),
        ('name = "A"\nbody = "hand_r"\nposition = [0, 0, 0]', "Unknown key 'position'; known: name, body, at"),
        ('name = "A"\nbody = "hand_r"\nat = [0, 0, 0]\nmirror = "A"', "Marker 'A': The name is used 2 times"),
    ],
)
def test_mistakes_in_a_set_are_named(tmp_path, lines: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'format = "borelli-markers"\nversion = 1\nname = "mine"\n[[markers]]\n{lines}\n')
    with pytest.raises(FileFormatError, match=words):
        add_marker_set(human(), path)


@pytest.mark.parametrize("kind", ["sphere", "box", "capsule", "cylinder", "ellipsoid", "mesh"])
def test_extent_is_the_bounding_box(kind: str) -> None:
    """Support in the direction of each axis, from points spread over the surface."""
    rng = np.random.default_rng(5)
    a, b, c = 0.2, 0.3, 0.5
    ball = rng.normal(size=(200_000, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    ring = ball[:, :2] / np.linalg.norm(ball[:, :2], axis=1)[:, None]
    size, surface = {
        "sphere": ((a,), a * ball),
        "box": ((a, b, c), np.sign(ball) * [a, b, c]),
        "capsule": ((a, b), a * ball + np.sign(ball[:, 2:]) * [0, 0, b]),
        "cylinder": ((a, b), np.column_stack([a * ring, b * np.sign(ball[:, 2])])),
        "ellipsoid": ((a, b, c), ball * [a, b, c]),
        "mesh": ((), ball[:20]),
    }[kind]
    vertices = tuple(map(tuple, ball[:20].tolist())) if kind == "mesh" else ()
    q = np.array([0.5, 0.1, -0.7, 0.3])
    q /= np.linalg.norm(q)
    frame = Frame((1.0, 2.0, 3.0), tuple(q.tolist()))
    body = body_from_shapes("a", [Shape(kind, size, frame, vertices=vertices)])
    w, u = q[0], q[1:]
    points = surface + 2 * np.cross(u, np.cross(u, surface) + w * surface) + [1.0, 2.0, 3.0]
    middle, half = extent(body)
    assert middle + half == pytest.approx(points.max(axis=0), abs=2e-3)
    assert middle - half == pytest.approx(points.min(axis=0), abs=2e-3)


def test_body_without_shapes_is_refused() -> None:
    bare = Model("m", tuple(Body(b.name, b.mass) for b in human().bodies))
    with pytest.raises(FileFormatError, match="has no shapes"):
        add_marker_set(bare, "cmu41")
