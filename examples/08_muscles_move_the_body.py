"""Excite the muscles of a standing human and let them move it: the right knee is extended by its vasti."""

import numpy as np

import borelli as bo

model = bo.human(mass=68.0, height=1.72, muscles=True)
vasti = [muscle.name for muscle in model.muscles if muscle.name.startswith("vas") and muscle.name.endswith("_r")]


def burst(time):
    """Return an excitation that rises to 0.3 for a fifth of a second."""
    return np.where((time > 0.1) & (time < 0.3), 0.3, 0.0)


seated = {"knee_flexion_r": 1.2, "hip_flexion_r": 0.6, "root_z": 1.5}  # in the air
excitations = dict.fromkeys(vasti, burst)
data = bo.simulate(model, duration=0.4, step=1 / 1000, excitations=excitations, initial_coordinates=seated)

knee = np.degrees(data["coordinate_value"].sel(coordinate="knee_flexion_r"))
force = data["muscle_force"].sel(muscle=vasti).sum("muscle")
print(f"the knee extends from {float(knee[0]):.0f} to {float(knee.min()):.0f} degrees")
print(f"largest force of the vasti {float(force.max()):.0f} N")
bo.strobe(data, "muscles_move.png", overwrite=True)
