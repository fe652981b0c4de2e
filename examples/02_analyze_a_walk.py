"""Analyze a walk: fit a body, compute angles, torques and energy, write a report."""

import borelli as bo
from borelli.synthetic import synthetic_recording

recording = bo.clean(synthetic_recording("walk").recording)  # or bo.read_recording("walk.c3d")
fit = bo.fit_model(bo.human(mass=68.0, height=1.72, sex="female"), recording)
motion = bo.inverse_kinematics(fit.model, recording)
torques = bo.inverse_dynamics(motion)
energy = bo.compute_energy(torques)

print(f"marker error {1e3 * float(motion.data['marker_error'].mean()):.1f} mm")
peak = float(abs(torques.data["torque"].sel(coordinate="knee_flexion_r")).max())
print(f"peak knee moment {peak / fit.model.mass:.2f} N m/kg")
bo.write_report(energy, "walk.html", fit=fit, overwrite=True)
