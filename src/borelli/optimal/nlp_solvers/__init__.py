"""Solvers of nonlinear programs, what they report while they run, and what they leave to resume from."""
