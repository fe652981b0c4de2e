"""The report: self-contained, complete, and valid where results are missing."""

import html
import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import borelli
from borelli.analysis.dynamics.residual_limits import judge_residuals
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.strides import motion_events
from borelli.export.gait_curves import PERCENT, curve_by_stride, gait_curves
from borelli.recording.recording import Note
from borelli.reports.consequences import ANGLES, CODES, GROUPS
from borelli.reports.energy_sections import residual_section
from borelli.reports.motion_player import MAX_FRAMES, POSITION_UNIT, pack_motion
from borelli.reports.report import write_report
from borelli.reports.report_warnings import report_warnings
from borelli.reports.svg import Line, NormativeBand, bar_plot, line_plot, spans
from borelli.synthetic.recordings import synthetic_recording

MAX_SIZE = 5_000_000
"""Size [bytes] that can be sent by mail."""


class _Page(HTMLParser):
    VOID = ("meta", "input", "br", "line", "polyline", "polygon", "rect")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.VOID and (not self.open or self.open.pop() != tag):
            raise AssertionError(f"</{tag}> closes an element that is not open")


def parsed(path):
    page = _Page()
    text = path.read_text(encoding="utf-8")
    page.feed(text)
    assert page.open == []
    return text, page


@pytest.fixture(scope="module")
def page(analyzed):
    return parsed(analyzed.folder / "report.html")


def test_report_is_one_file_that_needs_no_network(page, analyzed):
    text, _ = page
    assert len(text) < MAX_SIZE
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", text)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
    assert "import(" not in text and "fetch(" not in text
    assert "synthetic data, not measured" in text


def test_results_and_warnings_come_first_and_the_evidence_last(page):
    text, found = page
    order = [
        text.index(f'id="{key}"')
        for key in ("summary", "warnings", "playback", "parameters", "profile", "gait", "ground", "energy", "residuals",
                    "markers", "model", "assumptions", "source")
    ]  # fmt: skip
    assert order == sorted(order)
    assert {"motion", "stage"} <= set(found.ids) and len(set(found.ids)) == len(found.ids)


def words(text):
    """Return the text that a reader sees, without scripts, styles and what comes from the user's file."""
    text = re.sub(r"<(script|style|code).*?</\1>", " ", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text)))


PROGRAM_WORDS = r"\b[a-z]+_[a-z_]+\b|\w+\(\)|\w+\(\w+=|\b(None|True|False|NaN|nan|inf)\b|\[\]|\{|\}"
"""Names with underscores, calls, and values as Python writes them."""


def test_nothing_in_the_report_speaks_python(page, repeated_report):
    for text in (page[0], repeated_report):
        assert re.findall(PROGRAM_WORDS, words(text)) == []
    assert re.findall(PROGRAM_WORDS, "use grf_known, clean(cutoff=6), None")  # the pattern finds what it should


@pytest.fixture(scope="module")
def repeated_report(analyzed, tmp_path_factory):
    """Return the report of a motion with all kinds of notes, with their names of the program."""
    torques, motion = analyzed.energy.torques, analyzed.energy.torques.motion
    notes = [
        Note("The markers push coordinates against their limits: hip_rotation_r at 3 degrees", "problem",
             "clean(cutoff=...)", code="coordinate_limits"),
        Note("Belt: 1 m/s", "inferred", "compute_energy(belt=...)", code="belt_velocity"),
        Note("Marker set: plug_in_gait, identified from the labels", "inferred", code="marker_set"),
        Note("Something new", "problem", "use frames with grf_known", code="new_code"),
        Note("Filtered", "changed", "residual=None", code="lowpass_filter"),
    ]  # fmt: skip
    motion = replace(motion, notes=(*motion.notes, *notes))
    energy = replace(analyzed.energy, torques=replace(torques, motion=motion))
    path = tmp_path_factory.mktemp("report") / "r.html"
    write_report(energy, path, fit=analyzed.fit)
    return path.read_text(encoding="utf-8")


def test_warnings_are_grouped_by_the_results_they_affect(repeated_report):
    first = re.search(r'<div id="warnings">.*?</section>', repeated_report, re.DOTALL)[0]
    groups = re.findall(r"<h4>Affected: ([^<]*)</h4>(.*?)(?=<h4>|</section>)", first, re.DOTALL)
    by_title = dict(groups)
    assert [title for title, _ in groups] == [
        t[:1].lower() + t[1:] for t in GROUPS if t[:1].lower() + t[1:] in by_title
    ]
    angles = by_title[ANGLES[:1].lower() + ANGLES[1:]]
    assert "right hip internal rotation at 3 degrees" in angles and "Do not interpret these angles" in angles
    assert "Something new." in angles  # a note of the motion without an entry of its own


def test_every_code_of_a_problem_has_its_consequence():
    """Codes of notes of kind "problem" in the source, and of the report's own warnings."""
    root = Path(borelli.__file__).parent
    missing = set()
    for folder in ("analysis/dynamics", "analysis/energetics", "analysis/ground", "analysis/kinematics", "reports"):
        for path in (root / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            for code in re.findall(r'"problem",[^)]*?code="([a-z_]+)"', source):
                missing |= {code} - set(CODES)
    assert not missing, "add them to reports/consequences.py"
    assert {results for results, _ in CODES.values()} <= set(GROUPS)


def test_first_page_has_subject_movement_date_and_results_with_deviations(page):
    first = words(re.search(r'<section id="summary">.*?</section>', page[0], re.DOTALL)[0])
    assert "68.0 kg" in first and "Walking, 3 right and 2 left strides" in first
    assert date.today().isoformat()[:4] in first and re.search(r"Date of the report \d{4}-\d\d-\d\d \d\d:\d\d", first)
    assert re.search(r"Walking speed \[m/s\] 1\.2\d ± 0\.\d\d", first) and "Gait profile score [deg]" in first
    assert "Schwartz et al. 2008" in first and "Perry and Burnfield 2010" in first


def test_toe_off_and_cursor_are_drawn_and_in_the_legend(page, analyzed):
    text, _ = page
    plot = re.search(r'<svg class="plot"[^>]*aria-label="Knee flexion">.*?</svg>', text, re.DOTALL)[0]
    edges = [float(v) for v in re.search(r'data-at="([^"]*)"', plot)[1].split()]
    for side, percent in gait_curves(analyzed.energy).toe_off.items():
        x = float(re.search(rf'<line class="mark {side}" x1="([\d.]+)"', plot)[1])
        assert 100.0 * (x - edges[0]) / (edges[1] - edges[0]) == pytest.approx(percent, abs=0.05)
    legends = re.findall(r'<div class="key">.*?</div>', text, re.DOTALL)
    assert sum("toe-off" in one for one in legends) == 2
    assert sum("time shown in the player" in one for one in legends) >= 6
    script = text[text.rindex("<script>") :]
    assert "translate(" in script and "L0 ${t}Z" in script  # a line with a triangle


def test_printing_opens_every_section(page):
    text, found = page
    assert "beforeprint" in text and "details::details-content" in text
    assert sum(tag == "details" for tag, _ in found.tags) >= 6


def test_player_has_a_text_alternative(page, analyzed):
    text, found = page
    canvas = next(attributes for tag, attributes in found.tags if tag == "canvas")
    assert canvas["role"] == "img" and canvas["aria-describedby"] == "motion-words"
    described = re.search(r'<p id="motion-words">(.*?)</p>', text)[1]
    assert (
        "3 whole strides of the right foot and 2 of the left" in described
        and "Knee flexion ranges from right" in described
    )
    section = words(re.search(r'<section id="playback">.*?</section>', text, re.DOTALL)[0])
    strikes = [e.time for e in motion_events(analyzed.energy.torques.motion) if (e.label, e.context) ==
               ("Foot Strike", "Right")]  # fmt: skip
    assert f"Right foot strike {', '.join(f'{time:.2f}' for time in strikes)}" in section


def test_bars_of_all_markers_have_one_scale(page):
    bars = re.findall(r'<svg class="bars"[^>]*data-at="([^"]*)"[^>]*aria-label="(?:Error|Continued)', page[0])
    scales = [[float(v) for v in one.split()][4:6] for one in bars]
    assert len(scales) == 2 and scales[0] == scales[1]


def test_energy_is_explained_and_its_curves_add_up(page, analyzed):
    section = re.search(r'<section id="energy">.*?</section>', page[0], re.DOTALL)[0]
    assert "the sum of kinetic energy" in section and "not the metabolic cost" in section
    plot = re.search(r'<svg class="plot"[^>]*aria-label="Mechanical energy">.*?</svg>', section, re.DOTALL)[0]
    _, _, top, bottom, _, _, y0, y1 = (float(v) for v in re.search(r'data-at="([^"]*)"', plot)[1].split())
    curves = {
        name: np.array([float(pair.split(",")[1]) for pair in points.split()])
        for name, points in re.findall(r'data-name="(\w+)" points="([^"]*)"', plot)
    }
    values = {name: y0 + (bottom - pixels) / (bottom - top) * (y1 - y0) for name, pixels in curves.items()}
    rounding = 0.15 / (bottom - top) * (y1 - y0)  # three curves, each to 0.05 pixels
    assert values["mechanical"] == pytest.approx(values["kinetic"] + values["potential"], abs=rounding)


def test_a_jump_has_no_strides_and_no_cost_of_transport(tmp_path):
    jump = synthetic_recording("jump")
    motion = inverse_kinematics(jump.model, jump.recording)
    energy = compute_energy(inverse_dynamics(motion))
    far = energy.data.assign_attrs(belt_velocity=[5.0, 0.0, 0.0])  # travels far over the ground
    again = compute_energy(energy.torques, belt=(5.0, 0.0, 0.0))
    assert again.summary["distance_m"] > 5.0 and np.isnan(again.summary["cost_of_transport_j_per_kg_m"])
    energy = replace(again, data=far)
    write_report(energy, tmp_path / "r.html")
    text = words(parsed(tmp_path / "r.html")[0])
    assert "cost of transport" not in text.lower() and "gait cycle" not in text and "Gait profile" not in text
    assert "Movement Jump" in text and "Knee flexion, range [deg]" in text


def test_input_and_settings_are_listed(page, analyzed):
    text, _ = page
    assert analyzed.summary["sha256"] in text and "walk.nc" in text and "borelli 0." in text
    assert "cutoff 6 Hz" in text


def test_every_plot_has_a_title_and_units(page):
    text, _ = page
    plots = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(plots) > 25
    for plot in plots:
        words = re.findall(r"<text[^>]*>([^<]*)</text>", plot)
        assert sum("[" in word and "]" in word for word in words) >= (1 if 'class="bars"' in plot else 2), words
        numbers = [float(v) for pair in re.findall(r'points="([^"]*)"', plot) for v in re.split(r"[ ,]", pair)]
        assert np.isfinite(numbers).all()


def test_gait_curves_have_normative_curves(page):
    text, _ = page
    for title in ("Knee flexion", "Ankle plantarflexor moment", "Knee power", "Ground reaction force, vertical"):
        plot = re.search(rf'aria-label="{title}">.*?</svg>', text, re.DOTALL)[0]
        assert 'class="norm"' in plot and 'data-name="right"' in plot and 'data-name="left"' in plot


def test_player_data_reproduce_the_poses(analyzed):
    from base64 import b64decode

    data = pack_motion(analyzed.energy)
    motion = analyzed.energy.torques.motion.data
    json.dumps(data, allow_nan=False)
    pose = np.frombuffer(b64decode(data["pose"]), np.int16).reshape(data["frames"], len(data["bodies"]), 7)
    position = np.array(data["origin"]) + POSITION_UNIT * pose[..., :3]
    assert position == pytest.approx(motion["body_position"].values, abs=POSITION_UNIT)
    assert pose[..., 3:] / 32767 == pytest.approx(motion["body_orientation"].values, abs=1e-4)
    measured = np.frombuffer(b64decode(data["measured"]), np.int16).reshape(data["frames"], data["markers"], 3)
    assert ((measured == -32768).all(axis=-1) == np.isnan(motion["marker_position"].values).any(axis=-1)).all()
    assert data["frames"] <= MAX_FRAMES and data["plates"] and data["feet"] == 2 and data["cycles"]


def test_curves_have_the_signs_of_the_normative_curves(analyzed):
    gait = gait_curves(analyzed.energy)
    curves = {curve.name: curve for curve in gait.curves}
    assert {one.side for one in gait.strides} == {"right", "left"} and gait.speed == "free"
    for name, least in (("knee_flexion", 0.95), ("hip_flexion", 0.97), ("ankle_dorsiflexion", 0.9),
                        ("ground_force_vertical", 0.9), ("ankle_plantarflexor_moment", 0.8)):  # fmt: skip
        for side, values in (("right", curves[name].right), ("left", curves[name].left)):
            assert values is not None
            rows = curve_by_stride(gait, curves[name], side)
            assert rows.shape[1] == len(PERCENT) == 101
            assert np.corrcoef(rows.mean(axis=0), gait.normative(curves[name]).mean)[0, 1] > least, (name, side)


def test_limits_of_residuals_are_those_of_hicks(analyzed):
    found = judge_residuals(analyzed.energy.torques)
    force = analyzed.energy.torques.data["ground_reaction_force"].sum("foot").values
    assert found.force_limit == pytest.approx(0.05 * np.linalg.norm(force, axis=1).max())
    assert 0.005 < found.moment_limit / (0.01 * 9.81 * 68.0) < 2.0


def test_residual_plots_show_which_frames_are_evaluated(analyzed):
    torques = analyzed.energy.torques
    time, used = torques.data["time"].values, torques.evaluated
    shaded = spans(time, ~used)
    assert shaded and sum(end - start for start, end in shaded) == pytest.approx(
        (~used).sum() / torques.motion.rate, abs=2.0 / torques.motion.rate
    )
    section = residual_section(analyzed.energy, None)
    assert section.count('class="shaded"') == 2 * len(shaded) + 1  # two plots and the legend
    assert f"{used.sum()} of {len(time)} frames" in section
    found = judge_residuals(analyzed.energy.torques)
    force = np.linalg.norm(torques.data["residual_force"].values[used], axis=1)
    assert found.force_peak == force.max() and found.force_rms == pytest.approx(torques.residual_force_rms)


def test_spans_of_a_mask():
    x = np.arange(6.0)
    assert spans(x, np.array([1, 0, 0, 1, 1, 0], bool)) == [(0.0, 0.5), (2.5, 4.5)]
    assert spans(x, np.ones(6, bool)) == [(0.0, 5.0)] and spans(x, np.zeros(6, bool)) == []


def bare(analyzed, **changes):
    """Return the energy without events, plates or a recording."""
    motion = analyzed.energy.torques.motion
    recording = motion.recording
    if changes.get("plates") is False:
        data = recording.data.drop_dims(["analog_time", "plate"], errors="ignore").drop_dims("foot", errors="ignore")
        recording = replace(recording, data=data)
    if changes.get("events") is False:
        keep = [name for name in recording.markers if name[1:] not in ("HEE", "TOE", "ANK", "MT5")]
        recording = recording.select_markers(keep)
    if changes.get("recording") is False:
        recording = None
    return compute_energy(inverse_dynamics(replace(motion, recording=recording), forces=None))


def test_report_without_plates(analyzed, tmp_path):
    energy = bare(analyzed, plates=False)
    write_report(energy, tmp_path / "r.html")
    text, _ = parsed(tmp_path / "r.html")
    assert 'id="ground"' not in text and "gait cycle [%]" in text
    assert "grf_unavailable" in [warning.code for warning in report_warnings(energy)]


def test_report_over_time_without_strides(analyzed, tmp_path):
    write_report(bare(analyzed, plates=False, events=False), tmp_path / "r.html")
    text, _ = parsed(tmp_path / "r.html")
    assert "gait cycle [%]" not in text and "no complete stride" in text and "time [s]" in text


def test_report_without_a_recording(analyzed, tmp_path):
    write_report(bare(analyzed, recording=False), tmp_path / "r.html")
    parsed(tmp_path / "r.html")


def test_text_from_files_is_escaped(analyzed, tmp_path):
    motion = analyzed.energy.torques.motion
    evil = "</script><script>alert(1)</script>"
    recording = replace(motion.recording, name=evil)
    energy = replace(
        analyzed.energy, torques=replace(analyzed.energy.torques, motion=replace(motion, recording=recording))
    )
    write_report(energy, tmp_path / "r.html", provenance={"file": evil})
    assert "<script>alert" not in (tmp_path / "r.html").read_text()


def test_plots_of_missing_and_constant_values():
    x = np.linspace(0.0, 1.0, 11)
    gap = np.where((x > 0.3) & (x < 0.6), np.nan, x)
    text = line_plot("t", "x [s]", "y [m]", [Line("a", x, gap), Line("b", x, 0.0 * x), Line("c", x, np.nan * x)])
    assert text.count("<polyline") == 3 and "nan" not in text
    assert "nan" not in line_plot("t", "x", "y", [], norm=NormativeBand(x, x, x))
    assert "nan" not in bar_plot("t", "x [mm]", ["a", "b"], np.array([1.0, np.nan]), np.array([2.0, 0.0]), 0.5, 2.0)


def test_strides_off_the_plates_are_excluded_from_kinetics(analyzed):
    torques = analyzed.energy.torques
    incomplete = torques.data.copy(deep=True)
    incomplete["ground_reaction_force"].values[incomplete["time"].values > 1.9] = 0.0  # without the later plates
    gait = gait_curves(replace(analyzed.energy, torques=replace(torques, data=incomplete)))
    curves = {curve.name: curve for curve in gait.curves}
    assert any(gait.grf_known) and not all(gait.grf_known)
    kinetic, angle = (curve_by_stride(gait, curves[n], "right") for n in ("ankle_plantarflexor_moment", "knee_flexion"))
    assert 0 < len(kinetic) < len(angle)
