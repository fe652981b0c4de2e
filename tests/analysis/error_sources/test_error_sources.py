"""Errors that are drawn: their sizes, what they leave unchanged, and none where none is requested."""

from dataclasses import fields, replace

import numpy as np
import pytest

from borelli.analysis.error_sources.error_sizes import NO_ERRORS, ErrorSizes
from borelli.analysis.error_sources.force_plates import draw_plate_errors
from borelli.analysis.error_sources.segment_inertia import draw_inertia
from borelli.analysis.error_sources.soft_tissue import SkinMotion
from borelli.analysis.motion import make_motion
from borelli.errors import SettingsError
from borelli.model.validate import validate
from borelli.people.human import human
from borelli.recording.recording import Recording, make_dataset

DRAWS = 400
INSIDE = 4.0 / np.sqrt(2.0 * DRAWS)
"""Four standard errors of a standard deviation."""


@pytest.fixture(scope="module")
def model():
    return human(70.0, 1.75, markers="plugin_gait")


@pytest.fixture(scope="module")
def bodies(model):
    random = np.random.default_rng(1)
    return [draw_inertia(model, ErrorSizes(body_mass=0.0), random) for _ in range(DRAWS)]


def test_segment_masses_err_as_published_and_keep_the_total(model, bodies):
    assert [body.mass for body in bodies] == pytest.approx([model.mass] * DRAWS)
    masses = np.array([[body.mass for body in one.bodies] for one in bodies])
    relative = masses.std(axis=0) / [body.mass for body in model.bodies]
    names = [body.name for body in model.bodies]
    # the total is kept by scaling all, which changes small segments little
    for name in ("shank_r", "forearm_l", "head"):
        assert relative[names.index(name)] == pytest.approx(0.10, rel=2.0 * INSIDE)
    assert masses[:, names.index("thigh_r")] == pytest.approx(masses[:, names.index("thigh_l")])
    for one in bodies[:5]:
        validate(one)  # inertias are those of solids


def test_centers_of_mass_err_along_the_segment_by_its_length(model, bodies):
    """The shank is 0.246 of the stature (Winter 2009): its center errs by 2 % of about that along it."""
    names = [body.name for body in model.bodies]
    right, left = (
        np.array([one.bodies[names.index(name)].center_of_mass for one in bodies]) for name in ("shank_r", "shank_l")
    )
    assert right[:, 2].std() == pytest.approx(0.02 * 0.246 * 1.75, rel=0.25)  # a rod of equal radius of gyration
    mean = np.array(model.bodies[names.index("shank_r")].center_of_mass)
    assert (right - mean) * (1.0, -1.0, 1.0) == pytest.approx(
        left - model.bodies[names.index("shank_l")].center_of_mass
    )


def test_body_mass_errs(model):
    random = np.random.default_rng(2)
    total = [draw_inertia(model, replace(NO_ERRORS, body_mass=0.01), random).mass for _ in range(DRAWS)]
    assert np.std(total) / model.mass == pytest.approx(0.01, rel=INSIDE)


def test_skin_of_the_thigh_moves_by_8_mm_in_a_walk(model):
    """Hip and knee flexion of 14 and 20 degrees RMS; shanks half as much; the head, with a neck at rest, not at all."""
    names = [coordinate.name for coordinate in model.coordinates]
    q = np.tile([coordinate.default for coordinate in model.coordinates], (60, 1))
    phase = np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    for name, degrees in (("hip_flexion_r", 14.0), ("knee_flexion_r", 20.0), ("ankle_flexion_r", 8.0)):
        q[:, names.index(name)] += np.radians(degrees) * np.sqrt(2.0) * np.sin(phase + degrees)
    labels = tuple(marker.name for marker in model.markers)
    skin, random = SkinMotion(make_motion(model, q, np.arange(60) / 60.0, 60.0), labels), np.random.default_rng(3)
    drawn = np.array([skin.draw(random) for _ in range(DRAWS)])

    def middle(body):
        return drawn[:, :, [i for i, marker in enumerate(model.markers) if marker.body == body]].mean(axis=2)

    rms = {body: np.sqrt((middle(body) ** 2).mean(axis=(0, 1))) for body in ("thigh_r", "shank_r", "head")}
    assert rms["thigh_r"] == pytest.approx([0.008] * 3, rel=0.1)
    assert rms["shank_r"] == pytest.approx([0.004] * 3, rel=0.1)
    assert not rms["head"].any()


def test_markers_of_a_segment_move_as_one_piece(model):
    """Distances between markers of a segment change only to second order in the rotation of the skin."""
    names = [coordinate.name for coordinate in model.coordinates]
    q = np.tile([coordinate.default for coordinate in model.coordinates], (20, 1))
    q[:, names.index("knee_flexion_r")] += np.linspace(0.0, 1e-3, 20)
    motion = make_motion(model, q, np.arange(20) / 60.0, 60.0, markers=model.markers)
    labels = tuple(marker.name for marker in model.markers)
    at = motion.data["model_marker_position"].values
    moved = at + SkinMotion(motion, labels).draw(np.random.default_rng(4))
    own = [i for i, marker in enumerate(model.markers) if marker.body == "shank_r"]
    before, after = (np.linalg.norm(x[:, own[0]] - x[:, own[1]], axis=-1) for x in (at, moved))
    assert np.abs(moved - at)[:, own].max() > 1e-7
    assert after == pytest.approx(before, abs=1e-9)


def test_plates_err_in_position_and_gain():
    force, center = np.full((500, 2, 3), 700.0), np.zeros((500, 2, 3))
    variables = {"ground_reaction_force": force, "center_of_pressure": center, "free_moment": force}
    recording = Recording(make_dataset(variables, {"foot": ["right", "left"]}, analog_rate=1000.0))
    random = np.random.default_rng(5)
    drawn = [draw_plate_errors(recording, ErrorSizes(), random).data for _ in range(DRAWS)]
    gain = np.array([one["ground_reaction_force"].values[0] for one in drawn]) / 700.0
    assert gain.std(axis=0) == pytest.approx(np.full((2, 3), 0.01), rel=INSIDE)
    offset = np.array([one["center_of_pressure"].values.mean(axis=0) for one in drawn])
    assert offset[..., :2].std(axis=0) == pytest.approx(np.full((2, 2), 0.003), rel=INSIDE)
    assert not offset[..., 2].any()
    noise = drawn[0]["center_of_pressure"].values[:, 0, 0].std()
    assert noise == pytest.approx(0.001, rel=4.0 / np.sqrt(1000.0))


def test_no_errors_change_nothing(model):
    recording = Recording(make_dataset({"marker_position": np.zeros((3, 1, 3))}, {"marker": ["a"]}, rate=100.0))
    random = np.random.default_rng(6)
    assert draw_inertia(model, NO_ERRORS, random) is model
    assert draw_plate_errors(recording, NO_ERRORS, random) is recording
    assert all(getattr(NO_ERRORS, one.name) == 0.0 < getattr(ErrorSizes(), one.name) for one in fields(ErrorSizes))


@pytest.mark.parametrize("size", [-0.1, float("nan"), 11.0])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(SettingsError, match=r"errors: plate_gain is .*\. Use 0 to 10"):
        ErrorSizes(plate_gain=size)
