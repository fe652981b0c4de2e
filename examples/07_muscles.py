"""Compute the muscle forces of a walk, from markers and plates with no model file; report and draw them."""

import borelli as bo
from borelli.synthetic import synthetic_recording

recording = bo.clean(synthetic_recording("walk").recording)  # or bo.read_recording("walk.c3d")
fit = bo.fit_model(bo.human(mass=68.0, height=1.72, sex="female"), recording)
model = bo.add_muscles(fit.model, height=1.72)
torques = bo.inverse_dynamics(bo.inverse_kinematics(model, recording))
muscles = bo.muscle_forces(torques)
energy = bo.compute_energy(muscles)

peak = float(muscles.data["muscle_force"].sel(muscle="soleus_r").max())
print(f"peak force of the right soleus {peak:.0f} N")
print(f"mean metabolic power {energy.summary['metabolic_power_w'] / model.mass:.1f} W/kg")
bo.write_report(energy, "muscles.html", fit=fit, overwrite=True)
bo.strobe(muscles, "muscles.png", overwrite=True)
bo.view.plot_moment_arms(model, "knee_flexion_r", path="moment_arms.png", overwrite=True)
