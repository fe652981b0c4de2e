"""Synthetic recordings with known ground truth. Their notes state that they are synthetic."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
