"""Simulation in maximal coordinates: constraint rows and their force-velocity laws, solvers, steps, diagnostics."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
