"""Analysis by simulation steps: rollouts, stepped inverse dynamics, marker-driven kinematics."""
