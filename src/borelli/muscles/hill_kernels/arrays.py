"""Arrays of muscles that kernels read: one entry per muscle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class HillArrays(NamedTuple):
    """Parameters of Hill-type muscles."""

    max_isometric_force: Floats
    """[N]"""
    optimal_fiber_length: Floats
    """[m]"""
    tendon_slack_length: Floats
    """[m]"""
    pennation_angle: Floats
    """[rad] at optimal fiber length."""
    max_contraction_velocity: Floats
    """[optimal fiber lengths per s]"""
    damping: Floats
    """Fiber force [max isometric forces] per velocity [max contraction velocities]."""
    min_fiber_length: Floats
    """[m]"""
    rigid_tendon: NDArray[np.bool_]
    curve_kind: NDArray[np.int64]
    curve: Floats
    """(muscles, size) a row of curve parameters each."""
    activation_kind: NDArray[np.int64]
    activation_time: Floats
    """[s]"""
    deactivation_time: Floats
    """[s]"""
    activation_smoothing: Floats
    """Steepness of De Groote's switch; width of MuJoCo's."""
    min_activation: Floats
    max_activation: Floats
    default_activation: Floats
    min_control: Floats
    max_control: Floats
    """Bounds of excitations and of load sharing."""
