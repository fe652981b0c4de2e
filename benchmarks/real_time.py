"""Poses and torques of a recording against the time it lasts, on one core.

    python benchmarks/real_time.py [recording]         # without one, a walk that is made

CPU time of `follow_markers` and of `inverse_dynamics` as `borelli analyze` calls them; the fit is not counted. Every
round has a model that nothing is known of yet. The least of the rounds counts, since neighbours only add.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from borelli.analysis.fit import fit_model
from borelli.analysis.pose import follow_markers
from borelli.ground_choice import find_torques
from borelli.plan import Plan, generic_model, read_trial
from borelli.recording.clean import clean
from borelli.recording.recording import Recording
from borelli.synthetic.recordings import synthetic_recording

ROUNDS = 15


def measure(trial: Recording, plan: Plan) -> None:
    """Print microseconds a frame of both, and how many times faster than real time they are together."""
    model = fit_model(generic_model(plan, trial), [trial]).model
    frames, pose, torques = len(trial.data["time"]), [], []
    for _ in range(ROUNDS):
        fresh = replace(model)
        start = time.process_time()
        motion = follow_markers(fresh, trial)
        posed = time.process_time()
        find_torques(motion, plan)
        pose.append(posed - start)
        torques.append(time.process_time() - posed)
    both = min(a + b for a, b in zip(pose, torques, strict=True))
    each = ", ".join(
        f"{name} {1e6 * min(spent) / frames:.0f}" for name, spent in (("pose", pose), ("torques", torques))
    )
    print(f"{trial.name}, {frames} frames: {each} us a frame; {frames / trial.rate / both:.1f} times real time")


if __name__ == "__main__":
    settings = Plan()
    given = [read_trial(Path(name), settings) for name in sys.argv[1:]]
    for recording in given or [clean(synthetic_recording("walk").recording, cutoff=None)]:
        measure(recording, settings)
