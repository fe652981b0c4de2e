"""Control of simulated bodies: targets, PD responses, tracking, perturbations, posing."""

from borelli.files.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
