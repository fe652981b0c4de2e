"""Uncertainty: the spread that theory predicts, for every output, stored in files and reused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray

import borelli as bo
from borelli.analysis.error_sources.error_sizes import NO_ERRORS, ErrorSizes
from borelli.commands.analyze import summary_table
from borelli.errors import FileFormatError
from borelli.export.gait_curves import gait_curves
from borelli.export.gait_profile import gait_values
from borelli.export.stage_files import open_stage_file
from borelli.export.uncertainty_files import AnalysisUncertainty, load_uncertainty
from borelli.model.model import Body, Coordinate, Joint, Marker, Model
from borelli.pipeline import analyze as pipeline
from borelli.pipeline import repeats as repeats_module
from borelli.pipeline import uncertainty as uncertainty_module
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze, stage_ends
from borelli.recording.forces.assign_to_feet import assign_plates
from borelli.recording.recording import Note, Recording, make_dataset

NOISE = 1e-3
ARM = 0.2
REPEATS = 40
RATE, FRAMES = 100.0, 60
SUFFIXES = ("sd", "low", "high")
SAMPLED = 3.0 / np.sqrt(2.0 * REPEATS * 10)
"""Three standard errors of a standard deviation over the repeats, with one independent frame in six after filtering."""


@pytest.fixture(scope="module")
def block():
    """Return the energy of a free body with six markers, two on each axis, that drifts and rotates slowly."""
    offsets = [tuple(sign * ARM * np.eye(3)[axis]) for axis in range(3) for sign in (1.0, -1.0)]
    names = [f"m{i}" for i in range(6)]
    free = tuple(Coordinate(name, rotational=name.startswith("r")) for name in ("x", "y", "z", "rx", "ry", "rz"))
    model = Model(
        "block", (Body("box", 2.0),), (Joint("root", "free", "ground", "box", coordinates=free),),
        tuple(Marker(name, "box", offset) for name, offset in zip(names, offsets, strict=True)),
    )  # fmt: skip
    time = np.arange(FRAMES) / RATE
    angle = 0.1 * np.sin(3.0 * time)
    rotation = np.zeros((FRAMES, 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = np.cos(angle)
    rotation[:, 1, 0], rotation[:, 0, 1], rotation[:, 2, 2] = np.sin(angle), -np.sin(angle), 1.0
    points = np.einsum("fij,mj->fmi", rotation, np.array(offsets)) + np.array([1.0, 2.0, 1.0])
    points[..., 0] += 0.3 * time[:, None]
    recording = Recording(make_dataset({"marker_position": points}, {"marker": names}, rate=RATE))
    return bo.compute_energy(bo.inverse_dynamics(bo.inverse_kinematics(bo.validate(model), recording)))


@pytest.fixture(scope="module")
def noisy(block):
    return bo.propagate_uncertainty(block, REPEATS, marker_noise=NOISE, errors=NO_ERRORS)


def test_noise_of_a_free_body_is_that_of_the_mean_of_its_markers(noisy):
    """Its position is the mean of k markers, noise over root k; about z it rotates with the four off that axis."""
    data = noisy.groups["tables"]
    sd = np.sqrt((data["coordinates_sd"] ** 2).mean("coordinates_time")).to_series()  # not filtered
    inside = 3.0 / np.sqrt(2.0 * REPEATS * FRAMES)
    for name in ("x", "y", "z"):
        assert sd[name] == pytest.approx(NOISE / np.sqrt(6.0), rel=inside)
    assert np.radians(sd["rz"]) == pytest.approx(NOISE / (ARM * np.sqrt(4.0)), rel=inside)


def test_filtered_coordinates_have_the_noise_that_the_filter_passes(block, noisy):
    """The standard deviation of filtered white noise is the norm of the impulse response."""
    from borelli.analysis.kinematics.differentiation import differentiate
    from borelli.analysis.motion import make_motion

    model = block.torques.motion.model
    one = np.zeros((FRAMES, 6))
    one[FRAMES // 2, 0] = 1.0
    pulse = differentiate(make_motion(model, one, np.arange(FRAMES) / RATE, RATE))
    at = slice(20, -20)  # away from the ends, which depend on the extension
    for name, response in (("coordinate_value", pulse.coordinates), ("coordinate_acceleration", pulse.accelerations)):
        expected = NOISE / np.sqrt(6.0) * np.linalg.norm(response[:, 0])
        found = noisy.groups["torques"][f"{name}_sd"].sel(coordinate="x").values[at]
        assert np.sqrt((found**2).mean()) == pytest.approx(expected, rel=SAMPLED)
    # Newton: the residual force is mass times acceleration
    force = noisy.groups["torques"]["residual_force_sd"].sel(axis="x").values
    assert force == pytest.approx(
        2.0 * noisy.groups["torques"]["coordinate_acceleration_sd"].sel(coordinate="x").values
    )


def test_uncertainty_is_proportional_to_noise(block):
    once, twice = (bo.propagate_uncertainty(block, 4, marker_noise=size, errors=NO_ERRORS) for size in (1e-5, 2e-5))
    for name in ("coordinate_value", "coordinate_velocity", "coordinate_acceleration", "torque", "residual_force"):
        first, second = (one.groups["torques"][f"{name}_sd"].values for one in (once, twice))
        # the difference is of second order in noise over arm, 1e-4; accelerations vanish near the ends
        assert second == pytest.approx(2.0 * first, rel=1e-3, abs=1e-3 * first.max())


@pytest.mark.parametrize("source", ["none", "plates", "predicted"])
def test_repeats_without_errors_equal_the_value_exactly(block, source):
    """The same chain computes value and repeats, with plates and without."""
    if source != "none":
        reach = bo.synthetic_recording("reach")
        motion = bo.inverse_kinematics(reach.model, assign_plates(reach.recording))
        block = bo.compute_energy(bo.inverse_dynamics(motion, forces=source))
    found = bo.propagate_uncertainty(block, 2, marker_noise=0.0, errors=NO_ERRORS)
    for group, data in uncertainty_module.outputs(block).items():
        for name, values in data.items():
            known = np.isfinite(values.values)
            assert not found.groups[group][f"{name}_sd"].values[known].any()
            for end in ("low", "high"):
                assert np.array_equal(found.groups[group][f"{name}_{end}"].values[known], values.values[known])


def test_every_error_widens_intervals():
    """Each source of error alone has an effect on the quantity that it should reach, and the note states its size."""
    reach = bo.synthetic_recording("reach", gaps=0.0)
    recording = assign_plates(reach.recording)
    short = recording.with_data(recording.data.isel(time=slice(60), analog_time=slice(237)))
    energy = bo.compute_energy(bo.inverse_dynamics(bo.inverse_kinematics(reach.model, short), forces="plates"))
    reached = {
        "skin_motion": "coordinate_value", "body_mass": "torque_gravity", "segment_mass": "torque_gravity",
        "center_of_mass": "torque_gravity", "gyration_radius": "torque_inertial",
        "plate_position": "center_of_pressure", "plate_gain": "ground_reaction_force",
        "center_of_pressure": "center_of_pressure",
        "cutoff": "coordinate_acceleration",
    }  # fmt: skip
    for name, output in reached.items():
        alone = replace(NO_ERRORS, **{name: getattr(ErrorSizes(), name)})
        found = bo.propagate_uncertainty(energy, 2, marker_noise=0.0, errors=alone)
        assert np.nanmax(found.groups["torques"][f"{output}_sd"].values) > 0.0, name
    notes = {note.code: note.text for note in bo.propagate_uncertainty(energy, 2).notes}
    for code, words in (
        ("skin_motion_uncertainty", "19 mm/rad"), ("mass_uncertainty", "segment masses by 10 %"),
        ("plate_uncertainty", "plates are 3 mm off"), ("filter_uncertainty", "factor of up to 1.5"),
        ("not_included", "kinematic structure"), ("model_uncertainty", "treated as exact"),
    ):  # fmt: skip
        assert words in notes[code]


def test_assumed_body_mass_is_uncertain_by_the_spread_of_adults():
    note = Note("Body mass: assumed.", "problem", code="mass_assumed")
    reach = bo.synthetic_recording("reach")
    motion = bo.inverse_kinematics(reach.model, reach.recording)
    assert repeats_module.default_errors(replace(motion, notes=(note,))).body_mass == 0.2
    assert repeats_module.default_errors(motion) == ErrorSizes()


def test_every_output_has_an_uncertainty_with_its_dimensions_and_units(analyzed):
    """Walk on plates: all variables of the stages, summary values, curves of the report, and tables."""
    found = bo.propagate_uncertainty(analyzed.energy, 2, fit=analyzed.fit)
    energy, torques = analyzed.energy, analyzed.energy.torques
    for group, data in (("torques", torques.data), ("energy", energy.data)):
        for name in data.data_vars:
            if name != "grf_complete":  # boolean
                for suffix in SUFFIXES:
                    one = found.groups[group][f"{name}_{suffix}"]
                    assert one.dims == data[name].dims and one.attrs["units"] == data[name].attrs["units"]
                known = np.isfinite(data[name].values)
                assert np.isfinite(found.groups[group][f"{name}_sd"].values[known]).mean() > 0.95
    gait = {f"gait.{name}" for name in gait_values(gait_curves(energy)) if not name.endswith("_sd")}
    assert set(found.summary) == {*energy.summary, "residual_force_rms_n", "residual_moment_rms_nm", *gait}
    assert found.summary["gait.gait_profile_score_right_deg"]["sd"] > 0.0
    drawn = found.groups["curves"]["over_cycle_sd"].sel(curve=["knee_flexion", "hip_power", "ground_force_forward"])
    assert (
        drawn.dims == ("curve", "side", "percent") and np.isfinite(drawn).all() and (drawn.max("percent") > 0.0).all()
    )
    assert found.models_drawn and not found.noise_stated
    # the synthetic walk has 1 mm of noise
    assert found.noise_mm == pytest.approx(1.0, rel=0.1)


def test_uncertainty_of_angles_agrees_with_the_fit(analyzed):
    """Linear uncertainty of each angle's neutral position against inverse kinematics with drawn models."""
    found = bo.propagate_uncertainty(analyzed.energy, 8, fit=analyzed.fit, marker_noise=0.0, errors=NO_ERRORS)
    sd = found.groups["torques"]["coordinate_value_sd"].mean("time")
    ratio = sd.values / analyzed.fit.data["zero_sd"].sel(coordinate=sd["coordinate"]).values
    assert np.median(ratio) == pytest.approx(1.0, abs=0.2)  # 8 draws give each of 54 to 27 %


def test_number_of_workers_does_not_change_results(analyzed):
    one, two = (bo.propagate_uncertainty(analyzed.energy, 3, fit=analyzed.fit, workers=workers) for workers in (1, 2))
    for group, data in one.groups.items():
        assert data.equals(two.groups[group])


@pytest.fixture(scope="module")
def repeated(analyzed, tmp_path_factory):
    """Return an analysis with uncertainty, computed in the analyzed folder: once interrupted, then completely."""
    folder = tmp_path_factory.mktemp("repeated")
    shutil.copytree(analyzed.folder, folder / "out")
    shutil.copy(analyzed.folder.parent / "walk.nc", folder / "walk.nc")
    settings, calls = AnalysisSettings(monte_carlo=3, marker_noise=2e-3), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "predict_grf_for_comparison", lambda torques: None)
        with patch.context() as interrupted:
            interrupted.setattr(repeats_module, "run_stages", interrupt)
            interrupted.setattr(pipeline, "fit_subject", lambda *_, **__: analyzed.fit)
            with pytest.raises(KeyboardInterrupt):
                analyze([folder / "walk.nc"], folder / "out", settings)
        left = {path.name for path in (folder / "out").iterdir()}
        found = analyze([folder / "walk.nc"], folder / "out", settings, lambda *call: calls.append(call))
    return found[0], calls, left


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def quick(monkeypatch):
    """Skip the report and what is computed for it alone."""
    monkeypatch.setattr(pipeline, "predict_grf_for_comparison", lambda torques: None)
    monkeypatch.setattr(pipeline, "write_report", lambda *_, **__: None)


def test_uncertainty_reuses_the_stages(analyzed, repeated):
    found, calls, _ = repeated
    assert found.reused_stages == ("fit", "ik", "id", "energy")
    assert (
        isinstance(found.uncertainty, AnalysisUncertainty) and found.uncertainty.models_drawn
    )  # the fit was read, and solved again to draw models from
    direct = bo.propagate_uncertainty(analyzed.energy, 3, fit=analyzed.fit, marker_noise=2e-3)
    assert direct.groups["torques"]["torque_sd"].equals(found.uncertainty.groups["torques"]["torque_sd"])
    during = [done for task, done in calls if task.startswith("Monte Carlo")]
    assert during == sorted(during) and len(set(during)) == 4 and calls[-1][1] == 1.0
    assert [done for _, done in calls] == sorted(done for _, done in calls)


def test_summary_contains_uncertainty_and_its_method(analyzed, repeated):
    summary = json.loads((repeated[0].folder / "summary.json").read_text())
    assert summary["monte_carlo"] == {
        "repeats": 3, "noise_mm": pytest.approx(2.0), "noise": "stated", "models": "drawn from the fit", "seed": 0,
    }  # fmt: skip
    assert {"positive_work_j", "cost_of_transport_j_per_kg_m", "residual_force_rms_n"} <= set(summary["uncertainty"])
    assert (
        set(summary["uncertainty"]["positive_work_j"]) == set(SUFFIXES)
        and summary["uncertainty"]["positive_work_j"]["sd"] > 0.0
    )
    assert summary["runtime_s"]["uncertainty"] > 0.0
    assert analyzed.summary["uncertainty"] == {} and analyzed.summary["monte_carlo"] is None


def test_second_run_reads_the_uncertainty_from_its_file(repeated, tmp_path, quick):
    found, _, _ = repeated
    data = xarray.open_dataset(found.folder / "uncertainty.nc", group="torques", engine="h5netcdf", decode_times=False)
    assert data["torque_sd"].dims == ("time", "coordinate") and data["torque_sd"].attrs["units"] == "N m or N"
    head, *rows = (found.folder / "moments_uncertainty.csv").read_text().splitlines()
    columns = head.split(",")
    assert columns[0] == "time_s" and {f"knee_angle_r_moment_{suffix}" for suffix in SUFFIXES} <= set(columns)
    assert len(rows) == data.sizes["time"] and all(len(row.split(",")) == len(columns) for row in rows)
    shutil.copytree(found.folder, tmp_path / "out")
    settings = AnalysisSettings(monte_carlo=3, marker_noise=2e-3)
    again = analyze([found.folder.parent / "walk.nc"], tmp_path / "out", settings)[0]
    assert again.reused_stages[-1] == "uncertainty"
    for group, one in found.uncertainty.groups.items():
        assert one.equals(again.uncertainty.groups[group])
    assert (
        again.uncertainty.notes == found.uncertainty.notes
        and again.summary["uncertainty"] == found.summary["uncertainty"]
    )


def test_report_shows_intervals_noise_and_repeats(analyzed, repeated):
    page = (repeated[0].folder / "report.html").read_text()
    assert (
        "95 % interval of 3 repeats" in page and "marker noise of 2 mm" in page and "a model drawn from the fit" in page
    )
    assert page.count('class="interval right"') > 30 and page.count('class="interval left"') > 30
    plain = (analyzed.folder / "report.html").read_text()
    assert 'class="interval' not in plain and "Uncertainty" not in plain


def test_interrupt_leaves_the_other_stages_and_no_uncertainty(analyzed, repeated):
    assert repeated[2] == {path.name for path in analyzed.folder.iterdir()}


def test_uncertainty_of_other_results_is_removed(repeated, tmp_path, quick):
    shutil.copytree(repeated[0].folder, tmp_path / "out")
    assert (tmp_path / "out" / "uncertainty.nc").exists()
    analyze([repeated[0].folder.parent / "walk.nc"], tmp_path / "out", AnalysisSettings(cutoff=8.0))
    assert not list((tmp_path / "out").glob("*uncertainty*"))


def test_damaged_file_is_not_read(repeated, tmp_path):
    found, path = repeated[0], tmp_path / "uncertainty.nc"
    content = (found.folder / "uncertainty.nc").read_bytes()
    path.write_bytes(content[:5000])
    with pytest.raises(FileFormatError, match="no checksum"):
        load_uncertainty(open_stage_file(path), found.energy)
    path.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    with pytest.raises(FileFormatError, match="damaged or was changed"):
        load_uncertainty(open_stage_file(path), found.energy)
    path.write_bytes(content)
    shorter = replace(found.energy, data=found.energy.data.isel(time=slice(1, None)))
    with pytest.raises(FileFormatError, match="are not those of the energy"):
        load_uncertainty(open_stage_file(path), shorter)


@pytest.mark.parametrize(
    ("repeats", "noise", "words"),
    [(1, None, r"at least 2 repeats \(got 1\)"), (-3, None, "got -3"), (9, -1e-3, "-1 mm is out of range"),
     (9, float("nan"), "nan mm is out of range"), (0, 1e-3, "Add --monte-carlo N")],
)  # fmt: skip
def test_invalid_settings_are_rejected(repeats, noise, words):
    with pytest.raises(bo.SettingsError, match=words):
        uncertainty_module.check_uncertainty_settings(repeats, noise)


def test_value_with_unknown_uncertainty_is_printed_alone():
    unknown = {"sd": None, "low": None, "high": None}
    known = {"sd": 1.25, "low": 98.0, "high": 102.0}
    summary = {
        "positive_work_j": 100.0,
        "cost_of_transport_j_per_kg_m": 0.9,
        "uncertainty": {"positive_work_j": known, "cost_of_transport_j_per_kg_m": unknown},
        "runtime_s": {},
    }
    assert list(summary_table(summary).columns[1].cells)[:2] == ["100.0 ± 1.2 J", "0.900 J/(kg m)"]


@pytest.mark.parametrize("repeats", [0, 20, 1000])
def test_stage_ends_rise_to_1(repeats):
    ends = list(stage_ends(repeats).values())
    assert ends == sorted(ends) and ends[-1] == 1.0
