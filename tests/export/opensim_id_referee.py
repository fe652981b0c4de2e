"""OpenSim's own inverse dynamics on the files of an analysis. Run in a process of its own, by a Python that has it.

    python opensim_id_referee.py folder coordinates.mot cutoff out.sto

`folder` contains model.osim, external_loads.xml and what that names. A negative cutoff [Hz] means no filter. Muscles do
not act.
"""

import sys
from pathlib import Path

import opensim


def main(folder: str, coordinates: str, cutoff: str, out: str) -> None:
    opensim.Logger.setLevelString("Off")
    model = opensim.Model(str(Path(folder) / "model.osim"))
    model.updForceSet().clearAndDestroy()
    model.initSystem()
    tool = opensim.InverseDynamicsTool()
    tool.setModel(model)
    tool.setCoordinatesFileName(coordinates)
    tool.setLowpassCutoffFrequency(float(cutoff))
    tool.setExternalLoadsFileName(str(Path(folder) / "external_loads.xml"))
    table = opensim.Storage(coordinates)  # a filter pads it, and the padding is no result
    tool.setStartTime(table.getFirstTime())
    tool.setEndTime(table.getLastTime())
    tool.setResultsDir(str(Path(out).parent))
    tool.setOutputGenForceFileName(Path(out).name)
    tool.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
