"""Moment arms of main muscles over the range of their joints, for the human and the full skeleton.

The muscles of both were mapped from published models (see `people`); the ranges they are compared with are measured
ones of other authors, in the literature that is named with each. Arms are positive that increase the coordinate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import Claim, Outcome
from borelli.model.model import Model
from borelli.muscles.paths import muscle_paths
from borelli.people.full_skeleton import full_skeleton
from borelli.people.human import human
from borelli.view.plot_style import BLUE, ORANGE

Array = NDArray[np.float64]
POINTS = 41


class Published(NamedTuple):
    """Published range of a moment arm, sign as the coordinate."""

    coordinate: str
    muscles: tuple[str, ...]
    """Alternative names of the muscle in the models, without side."""
    span: tuple[float, float]
    """Angles [deg] over which the range holds."""
    least: float
    largest: float
    """[mm]"""
    source: str


RANGES = {
    "vastus lateralis, knee": Published("knee_flexion_r", ("vaslat",), (20, 60), -55, -30, "Buford et al. 1997"),
    "semimembranosus, knee": Published("knee_flexion_r", ("semimem",), (20, 80), 20, 55, "Buford et al. 1997"),
    "soleus, ankle": Published("ankle_flexion_r", ("soleus",), (-20, 10), -60, -40, "Maganaris et al. 1998"),
    "tibialis anterior, ankle": Published("ankle_flexion_r", ("tibant",), (-20, 10), 30, 50, "Maganaris et al. 1999"),
    "biceps, long head, elbow": Published("elbow_flexion_r", ("BIClong",), (60, 110), 30, 50, "Murray et al. 1995"),
    "brachialis, elbow": Published("elbow_flexion_r", ("BRA",), (60, 110), 15, 32, "Murray et al. 1995"),
    "triceps, long head, elbow": Published("elbow_flexion_r", ("TRIlong",), (20, 110), -28, -15, "Murray et al. 1995"),
    "gluteus maximus, hip": Published("hip_flexion_r", ("glmax2",), (0, 45), -80, -30, "Nemeth and Ohlsen 1985"),
}


def arm_curve(model: Model, published: Published) -> tuple[Array, Array] | None:
    """Return angles [deg] over the range of the joint and moment arms [mm]; None if the model lacks either."""
    coordinates = {c.name: (i, c) for i, c in enumerate(model.coordinates)}
    known = {muscle.name for muscle in model.muscles}
    names = [f"{name}_r" for name in published.muscles if f"{name}_r" in known]
    if published.coordinate not in coordinates or not names:
        return None
    column, coordinate = coordinates[published.coordinate]
    rows = np.repeat(np.array([[c.default for c in model.coordinates]]), POINTS, axis=0)
    rows[:, column] = np.linspace(coordinate.lower, coordinate.upper, POINTS)
    paths = muscle_paths(model, rows, muscles=names[:1])
    return np.degrees(rows[:, column]), 1e3 * paths.moment_arm[:, 0, column]


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    models = {"full skeleton": full_skeleton(muscles=True), "human": human(muscles=True)}
    curves: dict[str, dict[str, tuple[Array, Array]]] = {}
    rows, claims = [], []
    for name, published in RANGES.items():
        curves[name] = {}
        for title, model in models.items():
            curve = arm_curve(model, published)
            if curve is None:
                continue
            curves[name][title] = curve
            inside = (curve[0] >= published.span[0]) & (curve[0] <= published.span[1])
            least, largest = float(curve[1][inside].min()), float(curve[1][inside].max())
            rows.append({"muscle": name, "model": title, "least_mm": least, "largest_mm": largest,
                         "published_least_mm": published.least, "published_largest_mm": published.largest,
                         "source": published.source})  # fmt: skip
            claims.append(_claim(f"{title}: {name}, mean [mm]", float(curve[1][inside].mean()), published))
    _draw(curves, request.plot)
    about = f"moment arms of {len(RANGES)} muscles over the range of their joints, and published ranges"
    return Outcome(request.name, about, rows, claims, (request.plot,))


def _claim(text: str, mean: float, published: Published) -> Claim:
    passed = published.least <= mean <= published.largest
    interval = f"{published.least:g} to {published.largest:g}"
    return Claim(text, mean, f"{interval} ({published.source})", interval, passed)


def _draw(curves: dict[str, dict[str, Any]], path: Path) -> None:
    labels = [f"{name} [mm]" for name in RANGES]
    with figure(path, *labels, size=(14.0, 6.5), rows=2, xlabel="angle [deg]") as panels:
        for (name, published), panel in zip(RANGES.items(), panels, strict=True):
            for (title, (angle, arm)), color in zip(curves[name].items(), (BLUE, ORANGE), strict=False):
                panel.plot(angle, arm, color=color, label=title)
            panel.fill_between(published.span, published.least, published.largest, color="0.85", label=published.source)
