"""Force plates: the load is recovered for every type, pose, offset, unit and sign."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelli.recording.formats.c3d.force_plates import (
    Plate,
    compute_loads,
    plate_channels,
    read_plates,
    unloaded_samples,
)
from borelli.recording.formats.c3d.reader import read_c3d
from borelli.recording.formats.c3d.write_parameters import parameters_from_plain
from borelli.recording.units_and_axes import Conversion

from ..walker import real

EXACT = 1e-9
UNITS = ["N", "N", "N", "Nm", "Nm", "Nm"]
MATRIX = np.diag([1.5, 1.5, 6.0, 700.0, 600.0, 300.0]) + np.random.default_rng(5).normal(0.0, 0.05, (6, 6))


def make_plate(kind=2, turn=0.0, height=0.0, offset=(0.0, 0.0, 0.0), calibration=None, channels=6):
    """Return a plate of 0.6 x 0.4 m, its z downward, rotated about the vertical."""
    corners = np.array([[0.3, -0.2, 0.0], [-0.3, -0.2, 0.0], [-0.3, 0.2, 0.0], [0.3, 0.2, 0.0]])
    c, s = np.cos(turn), np.sin(turn)
    turned = corners @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]]) + [1.0, 2.0, height]
    return Plate("plate 1", kind, turned, np.arange(channels), np.array(offset, float), calibration)


def walk_load(rng, plate, count=50):
    """Return forces on a subject, centers of pressure on the plate and free moments about its normal, in the lab."""
    force = rng.uniform((-150, -80, 200), (150, 80, 900), (count, 3))
    local = rng.uniform(-0.9, 0.9, (count, 2)) * np.array(plate.size) / 2
    center = plate.center + local @ plate.rotation[:, :2].T
    moment = rng.uniform(-8, 8, (count, 1)) * plate.rotation[:, 2]
    return force, center, moment


def moment_about(point, force, center, free):
    return np.cross(center - point, force) + free


def check(found, force, center, moment):
    assert np.allclose(found["plate_force"][:, 0], force, atol=EXACT)
    assert np.allclose(found["plate_center_of_pressure"][:, 0], center, atol=EXACT)
    assert np.allclose(found["plate_free_moment"][:, 0], moment, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from([1, 2, 4]),
    turn=st.floats(-3.0, 3.0),
    depth=st.floats(0.0, 0.08),
    reverse=st.booleans(),
    on_plate=st.booleans(),
    millimeters=st.booleans(),
)
def test_load_is_recovered_from_the_channels(seed, kind, turn, depth, reverse, on_plate, millimeters):
    rng = np.random.default_rng(seed)
    offset = np.array([0.002, -0.001, -depth])
    matrix = MATRIX if kind == 4 else None
    plate = make_plate(kind, turn, 0.2, -offset if reverse and depth > 0.0 else offset, matrix)
    force, center, moment = walk_load(rng, plate)
    rotation = plate.rotation
    transducer = plate.center - rotation @ offset
    sign = -1.0 if on_plate else 1.0
    channels = sign * np.concatenate([force, moment_about(transducer, force, center, moment)], axis=1)
    channels = np.concatenate([channels[:, :3] @ rotation, channels[:, 3:] @ rotation], axis=1)
    if kind == 1:
        channels[:, 3:5] = (center - plate.center) @ rotation[:, :2]
        channels[:, 5] = sign * moment @ rotation[:, 2]
    scale = 1e3 if millimeters else 1.0
    channels[:, 3:] *= scale
    units = UNITS[:3] + ["Nmm" if millimeters else "Nm"] * 3
    if kind == 1:
        units[3:5] = ["mm" if millimeters else "m"] * 2
    if kind == 4:
        channels = channels @ np.linalg.inv(MATRIX).T
    if depth == 0.0:
        # the sign of an offset within the surface is undetermined
        plate = Plate(plate.name, kind, plate.corners, plate.channels, offset, matrix)
    found, notes = compute_loads([plate], channels, units)
    check(found, force, center, moment)
    assert any(("reversed" if on_plate else "kept") in note.text for note in notes)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), depth=st.floats(0.01, 0.08))
def test_eight_sensors_give_their_load(seed, depth):
    rng = np.random.default_rng(seed)
    a, b = 0.2, 0.12
    plate = make_plate(3, 0.7, 0.0, (a, b, -depth), channels=8)
    channels = rng.uniform(-50, 50, (20, 8))
    channels[:, 4:] = -rng.uniform(50, 300, (20, 4))
    x12, x34, y14, y23 = channels[:, :4].T
    zero = np.zeros(20)
    forces = [np.stack([x12, zero, zero], 1), np.stack([x34, zero, zero], 1)]
    forces += [np.stack([zero, y14, zero], 1), np.stack([zero, y23, zero], 1)]
    forces += [np.stack([zero, zero, channels[:, 4 + i]], 1) for i in range(4)]
    places = [(0, b), (0, -b), (a, 0), (-a, 0), (a, b), (-a, b), (-a, -b), (a, -b)]
    found, _ = compute_loads([plate], channels, ["N"] * 8)
    rotation = plate.rotation
    total = sum(forces) @ rotation.T
    point = np.array([0.3, -0.4, 0.5])
    lever = [plate.center + rotation @ np.array([x, y, depth]) - point for x, y in places]
    wrench = sum(np.cross(r, f @ rotation.T) for r, f in zip(lever, forces, strict=True))
    out = [found[name][:, 0] for name in ("plate_force", "plate_center_of_pressure", "plate_free_moment")]
    assert np.allclose(out[0], total, atol=EXACT)
    assert np.allclose(moment_about(point, *out), wrench, atol=1e-7)
    assert np.allclose((out[1] - plate.center) @ rotation[:, 2], 0.0, atol=EXACT)
    assert np.allclose(out[2] @ rotation[:, :2], 0.0, atol=EXACT)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 2, 3, 0), (3, 2, 1, 0), (2, 1, 0, 3)])
def test_corners_in_any_order_are_the_axes_of_the_channels(order):
    """Corners that start elsewhere rotate the plate's axes, and corners in reverse order invert its z."""
    plate = make_plate(turn=0.3)
    plate = Plate("plate 1", 2, plate.corners[list(order)], plate.channels, np.zeros(3))
    force, center, moment = walk_load(np.random.default_rng(1), plate)
    found, _ = compute_loads([plate], plate_channels(plate, force, center, moment), UNITS)
    check(found, force, center, moment)


def test_an_offset_within_the_surface_is_used_as_stated():
    """Transducers of a treadmill are next to its center, not below; tilted corners must not invert their offset."""
    plate = make_plate(offset=(0.236, 0.813, 0.0))
    for tilt in (-1e-4, 1e-4):
        corners = plate.corners + np.array([0.0, 0.0, tilt]) * np.array([[1], [1], [-1], [-1]])
        tilted = Plate("plate 1", 2, corners, plate.channels, plate.offset)
        force, center, moment = walk_load(np.random.default_rng(1), tilted)
        transducer = tilted.center - tilted.rotation @ plate.offset
        wrench = [force, moment_about(transducer, force, center, moment)]
        found, _ = compute_loads([tilted], np.concatenate([w @ tilted.rotation for w in wrench], axis=1), UNITS)
        assert np.allclose(found["plate_center_of_pressure"][:, 0], center, atol=1e-6)


def test_sensors_without_distances_give_force_only():
    plate = make_plate(3, channels=8)
    found, notes = compute_loads([plate], np.full((20, 8), -100.0), ["N"] * 8)
    assert np.isnan(found["plate_center_of_pressure"]).all()
    assert np.allclose(found["plate_force"][:, 0, 2], 400.0)
    assert any(note.kind == "problem" and note.code == "plate_geometry" for note in notes)


def test_channels_made_from_a_load_give_it_back():
    plate = make_plate(2, 1.1, 0.4)
    force, center, moment = walk_load(np.random.default_rng(2), plate)
    found, _ = compute_loads([plate], plate_channels(plate, force, center, moment), UNITS)
    check(found, force, center, moment)


def test_center_of_pressure_is_missing_below_twenty_newtons():
    plate = make_plate()
    force = np.array([[0, 0, 19.9], [0, 0, 20.1], [0, 0, 500.0]])
    center = np.tile(plate.center + np.array([0.05, 0.02, 0.0]), (3, 1))
    found, _ = compute_loads([plate], plate_channels(plate, force, center, np.zeros((3, 3))), UNITS)
    assert np.isnan(found["plate_center_of_pressure"][:, 0, 0]).tolist() == [True, False, False]
    assert np.allclose(found["plate_center_of_pressure"][1:, 0], center[1:])


def test_offset_is_subtracted_unless_the_plate_is_loaded():
    plate = make_plate()
    force, center, moment = walk_load(np.random.default_rng(3), plate)
    force[:10], moment[:10] = 0.0, 0.0
    channels = plate_channels(plate, force, center, moment)
    drift = np.array([3.0, -2.0, -12.0, 1.0, 0.5, -0.3])
    found, notes = compute_loads([plate], channels + drift, UNITS, empty=slice(0, 10))
    assert np.allclose(found["plate_force"][:, 0], force)
    assert np.allclose(found["plate_center_of_pressure"][10:, 0], center[10:])
    assert any("12.0 N" in note.text for note in notes)
    found, notes = compute_loads([plate], channels + drift, UNITS, empty=slice(20, 30))
    assert not np.allclose(found["plate_force"][:, 0], force)
    assert any(note.kind == "problem" and note.code == "plate_offset" for note in notes)


@pytest.mark.parametrize(("stated", "true"), [("", 1e-3), ("", 1.0), ("Nmm", 1.0), ("Nm", 1e-3), ("V", 1e-3)])
def test_the_moment_unit_is_inferred_from_the_position_of_the_load(stated, true):
    plate = make_plate()
    force, center, moment = walk_load(np.random.default_rng(4), plate)
    channels = plate_channels(plate, force, center, moment)
    channels[:, 3:] /= true
    found, notes = compute_loads([plate], channels, [*UNITS[:3], stated, stated, stated])
    check(found, force, center, moment)
    assert any(note.code == "moment_unit" for note in notes)


def test_an_unloaded_plate_follows_the_others():
    plates = [make_plate(), make_plate(channels=6)]
    plates[1] = Plate("plate 2", 2, plates[1].corners + np.array([2.0, 0.0, 0.0]), np.arange(6, 12), np.zeros(3))
    force, center, moment = walk_load(np.random.default_rng(6), plates[0])
    loaded = plate_channels(plates[0], force, center, moment)
    noise = np.tile([0.0, 0.0, 5.0, 0.0, 0.0, 0.0], (len(force), 1))
    for sign in (1.0, -1.0):
        found, _ = compute_loads(plates, np.concatenate([sign * loaded, noise], axis=1), UNITS * 2)
        assert np.allclose(found["plate_force"][:, 0], force)
        assert np.allclose(found["plate_force"][:, 1, 2], -5.0 * sign)


def described(**changes):
    values = {
        "USED": 1,
        "TYPE": [2],
        "CORNERS": [[[300.0, -200.0, 0.0], [-300.0, -200.0, 0.0], [-300.0, 200.0, 0.0], [300.0, 200.0, 0.0]]],
        "ORIGIN": [[0.0, 0.0, -40.0]],
        "CHANNEL": [[1, 2, 3, 4, 5, 6]],
        "ZERO": [1, 3],
    }
    return parameters_from_plain({"FORCE_PLATFORM": values | changes})


def test_plates_are_read_in_lab_meters():
    (plate,), notes = read_plates(described(), Conversion.from_axes("mm", "+Y"), 6)
    assert not notes
    assert np.allclose(plate.corners[0], [0.3, 0.0, -0.2])
    assert np.allclose(plate.offset, [0, 0, -0.04])
    assert unloaded_samples(described(), 10, 4) == slice(0, 12)
    assert (
        unloaded_samples(described(ZERO=[1, 0]), 10, 4) is None
        and unloaded_samples(described(ZERO=[1, 11]), 10, 4) is None
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"TYPE": [5]}, "its type is 5"),
        ({"TYPE": [4]}, "no matrix in FORCE_PLATFORM:CAL_MATRIX"),
        ({"CHANNEL": [[1, 2, 3, 4, 5, 60]]}, "but the file has 6"),
        ({"CHANNEL": [[0, 2, 3, 4, 5, 6]]}, "but the file has 6"),
        ({"CHANNEL": [[1, 2, 3]]}, "lists 3 of its 6"),
        ({"CORNERS": [[[0.0, 0.0, 0.0]] * 4]}, "have no area"),
        ({"CORNERS": []}, "missing"),
        ({"USED": 2}, "plate 2 is not used: its corners"),
    ],
)
def test_unusable_plates_are_omitted_with_the_reason(change, why):
    plates, notes = read_plates(described(**change), Conversion.from_axes("mm", "+Z"), 6)
    assert len(plates) == (1 if "USED" in change else 0)
    assert [note.kind for note in notes] == ["problem"] and why in notes[0].text


@pytest.mark.data
def test_forces_and_centers_of_pressure_equal_the_import_of_opensim():
    one = read_c3d(real("c3d/opensim_walking2/walking2.c3d"))
    lines = real("c3d/opensim_walking2/reference/std_cop_walking2_grfs.sto").read_text().splitlines()
    table = np.array([line.split() for line in lines[6:] if line.strip()], float)
    rows = np.rint(table[:, 0] * one.analog_rate).astype(int)
    for plate in range(2):
        force, center, moment = table[:, 1 + 9 * plate : 10 + 9 * plate].reshape(-1, 3, 3).swapaxes(0, 1)
        loaded = np.abs(force[:, 2]) > 20.0
        assert loaded.sum() > 10
        names = ("plate_force", "plate_center_of_pressure", "plate_free_moment")
        found = [one.data[name].values[rows, plate] for name in names]
        assert np.abs(found[0] - force).max() < 1e-6
        assert np.abs(found[1] - 1e-3 * center)[loaded].max() < 1e-6
        assert np.abs(found[2] - 1e-3 * moment)[loaded].max() < 1e-6


@pytest.mark.data
def test_types_two_and_four_of_one_trial_agree():
    """The type 2 file scales moments by a fifth less than the matrix of the type 4 file: hence 25 mm, and no less."""
    two, four = (
        read_c3d(real(f"c3d/format_variants/sample10_plate_type2_vs_4/TYPE-{kind}.C3D")).data for kind in (2, 4)
    )
    assert float(two["plate_force"][..., 2].max()) == pytest.approx(398.0, abs=1.0)
    assert float(four["plate_force"][..., 2].max()) == pytest.approx(390.5, abs=1.0)
    strong = (two["plate_force"][:, 0, 2] > 100.0).values
    apart = (two["plate_center_of_pressure"] - four["plate_center_of_pressure"]).values[strong]
    assert np.abs(apart).max() < 0.025
    assert np.abs((two["plate_force"] - four["plate_force"]).values).max() < 10.0


@pytest.mark.data
def test_type_three_is_reversed_to_act_on_the_subject():
    one = read_c3d(real("c3d/format_variants/sample15_plate_type3/FP1.C3D"))
    raw = one.data["analog"].values[:, 6:10].sum(axis=1)
    assert raw.max() > 250.0  # downward, in the plate's own frame
    assert np.allclose(one.data["plate_force"].values[:, 0, 2], raw)
    assert any("reversed" in note.text for note in one.notes)


@pytest.mark.data
def test_plates_agree_with_the_ground_reaction_that_vicon_stored():
    """Vicon filters its model outputs, so that they differ from the plates by a few newtons."""
    one = read_c3d(real("c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d"))
    for side, plate in (("L", 1), ("R", 0)):
        stored_force = one.subject["mass"] * one.data["model_output"].sel(quantity=f"{side}GroundReactionForce").values
        loaded = np.nan_to_num(stored_force[:, 2]) > 50.0
        apart = (one.data["plate_force"].values[::10, plate] - stored_force)[loaded]
        assert loaded.sum() > 40 and np.abs(apart).max() < 12.0


@pytest.mark.data
def test_feet_strike_the_plates_when_the_file_says_so():
    one = read_c3d(real("c3d/sprint_8plates/JA1Gait35.c3d"))
    time = one.data["analog_time"].values
    strikes = np.array([event.time for event in one.events if event.label == "Foot Strike"])
    for plate in (1, 3, 6, 7):
        first = time[np.abs(one.data["plate_force"].values[:, plate, 2]) > 20.0][0]
        assert np.abs(strikes - first).min() < 0.004


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("types", [14, 1])
def test_all_plates_of_a_file_with_fourteen_are_read(rows, types):
    """Their channels in rows or as one list, with a type each or one type of all."""
    corner = np.array([[400.0, 600, 0], [400, 0, 0], [0, 0, 0], [0, 600, 0]])
    channels = np.arange(1, 85).reshape(14, 6)
    plain = {
        "FORCE_PLATFORM": {
            "USED": 14, "TYPE": [2] * types, "CHANNEL": (channels if rows else channels.ravel()).tolist(),
            "CORNERS": (corner + 500.0 * np.arange(14)[:, None, None] * [1.0, 0.0, 0.0]).tolist(),
            "ORIGIN": np.zeros((14, 3)).tolist(),
        }
    }  # fmt: skip
    plates, notes = read_plates(parameters_from_plain(plain), Conversion.from_axes("mm", "+Z"), 84)
    assert notes == [] and [plate.channels.tolist() for plate in plates] == (channels - 1).tolist()
    assert np.allclose([plate.center[0] for plate in plates], 0.2 + 0.5 * np.arange(14))
