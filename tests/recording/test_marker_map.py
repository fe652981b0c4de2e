"""Marker maps: written, edited, read and applied, so that every label means what the map states."""

import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.recording.io import read_recording, rename_markers, write_recording
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.landmarks import find_landmarks
from borelli.recording.marker_map import apply_marker_map, map_from_convention, read_marker_map, write_marker_map
from borelli.synthetic.recordings import synthetic_recording

HEAD = 'format = "borelli-marker-map"\nversion = 1\n'


@pytest.fixture(scope="module")
def walk():
    return synthetic_recording("walk").recording


def written(tmp_path, lines):
    path = tmp_path / "map.toml"
    path.write_text(f"{HEAD}[markers]\n{lines}\n")
    return path


def test_a_written_map_changes_nothing(walk, tmp_path):
    path = tmp_path / "map.toml"
    readings = interpret_labels(walk.markers).readings
    write_marker_map(readings, path)
    read = read_marker_map(path)
    assert {label: meaning[:2] for label, meaning in read.items()} == {r.label: (r.landmark, r.side) for r in readings}
    assert apply_marker_map(walk, read).markers == walk.markers


def test_a_map_gives_meaningless_labels_their_landmarks(walk, tmp_path):
    own = rename_markers(walk, {"RKNE": "K1", "LKNE": "K2", "RTHI": "Q 1", "C7": "QC"})
    write_recording(own, tmp_path / "own.c3d")
    assert not find_landmarks(own.markers, ("knee",))
    lines = 'K1 = "right knee_lateral"\nK2 = "left knee_lateral"\n"Q 1" = "right thigh"\nQC = "C7"\nRWRA = ""'
    mapped = read_recording(tmp_path / "own.c3d", markers=written(tmp_path, lines))
    assert "RWRA" not in mapped.markers and len(mapped.markers) == len(walk.markers) - 1
    readings = {one.label: one for one in interpret_labels(mapped.markers).readings}
    assert readings["right.knee_lateral"].sure and readings["left.knee_lateral"].sure
    assert readings["right.thigh"].segment == "thigh" and readings["middle.C7"].landmark == "C7"
    before = walk.data["marker_position"].sel(marker="RKNE").values
    after = mapped.data["marker_position"].sel(marker="right.knee_lateral").values
    assert abs(after - before)[~(before != before)].max() < 1e-6


def test_a_map_can_swap_two_labels(walk, tmp_path):
    swapped = read_marker_map(written(tmp_path, 'RKNE = "left knee_lateral"\nLKNE = "right knee_lateral"'))
    names = apply_marker_map(walk, swapped).markers
    assert names[walk.markers.index("RKNE")] == "left.knee_lateral"
    assert names[walk.markers.index("LKNE")] == "right.knee_lateral"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('K1 = "right knee_lateral_"', "Did you mean knee_lateral"),
        ('K1 = "knee_lateral"', "needs a side"),
        ('K1 = "up knee_lateral"', "not a landmark with its side"),
        ("K1 = 3", "Expected text"),
    ],
)
def test_errors_of_maps_state_the_line(lines, words, tmp_path):
    with pytest.raises(FileFormatError, match=words) as error:
        read_marker_map(written(tmp_path, lines))
    assert "K1" in str(error.value)


def test_a_map_of_another_file_is_refused(walk, tmp_path):
    with pytest.raises(SettingsError, match="borelli markers"):
        apply_marker_map(walk, read_marker_map(written(tmp_path, 'XX = "C7"')))


def test_a_convention_by_name(walk):
    found = map_from_convention("cmu", walk.markers)
    assert found["RFWT"][:2] == ("asis", "right") and len(found) == 41
    with pytest.raises(SettingsError, match="convention"):
        map_from_convention("No such set", walk.markers)
    with pytest.raises(SettingsError, match="contains none"):
        map_from_convention("CMU 41", ["QA", "QB"])
