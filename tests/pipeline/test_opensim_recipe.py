"""OpenSim's setup files as settings: the results are those of OpenSim's tools, and what is missing is named."""

import shutil

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.pipeline.analysis_settings import AnalysisSettings, read_trial
from borelli.pipeline.analyze import analyze
from borelli.pipeline.filter_effects import MISMATCH
from borelli.pipeline.opensim_recipe import apply_setups, named_file, scale_by_setup
from borelli.pipeline.stages import StageSettings, compute_torques, run_inverse_kinematics
from borelli.recording.io import read_recording

from ..analysis.dynamics.test_torques import errors
from ..analysis.opensim_trials import motion_of, trial
from ..hostile.writing_commands import make_inputs
from ..shared_data import SHARED_DATA, shared

GAIT = SHARED_DATA / "opensim" / "gait2354"
WALK = SHARED_DATA / "opensim" / "subject01_walk"


def setup_folder(tmp_path):
    """Return a folder with the setups of gait2354 and the files that they name."""
    for path in (*(GAIT / "setup").glob("subject01_*"), *(GAIT / "setup").glob("*MarkerSet*"), *WALK.iterdir()):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


@pytest.mark.data
def test_setups_state_filter_cutoff_loads_and_times(tmp_path):
    folder = setup_folder(tmp_path)
    found = apply_setups(AnalysisSettings(id_setup=folder / "subject01_Setup_InverseDynamics.xml"))
    assert (found.filter, found.cutoff, found.start, found.end) == ("opensim", 6.0, 0.4, 1.6)
    assert found.external_loads == folder / "subject01_walk1_grf.xml"
    assert found.forces == folder / "subject01_walk1_grf.mot"
    file = folder / "subject01_Setup_InverseDynamics.xml"
    own = AnalysisSettings(id_setup=file, cutoff=10.0, filter="default", end=1.0)
    found = apply_setups(own)
    assert (found.filter, found.cutoff, found.end) == ("default", 10.0, 1.0)


@pytest.mark.data
@pytest.mark.parametrize(("name", "limit"), [("gait2354", 0.1), ("rajagopal2015_run_bmclab", 0.5)])
def test_inverse_dynamics_setup_gives_opensims_moments(name, limit):
    """OpenSim's coordinates with its setup of loads: moments as published, in % of their peaks (`test_torques`)."""
    motion, _, reference = trial(name)
    run = name != "gait2354"
    xml = shared(f"opensim/{name}/setup/" + ("grf_setup.xml" if run else "subject01_walk1_grf.xml"))
    table = shared(f"opensim/{name}/grf_run.mot" if run else "opensim/subject01_walk/subject01_walk1_grf.mot")
    settings = AnalysisSettings(external_loads=xml, forces=table, filter="opensim", cutoff=6.0)
    found = compute_torques(motion, settings)
    for residuals in (False, True):
        off = errors(found, reference, residuals=residuals)
        assert off and max(off.values()) < limit, off
    (note,) = [note for note in found.notes if note.code == "zero_points"]
    assert ("world origin" in note.text) == run  # only the run's table has zeros there
    assert any(note.code == MISMATCH for note in found.notes)  # OpenSim does not filter the loads


@pytest.mark.data
def test_inverse_kinematics_setup_gives_opensims_angles(tmp_path):
    """Marker weights of the setup; angles as published, as in `test_opensim_ik`."""
    folder = setup_folder(tmp_path)
    file = folder / "subject01_Setup_IK.xml"
    settings = apply_setups(AnalysisSettings(ik_setup=file, model=GAIT / "subject01_simbody.osim"))
    recording = read_trial(WALK / "subject01_walk1.trc", settings)
    assert recording.data["time"].values[0] >= 0.4 - 1e-9 and recording.data["time"].values[-1] <= 1.6 + 1e-9
    model = read_model(settings.model)
    motion = run_inverse_kinematics(recording, model, StageSettings(ik_setup=settings.ik_setup))
    published = motion_of(model, read_recording(GAIT / "reference" / "subject01_walk1_ik.mot"))
    times, own = published.data["time"].values, motion.data["time"].values
    frames = np.array([np.abs(own - t).argmin() for t in times])
    free = [i for i, c in enumerate(model.coordinates) if c.rotational and not c.locked]
    off = np.degrees(np.sqrt(((motion.coordinates[frames] - published.coordinates)[:, free] ** 2).mean(axis=0)))
    assert off.max() < 0.1
    assert motion.settings["ik_setup"].endswith("subject01_Setup_IK.xml")


@pytest.mark.data
def test_scale_setup_gives_opensims_model(tmp_path):
    folder = setup_folder(tmp_path)
    shutil.copy(GAIT / "gait2354_simbody.osim", folder)
    settings = AnalysisSettings(scale_setup=folder / "subject01_Setup_Scale.xml")
    model, notes = scale_by_setup(settings, None)
    published = read_model(GAIT / "subject01_simbody.osim")
    for own, other in zip(model.joints, published.joints, strict=True):
        assert own.parent_frame.position == pytest.approx(other.parent_frame.position, abs=1e-6), own.name
    assert model.mass == pytest.approx(published.mass, rel=1e-9)
    for name in ("R.ASIS", "L.ASIS", "V.Sacral", "R.Heel", "L.Heel"):  # others follow from the pose of the static trial
        assert model.marker(name).position == pytest.approx(published.marker(name).position, abs=0.0015), name
    assert notes[-1].code == "scale_setup"
    assert not apply_setups(settings).fit


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a synthetic walk, its model, and setups that fit them."""
    return make_inputs(tmp_path_factory.mktemp("made") / "inputs")


@pytest.mark.parametrize(
    ("bodies", "names"),
    [
        (("foot_r", "foot_l"), ["right", "left"]), (("foot_r",), ["right"]), (("hand_r",), ["FP 1"]),
        (("foot_r", "toes_r"), ["FP 1", "FP 2"]),
    ],
)  # fmt: skip
def test_loads_on_any_bodies_are_analyzed(bodies, names, made, tmp_path):
    """Loads have names of the laboratory, and need not be one under each foot."""
    text = (made / "loads.xml").read_text()
    for k, (own, body) in enumerate(zip(("foot_r", "foot_l"), bodies, strict=False), 1):
        text = text.replace(f"name='{own}'", f"name='FP {k}'").replace(f"body>{own}<", f"body>{body}<")
    if len(bodies) == 1:
        text = text[: text.rindex("<ExternalForce ")] + text[text.index("</objects>") :]
    (tmp_path / "loads.xml").write_text(text)
    settings = AnalysisSettings(
        model=made / "model.toml", fit=False, external_loads=tmp_path / "loads.xml", forces=made / "walk.mot"
    )
    (done,) = analyze(made / "walk.trc", tmp_path / "out", settings)
    assert done.energy.torques.data["foot"].values.tolist() == names


def test_scale_setup_without_scale_factors(made):
    settings = AnalysisSettings(scale_setup=made / "scale.xml", static=made / "static.trc")
    model, notes = scale_by_setup(settings, None)
    assert model.mass == pytest.approx(read_model(made / "model.osim").mass)
    assert "no body changes its size" in notes[-1].text


@pytest.mark.data
@pytest.mark.slow
def test_whole_recipe(tmp_path):
    folder = setup_folder(tmp_path)
    settings = AnalysisSettings(
        model=GAIT / "subject01_simbody.osim", fit=False, ik_setup=folder / "subject01_Setup_IK.xml",
        id_setup=folder / "subject01_Setup_InverseDynamics.xml",
    )  # fmt: skip
    (found,) = analyze([WALK / "subject01_walk1.trc"], tmp_path / "out", settings)
    used = [found.summary[name] for name in ("filter", "cutoff_hz", "plate_cutoff_hz")]
    assert used == ["opensim", 6.0, None]


def test_missing_files_are_named(tmp_path):
    setup = tmp_path / "id.xml"
    with pytest.raises(SettingsError, match=r"id.xml: The table is missing: the setup names 'grf.mot'"):
        named_file(setup, r"H:\data\grf.mot", "The table")
    (tmp_path / "grf.mot").write_text("")
    assert named_file(setup, r"H:\data\grf.mot", "The table") == tmp_path / "grf.mot"
    with pytest.raises(SettingsError, match="filter"):
        AnalysisSettings(filter="fast")


def table_of(tmp_path, point, moment):
    """Return the path of a table of one plate under a foot, with given points (samples, 3) and moments, y up."""
    names = [f"{prefix}{axis}" for prefix in ("ground_force_v", "ground_force_p", "ground_torque_") for axis in "xyz"]
    time = np.arange(40) / 100.0
    force = np.tile((0.0, 600.0, 10.0), (40, 1))
    force[:5] = (0.0, 5.0, 0.0)
    values = np.hstack([time[:, None], force, point, moment])
    lines = ["table", "version=1", "nRows=40", "nColumns=10", "inDegrees=no", "endheader", "\t".join(["time", *names])]
    path = tmp_path / "grf.mot"
    path.write_text("\n".join([*lines, *("\t".join(f"{x:.9f}" for x in row) for row in values)]) + "\n")
    return path


def test_points_at_the_origin_are_detected(tmp_path):
    """Moments about the origin, points of zero: centers of pressure follow from the moments."""
    center = np.array([0.4, 0.0, 0.25])
    path = table_of(tmp_path, np.zeros((40, 3)), np.cross(center, np.tile((0.0, 600.0, 10.0), (40, 1))))
    table = read_recording(path)
    assert any(note.code == "points_at_origin" and note.kind == "inferred" for note in table.notes)
    cop = table.data["plate_center_of_pressure"].values[10:, 0]
    # lab x, y, z are x, -z, y of the table
    assert np.allclose(cop, (0.4, -0.25, 0.0), atol=1e-6)


def test_zero_points_of_small_forces_are_stated(tmp_path):
    point = np.tile((0.4, 0.0, 0.25), (40, 1))
    point[:5] = 0.0
    path = table_of(tmp_path, point, np.zeros((40, 3)))
    assert any(note.code == "zero_points" and "5 samples" in note.text for note in read_recording(path).notes)
    point[:5] = point[10]
    path = table_of(tmp_path, point, np.zeros((40, 3)))
    assert not any(note.code in ("zero_points", "points_at_origin") for note in read_recording(path).notes)
