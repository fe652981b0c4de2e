"""Muscles in the report: the numbers of the dataset, warnings with consequences, and paths in the player."""

import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.analysis.muscle_forces import muscle_forces, unattained_fractions
from borelli.analysis.strides import find_strides
from borelli.export.clinical_names import clinical_name
from borelli.export.muscle_curves import GROUPS, activation_curves, muscle_groups
from borelli.muscles.paths import path_points
from borelli.numerics.quaternions import rotate
from borelli.people.human_muscles import add_muscles
from borelli.recording.recording import Note
from borelli.reports import muscle_player
from borelli.reports.consequences import CODES, MUSCLES
from borelli.reports.motion_player import POSITION_UNIT, pack_motion
from borelli.reports.muscle_player import NODE_UNIT
from borelli.reports.report import write_report
from borelli.reports.report_warnings import all_notes, report_warnings

from .test_report import MAX_SIZE, PROGRAM_WORDS, parsed, words

MEMBERS = {
    "Soleus": ["soleus"],
    "Gastrocnemius": ["gaslat", "gasmed"],
    "Vasti": ["vasint", "vaslat", "vasmed"],
    "Hamstrings": ["bflh", "semimem", "semiten"],
    "Gluteus medius": ["glmed1", "glmed2", "glmed3"],
    "Iliopsoas": ["iliacus", "psoas"],
}
"""Muscles of some groups, by their names in `human`."""


@pytest.fixture(scope="module")
def energy(walk):
    torques = inverse_dynamics(inverse_kinematics(add_muscles(walk.model), walk.recording))
    return compute_energy(muscle_forces(torques))


@pytest.fixture(scope="module")
def page(energy, tmp_path_factory):
    path = tmp_path_factory.mktemp("muscles") / "report.html"
    write_report(energy, path)
    return parsed(path)[0]


def section(text, key):
    return re.search(rf'<section id="{key}">.*?</section>', text, re.DOTALL)[0]


def cells(text, title):
    """Return the numbers of the row of a table with this title."""
    row = re.search(rf"<t[dh]>{re.escape(title)}</t[dh]>(.*?)</tr>", text, re.DOTALL)[1]
    shown = re.findall(r'<td class="n[^"]*"[^>]*>([^<]*)', row)
    return [float(cell.split()[0]) if cell.split() else None for cell in shown]


def known(energy):
    return energy.torques.grf_known


def test_peak_forces_are_those_of_the_dataset(page, energy):
    data = energy.muscles.data.isel(time=known(energy))
    model = energy.torques.motion.model
    weight = sum(body.mass for body in model.bodies) * np.linalg.norm(model.gravity)
    strength = {muscle.name: muscle.max_isometric_force for muscle in model.muscles}
    for title, members in MEMBERS.items():
        expected = []
        for side in "rl":
            names = [f"{name}_{side}" for name in members]
            peak = float(data["muscle_force"].sel(muscle=names).sum("muscle").max())
            own = np.array([strength[name] for name in names])
            activation = data["muscle_activation"].sel(muscle=names).values @ own / own.sum()
            expected += [peak, peak / weight, activation.max()]
        assert cells(section(page, "muscles"), title) == pytest.approx(expected, abs=0.51), title
        assert cells(section(page, "muscles"), title)[1::3] == pytest.approx(expected[1::3], abs=0.0051), title
        assert cells(section(page, "muscles"), title)[2::3] == pytest.approx(expected[2::3], abs=0.0051), title


def test_every_group_is_drawn_on_the_same_scale(page):
    text = section(page, "muscles")
    for title in GROUPS:
        plot = re.search(
            rf'data-at="([^"]*)" role="img" aria-label="{title.capitalize()}">(.*?)</svg>', text, re.DOTALL
        )
        edges = [float(v) for v in plot[1].split()]
        assert edges[6:] == [0.0, 1.0] and 'data-name="right"' in plot[2] and 'data-name="left"' in plot[2]
        assert "activation [0 to 1]" in plot[2] and "gait cycle [%]" in plot[2]


def test_contact_forces_of_the_first_page_are_the_mean_of_the_strides_peaks(page, energy):
    model, data = energy.torques.motion.model, energy.muscles.data
    weight = model.mass * np.linalg.norm(model.gravity)
    time = data["time"].values
    for joint, published in (("hip", 2.38), ("knee", 2.61), ("ankle", None)):
        shown = cells(section(page, "summary"), f"{joint.capitalize()} contact force, maximum [BW]")
        for k, side in enumerate(("right", "left")):
            size = np.linalg.norm(data["joint_contact_force"].sel(joint=f"{joint}_{side[0]}").values, axis=1) / weight
            strides = [s for s in find_strides(energy.torques.motion, time) if s.side == side]
            full = [s for s in strides if known(energy)[(time >= s.start) & (time <= s.end)].all()]
            peaks = [np.interp(np.linspace(s.start, s.end, 101), time, size).max() for s in full]
            assert len(peaks) and shown[k] == pytest.approx(np.mean(peaks), abs=0.0051), (joint, side)
        # Bergmann et al. (2001): 238 % BW; Kutzner et al. (2010): 261 % BW
        assert shown[2] == published
    assert section(page, "muscles").count('<line class="published"') == 2


def test_unattained_torque_is_listed_with_its_limit(page, energy):
    text = section(page, "muscles")
    for name, fraction in unattained_fractions(energy.muscles).items():
        peak = np.abs(energy.torques.data["torque"].sel(coordinate=name).values[known(energy)]).max()
        assert cells(text, clinical_name(name)) == pytest.approx([peak, 100.0 * fraction], abs=0.051)
    beyond = sum(f > 0.05 for f in unattained_fractions(energy.muscles).values())
    assert text.count('class="n off"') == beyond
    worst = 100.0 * max(unattained_fractions(energy.muscles).values())
    assert cells(section(page, "summary"), "Unattained torque, largest") == pytest.approx([worst, 5.0], abs=0.051)


def test_metabolic_power_is_that_of_the_summary(page, energy):
    mean = energy.summary["metabolic_power_w"]
    text = section(page, "muscles")
    assert cells(text, "Mean metabolic power") == [round(mean)]
    assert cells(text, "Per body mass") == pytest.approx([mean / energy.torques.motion.model.mass], abs=0.0051)
    cost = energy.summary["metabolic_cost_of_transport_j_per_kg_m"]
    assert cells(text, "Metabolic cost of transport") == pytest.approx([cost], abs=0.0051)


def test_report_with_muscles_is_small_and_in_words(page):
    assert len(page) < MAX_SIZE
    assert re.findall(PROGRAM_WORDS, words(page)) == []
    assert 'name="muscles"' in page and "Bergmann et al., J. Biomech. 34" in page


def test_no_section_without_muscles(energy, tmp_path):
    write_report(replace(energy, muscles=None), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="muscles"' not in text and 'name="muscles"' not in text and "contact force" not in words(text)
    assert pack_motion(replace(energy, muscles=None))["muscles"] is None


def test_notes_of_muscles_are_warnings_with_consequences(energy):
    codes = ("muscle_state", "torque_unattained", "sharing_not_converged")
    notes = tuple(Note(f"soleus_r has {code}", "problem", code=code) for code in codes)
    assumed = Note("Torque about knee_rotation is passive", "inferred", code="passive_coordinates")
    changed = replace(energy, muscles=replace(energy.muscles, notes=(*notes, assumed)))
    found = {warning.code: warning for warning in report_warnings(changed)}
    for code in codes:
        assert found[code].results == MUSCLES == CODES[code][0] and CODES[code][1]
    assert assumed in all_notes(changed) and "passive_coordinates" not in found


def test_muscles_of_other_models_are_grouped_by_their_names(energy):
    def groups(names):
        data = energy.muscles.data.isel(muscle=slice(0, len(names))).assign_coords(muscle=names)
        return {one.title: one.columns for one in muscle_groups(replace(energy.muscles, data=data))}

    gait2392 = ["glut_med1_r", "bifemlh_r", "bifemsh_r", "add_mag1_l", "glut_max1_r", "vas_med_l", "med_gas_r",
                "lat_gas_r", "tib_ant_l", "rect_fem_r", "per_long_r", "ercspn_r", "flex_hal_r"]  # fmt: skip
    assert groups(gait2392) == {
        "gastrocnemius": {"right": [6, 7]}, "tibialis anterior": {"left": [8]}, "peroneals": {"right": [10]},
        "vasti": {"left": [5]}, "rectus femoris": {"right": [9]}, "hamstrings": {"right": [1]},
        "gluteus maximus": {"right": [4]}, "gluteus medius": {"right": [0]}, "adductors": {"left": [3]},
    }  # fmt: skip
    arm = ["TRIlong", "BIClong", "BRA"]
    peaks = np.nanmax(energy.muscles.data["muscle_force"].values[known(energy)][:, :3], axis=0)
    assert list(groups(arm)) == [arm[k] for k in np.argsort(-peaks)]


def test_curves_are_of_both_sides(energy):
    assert [curve.title for curve in activation_curves(energy.muscles)] == [title.capitalize() for title in GROUPS]
    assert all(set(curve.sides) == {"right", "left"} for curve in activation_curves(energy.muscles))


def decoded(data):
    """Return the nodes of all muscles in lab axes, by packed frame and muscle, as the script of the page does."""
    muscles = data["muscles"]
    counts = muscles["counts"]
    nodes = np.frombuffer(b64decode(muscles["nodes"]), np.int16).reshape(-1, sum(counts), 4)
    pose = np.frombuffer(b64decode(data["pose"]), np.int16).reshape(data["frames"], len(data["bodies"]), 7)
    result = []
    for k, frame in enumerate(nodes):
        own = pose[k * muscles["every"], frame[:, 3]]
        position = np.array(data["origin"]) + POSITION_UNIT * own[:, :3]
        quaternion = own[:, 3:] / np.linalg.norm(own[:, 3:], axis=1, keepdims=True)
        points = position + rotate(quaternion, NODE_UNIT * frame[:, :3])
        result.append(np.split(points, np.cumsum(counts)[:-1]))
    return result


@pytest.mark.parametrize("size", [900_000, 60_000])
def test_player_data_are_the_path_points(energy, monkeypatch, size):
    """Every node of the player is a point of the path, and the path's ends are its first and last."""
    monkeypatch.setattr(muscle_player, "MAX_BYTES", size)
    data, motion = pack_motion(energy), energy.torques.motion
    assert len(b64decode(data["muscles"]["nodes"])) <= size
    every, frames = data["muscles"]["every"], decoded(data)
    assert (every > 1) == (size < 900_000) or data["frames"] > 200
    for k in (0, len(frames) // 2, len(frames) - 1):
        lines = path_points(motion.model, motion.data["coordinate_value"].values[k * every])[0]
        for nodes, line in zip(frames[k], lines, strict=True):
            distance = np.linalg.norm(nodes[:, None] - line[None], axis=2)
            assert distance.min(axis=1).max() < 2e-3  # resolution of poses: 0.5 mm and 1e-4 rad
            assert distance[0, 0] < 2e-3 and distance[-1, -1] < 2e-3
    activation = np.frombuffer(b64decode(data["muscles"]["activation"]), np.uint8).reshape(len(frames), -1)
    expected = energy.muscles.data["muscle_activation"].values[::every]
    assert activation / data["muscles"]["steps"] == pytest.approx(expected, abs=0.5 / data["muscles"]["steps"] + 1e-9)


def with_emg(energy, lag_frames):
    """Return the energy with EMG of the right soleus: its own activation, earlier by some frames."""
    data = energy.muscles.data
    names = data["muscle"].values.tolist()
    envelope = np.full(data["muscle_activation"].shape, np.nan)
    activation = data["muscle_activation"].sel(muscle="soleus_r").values
    envelope[:, names.index("soleus_r")] = np.roll(activation, -lag_frames)
    data = data.assign(emg_envelope=(("time", "muscle"), envelope))
    return replace(energy, muscles=replace(energy.muscles, data=data))


def test_emg_is_drawn_next_to_the_activation_and_compared_with_it(energy, page, tmp_path):
    write_report(with_emg(energy, 0), tmp_path / "report.html")
    text = section(parsed(tmp_path / "report.html")[0], "muscles")
    assert "right, EMG" in text and "left, EMG" not in text and "EMG" not in section(page, "muscles")
    for title in GROUPS:
        plot = re.search(rf'aria-label="{title.capitalize()}">(.*?)</svg>', text, re.DOTALL)[1]
        assert ('data-name="right, emg"' in plot) == (title == "soleus")
    soleus = re.search(r'aria-label="Soleus">(.*?)</svg>', text, re.DOTALL)[1]
    lines = dict(re.findall(r'class="s (right|right dash)"[^>]*points="([^"]*)"', soleus))
    assert lines["right"] == lines["right dash"]
    row = re.search(r"<td><code>soleus_r</code></td>(?:<td[^>]*>[^<]*</td>){5}", text)[0]
    assert re.findall(r">([^<>]+)</td>", row)[:4] == ["1.00", "1.00", "0 ms", "100 %"]


def test_emg_that_leads_is_stated_with_its_lead(energy, tmp_path):
    frames = 5
    write_report(with_emg(energy, frames), tmp_path / "report.html")
    text = section(parsed(tmp_path / "report.html")[0], "muscles")
    row = re.search(r"<td><code>soleus_r</code></td>(?:<td[^>]*>[^<]*</td>){5}", text)[0]
    lead = f"{1e3 * frames / energy.torques.motion.rate:.0f} ms"
    assert re.findall(r">([^<>]+)</td>", row)[2] == lead
