"""Optimal fiber and tendon slack lengths of muscles whose paths have changed, as after scaling or fitting a model.

The optimal fiber length scales with the length of the path, l' = l mean(L'_k / L_k) over poses k. The tendon slack
length t' is the one with which fibers have the same normalized length as before: the least squares of
(L'_k - t')/l' - (L_k - t)/l give t' = mean(L'_k - l' (L_k - t)/l). (Modenese et al. 2016 keep more of the curve at the
cost of an optimization for every muscle; the difference is in poses at the ends of the range.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.errors import ModelError
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.muscles.paths import Floats, muscle_paths

POSES = 64
"""Poses over the ranges of the joints at which lengths are compared."""
UNLIMITED_RANGE = 1.0
"""[rad or m] around its default over which a coordinate without limits is sampled."""
MIN_TENDON_FRACTION = 0.01
"""Least tendon slack length, as a fraction of the mean path length."""


def tuned_lengths(reference: Floats, own: Floats, fiber: float, tendon: float) -> tuple[float, float]:
    """Return optimal fiber and tendon slack length [m] of a muscle, from path lengths (poses,) of both models [m]."""
    scaled = fiber * float(np.mean(own / reference))
    if tendon == 0.0:  # all of the path is fiber
        return scaled, 0.0
    slack = float(np.mean(own - scaled * (reference - tendon) / fiber))
    return scaled, max(slack, MIN_TENDON_FRACTION * float(np.mean(own)))


def tune_fibers(model: Model, reference: Model) -> Model:
    """Return a model whose muscle fibers have the normalized lengths that they have in a reference model.

    Args:
        model: Model with the muscles and coordinates of the reference and other paths, such as a scaled one.
        reference: Model before scaling.

    Raises:
        ModelError: if muscles or coordinates differ.
    """
    for kind in ("muscles", "coordinates"):
        if [one.name for one in getattr(model, kind)] != [one.name for one in getattr(reference, kind)]:
            raise ModelError(
                f"Models {model.name!r} and {reference.name!r} have different {kind}. Use models of one kind."
            )
    if not model.muscles:
        return model
    rows = _sample_poses(reference)
    own, known = muscle_paths(model, rows).length, muscle_paths(reference, rows).length
    muscles = []
    for i, muscle in enumerate(reference.muscles):
        fiber, tendon = tuned_lengths(known[:, i], own[:, i], muscle.optimal_fiber_length, muscle.tendon_slack_length)
        muscles.append(replace(model.muscles[i], optimal_fiber_length=fiber, tendon_slack_length=tendon))
    return replace(model, muscles=tuple(muscles))


def _sample_poses(model: Model) -> Floats:
    """Return poses (poses, coordinates) that fill the ranges evenly (Halton sequence); the root keeps its default."""
    from scipy.stats import qmc

    default = np.array([c.default for c in model.coordinates])
    lower, upper = (
        np.array([
            bound if np.isfinite(bound) else c.default + sign * UNLIMITED_RANGE
            for c, bound in ((c, c.usual_range[side] if c.usual_range else (c.lower, c.upper)[side])
                             for c in model.coordinates)
        ])
        for side, sign in ((0, -1.0), (1, 1.0))
    )  # fmt: skip
    fixed = np.array([c.locked for c in model.coordinates], bool)
    root = set(root_coordinates(model))
    fixed |= np.array([c.name in root for c in model.coordinates], bool)
    fraction = qmc.Halton(len(default), scramble=False).random(POSES)
    return np.asarray(np.where(fixed, default, lower + fraction * (upper - lower)))
