"""Monte Carlo uncertainty: an analysis repeated with marker noise, drawn models and other errors.

The recording already has its own noise; noise of the same size is added to it. The results then differ by as much as if
the measurement had been repeated, about the result of the recording itself, which is what is reported.

The 95 % interval is symmetric about that result: 95 % of repeats differ from it by no more than half its width. A
repeat differs from the result as the result differs from the truth, but to which side is unknown: errors raise some
quantities, such as positive work, in repeats and in the result alike, and the truth then lies on the other side. The
quantile of n magnitudes is at position 0.95 (n + 1), so that one more repeat would lie inside with a probability of
95 %; for fewer than 19 repeats it is the largest, which is less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from borelli.errors import BorelliError, SettingsError, list_names, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.files.memory import check_memory
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

Array32 = NDArray[np.float32]
Outputs = Mapping[str, Any]

MIN_REPEATS = 2
MAX_NOISE = 1.0
"""[m] Upper bound of marker noise."""
CONFIDENCE = 0.95
"""Probability of the interval."""
MAX_FAILED_FRACTION = 0.5
"""Fraction of repeats that may fail."""
MIN_KNOWN_FRACTION = 0.5
"""Fraction of repeats in which a value must be known for its interval: feet are loaded in some and not in others."""


class ModelSource(Protocol):
    """Models to draw from, such as a fit."""

    @property
    def model(self) -> Model:
        """The reference."""

    def draw(self, random: np.random.Generator) -> Model:
        """Draw a model."""


Variation = Callable[[Recording, np.random.Generator], tuple[Recording, Mapping[str, Any]]]
"""Function that returns a recording with errors, and further keyword arguments of the analysis."""


@dataclass(frozen=True)
class MonteCarloResult:
    """Uncertainty of the outputs of an analysis.

    Attributes:
        value: Outputs for the recording itself.
        sd: Standard deviation of each output over the repeats.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        repeats: Number of repeats that did not fail.
        notes: Problems.
    """

    value: Mapping[str, Array]
    sd: Mapping[str, Array]
    low: Mapping[str, Array]
    high: Mapping[str, Array]
    repeats: int
    notes: tuple[Note, ...] = field(default=())

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        return Summary("MonteCarloResult", [("repeats", self.repeats), ("outputs", list_names(list(self.value)))])

    @check_arguments
    def to_dataset(self, like: Dataset) -> Dataset:
        """Return the dataset `like` with each variable as `_sd`, `_low` and `_high`, in its units."""
        variables = {}
        for name in self.sd:
            if name in like:
                for ending, values in (("sd", self.sd), ("low", self.low), ("high", self.high)):
                    variables[f"{name}_{ending}"] = (like[name].dims, values[name], dict(like[name].attrs))
        return like.assign(variables)[list(variables)]


def check_repeats(n: int) -> None:
    """Raise SettingsError for fewer repeats than a standard deviation needs."""
    if n < MIN_REPEATS:
        raise SettingsError(f"Monte Carlo needs at least {MIN_REPEATS} repeats (got {n}). 100 are usual.")


def monte_carlo(
    run: Callable[..., Outputs],
    recording: Recording,
    n: int = 100,
    noise: float | Mapping[str, float] = 1e-3,
    seed: int = 0,
    *,
    models: ModelSource | Sequence[Model] | None = None,
    vary: Variation | None = None,
    value: Outputs | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> MonteCarloResult:
    """Compute the uncertainty of every output of an analysis from marker noise, model uncertainty and other errors.

    Repeat i depends on the seed and i alone, and results are collected in order: the result is the same, to the bit,
    for any number of workers.

    Args:
        run: The analysis: takes a recording, and a model if `models` are given; returns arrays by name, such as the
            variables of a dataset. Arrays of one name always have one shape.
        recording: The recording.
        n: Number of repeats.
        noise: Standard deviation [m] of markers along each axis; one for all, or by marker (others: none).
        seed: Of the random numbers.
        models: A fit, from which models are drawn, its own model being the reference; or models to choose from, the
            first being the reference; None: the model is exact.
        vary: Draws further errors: takes the recording with marker noise and a random number generator, and returns a
            recording and further keyword arguments of `run`. None: none.
        value: Outputs for the recording itself, if already computed.
        workers: Number of repeats in parallel (in threads: the kernels release the interpreter lock).
        progress: Called with the number of finished repeats.

    Returns:
        Standard deviation and 95 % interval of each output, in its units.

    Raises:
        SettingsError: An option is out of range, or a marker is unknown.
        BorelliError: More than half of the repeats failed.

    Examples:
        >>> walk = bo.synthetic_recording("reach")
        >>> def angles(recording):
        ...     motion = bo.inverse_kinematics(walk.model, recording)
        ...     return {"elbow": motion.data["coordinate_value"].sel(coordinate="elbow_flexion_r").values}
        >>> result = bo.monte_carlo(angles, walk.recording, n=4, noise=0.001)
        >>> float(result.sd["elbow"].max()) < 0.05
        True
    """
    check_repeats(n)
    if workers < 1:
        raise SettingsError(f"workers: {workers} is too small. Use at least 1.")
    sd = _noise_by_marker(recording, noise)
    outputs = value or _call(run, recording, _reference_model(models))
    reference = {name: np.asarray(v, dtype=float) for name, v in outputs.items()}
    sizes = [values.size for values in reference.values()]
    # the differences of all repeats, and those of one output sorted
    check_memory(
        4.0 * n * (sum(sizes) + 4 * max(sizes, default=0)), f"repeats: An analysis of {n} Monte Carlo repeats",
        "Use fewer repeats (--monte-carlo), or a shorter part of the recording (--start, --end).",
    )  # fmt: skip

    def repeat(i: int) -> dict[str, Array32] | None:
        random = np.random.default_rng((seed, i))
        points = recording.data["marker_position"]
        noisy = points.copy(data=points.values + sd[:, None] * random.normal(size=points.shape))
        model = None
        if isinstance(models, Sequence):
            model = models[int(random.integers(len(models)))]
        elif models is not None:
            model = models.draw(random)
        options: Mapping[str, Any] = {}
        varied = recording.with_data(recording.data.assign(marker_position=noisy))
        if vary is not None:
            varied, options = vary(varied, random)
        try:
            outputs = _call(run, varied, model, options)
        except BorelliError:
            return None
        return _differences(outputs, reference)

    results: list[dict[str, Array32] | None] = []
    with ThreadPoolExecutor(workers) as pool:
        for result in map(repeat, range(n)) if workers == 1 else pool.map(repeat, range(n)):
            results.append(result)
            progress(len(results))
    good = [result for result in results if result is not None]
    failed = n - len(good)
    if failed > MAX_FAILED_FRACTION * n or len(good) < MIN_REPEATS:
        size = f"{1e3 * noise:g} mm" if isinstance(noise, float | int) else "the given"
        raise BorelliError(
            f"{failed} of {n} Monte Carlo repeats failed with {size} marker noise. Reduce the noise (--marker-noise)."
        )
    notes = []
    if failed:
        text = f"{failed} of {n} Monte Carlo repeats failed and are left out of the intervals."
        notes.append(Note(text, "problem", code="failed_repeats"))
    return MonteCarloResult(reference, *_statistics(reference, good), len(good), tuple(notes))


def _call(
    run: Callable[..., Outputs], recording: Recording, model: Model | None, options: Mapping[str, Any] | None = None
) -> Outputs:
    return run(*((recording,) if model is None else (recording, model)), **(options or {}))


def _reference_model(models: ModelSource | Sequence[Model] | None) -> Model | None:
    if models is None:
        return None
    return models[0] if isinstance(models, Sequence) else models.model


def _differences(outputs: Outputs, reference: Mapping[str, Array]) -> dict[str, Array32]:
    """Return the differences of outputs from the reference, in single precision to save memory."""
    result = {}
    for name, expected in reference.items():
        values = np.asarray(outputs[name], dtype=float)
        if values.shape != expected.shape:
            raise SettingsError(
                f"Output {name!r}: Its shape is {expected.shape} without and {values.shape} with noise. Return "
                "arrays of one shape."
            )
        result[name] = (values - expected).astype(np.float32)
    return result


def _noise_by_marker(recording: Recording, noise: float | Mapping[str, float]) -> Array:
    given = dict.fromkeys(recording.markers, noise) if isinstance(noise, float | int) else dict(noise)
    for name, size in given.items():
        if name not in recording.markers:
            raise SettingsError(f"noise: {unknown_name('marker', name, recording.markers)}")
        if not 0.0 <= size < MAX_NOISE:
            raise SettingsError(f"noise: Marker {name!r} has {size} m. Use a value between 0 and {MAX_NOISE:g} m.")
    return np.array([given.get(name, 0.0) for name in recording.markers], dtype=float)


def _statistics(
    reference: Mapping[str, Array], repeats: Sequence[Mapping[str, Array32]]
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    sd, low, high = {}, {}, {}
    for name, value in reference.items():
        differences = np.stack([repeat[name] for repeat in repeats])
        known = np.isfinite(differences).sum(axis=0)
        enough = (known >= MIN_REPEATS) & (known >= MIN_KNOWN_FRACTION * len(repeats))
        count = np.where(enough, known, MIN_REPEATS)
        mean = np.nansum(differences, axis=0, dtype=float) / count
        square = np.nansum((differences - mean) ** 2, axis=0, dtype=float) / (count - 1)
        sd[name] = np.where(enough, np.sqrt(square), np.nan)
        half = np.where(enough, _quantile(np.sort(np.abs(differences), axis=0), count), np.nan)  # NaN comes last
        # a quantity that is never negative, or never positive, has no interval beyond zero
        lowest, highest = value + np.fmin.reduce(differences), value + np.fmax.reduce(differences)
        low[name] = np.where((lowest >= 0.0) & (value >= 0.0), np.maximum(value - half, 0.0), value - half)
        high[name] = np.where((highest <= 0.0) & (value <= 0.0), np.minimum(value + half, 0.0), value + half)
    return sd, low, high


def _quantile(ordered: Array32, known: NDArray[np.int_]) -> Array:
    """Return the quantile of the first `known` of ordered magnitudes along the first axis, interpolated linearly."""
    position = np.minimum(CONFIDENCE * (known + 1) - 1.0, known - 1.0)
    first = np.floor(position).astype(int)
    below, above = (
        np.take_along_axis(ordered, np.minimum(at, known - 1)[None], axis=0)[0].astype(float)
        for at in (first, first + 1)
    )
    return np.asarray(below + (position - first) * (above - below))
