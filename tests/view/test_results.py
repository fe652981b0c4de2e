"""Every result and stage can be plotted and drawn; what cannot is refused with a list of what can; reprs are short."""

from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import xarray
from PIL import Image

import borelli as bo
from borelli.analysis.live_tracking import LivePose
from borelli.errors import SettingsError
from borelli.optimal.solution import Solution
from borelli.optimal.walking.predict_walk import PredictedWalk
from borelli.optimal.walking.walking_problem import WalkingModel
from borelli.view.browser_viewer import show
from borelli.view.plots import PLOTS, plot
from borelli.view.results import POSES, WITHOUT_POSES, posed_model
from borelli.view.video import write_frames

from ..optimal.tracking.arm import recorded_torques
from ..physics.test_copies import impulse_simulation

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
    simulation = bo.dynamics.start_simulation(bo.human(), coordinates={"root_z": 1.2})
    bo.dynamics.advance_simulation(simulation, 0.05)
    folder = "folder"
    summary = {"file": "walk", "frames": 80, "rate_hz": 100.0, "mass_kg": 75.0, "marker_rms_mm": 2.0}
    summary |= {"grf_source": "plates", "warnings": []}
    made = {
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
        "MusclePaths": bo.muscles.muscle_paths(with_muscles.motion.model, motion.coordinates[:5]),
        "Recording": recording,
        "ScaleResult": bo.analysis.ScaleResult(fit.model, {"thigh_r": (1.0, 1.1, 1.0)}),
        "Scene": scene,
        "Simulation": simulation,
        "state Dataset": bo.dynamics.simulation_state(simulation),
        "SyntheticRecording": truth,
        "Targets": targets,
        "Torques": torques,
    }
    return made | (optimal_results() if find_spec("casadi") else {})


def optimal_results():
    """Return results of optimal control: of a forearm, and a step of a human that no problem was solved for."""
    changed = bo.optimal.what_if(recorded_torques(), ["flexor 50%"], interval=0.1, refine=0)
    return {"WhatIf": changed, "TrackedMotion": changed.original, "Solution": changed.original.solution,
            "PredictedWalk": predicted_walk(changed.original.solution.certificate)}  # fmt: skip


def predicted_walk(certificate):
    """Return a walk whose states are sine curves."""
    model = bo.human(muscles=True)
    muscles = [f"{muscle.name}_activation" for muscle in model.muscles]
    names = ["root_x", "hip_flexion_r", "hip_flexion_l", "knee_flexion_r", "knee_flexion_l", *muscles]
    time = np.linspace(0.0, 0.5, 20)
    values = 0.4 * np.sin(2.0 * np.pi * time[:, None] + np.arange(len(names))) + 0.4
    dataset = xarray.Dataset(
        {"state_value": (("time", "state"), values), "phase_duration": ("phase_name", [0.5])},
        {"time": time, "state": names, "phase_name": ["step"]},
        {"problem": "walk", "method": "radau", "objective": 1.0, "iterations": 10, "runtime_s": 1.0},
    )
    walker = WalkingModel(model, "root_tilt", "root_x", "root_z", ("hip_flexion_r",), ())
    return PredictedWalk(Solution(dataset, certificate), walker, 1.2)


@pytest.fixture(scope="module")
def live_pose():
    return LivePose(0.0, np.zeros(3), 0.001, None, 0.0, 0.001)


OPTIMAL = ("PredictedWalk", "Solution", "TrackedMotion", "WhatIf")
NAMES = ("tracking Dataset", "state Dataset", *PLOTS)


def check_plot(result, folder):
    figure = plot(result, folder / "plot.png")
    assert figure.axes and all(ax.has_data() for ax in figure.axes)
    with Image.open(folder / "plot.png") as image:
        assert np.asarray(image.convert("L")).std() > 5


def check_picture(result, folder):
    assert np.asarray(bo.picture(result, folder / "a.png", **SMALL)).std() > 5


def check_strobe(result, folder):
    assert np.asarray(bo.strobe(result, folder / "b.png", count=3, **SMALL)).std() > 5


def check_video(result, folder):
    bo.video(result, folder / "c.gif", rate=5, **SMALL)
    with Image.open(folder / "c.gif") as video:
        duration = np.ptp(posed_model(result).time)
        assert video.n_frames == 1 + int(duration * 5 + 1e-6)
    assert len(write_frames(result, folder / "frames", rate=1, **SMALL)) >= 1


def check_show(result, folder):
    pytest.importorskip("viser")
    show(result, port=18090, block=False).stop()


CHECKS = {"plot": check_plot, "picture": check_picture, "strobe": check_strobe, "video": check_video,
          "show": check_show}  # fmt: skip


@pytest.mark.parametrize("function", CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_every_function_draws_every_result_or_names_what_to_draw(results, name, function, tmp_path):
    if name in OPTIMAL:
        pytest.importorskip("casadi")
    if function != "plot" and name in WITHOUT_POSES:
        with pytest.raises(SettingsError, match=r"cannot be drawn in 3-D\. It has .* Use plot\(\), or"):
            CHECKS[function](results[name], tmp_path)
    else:
        CHECKS[function](results[name], tmp_path)


def test_tables_cover_the_classes_of_results(results):
    assert {type(result).__name__ for result in results.values()} | set(OPTIMAL) == set(PLOTS)
    assert set(POSES) | set(WITHOUT_POSES) == set(PLOTS) and not set(POSES) & set(WITHOUT_POSES)


@pytest.mark.parametrize("function", CHECKS)
def test_every_function_draws_a_simulation_by_impulses(function, tmp_path):
    simulation = impulse_simulation()
    CHECKS[function](simulation, tmp_path)
    state = bo.dynamics.simulation_state(simulation)
    np.testing.assert_array_equal(posed_model(simulation).position[0], state["body_position"].values)
    assert "ImpulseSimulation" in repr(simulation)


def test_a_what_if_shows_the_original_behind_the_changed_person(results):
    pytest.importorskip("casadi")
    posed, changes = posed_model(results["WhatIf"]), results["WhatIf"]
    np.testing.assert_array_equal(posed.position, changes.changed.motion().data["body_position"].values)
    np.testing.assert_array_equal(posed.ghost[0], changes.original.motion().data["body_position"].values)
    assert "flexor 50%" in posed.caption


def test_muscles_of_tracked_and_predicted_motions_have_their_activations(results):
    pytest.importorskip("casadi")
    tracked, walk = results["TrackedMotion"], results["PredictedWalk"]
    for result, values in ((tracked, tracked.solution), (walk, walk.solution)):
        posed = posed_model(result)
        first = next(name for name in values.dataset["state"].values if name.endswith("_activation"))
        assert posed.muscles.activation[0, 0] == pytest.approx(values.value(first)[0])
        assert np.isfinite(posed.muscles.activation).all()


def test_a_synthetic_recording_shows_the_true_motion_with_the_measured_markers(results):
    truth = results["SyntheticRecording"]
    posed = posed_model(truth)
    true_points = bo.model.marker_positions(truth.model, truth.coordinates)
    markers = posed.position[:, len(truth.model.bodies) :]
    assert np.nanmax(np.linalg.norm(markers - true_points, axis=-1)) < 0.01
    assert posed.time.shape == (truth.recording.frames,)


@pytest.mark.parametrize("draw", [bo.plot, bo.picture, bo.strobe])
def test_what_cannot_be_drawn_is_refused_in_one_sentence(live_pose, draw):
    for result in (live_pose, {"a": 1}, None, SimpleNamespace(data=1)):
        with pytest.raises(
            SettingsError, match=r"cannot be (plotted|drawn in 3-D)\. Use one of: Analysis, .*Torques, .*WhatIf\.$"
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
    if name in OPTIMAL:
        pytest.importorskip("casadi")
    result = results[name]
    assert 10 < len(repr(result)) < MAX_REPR
    html = result._repr_html_()
    assert "<table" in html and len(html) < 40_000
    if name in ("Motion", "Torques", "Energy", "Animation", "Recording", "Analysis", "PredictedWalk", "TrackedMotion"):
        assert "<svg" in html


def test_reprs_of_small_results_are_short(results, live_pose):
    model = results["Model"]
    targets = bo.control.keyframes(model, [0.0], {model.coordinates[0].name: [0.1]})
    small = (live_pose, targets, bo.control.Control(model.coordinates[0].name, targets, bo.PD(25.0)),
             bo.control.DragResult({"a": 0.0}, (0.0, 0.0, 0.0), 0.0), bo.AnalysisSettings(), bo.SolverSettings(),
             bo.synthetic_recording("walk"), bo.model.compare_models(model, model))  # fmt: skip
    assert all(len(repr(result)) < MAX_REPR for result in small), [(type(r), len(repr(r))) for r in small]
