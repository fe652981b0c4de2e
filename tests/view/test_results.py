"""Every result and stage can be plotted and drawn; what cannot is refused with a list of what can; reprs are short."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

import borelli as bo
from borelli.analysis.live_tracking import LivePose
from borelli.errors import SettingsError
from borelli.view.browser_viewer import show
from borelli.view.plots import PLOTS, plot
from borelli.view.results import POSES, posed_model
from borelli.view.video import write_frames

SMALL = {"width": 64, "height": 48}
MAX_REPR = 2000  # characters


@pytest.fixture(scope="module")
def results():
    """One instance of every class of result, from a short synthetic walk and short simulations."""
    truth = bo.synthetic_recording("walk", noise=0.001, gaps=0.0)
    recording = bo.recording.crop(bo.clean(truth.recording, cutoff=None), end=0.8)
    fit = bo.fit_model(bo.human(75.0, 1.75, markers="cmu41"), recording)
    motion = bo.inverse_kinematics(fit.model, recording)
    torques = bo.inverse_dynamics(motion, forces="plates")
    energy = bo.compute_energy(torques)
    with_muscles = replace(torques, motion=replace(motion, model=bo.add_muscles(fit.model)))
    scene = bo.gallery_scene("pendulum")
    model = scene.model
    targets = bo.control.keyframes(model, [0.0], {model.coordinates[0].name: [0.1]})
    control = bo.control.make_controls(targets, bo.PD(25.0))
    dataset = bo.run_scene(scene, record_every=24)
    folder = "folder"
    summary = {"file": "walk", "frames": 80, "rate_hz": 100.0, "mass_kg": 75.0, "marker_rms_mm": 2.0}
    summary |= {"grf_source": "plates", "warnings": []}
    return {
        "Analysis": bo.Analysis(energy, fit, None, summary, folder),
        "Animation": bo.animate(
            motion, [bo.Push("upper_torso", (0.0, 50.0, 0.0), start=0.1, duration=0.1)], record_every=8
        ),
        "Dataset": dataset,
        "tracking Dataset": bo.track_targets(model, control, duration=0.2, step=1 / 60),
        "Energy": energy,
        "Fit": fit,
        "Model": bo.human(markers="cmu41"),
        "Motion": motion,
        "MuscleForces": bo.muscle_forces(with_muscles),
        "Recording": recording,
        "ScaleResult": bo.analysis.ScaleResult(fit.model, {"thigh_r": (1.0, 1.1, 1.0)}),
        "Scene": scene,
        "Torques": torques,
    }


@pytest.fixture(scope="module")
def live_pose():
    return LivePose(0.0, np.zeros(3), 0.001, None, 0.0, 0.001)


NAMES = ("Analysis", "Animation", "Dataset", "tracking Dataset", "Energy", "Fit", "Model", "Motion", "MuscleForces",
         "Recording", "ScaleResult", "Scene", "Torques")  # fmt: skip


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Scene"])
def test_plot(results, name, tmp_path):
    figure = plot(results[name], tmp_path / "plot.png")
    assert figure.axes and all(ax.has_data() for ax in figure.axes)
    with Image.open(tmp_path / "plot.png") as image:
        assert np.asarray(image.convert("L")).std() > 5


@pytest.mark.parametrize("name", NAMES)
def test_picture_strobe_and_video(results, name, tmp_path):
    assert np.asarray(bo.picture(results[name], tmp_path / "a.png", **SMALL)).std() > 5
    assert np.asarray(bo.strobe(results[name], tmp_path / "b.png", count=3, **SMALL)).std() > 5
    bo.video(results[name], tmp_path / "c.gif", rate=5, **SMALL)
    with Image.open(tmp_path / "c.gif") as video:
        duration = np.ptp(posed_model(results[name]).time)
        assert video.n_frames == 1 + int(duration * 5 + 1e-6)
    assert len(write_frames(results[name], tmp_path / "frames", rate=1, **SMALL)) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_show(results, name):
    pytest.importorskip("viser")
    viewer = show(results[name], port=18090, block=False)
    viewer.stop()


def test_tables_cover_the_classes_of_results(results):
    classes = {type(result).__name__ for result in results.values()}
    assert classes - {"Scene"} == set(PLOTS) and classes == set(POSES)


@pytest.mark.parametrize("draw", [bo.plot, bo.picture, bo.strobe])
def test_what_cannot_be_drawn_is_refused_in_one_sentence(live_pose, draw):
    for result in (live_pose, {"a": 1}, None, SimpleNamespace(data=1)):
        with pytest.raises(
            SettingsError, match=r"cannot be (plotted|drawn in 3-D)\. Use one of: Analysis, .*Torques\.$"
        ):
            draw(result)


def test_recording_without_markers_is_refused(results):
    recording = results["Recording"]
    bare = recording.with_data(recording.data.drop_vars(["marker_position"]))
    with pytest.raises(SettingsError, match="no markers or joint centers"):
        bo.picture(bare)


def test_poses_of_a_motion_are_those_of_its_bodies_and_measured_markers(results):
    motion, posed = results["Motion"], posed_model(results["Torques"])
    bodies, markers = motion.data.sizes["body"], motion.data.sizes["marker"]
    np.testing.assert_array_equal(posed.position[:, :bodies], motion.data["body_position"].values)
    np.testing.assert_array_equal(posed.position[:, bodies:], motion.data["marker_position"].values)
    assert posed.orientation.shape == (len(posed.time), bodies + markers, 4)


def test_markers_of_a_model_are_where_its_forward_kinematics_puts_them():
    model = bo.human(markers="cmu41")
    posed = posed_model(model)
    expected = bo.model.marker_positions(model, [[c.default for c in model.coordinates]])
    np.testing.assert_allclose(posed.position[:, -len(model.markers) :], expected, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if "Dataset" not in name])
def test_reprs_are_short_and_have_html(results, name):
    result = results[name]
    assert 10 < len(repr(result)) < MAX_REPR
    html = result._repr_html_()
    assert "<table" in html and len(html) < 40_000
    if name in ("Motion", "Torques", "Energy", "Animation", "Recording", "Analysis"):
        assert "<svg" in html


def test_reprs_of_small_results_are_short(results, live_pose):
    model = results["Model"]
    targets = bo.control.keyframes(model, [0.0], {model.coordinates[0].name: [0.1]})
    small = (live_pose, targets, bo.control.Control(model.coordinates[0].name, targets, bo.PD(25.0)),
             bo.control.DragResult({"a": 0.0}, (0.0, 0.0, 0.0), 0.0), bo.AnalysisSettings(), bo.SolverSettings(),
             bo.synthetic_recording("walk"), bo.model.compare_models(model, model))  # fmt: skip
    assert all(len(repr(result)) < MAX_REPR for result in small), [(type(r), len(repr(r))) for r in small]
