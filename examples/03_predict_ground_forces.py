"""Predict ground reaction forces from the motion alone, and compare them with the force plates."""

import borelli as bo
from borelli.synthetic import synthetic_recording

recording = bo.clean(synthetic_recording("walk").recording)
fit = bo.fit_model(bo.human(mass=68.0, height=1.72, sex="female"), recording)
motion = bo.inverse_kinematics(fit.model, recording)

measured = bo.inverse_dynamics(motion, forces="plates").data
predicted = bo.inverse_dynamics(motion, forces="predicted").data
complete = measured["grf_complete"].values
weight = 9.80665 * fit.model.mass
for foot in measured["foot"].values:
    pair = [data["ground_reaction_force"].sel(foot=foot, axis="z").values[complete] for data in (measured, predicted)]
    error = ((pair[1] - pair[0]) ** 2).mean() ** 0.5
    print(f"{foot}: vertical force differs by {100 * error / weight:.1f} % of body weight (RMS)")
