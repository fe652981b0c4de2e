"""Settings of the solver and of the step."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from borelli.errors import SettingsError


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """Settings of the solver; the defaults suit simulation."""

    contact_margin: float = 0.005
    """Distance at which contacts are detected [m]."""
    bounce_speed: float = 0.05
    """Approach speed below which restitution is ignored [m/s]."""
    push_out_speed: float = 2.0
    """Maximum speed at which an overlap is corrected [m/s]."""
    tangent_softness: float = 1e-1
    """Compliance of friction relative to that of the normal direction."""
    friction_tolerance: float = 1e-3
    """Change of the friction bounds, relative to the largest, at which they have converged."""
    friction_solves: int = 30
    """Maximum number of solves per step for the friction bounds; 1 uses those of the previous step (real time)."""
    refine: int = 0
    """Number of refinements of each solve with the same factors; use 1 where torques are needed."""
    solver: str = "newton"
    """`newton` (exact) or `sweeps` (projected Gauss-Seidel: for very large, loosely coupled systems)."""
    sweeps: int = 50
    """Number of Gauss-Seidel sweeps per step."""
    marker_speed_limit: float = 10.0
    """Speed above which a marker is ignored in a step [m/s]."""

    def __post_init__(self) -> None:
        """Raise SettingsError for values that no step can use."""
        for name in ("contact_margin", "bounce_speed", "tangent_softness", "friction_tolerance"):
            value = getattr(self, name)
            if not 0.0 <= value < inf:
                raise SettingsError(f"settings: {name} is {value}. It must be a finite number, 0 or larger.")
        if not 1 <= self.friction_solves <= 1000:
            raise SettingsError(f"settings: friction_solves is {self.friction_solves}. Allowed: 1 to 1000.")
        if self.solver not in ("newton", "sweeps"):
            raise SettingsError(f"settings: solver is {self.solver!r}. Allowed: 'newton', 'sweeps'.")
        if not 1 <= self.sweeps <= 1_000_000:
            raise SettingsError(f"settings: sweeps is {self.sweeps}. Allowed: 1 to 1,000,000.")


def check_step(step: float) -> float:
    """Return the step [s] if it is valid.

    Raises:
        SettingsError: The step is not larger than 0 and at most 1 s.
    """
    if not 0.0 < step <= 1.0:
        raise SettingsError(f"step: {step} s. It must be larger than 0 and at most 1 s.")
    return step
