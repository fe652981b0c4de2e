"""Marker sets: identified by their names in any spelling, and by no others."""

import pytest

from borelli.errors import FileFormatError
from borelli.recording.identify_marker_set import (
    FOLDER,
    common_prefix,
    identify_marker_set,
    read_name_set,
    read_name_sets,
)

from .walker import real

REAL = {
    "hdm/data.c3d": "CMU 41",
    "cmu/c3d/85_02.c3d": "CMU 41",
    "c3d/vicon_pig/PiG_Motion-FlatFoot-Full.c3d": "Plug-in Gait",
    "c3d/vicon_overground_4plates/test_small.c3d": "Plug-in Gait",
    "c3d/qualisys_walk/Qualisys.c3d": "Qualisys CAST",
    "c3d/motionanalysis_gait/Gait.c3d": "Helen Hayes, Motion Analysis names",
    "opensim/subject01_walk/subject01_walk1.trc": "OpenSim gait",
    "opensim/rajagopal2015_run_bmclab/motion_capture_run.trc": "Rajagopal",
    "opensim/rajagopal2016/walk/motion_capture_walk.trc": "Rajagopal, walking trial",
    "c3d/sprint_8plates/JA1Gait35.c3d": "Sprint, full body",
    "c3d/motionmonitor_metres/Gait_with_EMG.c3d": "MotionMonitor lower body",
    "c3d/opensim_walking2/walking2.c3d": "Full body 2009",
    "opensim/opencap_subject4/walking1.trc": "OpenCap, markers",
    "c3d/format_variants/sample02/pc_real.c3d": None,
}


@pytest.mark.parametrize("one", read_name_sets(), ids=lambda one: one.name)
@pytest.mark.parametrize(
    "spelling", [str, str.lower, "Bob:{}".format, "Bob_{}".format, lambda name: name.replace(".", "_")]
)
def test_every_set_is_identified_by_its_names_in_any_spelling(one, spelling):
    found = identify_marker_set([spelling(name) for name in one.names])
    assert found.set.name == one.name
    assert found.missing == ()
    assert found.extra == ()


def test_sets_of_all_systems_are_there_with_their_sources():
    names = " ".join(one.name for one in read_name_sets())
    for wanted in ("Plug-in Gait", "CMU 41", "Helen Hayes", "Rajagopal", "OpenSim gait", "Qualisys", "OptiTrack"):
        assert wanted in names
    for one in read_name_sets():
        assert one.source
        assert len(set(one.names)) == len(one.names)


def test_missing_and_extra_markers_are_listed():
    cmu = next(one for one in read_name_sets() if one.name == "CMU 41")
    found = identify_marker_set([*cmu.names[4:], "*12", "WAND"])
    assert found.set.name == "CMU 41"
    assert found.missing == cmu.names[:4]
    assert found.extra == ("WAND",)


def test_unknown_names_are_not_identified():
    assert identify_marker_set(["A", "B", "C", "D", "E"]) is None
    assert identify_marker_set([]) is None
    assert identify_marker_set(["LASI", "RASI"]) is None


def test_a_folder_of_your_own_is_read(tmp_path, monkeypatch):
    text = 'format = "borelli-marker-names"\nversion = 1\nname = "Mine"\nsource = "me"\n'
    text += 'names = ["EAR1", "EAR2", "NOSE", "CHIN"]\noptional = ["HAT"]\naliases = { NOSE = ["SNOUT"] }\n'
    (tmp_path / "mine.toml").write_text(text)
    labels = ["ear1", "Ear2", "snout", "CHIN", "hat"]
    assert identify_marker_set(labels) is None
    found = identify_marker_set(labels, tmp_path)
    assert (found.set.name, found.matched["snout"], found.missing) == ("Mine", "NOSE", ())
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert identify_marker_set(labels).set.name == "Mine"
    with pytest.raises(FileFormatError, match="does not exist"):
        read_name_sets(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'format is .*, expected "borelli-marker-names"'),
        ('format = "borelli-marker-names"\nversion = 9', "version is 9"),
        ('format = "borelli-marker-names"\nversion = 1\nnames = ["A"]', "has no name"),
        ('format = "borelli-marker-names"\nversion = 1\nname = "X"', "at least one marker name"),
        ('format = "borelli-marker-names"\nversion = 1\nname = "X"\nnames = [1]', "list of strings"),
        ('format = "borelli-marker-names"\nversion = 1\nname = "X"\nnames = ["A"]\nnmaes = []', "Unknown key 'nmaes'"),
        ('format = "borelli-marker-names"\nversion = 1\nname = "X"\nnames = ["A"]\naliases = 3', "aliases must be"),
        ('format = "borelli-markers"\nversion = 1\nname = "X"\nmarkers = 3', "list of tables"),
    ],
)
def test_broken_sets_are_refused_in_one_sentence(tmp_path, text, problem):
    path = tmp_path / "set.toml"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=problem):
        read_name_set(path)


def test_a_common_prefix_is_not_a_side():
    assert common_prefix(["Bob_LKNE", "Bob_RKNE", "Bob_C7", "Bob_T10"]) == "Bob_"
    assert common_prefix(["L_KNE", "L_ANK", "L_HEE", "L_TOE"]) == ""
    assert common_prefix(["LKNE", "RKNE", "C7", "T10"]) == ""


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_marker_sets_of_real_recordings_are_identified(name):
    from borelli.recording.formats.c3d.reader import read_c3d
    from borelli.recording.formats.trc import read_trc

    path = real(name)
    recorded = (read_trc if path.suffix == ".trc" else read_c3d)(path)
    found = identify_marker_set(recorded.markers)
    assert (found and found.set.name) == REAL[name]
