"""Dynamics in generalized coordinates: mass matrix, bias forces, Jacobians, accelerations, linearization, contacts."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
