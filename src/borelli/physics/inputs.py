"""What a user asks of a body while it moves: drives, pushes, anchors, residuals and the settings of the step."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from borelli.errors import SettingsError
from borelli.model.model import Softness, Vector


@dataclass(frozen=True, slots=True)
class Drive:
    """Pulls a coordinate to a target with a spring and damper of limited force."""

    coordinate: str
    target: float = 0.0
    """[rad or m]"""
    velocity: float = 0.0
    """Of the target [rad/s or m/s]."""
    stiffness: float = 0.0
    """[N m/rad or N/m]"""
    damping: float = 0.0
    """[N m s/rad or N s/m]"""
    limit: float = inf
    """Largest force [N m or N]."""
    dead_zone: float = 0.0
    """Error within which nothing is done [rad or m]."""
    offset: float = 0.0
    """Force added to that of spring and damper [N m or N]."""


@dataclass(frozen=True, slots=True)
class AppliedForce:
    """A push on a body for a while."""

    body: str
    force: Vector = (0.0, 0.0, 0.0)
    """[N], world axes."""
    torque: Vector = (0.0, 0.0, 0.0)
    """[N m], world axes."""
    point: Vector | None = None
    """Where the force acts, in the body's frame [m]; None: at the centre of mass."""
    start: float = 0.0
    end: float = inf
    """[s]"""


@dataclass(frozen=True, slots=True)
class Residual:
    """A force that nature did not supply: holds one axis of a body's motion within a limit. Always reported."""

    body: str
    axis: int
    """0 to 2: along world x, y, z; 3 to 5: about them."""
    limit: float = inf
    """[N or N m]"""
    softness: Softness = Softness(erp=1.0)


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """How steps are solved; the defaults suit simulation."""

    contact_margin: float = 0.005
    """Contacts are seen this far before they touch [m]."""
    bounce_speed: float = 0.05
    """Approach speed below which restitution is left out [m/s]."""
    push_out_speed: float = 2.0
    """Fastest correction of an overlap [m/s]."""
    tangent_softness: float = 1e-1
    """Compliance of friction relative to that of the normal direction."""
    friction_tolerance: float = 1e-3
    """Change of the friction bounds, relative to the largest, at which they count as settled."""
    friction_solves: int = 30
    """Most solves a step for the friction bounds; 1 takes those of the step before (real time)."""
    refine: int = 0
    """Corrections of each solve with the same factors; 1 where torques are wanted."""
    solver: str = "newton"
    """`newton` (exact) or `sweeps` (projected Gauss-Seidel: for very large, loose systems)."""
    sweeps: int = 50
    """Sweeps a step of the Gauss-Seidel solver."""
    marker_speed_limit: float = 10.0
    """A marker that moves faster is left out of the step [m/s]."""

    def __post_init__(self) -> None:
        """Refuse what cannot be stepped with."""
        for name in ("contact_margin", "bounce_speed", "tangent_softness", "friction_tolerance"):
            value = getattr(self, name)
            if not 0.0 <= value < inf:
                raise SettingsError(f"settings: {name} is {value}; it must be a finite number, 0 or larger")
        if not 1 <= self.friction_solves <= 1000:
            raise SettingsError(f"settings: friction_solves is {self.friction_solves}; allowed: 1 to 1000")
        if self.solver not in ("newton", "sweeps"):
            raise SettingsError(f"settings: solver is {self.solver!r}; allowed: 'newton', 'sweeps'")
        if not 1 <= self.sweeps <= 1_000_000:
            raise SettingsError(f"settings: sweeps is {self.sweeps}; allowed: 1 to 1,000,000")


def check_step(step: float) -> float:
    """The step [s], if it is one."""
    if not 0.0 < step <= 1.0:
        raise SettingsError(f"step is {step} s; it must be larger than 0 and at most 1 s")
    return step
