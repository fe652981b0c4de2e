"""Inverse kinematics and inverse dynamics of a whole trial, as `borelli analyze` runs them, relative to real time."""

from __future__ import annotations

import time
from dataclasses import replace

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.recording.recording import Recording
from borelli.synthetic.recordings import synthetic_recording


def measure_trial(trial: Recording | None = None, rounds: int = 15) -> dict[str, float]:
    """Time both stages of a trial, by default a synthetic walk with plates, without the fit.

    A known model, as for all but the first of several trials, has its tables cached; a new one, in turn with it, has
    not. Each figure is the minimum over rounds.

    Returns:
        CPU time per frame of inverse kinematics (`ik_us`), inverse dynamics (`id_us`), both (`us`) and both with a new
        model (`new_model_us`); `times_real_time`, recorded time by CPU time; `frames`.
    """
    settings = AnalysisSettings()
    trial = clean(synthetic_recording("walk").recording, cutoff=None) if trial is None else trial
    known = fit_model(generic_model(settings, trial), [trial]).model
    frames = len(trial.data["time"])
    spent: tuple[list[tuple[float, float]], ...] = ([], [])
    for _ in range(rounds):
        for found, model in zip(spent, (known, replace(known)), strict=True):
            start = time.process_time()
            motion = inverse_kinematics(model, trial)
            middle = time.process_time()
            compute_torques(motion, settings)
            found.append((middle - start, time.process_time() - middle))
    ik, id_ = (1e6 * min(each) / frames for each in zip(*spent[0], strict=True))
    both, new = (1e6 * min(a + b for a, b in found) / frames for found in spent)
    return {
        "us": both, "ik_us": ik, "id_us": id_, "new_model_us": new,
        "times_real_time": 1e6 / trial.rate / both, "frames": frames,
    }  # fmt: skip
