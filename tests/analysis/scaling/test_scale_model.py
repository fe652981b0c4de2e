"""Scaling by pairs of markers: known stretches are found again, and OpenSim's own scaling is met."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.analysis.scaling.opensim_scale_setup import read_scale_setup, with_opensim_markers
from borelli.analysis.scaling.scale_model import Measurement, place_markers, scale_model
from borelli.errors import FileFormatError, ModelError, SettingsError
from borelli.model.io import read_model
from borelli.model.kinematics import marker_positions, with_default_frames
from borelli.model.people.human import human
from borelli.model.resize import resize_body
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
    return Recording(make_dataset({"marker_position": marker_positions(model, q)}, {"marker": names}, rate=100.0), "made")


def grown(**factors):
    model = generic()
    for name, factor in factors.items():
        model = resize_body(model, name, factor)
    return with_default_frames(model)


def test_a_known_stretch_is_found_again():
    truth = grown(thigh_r=(1.1, 1.1, 1.1), thigh_l=(1.06, 1.06, 1.06))
    scaled = scale_model(generic(), stand(truth), [THIGHS])
    assert scaled.factors["thigh_r"] == pytest.approx((1.08,) * 3, abs=1e-12)  # the mean of both sides
    right = Measurement((("RTHI", "RKNE"),), {"thigh_r": "xyz"}, "right")
    scaled = scale_model(generic(), stand(truth), [right])
    assert scaled.factors == {"thigh_r": pytest.approx((1.1,) * 3, abs=1e-12)}
    place, wanted = (model.joint("knee_r").parent_frame.position for model in (scaled.model, truth))
    assert place == pytest.approx(wanted, abs=1e-12)


def test_by_default_every_body_is_sized_by_its_own_markers():
    truth = grown(thigh_r=(1.1,) * 3, shank_l=(0.9,) * 3, head=(1.03,) * 3)
    scaled = scale_model(generic(), stand(truth))
    assert scaled.factors["thigh_r"] == pytest.approx((1.1,) * 3)
    assert scaled.factors["shank_l"] == pytest.approx((0.9,) * 3)
    assert scaled.factors["head"] == pytest.approx((1.03,) * 3)
    assert scaled.factors["pelvis"] == pytest.approx((1.0,) * 3)
    assert any("keep their size" in note.text and "hand_r" in note.text for note in scaled.notes)
    motion = inverse_kinematics(scaled.model, stand(truth), pose_stiffness=0.0)
    assert motion.marker_rms < 1e-7


def test_only_the_axes_that_are_named_are_stretched_and_stated_factors_win():
    along = Measurement((("RTHI", "RKNE"),), {"thigh_r": "Z"}, "along")
    recording = stand(grown(thigh_r=(1.1,) * 3))
    assert scale_model(generic(), recording, [along]).factors["thigh_r"] == pytest.approx((1.0, 1.0, 1.1))
    stated = scale_model(generic(), recording, [along], factors={"thigh_r": (1.0, 1.2, 1.3)})
    assert stated.factors["thigh_r"] == (1.0, 1.2, 1.3)


def test_masses_keep_their_shares_or_go_with_the_volumes():
    recording = stand(grown(thigh_r=(1.1,) * 3))
    right = Measurement((("RTHI", "RKNE"),), {"thigh_r": "xyz"}, "right")
    kept = scale_model(generic(), recording, [right], mass=70.0).model
    for body in kept.bodies:
        assert body.mass == pytest.approx(generic().body(body.name).mass * 70.0 / 80.0)
    # a longer body of the same mass has an inertia that goes with the square of its length
    before, after = (model.body("thigh_r").inertia[0][0] for model in (generic(), kept))
    assert after == pytest.approx(before * 1.1**2 * 70.0 / 80.0)
    free = scale_model(generic(), recording, [right], mass=70.0, keep_mass_shares=False).model
    assert free.mass == pytest.approx(70.0)
    ratio = free.body("thigh_r").mass / free.body("thigh_l").mass
    assert ratio == pytest.approx(1.1**3)


def test_placed_markers_are_where_they_were_seen():
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
    ("measure", "said"),
    [
        (Measurement((("RTHI", "NOSUCH"),), {"thigh_r": "xyz"}, "bad"), "NOSUCH"),
        (Measurement((("RTHI", "RKNE"),), {"thigh_r": "q"}, "bad"), "axes"),
    ],
)
def test_what_cannot_be_measured_is_refused(measure, said):
    with pytest.raises(SettingsError, match=said):
        scale_model(generic(), stand(generic()), [measure])


def test_refusals_and_what_is_passed_over():
    with pytest.raises(SettingsError, match="three positive"):
        scale_model(generic(), stand(generic()), [THIGHS], factors={"head": (1.0, -1.0, 1.0)})
    with pytest.raises(SettingsError, match="no frame"):
        scale_model(generic(), stand(generic()), [THIGHS], time=(5.0, 6.0))
    with pytest.raises(ModelError, match="NOSUCH"):
        place_markers(generic(), stand(generic()), fixed=("NOSUCH",))
    patella = Measurement(THIGHS.pairs, {"thigh_r": "xyz", "patella_r": "xyz"}, "thigh")
    assert any("patella_r" in n.text for n in scale_model(generic(), stand(generic()), [patella]).notes)
    unseen = stand(generic()).select_markers([m for m in stand(generic()).markers if m != "LTHI"])
    assert any("LTHI" in n.text for n in scale_model(generic(), unseen, [THIGHS]).notes)


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "setup.xml"
    file.write_text("<OpenSimDocument Version='40000'><Model name='m'/></OpenSimDocument>")
    for read in (read_scale_setup, lambda path: with_opensim_markers(generic(), path)):
        with pytest.raises(FileFormatError, match="without a"):
            read(file)


@pytest.mark.data
@pytest.mark.skipif(not GAIT.is_dir(), reason="no OpenSim models: set BORELLI_DATA")
def test_opensim_scales_the_same():
    """Factors as OpenSim wrote them, to its six digits; joints of the published scaled model within 1 micrometre.

    Its inertias were scaled by mass alone, as OpenSim did then; ours go with the square of the length too.
    """
    setup = read_scale_setup(GAIT / "setup" / "subject01_Setup_Scale.xml")
    model, _ = with_opensim_markers(
        read_model(GAIT / "gait2354_simbody.osim"), GAIT / "setup" / "gait2354_Scale_MarkerSet.xml"
    )
    static = read_recording(DATA / "opensim" / "subject01_walk" / setup.marker_file)
    scaled = scale_model(
        model, static, setup.measures, factors=setup.factors, mass=setup.mass,
        keep_mass_shares=setup.keep_mass_shares, time=setup.time,
    )  # fmt: skip
    text = (GAIT / "reference" / "subject01_scaleSet_applied.xml").read_text()
    theirs = re.findall(r"<scales>([^<]*)</scales>\s*<segment>\s*(\S+?)\s*</segment>", text)
    checked = 0
    for numbers, body in theirs:
        if body in scaled.factors:
            assert scaled.factors[body] == pytest.approx([float(n) for n in numbers.split()], abs=6e-6), body
            checked += 1
    assert checked == len(model.bodies)
    published = read_model(GAIT / "subject01_simbody.osim")
    for ours, other in zip(scaled.model.joints, published.joints, strict=True):
        assert ours.parent_frame.position == pytest.approx(other.parent_frame.position, abs=1e-6), ours.name
        for one, two in zip(ours.motion, other.motion, strict=True):
            for x in (-1.5, -0.7, 0.0, 0.2):
                assert one.function(x) == pytest.approx(two.function(x), abs=1e-6), ours.name
    for ours, other in zip(scaled.model.bodies, published.bodies, strict=True):
        assert ours.mass == pytest.approx(other.mass, rel=1e-9)
        assert ours.center_of_mass == pytest.approx(other.center_of_mass, abs=1e-6)
