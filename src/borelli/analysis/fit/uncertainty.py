"""How well a fit knows what it found, and what the recordings cannot tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.derivatives import VARIANCE
from borelli.analysis.fit.least_squares import Solution
from borelli.analysis.fit.parameters import Unknowns
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

UNSURE_ZERO = 0.07
"""[rad] An angle whose zero is known no better is named: 4 degrees."""
UNSEEN = 0.35
"""[rad] An angle known no better than this in a frame is told by the rest pose rather than by markers: 20 degrees."""
UNSURE_LENGTH = 0.010
"""[m] A length known no better is named."""
FAR = 0.02
"""[m] A marker that stays this far from where it was seen is named."""
OTHER_SIZE = 0.06
"""Share by which well-known lengths together differ from the given model before its height is doubted."""


def tell(unknowns: Unknowns, solution: Solution, train: list[Array], judged: list[Array]) -> Dataset:
    """Lengths, angles and markers with how well they are known: the `data` of a `Fit`."""
    import xarray as xr

    p, spread = solution.p, solution.derivatives.covariance
    lengths, sds, given = [], [], []
    for i in range(len(unknowns.segments)):
        value, way = unknowns.length(p, i)
        lengths.append(value)
        sds.append(float(np.sqrt(way @ spread @ way)))
        given.append(unknowns.length(unknowns.start, i)[0])
    zero, pose = _coordinate_spread(unknowns, solution, spread)
    markers = [marker.name for marker in unknowns.model.markers]

    def per_marker(errors: list[Array]) -> Array:
        every = np.concatenate(errors) if errors else np.full((1, len(markers)), np.nan)
        count = np.isfinite(every).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(np.nansum(every**2, axis=0) / count))

    turned = {"units": "rad or m: see coordinate_units"}
    return xr.Dataset(
        {
            "length": ("segment", lengths, {"units": "m"}),
            "length_sd": ("segment", sds, {"units": "m"}),
            "length_given": ("segment", given, {"units": "m"}),
            "zero_sd": ("coordinate", zero, turned),
            "pose_sd": ("coordinate", pose, turned),
            "marker_rms": ("marker", per_marker(train), {"units": "m"}),
            "marker_rms_held_out": ("marker", per_marker(judged), {"units": "m"}),
        },
        {
            "segment": [segment.name for segment in unknowns.segments],
            "coordinate": [c.name for c in unknowns.model.coordinates],
            "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in unknowns.model.coordinates]),
            "marker": markers,
        },
    )


def _coordinate_spread(unknowns: Unknowns, solution: Solution, spread: Array) -> tuple[Array, Array]:
    """How well the mean of each coordinate over the fitted frames is known, and its value in one frame.

    A pose follows p by -follow dp and has a spread of its own; the mean's own share falls with the number of frames.
    """
    count = len(unknowns.model.coordinates)
    zero, pose = np.zeros(count), np.zeros(count)
    groups = [group for group in solution.groups if group.fitted]
    free = groups[0].problem.tree.free
    follow, own = solution.derivatives.follow, solution.derivatives.spread * VARIANCE
    mean = follow.mean(axis=0)
    zero[free] = np.sqrt(np.einsum("ip,pq,iq->i", mean, spread, mean, optimize=True) + own.mean(axis=0) / len(own))
    some = follow[:: max(1, len(follow) // 8)]  # eight frames tell enough
    by_p = ((some @ spread) * some).sum(axis=-1).mean(axis=0)
    pose[free] = np.sqrt(by_p + own.mean(axis=0))
    return zero, pose


def doubts(unknowns: Unknowns, solution: Solution, data: Dataset, static: bool) -> list[Note]:
    """What the recordings cannot tell, and what fits badly."""
    return [
        *_unsure_angles(unknowns, data, static), *_unsure_lengths(data), *_size(data), *_far_markers(data),
        *_kept(unknowns, data),
        *(
            [Note("the fit was ended early, because frames held out grew worse", "changed", "held_out=0")]
            if solution.stopped_early
            else []
        ),
    ]  # fmt: skip


def _unsure_angles(unknowns: Unknowns, data: Dataset, static: bool) -> list[Note]:
    root = {c.name for joint in unknowns.model.joints if joint not in unknowns.joints for c in joint.coordinates}
    names = [str(name) for name in data["coordinate"].values]
    turns = [u == "rad" and n not in root for n, u in zip(names, data["coordinate_units"].values, strict=True)]
    unseen, unsure = {}, {}
    for name, turn, zero, pose in zip(names, turns, data["zero_sd"].values, data["pose_sd"].values, strict=True):
        if turn and pose > UNSEEN:
            unseen[name] = np.degrees(pose)
        elif turn and zero > UNSURE_ZERO:
            unsure[name] = np.degrees(zero)
    notes = []
    if unseen:
        notes.append(
            Note(f"the markers hardly tell these angles, which keep near the rest pose: {_degrees(unseen)}", "inferred",
                 "set markers on the bodies between")
        )  # fmt: skip
    if unsure:
        notes.append(
            Note(f"the recordings do not tell the zero of these angles, only their change: {_degrees(unsure)}", "inferred",
                 "" if static else "give a static trial (static=)")
        )  # fmt: skip
    return notes


def _degrees(spread: dict[str, float]) -> str:
    """Angles by the size of their deviation, both sides as one."""
    sides: dict[str, float] = {}
    for name, value in spread.items():
        key = re.sub(r"^(r|l)_|_(r|l)$", "", name)
        sides[key] = max(value, sides.get(key, 0.0))
    listed = ", ".join(f"{name} {value:.0f}" for name, value in sorted(sides.items(), key=lambda pair: -pair[1]))
    return f"{listed} (standard deviation, degrees)"


def _unsure_lengths(data: Dataset) -> list[Note]:
    unsure = [
        f"{name} {1e3 * sd:.0f}"
        for name, sd in zip(data["segment"].values, data["length_sd"].values, strict=True)
        if sd > UNSURE_LENGTH
    ]
    if not unsure:
        return []
    return [Note(f"lengths that the recordings tell poorly: {', '.join(unsure)} (standard deviation, mm)", "inferred")]


def _size(data: Dataset) -> list[Note]:
    """Whether all that is well known is longer, or shorter, than it was given."""
    well = data["length_sd"].values < UNSURE_LENGTH
    given = data["length_given"].values[well]
    if well.sum() < 4 or not given.sum() > 0.0:
        return []
    ratio = float(data["length"].values[well].sum() / given.sum())
    if abs(ratio - 1.0) <= OTHER_SIZE:
        return []
    return [
        Note(f"the subject's limbs are {ratio:.2f} times as long as the model's: lengths that markers tell poorly are "
             "still those of the model", "inferred", "give the subject's height")
    ]  # fmt: skip


def _far_markers(data: Dataset) -> list[Note]:
    far = [
        f"{name} {1e3 * error:.0f}"
        for name, error in zip(data["marker"].values, data["marker_rms"].values, strict=True)
        if error > FAR
    ]
    if not far:
        return []
    return [
        Note(f"markers that no fit brings near: {', '.join(far)} (root mean square, mm)", "problem",
             "check their labels, or leave them out")
    ]  # fmt: skip


def _kept(unknowns: Unknowns, data: Dataset) -> list[Note]:
    kept = [f"{unknowns.segments[i].name} {1e3 * length:.0f} mm" for i, length in unknowns.kept_lengths.items()]
    kept += [unknowns.model.markers[i].name for i in unknowns.kept_places]
    return [Note(f"kept as stated: {', '.join(kept)}", "stated")] if kept else []
