"""Poses and torques of a recording against the time it lasts, on one core.

    python benchmarks/real_time.py [recording]         # without one, a walk that is made

CPU time of `inverse_kinematics` and `inverse_dynamics` as `borelli analyze` calls them; the fit is not counted. Once with
a model that nothing is known of yet, as for the first of several trials, and once with what follows from the model
kept, as for the others. The two take turns. The least of the rounds counts, since neighbours only add.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.kinematics.framewise_ik import inverse_kinematics
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, read_trial
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.recording.recording import Recording
from borelli.synthetic.recordings import synthetic_recording

ROUNDS = 15


def measure(trial: Recording, plan: AnalysisSettings) -> None:
    """Print microseconds a frame of both, and how many times faster than real time they are together."""
    known = fit_model(generic_model(plan, trial), [trial]).model
    frames = len(trial.data["time"])
    spent: dict[str, list[tuple[float, float]]] = {"a new model": [], "a known model": []}
    for _ in range(ROUNDS):
        for name, model in zip(spent, (replace(known), known), strict=True):
            start = time.process_time()
            motion = inverse_kinematics(model, trial)
            posed = time.process_time()
            compute_torques(motion, plan)
            spent[name].append((posed - start, time.process_time() - posed))
    for name, rounds in spent.items():
        pose, torques = (1e6 * min(each) / frames for each in zip(*rounds, strict=True))
        times = frames / trial.rate / min(a + b for a, b in rounds)
        print(
            f"{trial.name}, {frames} frames, {name}: pose {pose:.0f}, torques {torques:.0f} us a frame; "
            f"{times:.1f} times real time"
        )


if __name__ == "__main__":
    settings = AnalysisSettings()
    given = [read_trial(Path(name), settings) for name in sys.argv[1:]]
    for recording in given or [clean(synthetic_recording("walk").recording, cutoff=None)]:
        measure(recording, settings)
