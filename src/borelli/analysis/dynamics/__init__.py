"""Inverse dynamics by the recursive Newton-Euler algorithm, and external loads."""
