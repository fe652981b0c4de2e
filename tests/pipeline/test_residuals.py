"""Residuals of measured walks before and after their reduction, and its price."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.pipeline.analyze import analyze
from borelli.pipeline.stages import compute_torques

from ..shared_data import shared
from .shared_trials import OVERGROUND, SUBJECT01, WALK, settings_of

MAX_FORCE, MAX_MOMENT = 9.0, 8.0
"""[N, N m] RMS that bounds of 2 mm and 0.5 degrees leave (a study with a solver of its own: 7 to 9 N, 5 to 8 N m)."""
MAX_PRICE = 0.5
"""[mm] of marker error."""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", [f"{SUBJECT01}_walk1.trc", f"{WALK}/motion_capture_walk.trc", OVERGROUND])
def test_residuals_fall_at_a_small_price(name, tmp_path):
    settings = settings_of(name)
    (one,) = analyze([shared(name)], tmp_path, settings)
    motion = one.energy.torques.motion
    reduced = compute_torques(motion, replace(settings, reduce_residuals=True))
    used = reduced.evaluated
    force, moment = (
        float(np.sqrt((np.linalg.norm(reduced.data[key].values[used], axis=1) ** 2).mean()))
        for key in ("residual_force", "residual_moment")
    )
    price = 1e3 * (reduced.motion.marker_rms - motion.marker_rms)
    print(f"{name}: {force:.1f} N, {moment:.1f} N m, {price:+.2f} mm")
    assert force < MAX_FORCE and moment < MAX_MOMENT
    assert 0.0 < price < MAX_PRICE
