"""OpenSim's own inverse kinematics. Run in a process of its own, by a Python that has the package `opensim`.

    python opensim_ik_referee.py model.osim markers.trc setup.xml out.mot accuracy start end

Prints the CPU seconds it took.
"""

import sys
import time
from pathlib import Path

import opensim


def main(model: str, markers: str, setup: str, out: str, accuracy: str, start: str, end: str) -> None:
    opensim.Logger.setLevelString("Off")
    tool = opensim.InverseKinematicsTool(setup, False)
    built = opensim.Model(model)
    built.initSystem()
    tool.setModel(built)
    tool.setMarkerDataFileName(markers)
    tool.setOutputMotionFileName(out)
    tool.setResultsDir(str(Path(out).parent))
    tool.set_report_errors(False)
    tool.set_accuracy(float(accuracy))
    tool.setStartTime(float(start))
    tool.setEndTime(float(end))
    begun = time.process_time()
    tool.run()
    print("seconds", time.process_time() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
