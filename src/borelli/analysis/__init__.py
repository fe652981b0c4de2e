"""Analysis of recordings: fits, inverse kinematics and dynamics, load sharing, energy, uncertainty, OpenSim files."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
