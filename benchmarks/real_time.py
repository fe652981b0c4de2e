"""Speed of inverse kinematics and inverse dynamics of recordings relative to real time, on one core.

    python benchmarks/real_time.py recording ...

`borelli bench` measures the same of a synthetic walk.
"""

from __future__ import annotations

import sys
from pathlib import Path

from borelli.bench.trial import measure_trial
from borelli.pipeline.analysis_settings import AnalysisSettings, read_trial

if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        result = measure_trial(read_trial(path, AnalysisSettings()))
        print(
            f"{path}, {result['frames']} frames: poses {result['ik_us']:.0f}, torques {result['id_us']:.0f} us a frame "
            f"({result['new_model_us']:.0f} for both with a new model); {result['times_real_time']:.1f} times real time"
        )
