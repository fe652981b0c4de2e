"""Filters that do not suit a trial are never silent, and their effect is the difference of two analyses."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.inverse_dynamics import inverse_dynamics
from borelli.analysis.motion import make_motion
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import _stage_keys
from borelli.pipeline.filter_effects import MISMATCH, compare_peaks
from borelli.pipeline.stages import compute_torques, settings_of_results
from borelli.recording.clean import clean
from borelli.recording.cleaning.task_cutoff import LOW_CUTOFF
from borelli.reports.report_warnings import report_warnings
from borelli.synthetic.recordings import synthetic_recording


@cache
def motion_of(task):
    made = synthetic_recording(task)
    recording = clean(made.recording, cutoff=None)
    return make_motion(
        made.model, made.coordinates, recording.data["time"].values, recording.rate, recording=recording,
        settings={"method": "framewise"},
    )  # fmt: skip


def codes(torques, kind=None):
    return {note.code for note in torques.notes if kind is None or note.kind == kind}


def test_defaults_match_and_are_stated():
    for task, cutoff in (("walk", 6.0), ("jump", 10.0)):
        found = compute_torques(motion_of(task), AnalysisSettings())
        assert found.settings["cutoff_hz"] == found.settings["plate_cutoff_hz"] == cutoff
        assert {"cutoff", "plate_cutoff"} <= codes(found) and not {MISMATCH, LOW_CUTOFF} & codes(found)
        alone = inverse_dynamics(motion_of(task))
        assert alone.settings["cutoff_hz"] == alone.settings["plate_cutoff_hz"] == cutoff and "cutoff" in codes(alone)
    predicted = compute_torques(motion_of("jump"), AnalysisSettings(plates=False))
    assert predicted.settings["cutoff_hz"] == 10.0 and predicted.settings["plate_cutoff_hz"] is None


def test_a_jump_at_6_hz_is_never_silent():
    found = compute_torques(motion_of("jump"), AnalysisSettings(cutoff=6.0))
    (note,) = [note for note in found.notes if note.code == LOW_CUTOFF]
    assert note.kind == "problem" and note.action == "--cutoff 10" and "the body is in flight" in note.text
    better = compute_torques(motion_of("jump"), AnalysisSettings())
    change = compare_peaks(found, better)
    values = [one.data["torque"].sel(coordinate=change.coordinate).values / 68.0 for one in (found, better)]
    assert min(abs(values[0].min() - change.first), abs(values[0].max() - change.first)) < 1e-9
    assert f"{change.first:.2f} N m/kg, and {change.second:.2f} N m/kg with 10 Hz" in note.text
    warned = report_warnings(compute_energy(found))
    assert any(warning.code == LOW_CUTOFF for warning in warned)
    assert LOW_CUTOFF in codes(inverse_dynamics(motion_of("jump"), cutoff=6.0), "problem")


def test_different_cutoffs_are_never_silent():
    motion = motion_of("jump")
    for plate_cutoff in (0.0, 50.0):
        found = compute_torques(motion, AnalysisSettings(plate_cutoff=plate_cutoff))
        (note,) = [note for note in found.notes if note.code == MISMATCH]
        assert "10 Hz" in note.text and "N m/kg" in note.text
        assert found.settings["plate_cutoff_hz"] == (plate_cutoff or None)
    assert MISMATCH not in codes(compute_torques(motion, AnalysisSettings(cutoff=12.0, plate_cutoff=12.0)))
    assert MISMATCH not in codes(compute_torques(motion, AnalysisSettings(plates=False, plate_cutoff=50.0)))


def test_small_effects_are_stated_and_no_warning():
    """The synthetic reach has no impact: plates with a cutoff of 50 Hz change no peak by 0.05 N m/kg."""
    found = compute_torques(motion_of("reach"), AnalysisSettings(plate_cutoff=50.0))
    assert MISMATCH in codes(found, "stated")


@pytest.mark.parametrize("settings", [{}, {"cutoff": 8.0}, {"plate_cutoff": 0.0}, {"plate_cutoff": 20.0}])
def test_results_name_the_settings_that_repeat_them(settings):
    energy = compute_energy(compute_torques(motion_of("jump"), AnalysisSettings(**settings)))
    used = settings_of_results(energy)
    assert used.cutoff == settings.get("cutoff", 10.0)
    again = inverse_dynamics(
        motion_of("jump"), forces=used.forces, filter=used.filter, cutoff=used.cutoff, plate_cutoff=used.plate_cutoff
    )
    assert np.array_equal(again.data["torque"].values, energy.torques.data["torque"].values)


def test_stages_of_other_filters_are_not_reused():
    base = AnalysisSettings()
    changes = ({}, {"cutoff": 6.0}, {"plate_cutoff": 6.0}, {"plate_cutoff": 0.0})
    keys = [_stage_keys("fit", "recording", replace(base, **change)) for change in changes]
    assert len({one["id"] for one in keys}) == 4 and len({one["ik"] for one in keys}) == 1
