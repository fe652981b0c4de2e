"""Speed of inverse kinematics and inverse dynamics relative to real time, on one core.

    python benchmarks/real_time.py [recording]         # default: a synthetic walk

CPU time of `inverse_kinematics` and `inverse_dynamics` as `borelli analyze` calls them, without the fit: once with
a new model, as for the first of several trials, and once with a cached model, as for the others. The two alternate;
the minimum over rounds is reported.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from borelli.analysis.fit.fit_model import fit_model
from borelli.analysis.inverse_kinematics import inverse_kinematics
from borelli.pipeline.analysis_settings import AnalysisSettings, generic_model, read_trial
from borelli.pipeline.stages import compute_torques
from borelli.recording.clean import clean
from borelli.recording.recording import Recording
from borelli.synthetic.recordings import synthetic_recording

ROUNDS = 15


def measure(trial: Recording, plan: AnalysisSettings) -> None:
    """Print the times per frame of both stages, and their speed relative to real time."""
    cached = fit_model(generic_model(plan, trial), [trial]).model
    frames = len(trial.data["time"])
    spent: dict[str, list[tuple[float, float]]] = {"new model": [], "cached model": []}
    for _ in range(ROUNDS):
        for name, model in zip(spent, (replace(cached), cached), strict=True):
            start = time.process_time()
            motion = inverse_kinematics(model, trial)
            middle = time.process_time()
            compute_torques(motion, plan)
            spent[name].append((middle - start, time.process_time() - middle))
    for name, rounds in spent.items():
        pose, torques = (1e6 * min(each) / frames for each in zip(*rounds, strict=True))
        times = frames / trial.rate / min(a + b for a, b in rounds)
        print(
            f"{trial.name}, {frames} frames, {name}: poses {pose:.0f}, torques {torques:.0f} us per frame; "
            f"{times:.1f} times real time"
        )


if __name__ == "__main__":
    settings = AnalysisSettings()
    given = [read_trial(Path(name), settings) for name in sys.argv[1:]]
    for recording in given or [clean(synthetic_recording("walk").recording, cutoff=None)]:
        measure(recording, settings)
