"""Analysis of recordings: fitting, inverse kinematics and dynamics, energy, uncertainty, OpenSim setup files."""

from borelli.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
