"""Scaling by pairs of markers: known factors are recovered, and OpenSim's own scaling is reproduced."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.scaling.opensim_scale_setup import read_scale_setup, with_opensim_markers
from borelli.analysis.scaling.scale_model import Measurement, place_markers, scale_model
from borelli.errors import FileFormatError, ModelError, SettingsError
from borelli.model.io import read_model
from borelli.model.kinematics import marker_positions, with_default_frames
from borelli.model.resize import resize_body
from borelli.people.human import human
from borelli.recording.io import read_recording
from borelli.recording.recording import Recording, make_dataset

from ...shared_data import SHARED_DATA as DATA

GAIT = DATA / "opensim" / "gait2354"

THIGHS = Measurement((("RTHI", "RKNE"), ("LTHI", "LKNE")), {"thigh_r": "xyz", "thigh_l": "xyz"}, "thighs")


@cache
def generic():
    return human(80.0, 1.8, markers="cmu41")


def stand(model, frames=3):
    q = np.tile([c.default for c in model.coordinates], (frames, 1))
    names = [marker.name for marker in model.markers]
    return Recording(
        make_dataset({"marker_position": marker_positions(model, q)}, {"marker": names}, rate=100.0), "synthetic"
    )


def grown(**factors):
    model = generic()
    for name, factor in factors.items():
        model = resize_body(model, name, factor)
    return with_default_frames(model)


def test_known_factors_are_recovered():
    truth = grown(thigh_r=(1.1, 1.1, 1.1), thigh_l=(1.06, 1.06, 1.06))
    scaled = scale_model(generic(), stand(truth), [THIGHS])
    assert scaled.factors["thigh_r"] == pytest.approx((1.08,) * 3, abs=1e-12)  # the mean of both sides
    right = Measurement((("RTHI", "RKNE"),), {"thigh_r": "xyz"}, "right")
    scaled = scale_model(generic(), stand(truth), [right])
    assert scaled.factors == {"thigh_r": pytest.approx((1.1,) * 3, abs=1e-12)}
    center, expected = (model.joint("knee_r").parent_frame.position for model in (scaled.model, truth))
    assert center == pytest.approx(expected, abs=1e-12)


def test_by_default_every_body_is_scaled_by_its_own_markers():
    truth = grown(thigh_r=(1.1,) * 3, shank_l=(0.9,) * 3, head=(1.03,) * 3)
    scaled = scale_model(generic(), stand(truth))
    assert scaled.factors["thigh_r"] == pytest.approx((1.1,) * 3)
    assert scaled.factors["shank_l"] == pytest.approx((0.9,) * 3)
    assert scaled.factors["head"] == pytest.approx((1.03,) * 3)
    assert scaled.factors["pelvis"] == pytest.approx((1.0,) * 3)
    assert any(note.code == "unscaled_bodies" and "hand_r" in note.text for note in scaled.notes)
    motion = inverse_kinematics(scaled.model, stand(truth), pose_stiffness=0.0)
    assert motion.marker_rms < 1e-7


def test_only_named_axes_are_scaled_and_stated_factors_override():
    along = Measurement((("RTHI", "RKNE"),), {"thigh_r": "Z"}, "along")
    recording = stand(grown(thigh_r=(1.1,) * 3))
    assert scale_model(generic(), recording, [along]).factors["thigh_r"] == pytest.approx((1.0, 1.0, 1.1))
    stated = scale_model(generic(), recording, [along], factors={"thigh_r": (1.0, 1.2, 1.3)})
    assert stated.factors["thigh_r"] == (1.0, 1.2, 1.3)


def test_masses_keep_their_fractions_or_scale_with_volume():
    recording = stand(grown(thigh_r=(1.1,) * 3))
    right = Measurement((("RTHI", "RKNE"),), {"thigh_r": "xyz"}, "right")
    kept = scale_model(generic(), recording, [right], mass=70.0).model
    for body in kept.bodies:
        assert body.mass == pytest.approx(generic().body(body.name).mass * 70.0 / 80.0)
    # a longer body of the same mass has an inertia that goes with the square of its length
    before, after = (model.body("thigh_r").inertia[0][0] for model in (generic(), kept))
    assert after == pytest.approx(before * 1.1**2 * 70.0 / 80.0)
    free = scale_model(generic(), recording, [right], mass=70.0, keep_mass_fractions=False).model
    assert free.mass == pytest.approx(70.0)
    ratio = free.body("thigh_r").mass / free.body("thigh_l").mass
    assert ratio == pytest.approx(1.1**3)


def test_placed_markers_match_the_measured_ones():
    model = generic()
    rng = np.random.default_rng(1)
    moved = tuple(replace(m, position=tuple(np.array(m.position) + rng.normal(0.0, 0.005, 3))) for m in model.markers)
    static = stand(replace(model, markers=moved))
    placed = place_markers(model, static, fixed=("RKNE",))
    assert placed.marker("RKNE") == model.marker("RKNE")
    still = inverse_kinematics(placed, static)
    errors = still.data["marker_error"].sel(marker=[m.name for m in placed.markers if m.name != "RKNE"])
    assert float(np.sqrt((errors**2).mean())) < 1e-3


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        (Measurement((("RTHI", "NOSUCH"),), {"thigh_r": "xyz"}, "bad"), "NOSUCH"),
        (Measurement((("RTHI", "RKNE"),), {"thigh_r": "q"}, "bad"), "axes"),
    ],
)
def test_invalid_measurements_are_refused(measurement, message):
    with pytest.raises(SettingsError, match=message):
        scale_model(generic(), stand(generic()), [measurement])


def test_invalid_options_are_refused_and_missing_markers_noted():
    with pytest.raises(SettingsError, match="three positive"):
        scale_model(generic(), stand(generic()), [THIGHS], factors={"head": (1.0, -1.0, 1.0)})
    with pytest.raises(SettingsError, match="No frame"):
        scale_model(generic(), stand(generic()), [THIGHS], time=(5.0, 6.0))
    with pytest.raises(ModelError, match="NOSUCH"):
        place_markers(generic(), stand(generic()), fixed=("NOSUCH",))
    patella = Measurement(THIGHS.pairs, {"thigh_r": "xyz", "patella_r": "xyz"}, "thigh")
    assert any("patella_r" in n.text for n in scale_model(generic(), stand(generic()), [patella]).notes)
    missing = stand(generic()).select_markers([m for m in stand(generic()).markers if m != "LTHI"])
    assert any("LTHI" in n.text for n in scale_model(generic(), missing, [THIGHS]).notes)


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "setup.xml"
    file.write_text("<OpenSimDocument Version='40000'><Model name='m'/></OpenSimDocument>")
    for read in (read_scale_setup, lambda path: with_opensim_markers(generic(), path)):
        with pytest.raises(FileFormatError, match="contains no"):
            read(file)


@pytest.mark.data
def test_factors_agree_with_opensim():
    """Factors as OpenSim wrote them, to its six digits; joints of the published scaled model within 1 micrometer.

    Its inertias were scaled by mass alone, as OpenSim did then; borelli's scale with the square of the length too.
    """
    setup = read_scale_setup(GAIT / "setup" / "subject01_Setup_Scale.xml")
    model, _ = with_opensim_markers(
        read_model(GAIT / "gait2354_simbody.osim"), GAIT / "setup" / "gait2354_Scale_MarkerSet.xml"
    )
    static = read_recording(DATA / "opensim" / "subject01_walk" / setup.marker_file)
    scaled = scale_model(
        model, static, setup.measurements, factors=setup.factors, mass=setup.mass,
        keep_mass_fractions=setup.keep_mass_fractions, time=setup.time,
    )  # fmt: skip
    text = (GAIT / "reference" / "subject01_scaleSet_applied.xml").read_text()
    reference = re.findall(r"<scales>([^<]*)</scales>\s*<segment>\s*(\S+?)\s*</segment>", text)
    checked = 0
    for numbers, body in reference:
        if body in scaled.factors:
            assert scaled.factors[body] == pytest.approx([float(n) for n in numbers.split()], abs=6e-6), body
            checked += 1
    assert checked == len(model.bodies)
    published = read_model(GAIT / "subject01_simbody.osim")
    for own, other in zip(scaled.model.joints, published.joints, strict=True):
        assert own.parent_frame.position == pytest.approx(other.parent_frame.position, abs=1e-6), own.name
        for one, two in zip(own.motion, other.motion, strict=True):
            for x in (-1.5, -0.7, 0.0, 0.2):
                assert one.function(x) == pytest.approx(two.function(x), abs=1e-6), own.name
    for own, other in zip(scaled.model.bodies, published.bodies, strict=True):
        assert own.mass == pytest.approx(other.mass, rel=1e-9)
        assert own.center_of_mass == pytest.approx(other.center_of_mass, abs=1e-6)
