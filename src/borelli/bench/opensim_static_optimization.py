"""OpenSim's static optimization, run as a program of its own by a Python that has the package `opensim`.

    python opensim_static_optimization.py job.json

The job has: model, actuators, coordinates, loads, start, ends (two times [s]), step_interval, folder. Prints one JSON
object: CPU seconds and frames of a run to each end. The results of the last one are in the folder.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def run(job: dict[str, Any], end: float) -> tuple[float, int]:
    """Run the tool up to a time; return its CPU time [s] and the number of frames."""
    import opensim

    tool, sharing = opensim.AnalyzeTool(), opensim.StaticOptimization()
    tool.setName("bench")
    tool.setModelFilename(job["model"])
    files = opensim.ArrayStr()
    files.append(job["actuators"])
    tool.setForceSetFiles(files)
    tool.setReplaceForceSet(False)
    tool.setCoordinatesFileName(job["coordinates"])
    tool.setLowpassCutoffFrequency(-1.0)
    tool.setExternalLoadsFileName(job["loads"])
    tool.setResultsDir(job["folder"])
    tool.setSolveForEquilibrium(False)
    sharing.setUseModelForceSet(True)
    sharing.setActivationExponent(2.0)
    sharing.setUseMusclePhysiology(True)
    sharing.setStepInterval(job["step_interval"])
    for part in (tool, sharing):
        (part.setInitialTime if part is tool else part.setStartTime)(job["start"])
        (part.setFinalTime if part is tool else part.setEndTime)(end)
    tool.updAnalysisSet().cloneAndAppend(sharing)
    setup = str(Path(job["folder"]) / "setup.xml")
    tool.printToXML(setup)
    tool = opensim.AnalyzeTool(setup)  # loads states from the coordinates
    start = time.process_time()
    tool.run()
    seconds = time.process_time() - start
    table = opensim.TimeSeriesTable(str(Path(job["folder"]) / "bench_StaticOptimization_activation.sto"))
    return seconds, int(table.getNumRows())


def main(path: str) -> None:
    """Run a job and print its times."""
    import opensim

    opensim.Logger.setLevelString("Off")
    job = json.loads(Path(path).read_text())
    runs = [run(job, end) for end in job["ends"]]
    print(json.dumps({"seconds": [seconds for seconds, _ in runs], "frames": [frames for _, frames in runs]}))


if __name__ == "__main__":
    main(sys.argv[1])
