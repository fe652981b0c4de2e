"""Comparison of speed and accuracy with ODE, MuJoCo and Pinocchio on the same jobs, in the same run."""
