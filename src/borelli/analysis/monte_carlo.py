"""Uncertainty by repetition: an analysis done again on recordings shaken as much as markers err.

The recording already has its own noise; noise of the same size is added to it. What comes out then differs by as much
as if the measurement had been made again, about the answer of the recording as it is, which is what is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.fit_model import Fit
from borelli.errors import BorelliError, SettingsError, unknown_name
from borelli.model.model import Model
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Outputs = Mapping[str, Any]

FEWEST = 2
MOST_NOISE = 1.0
"""[m] Markers that err by more are no markers."""
PERCENTILES = (2.5, 97.5)
MOST_FAILED = 0.5
"""Share of repeats that may fail before nothing can be said."""
LEAST_KNOWN = 0.5
"""Share of repeats in which a value must be known for its band to be: feet stand in some and not in others."""


@dataclass(frozen=True)
class MonteCarloResult:
    """How sure the outputs of an analysis are.

    Attributes:
        value: What the analysis gives on the recording as it is.
        sd: Standard deviation of each output over the repeats.
        low: Their 2.5th percentile.
        high: Their 97.5th percentile.
        repeats: How many there were.
        notes: What was decided or noticed.
    """

    value: Mapping[str, Array]
    sd: Mapping[str, Array]
    low: Mapping[str, Array]
    high: Mapping[str, Array]
    repeats: int
    notes: tuple[Note, ...] = field(default=())

    def to_dataset(self, like: Dataset) -> Dataset:
        """A dataset with the variables of another, each as `_sd`, `_low` and `_high`, dimensions and units kept."""
        found = {}
        for name in self.sd:
            if name in like:
                for ending, values in (("sd", self.sd), ("low", self.low), ("high", self.high)):
                    found[f"{name}_{ending}"] = (like[name].dims, values[name], dict(like[name].attrs))
        return like.assign(found)[list(found)]


def check_repeats(n: int) -> None:
    """Refuses fewer repeats than a spread needs.

    Raises:
        SettingsError: so it is.
    """
    if n < FEWEST:
        raise SettingsError(f"a band needs at least {FEWEST} repeats, got {n}; 100 are usual")


def monte_carlo(
    run: Callable[..., Outputs],
    recording: Recording,
    n: int = 100,
    noise: float | Mapping[str, float] = 1e-3,
    seed: int = 0,
    *,
    models: Fit | Sequence[Model] | None = None,
    value: Outputs | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> MonteCarloResult:
    """The band that marker noise, and doubt about the model, put on every output of an analysis.

    Repeat i is drawn from the seed and i alone, and results are gathered in order: the answer is the same, to the bit,
    whatever the number of workers.

    Args:
        run: The analysis: takes a recording, and a model if `models` are given; returns arrays by name, such as the
            variables of a dataset. Arrays of one name always have one shape.
        recording: What was measured.
        n: How many repeats.
        noise: Standard deviation [m] of markers along each axis; one for all, or by marker (others: none).
        seed: Of the random numbers.
        models: Doubt about the model: a fit, whose `draw` gives the models and whose own model the answer; or models to
            choose from, the first of which gives the answer; None: the model is certain.
        value: What the analysis gave on the recording as it is, where that is known; else it is run for it.
        workers: How many repeats run side by side (in threads: the kernels release the interpreter).
        progress: Told how many are done.

    Raises:
        SettingsError: a setting is out of range, or there is no such marker.
        BorelliError: more than half of the repeats failed.
    """
    check_repeats(n)
    if workers < 1:
        raise SettingsError(f"workers is {workers}, but must be at least 1")
    spread = _spread(recording, noise)
    answer = {name: np.asarray(v, dtype=float) for name, v in (value or _call(run, recording, _first(models))).items()}

    def repeat(i: int) -> dict[str, Array32] | None:
        random = np.random.default_rng((seed, i))
        points = recording.data["marker_position"]
        shaken = points.copy(data=points.values + spread[:, None] * random.normal(size=points.shape))
        model = None
        if isinstance(models, Sequence):
            model = models[int(random.integers(len(models)))]
        elif models is not None:
            model = models.draw(random)
        try:
            found = _call(run, recording.with_data(recording.data.assign(marker_position=shaken)), model)
        except BorelliError:
            return None
        return _away(found, answer)

    results: list[dict[str, Array32] | None] = []
    if workers == 1:
        for i in range(n):
            results.append(repeat(i))
            progress(i + 1)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for i, result in enumerate(pool.map(repeat, range(n))):
                results.append(result)
                progress(i + 1)
    good = [result for result in results if result is not None]
    failed = n - len(good)
    if failed > MOST_FAILED * n or len(good) < FEWEST:
        raise BorelliError(f"{failed} of {n} repeats failed: the analysis does not bear noise of {_told(noise)}")
    notes = [Note(f"{failed} of {n} repeats failed and are left out of the band", "problem")] if failed else []
    return MonteCarloResult(answer, *_statistics(answer, good), len(good), tuple(notes))


def _call(run: Callable[..., Outputs], recording: Recording, model: Model | None) -> Outputs:
    return run(recording) if model is None else run(recording, model)


def _first(models: Fit | Sequence[Model] | None) -> Model | None:
    """The model of the answer itself."""
    if models is None:
        return None
    return models[0] if isinstance(models, Sequence) else models.model


def _away(found: Outputs, answer: Mapping[str, Array]) -> dict[str, Array32]:
    """By how much outputs differ from the answer: in single precision, which differences bear, for there are many."""
    away = {}
    for name, at in answer.items():
        values = np.asarray(found[name], dtype=float)
        if values.shape != at.shape:
            raise SettingsError(f"output {name!r} has shape {at.shape} once and {values.shape} with noise: give one")
        away[name] = (values - at).astype(np.float32)
    return away


def _told(noise: float | Mapping[str, float]) -> str:
    return f"{1e3 * noise:g} mm" if isinstance(noise, float | int) else "the sizes given"


def _spread(recording: Recording, noise: float | Mapping[str, float]) -> Array:
    """Noise of every marker [m]."""
    given = dict.fromkeys(recording.markers, noise) if isinstance(noise, float | int) else dict(noise)
    for name, size in given.items():
        if name not in recording.markers:
            raise SettingsError(f"noise: {unknown_name('marker', name, recording.markers)}")
        if not 0.0 <= size < MOST_NOISE:
            raise SettingsError(f"noise: marker {name!r} has {size} m, but must lie between 0 and {MOST_NOISE:g} m")
    return np.array([given.get(name, 0.0) for name in recording.markers], dtype=float)


def _statistics(
    answer: Mapping[str, Array], repeats: Sequence[Mapping[str, Array32]]
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    sd, low, high = {}, {}, {}
    for name, at in answer.items():
        away = np.sort(np.stack([repeat[name] for repeat in repeats]), axis=0)  # what is not known comes last
        known = np.isfinite(away).sum(axis=0)
        told = (known >= FEWEST) & (known >= LEAST_KNOWN * len(repeats))
        count = np.where(told, known, FEWEST)
        mean = np.nansum(away, axis=0, dtype=float) / count
        square = np.nansum((away - mean) ** 2, axis=0, dtype=float) / (count - 1)
        sd[name] = np.where(told, np.sqrt(square), np.nan)
        low[name], high[name] = (at + np.where(told, _percentile(away, count, share), np.nan) for share in PERCENTILES)
    return sd, low, high


def _percentile(ordered: Array32, known: NDArray[np.int_], percent: float) -> Array:
    """Of the first values along the first axis, as many as are known, in order: linear between them."""
    place = percent / 100.0 * (known - 1)
    first = np.floor(place).astype(int)
    below, above = (
        np.take_along_axis(ordered, np.minimum(at, known - 1)[None], axis=0)[0].astype(float)
        for at in (first, first + 1)
    )
    return np.asarray(below + (place - first) * (above - below))
