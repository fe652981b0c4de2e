"""Simulate a human who falls on the ground, and draw five instants of it."""

import borelli as bo

model = bo.human(mass=72.6, height=1.78, sex="female")
result = bo.simulate(model, duration=1.0, initial_coordinates={"root_z": 1.2})

force = result["ground_reaction_force"].sel(axis="z").sum("body")
print(f"final ground reaction {float(force[-1]):.0f} N, body weight {9.80665 * model.mass:.0f} N")
print(f"largest joint gap {1e3 * float(result['joint_gap'].max()):.2f} mm")
bo.strobe(result, "fall.png", count=5, overwrite=True)
bo.plot(result, "fall_plot.png", overwrite=True)
