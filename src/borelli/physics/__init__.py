"""Simulation in maximal coordinates: constraint rows and their laws, the solver, the steps, and diagnostics."""
