"""Kernels of Hill-type muscles: force curves, activation dynamics, equilibrium of fiber and tendon, implicit steps."""
