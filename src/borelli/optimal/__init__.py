"""Optimal control: problems in phases, direct transcription, and certificates of the solutions."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
