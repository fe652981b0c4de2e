"""Stages: one run of them for analyses, repeats and commands, so that a repeat without noise is the analysis."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.error_sources.error_sizes import NO_ERRORS
from borelli.analysis.residual_reduction.reduce import unreduced_model
from borelli.analysis.strides import with_gait_events
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.stages import (
    StageSettings,
    compute_torques,
    run_inverse_kinematics,
    run_stages,
    settings_of_results,
)
from borelli.pipeline.uncertainty import outputs, propagate_uncertainty
from borelli.recording.cleaning.filtering import crop


@pytest.fixture(scope="module")
def short(analyzed):
    """Return the model and a second of the recording, with a stride."""
    motion = analyzed.energy.torques.motion
    return motion.model, crop(motion.recording, 0.8, 2.2)


def analyze_trial(model, recording, settings):
    """Return the energy as `analyze` computes it."""
    motion = run_inverse_kinematics(recording, model, StageSettings(ik_method=settings.ik_method))
    return compute_energy(compute_torques(motion, settings))


def differences(energy, again):
    """Return the largest difference of every output; missing values must be missing in both."""
    result, repeated = {}, outputs(again)
    for group, data in outputs(energy).items():
        for name, values in data.items():
            first, second = values.values, repeated[group][name].values
            assert np.array_equal(np.isnan(first), np.isnan(second)), (group, name)
            result[f"{group}/{name}"] = float(np.nanmax(np.abs(first - second), initial=0.0))
    return result


def test_repeat_with_reduced_residuals_equals_the_analysis(short):
    """A repeat starts from the model before residual reduction, and finds the same plate offset, masses and motion."""
    model, recording = short
    energy = analyze_trial(model, recording, AnalysisSettings(reduce_residuals=True))
    used = energy.torques.settings
    original = unreduced_model(energy.torques.motion.model, used)
    assert original == model and energy.torques.motion.model != model
    again = run_stages(with_gait_events(recording), original, settings_of_results(energy))
    assert not {name for name, value in differences(energy, again).items() if value != 0.0}


@pytest.mark.parametrize("plates", [True, False])
@pytest.mark.parametrize(
    ("ik_method", "id_method"),
    [("framewise", "newton_euler"), ("smoothed", "newton_euler"), ("marker_driven", "newton_euler"),
     ("framewise", "stepped")],
)  # fmt: skip
def test_repeat_without_noise_equals_the_analysis(short, plates, ik_method, id_method):
    model, recording = short
    settings = AnalysisSettings(ik_method=ik_method, id_method=id_method, plates=plates)
    energy = analyze_trial(model, recording, settings)
    again = run_stages(with_gait_events(recording), model, settings_of_results(energy))
    assert energy.torques.settings["filter"] == ("default" if plates else "strides")
    changed = {name: value for name, value in differences(energy, again).items() if value != 0.0}
    assert not changed


@pytest.mark.parametrize("plates", [True, False])
def test_uncertainty_without_noise_is_zero(short, plates):
    energy = analyze_trial(*short, AnalysisSettings(plates=plates))
    found = propagate_uncertainty(energy, 2, marker_noise=0.0, errors=NO_ERRORS)
    for group, data in outputs(energy).items():
        for name, values in data.items():
            known = np.isfinite(values.values)
            assert not found.groups[group][f"{name}_sd"].values[known].any(), (group, name)
            for suffix in ("low", "high"):
                limit = found.groups[group][f"{name}_{suffix}"].values[known]
                assert np.array_equal(limit, values.values[known]), (group, name)


def test_forces_and_filter_depend_on_plates(short):
    model, recording = short
    motion = run_inverse_kinematics(recording, model, StageSettings())
    measured = compute_torques(motion, AnalysisSettings())
    assert measured.settings["forces"] == "plates and predicted" and measured.on_plates
    predicted = compute_torques(motion, AnalysisSettings(plates=False))
    assert predicted.settings["forces"] == "predicted" and predicted.grf_source == "predicted"


def test_model_without_feet_has_no_predicted_forces(short):
    """Prediction fails; with plates, those alone are used, and without, no force at all, and a note says so."""
    model, recording = short
    motion = run_inverse_kinematics(recording, model, StageSettings())
    names = {body.name: f"segment_{i}" for i, body in enumerate(model.bodies)}
    renamed = replace(
        model,
        bodies=tuple(replace(body, name=names[body.name]) for body in model.bodies),
        joints=tuple(
            replace(joint, parent=names.get(joint.parent, joint.parent), child=names[joint.child])
            for joint in model.joints
        ),
        markers=tuple(replace(marker, body=names[marker.body]) for marker in model.markers),
    )
    torques = compute_torques(replace(motion, model=renamed), AnalysisSettings(plates=False))
    assert torques.settings["forces"] is None and torques.settings["filter"] == "default"
    assert "grf_unavailable" in [note.code for note in torques.notes]
