"""Muscles: paths with wrapping, moment arms, force curves, activation and musculotendon dynamics, energy."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
