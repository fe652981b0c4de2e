"""Status of a muscle's equilibrium."""

from __future__ import annotations

CONVERGED = 0
"""Fiber and tendon are in equilibrium."""
SLACK = 1
"""The path is too short to tighten the tendon: no force."""
BELOW_MIN_FIBER_LENGTH = 2
"""The fiber is at its minimum length, which limits it; the force is that at this length."""
VELOCITY_OUT_OF_RANGE = 3
"""No fiber velocity balances the tendon: the end of the force-velocity curve is used."""
NOT_CONVERGED = 4
"""The solver ended without equilibrium: the values are NaN."""
INVALID_INPUT = 5
"""Length, velocity or activation is NaN or infinite: the values are NaN."""
