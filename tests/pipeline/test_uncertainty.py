"""Bands: the spread that theory says, on every output, kept in files and taken up again."""

import json
import shutil

import numpy as np
import pytest
import xarray

import borelli as bo
from borelli.commands.analyze import figures
from borelli.export.uncertainty_files import AnalysisUncertainty, read_uncertainty
from borelli.model.model import Body, Coordinate, Joint, Marker, Model
from borelli.pipeline import analyze as pipeline
from borelli.pipeline import uncertainty as banding
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze, stage_ends
from borelli.recording.recording import Recording, make_dataset

NOISE = 1e-3
ARM = 0.2
REPEATS = 40
RATE, FRAMES = 100.0, 60
ENDS = ("sd", "low", "high")
SAMPLED = 3.0 / np.sqrt(2.0 * REPEATS * 10)
"""Three deviations of a deviation from so many repeats, of frames of which one in six counts, for filters mix them."""


@pytest.fixture(scope="module")
def block():
    """Energy of a free body with six markers, two on each axis, that drifts and turns slowly."""
    places = [tuple(sign * ARM * np.eye(3)[axis]) for axis in range(3) for sign in (1.0, -1.0)]
    names = [f"m{i}" for i in range(6)]
    free = tuple(Coordinate(name, rotational=name.startswith("r")) for name in ("x", "y", "z", "rx", "ry", "rz"))
    model = Model(
        "block", (Body("box", 2.0),), (Joint("root", "free", "ground", "box", coordinates=free),),
        tuple(Marker(name, "box", place) for name, place in zip(names, places, strict=True)),
    )  # fmt: skip
    time = np.arange(FRAMES) / RATE
    angle = 0.1 * np.sin(3.0 * time)
    turn = np.zeros((FRAMES, 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 1, 0], turn[:, 0, 1], turn[:, 2, 2] = np.sin(angle), -np.sin(angle), 1.0
    points = np.einsum("fij,mj->fmi", turn, np.array(places)) + np.array([1.0, 2.0, 1.0])
    points[..., 0] += 0.3 * time[:, None]
    recording = Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=RATE))
    return bo.compute_energy(bo.inverse_dynamics(bo.inverse_kinematics(bo.validate(model), recording)))


@pytest.fixture(scope="module")
def shaken(block):
    return bo.propagate_uncertainty(block, REPEATS, noise=NOISE)


def test_a_free_body_shakes_as_its_markers_do_together(shaken):
    """Its place is the mean of k markers, noise over root k; about z it turns with the four that lie off that axis."""
    data = shaken.groups["tables"]
    sd = np.sqrt((data["coordinates_sd"] ** 2).mean("coordinates_time")).to_series()  # as followed: not filtered
    inside = 3.0 / np.sqrt(2.0 * REPEATS * FRAMES)
    for name in ("x", "y", "z"):
        assert sd[name] == pytest.approx(NOISE / np.sqrt(6.0), rel=inside)
    assert np.radians(sd["rz"]) == pytest.approx(NOISE / (ARM * np.sqrt(4.0)), rel=inside)


def test_filtered_coordinates_keep_the_part_of_noise_that_the_filter_passes(block, shaken):
    """White noise through a filter keeps the mean of its squared gain: the response to one frame tells that."""
    from borelli.analysis.kinematics.differentiation import differentiate
    from borelli.analysis.motion import make_motion

    model = block.torques.motion.model
    one = np.zeros((FRAMES, 6))
    one[FRAMES // 2, 0] = 1.0
    pulse = differentiate(make_motion(model, one, np.arange(FRAMES) / RATE, RATE))
    at = slice(20, -20)  # away from the ends, which are continued
    for name, response in (("coordinates", pulse.coordinates), ("accelerations", pulse.accelerations)):
        expected = NOISE / np.sqrt(6.0) * np.linalg.norm(response[:, 0])
        found = shaken.groups["torques"][f"{name}_sd"].sel(coordinate="x").values[at]
        assert np.sqrt((found**2).mean()) == pytest.approx(expected, rel=SAMPLED)
    # Newton: the force that stays at the root is the mass times the acceleration
    force = shaken.groups["torques"]["residual_force_sd"].sel(axis="x").values
    assert force == pytest.approx(2.0 * shaken.groups["torques"]["accelerations_sd"].sel(coordinate="x").values)


def test_twice_the_noise_is_twice_the_band(block):
    once, twice = (bo.propagate_uncertainty(block, 4, noise=size) for size in (1e-5, 2e-5))
    for name in ("coordinates", "speeds", "accelerations", "torque", "residual_force"):
        first, second = (one.groups["torques"][f"{name}_sd"].values for one in (once, twice))
        # what is left goes with the square of noise over arm, 1e-4; near the ends accelerations are none
        assert second == pytest.approx(2.0 * first, rel=1e-3, abs=1e-3 * first.max())


def test_no_noise_and_a_certain_model_leave_no_band(block):
    found = bo.propagate_uncertainty(block, 2, noise=0.0)
    for group, data in banding.outputs(block).items():
        for name, values in data.items():
            known = np.isfinite(values.values)
            assert not found.groups[group][f"{name}_sd"].values[known].any()
            assert np.array_equal(found.groups[group][f"{name}_low"].values[known], values.values[known])


def test_every_number_has_a_band_with_its_dimensions_and_units(analysed):
    """Of a walk on plates: all of the stages, the scalars, what the report draws, and the tables."""
    found = bo.propagate_uncertainty(analysed.energy, 2, fit=analysed.fit)
    energy, torques = analysed.energy, analysed.energy.torques
    for group, data in (("torques", torques.data), ("energy", energy.data)):
        for name in data.data_vars:
            if name != "covered":  # true or false
                for end in ENDS:
                    one = found.groups[group][f"{name}_{end}"]
                    assert one.dims == data[name].dims and one.attrs["units"] == data[name].attrs["units"]
                known = np.isfinite(data[name].values)
                assert np.isfinite(found.groups[group][f"{name}_sd"].values[known]).mean() > 0.95
    assert set(found.figures) == {*energy.summary, "residual_force_rms_n", "residual_moment_rms_nm"}
    drawn = found.groups["curves"]["over_cycle_sd"].sel(curve=["knee_flexion", "hip_power", "ground_force_forward"])
    assert (
        drawn.dims == ("curve", "side", "percent") and np.isfinite(drawn).all() and (drawn.max("percent") > 0.0).all()
    )
    assert found.drawn and not found.stated
    # the walk was made with 1 mm of noise
    assert found.noise_mm == pytest.approx(1.0, rel=0.1)


def test_angles_are_as_unsure_as_the_fit_says(analysed):
    """Its own law, the linear one of the zero of each angle, against models drawn and followed."""
    found = bo.propagate_uncertainty(analysed.energy, 8, fit=analysed.fit, noise=0.0)
    sd = found.groups["torques"]["coordinates_sd"].mean("time")
    ratio = sd.values / analysed.fit.data["zero_sd"].sel(coordinate=sd["coordinate"]).values
    assert np.median(ratio) == pytest.approx(1.0, abs=0.2)  # 8 draws tell each to 27 %, and there are 54


def test_workers_do_not_change_a_bit(analysed):
    one, two = (bo.propagate_uncertainty(analysed.energy, 3, fit=analysed.fit, workers=workers) for workers in (1, 2))
    for group, data in one.groups.items():
        assert data.equals(two.groups[group])


@pytest.fixture(scope="module")
def banded(analysed, tmp_path_factory):
    """The analysed folder, gone on with for bands: once interrupted, then to the end."""
    folder = tmp_path_factory.mktemp("banded")
    shutil.copytree(analysed.folder, folder / "out")
    shutil.copy(analysed.folder.parent / "walk.nc", folder / "walk.nc")
    plan, heard = AnalysisSettings(monte_carlo=3, noise=2e-3), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "contacts_beside", lambda torques: None)
        with patch.context() as stopped:
            stopped.setattr(banding, "inverse_dynamics", stop)
            stopped.setattr(pipeline, "fit_model", lambda *_, **__: analysed.fit)
            with pytest.raises(KeyboardInterrupt):
                analyze([folder / "walk.nc"], folder / "out", plan)
        left = {path.name for path in (folder / "out").iterdir()}
        found = analyze([folder / "walk.nc"], folder / "out", plan, lambda *told: heard.append(told))
    return found[0], heard, left


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def quick(monkeypatch):
    """Without a report and what is found for it alone."""
    monkeypatch.setattr(pipeline, "contacts_beside", lambda torques: None)
    monkeypatch.setattr(pipeline, "write_report", lambda *_, **__: None)


def test_bands_are_made_from_stages_that_were_there(analysed, banded):
    found, heard, _ = banded
    assert found.loaded == ("fit", "pose", "torques", "energy")
    assert (
        isinstance(found.bands, AnalysisUncertainty) and found.bands.drawn
    )  # the fit was loaded, and solved again to draw from
    direct = bo.propagate_uncertainty(analysed.energy, 3, fit=analysed.fit, noise=2e-3)
    assert direct.groups["torques"]["torque_sd"].equals(found.bands.groups["torques"]["torque_sd"])
    moved = [share for what, share in heard if what.startswith("repeating")]
    assert moved == sorted(moved) and len(set(moved)) == 4 and heard[-1][1] == 1.0
    assert [share for _, share in heard] == sorted(share for _, share in heard)


def test_summary_tells_bands_and_how_they_were_made(analysed, banded):
    told = json.loads((banded[0].folder / "summary.json").read_text())
    assert told["monte_carlo"] == {
        "repeats": 3, "noise_mm": pytest.approx(2.0), "noise": "stated", "models": "drawn from the fit", "seed": 0,
    }  # fmt: skip
    assert {"positive_work_j", "cost_of_transport_j_per_kg_m", "residual_force_rms_n"} <= set(told["bands"])
    assert set(told["bands"]["positive_work_j"]) == set(ENDS) and told["bands"]["positive_work_j"]["sd"] > 0.0
    assert told["seconds"]["bands"] > 0.0
    assert analysed.summary["bands"] == {} and analysed.summary["monte_carlo"] is None


def test_files_hold_bands_and_a_second_run_loads_them(banded, quick):
    found, _, _ = banded
    data = xarray.open_dataset(found.folder / "bands.nc", group="torques", engine="h5netcdf", decode_times=False)
    assert data["torque_sd"].dims == ("time", "coordinate") and data["torque_sd"].attrs["units"] == "N m or N"
    head, *rows = (found.folder / "moments_bands.csv").read_text().splitlines()
    columns = head.split(",")
    assert columns[0] == "time_s" and {f"knee_angle_r_moment_{end}" for end in ENDS} <= set(columns)
    assert len(rows) == data.sizes["time"] and all(len(row.split(",")) == len(columns) for row in rows)
    again = analyze([found.folder.parent / "walk.nc"], found.folder, AnalysisSettings(monte_carlo=3, noise=2e-3))[0]
    assert again.loaded[-1] == "bands"
    for group, one in found.bands.groups.items():
        assert one.equals(again.bands.groups[group])
    assert again.bands.notes == found.bands.notes and again.summary["bands"] == found.summary["bands"]


def test_report_shades_bands_and_tells_noise_and_repeats(analysed, banded):
    page = (banded[0].folder / "report.html").read_text()
    assert "95 % of 3 repeats" in page and "shaken by 2 mm" in page and "drawn from those that the fit allows" in page
    assert page.count('class="sure right"') > 30 and page.count('class="sure left"') > 30
    plain = (analysed.folder / "report.html").read_text()
    assert 'class="sure' not in plain and "How sure" not in plain


def test_interrupt_leaves_the_other_stages_and_no_bands(analysed, banded):
    assert banded[2] == {path.name for path in analysed.folder.iterdir()}


def test_bands_of_other_results_are_taken_away(banded, tmp_path, quick):
    shutil.copytree(banded[0].folder, tmp_path / "out")
    assert (tmp_path / "out" / "bands.nc").exists()
    analyze([banded[0].folder.parent / "walk.nc"], tmp_path / "out", AnalysisSettings(cutoff=8.0))
    assert not list((tmp_path / "out").glob("*bands*"))


def test_damaged_bands_are_none(banded, tmp_path):
    whole = (banded[0].folder / "bands.nc").read_bytes()
    (tmp_path / "bands.nc").write_bytes(whole[:5000])
    assert read_uncertainty(tmp_path / "bands.nc") is None and read_uncertainty(tmp_path / "no.nc") is None


@pytest.mark.parametrize(
    ("repeats", "noise", "words"),
    [(1, None, "at least 2 repeats, got 1"), (-3, None, "got -3"), (9, -1e-3, "noise is -1 mm"),
     (9, float("nan"), "noise is nan mm"), (0, 1e-3, "give --monte-carlo N too")],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(repeats, noise, words):
    with pytest.raises(bo.SettingsError, match=words):
        banding.check_uncertainty_settings(repeats, noise)


def test_a_figure_whose_band_is_not_known_is_printed_alone():
    unknown = {"sd": None, "low": None, "high": None}
    known = {"sd": 1.25, "low": 98.0, "high": 102.0}
    told = {
        "positive_work_j": 100.0,
        "cost_of_transport_j_per_kg_m": 0.9,
        "bands": {"positive_work_j": known, "cost_of_transport_j_per_kg_m": unknown},
        "seconds": {},
    }
    assert list(figures(told).columns[1].cells)[:2] == ["100.0 ± 1.2 J", "0.900 J/(kg m)"]


@pytest.mark.parametrize("repeats", [0, 20, 1000])
def test_shares_of_the_work_rise_to_all(repeats):
    ends = list(stage_ends(repeats).values())
    assert ends == sorted(ends) and ends[-1] == 1.0
