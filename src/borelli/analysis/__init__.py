"""From what was recorded to the motion, the torques, the forces and the energy that made it."""
