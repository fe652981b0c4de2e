"""Repeat a whole analysis with marker noise: a 95 % interval for every output."""

import borelli as bo
from borelli.synthetic import synthetic_recording

bo.write_recording(synthetic_recording("walk").recording, "walk.nc", overwrite=True)
settings = bo.AnalysisSettings(mass=68.0, height=1.72, sex="female", monte_carlo=4)
(analysis,) = bo.analyze("walk.nc", "walk", settings)

for name, interval in list(analysis.summary["uncertainty"].items())[:8]:
    print(name, interval)
