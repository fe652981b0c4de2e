"""A motion: a model's coordinates in time, where that puts its bodies and markers, and how far those are from the seen.

Everything public is in the lab's frame, z up; `to_model_axes` turns it into the model's, whose gravity may point
another way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.tree_kernels.kinematic_tree import Tree, make_tree
from borelli.analysis.tree_kernels.marker_energy import Points
from borelli.analysis.tree_kernels.newton_ik import compute_body_poses, make_ik_search
from borelli.errors import ModelError, SettingsError
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import GROUND, Marker, Model
from borelli.model.model_cache import cached_per_model
from borelli.recording.identify_marker_set import normalize_label, common_prefix
from borelli.recording.recording import LAB, Note, Recording

if TYPE_CHECKING:
    from xarray import Coordinates, Dataset

Array = NDArray[np.float64]
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Motion:
    """How a model moved.

    Attributes:
        model: The model that moves.
        data: By time: `coordinates` [rad or m], `body_position` [m], `body_orientation` (w, x, y, z), and where there
            are markers `marker_position` and `measured` [m] and `marker_error` [m].
        recording: What it was made from; None if it was made otherwise.
        settings: How it was made, as plain values.
        notes: What was decided or noticed on the way.
    """

    model: Model
    data: Dataset
    recording: Recording | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def rate(self) -> float:
        """Frames per second [Hz]."""
        return float(self.data.attrs["rate_hz"])

    @property
    def coordinates(self) -> Array:
        """(frames, coordinates) [rad or m] in the order of `model.coordinates`."""
        return np.asarray(self.data["coordinate_value"].values)

    @property
    def marker_rms(self) -> float:
        """Root mean square distance [m] of the model's markers from the measured ones."""
        errors = self.data["marker_error"].values
        return float(np.sqrt(np.nanmean(errors**2)))


def to_model_axes(model: Model) -> Array:
    """The rotation that turns the lab's vectors into the model's: up becomes the way against gravity.

    Raises:
        ModelError: gravity lies along none of the model's axes.
    """
    gravity = np.array(model.gravity)
    size = np.abs(gravity).max()
    if not size > 0.0 or np.count_nonzero(np.abs(gravity) > 1e-9 * size) != 1:
        raise ModelError(
            f"model {model.name!r}: gravity {model.gravity} lies along none of its axes, so which way is up is unclear"
        )
    axis = int(np.abs(gravity).argmax())
    up = -np.sign(gravity[axis])
    if axis == 2:
        return np.diag([1.0, up, up])
    # x stays forward with y up, y stays left with x up
    if axis == 1:
        return np.array([[1.0, 0.0, 0.0], [0.0, 0.0, up], [0.0, -up, 0.0]])
    return np.array([[0.0, 0.0, up], [0.0, 1.0, 0.0], [-up, 0.0, 0.0]])


def rotate(values: Array, turn: Array) -> Array:
    """Vectors (..., 3) from a model's axes into the lab's, with `turn` from `to_model_axes`.

    Most models have the lab's axes: what needs no turn is given back as it is.
    """
    return values if np.array_equal(turn, np.eye(3)) else np.asarray(values @ turn)


def lengths(vectors: Array) -> Array:
    """Of vectors (..., 3): a sum over three is soonest written out."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.asarray(np.sqrt(x * x + y * y + z * z))


def match_markers(markers: Sequence[Marker], labels: Sequence[str]) -> list[int]:
    """Where each of a model's markers is among a recording's labels; -1: nowhere.

    Names are compared as they are, then without the subject's prefix and in any case, then by their aliases.
    """
    exact = {label: i for i, label in enumerate(labels)}
    prefix = common_prefix(labels)
    loose = {normalize_label(label.removeprefix(prefix)): i for i, label in reversed(list(enumerate(labels)))}

    def find(marker: Marker) -> int:
        for name in (marker.name, *marker.aliases):
            if name in exact:
                return exact[name]
        return next((loose[normalize_label(n)] for n in (marker.name, *marker.aliases) if normalize_label(n) in loose), -1)

    return [find(marker) for marker in markers]


def marker_points(model: Model, markers: Sequence[Marker]) -> Points:
    """The markers as points for the kernels."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    place = np.array([marker.position for marker in markers], dtype=float).reshape(-1, 3)
    return Points(np.array([index[marker.body] for marker in markers], dtype=np.int64), place)


def make_motion(
    model: Model,
    coordinates: Array,
    time: Array,
    rate: float,
    *,
    tree: Tree | None = None,
    markers: Sequence[Marker] = (),
    measured: Array | None = None,
    recording: Recording | None = None,
    settings: Mapping[str, Any] | None = None,
    notes: tuple[Note, ...] = (),
) -> Motion:
    """The motion of a model whose coordinates are known.

    Args:
        model: A model that `validate` accepts.
        coordinates: (frames, coordinates) [rad or m]; coupled ones are set by their couplings.
        time: (frames,) [s].
        rate: [Hz]
        tree: The model's tree, where it was made already.
        markers: Those of the model's markers that are told of.
        measured: (frames, markers, 3) where they were seen [m], lab axes; not a number where they were not.
        recording: What the motion was made from.
        settings: How it was made.
        notes: What was decided or noticed.
    """
    import xarray as xr

    tree = tree or make_tree(model)
    q = np.array(coordinates, dtype=float)
    if q.shape != (len(time), len(model.coordinates)):
        raise SettingsError(
            f"coordinates have shape {q.shape}, but {len(time)} times and {len(model.coordinates)} coordinates "
            f"of model {model.name!r} want ({len(time)}, {len(model.coordinates)})"
        )
    points = marker_points(model, markers)
    frames, bodies = len(q), len(model.bodies)
    position, rotation = np.empty((frames, bodies, 3)), np.empty((frames, bodies, 3, 3))
    seen = np.empty((frames, len(markers), 3))
    compute_body_poses(SharedTuple(make_ik_search(tree, points)), q, position, rotation, seen)
    turn = to_model_axes(model)
    variables = {
        "coordinate_value": (("time", "coordinate"), q, {"units": "rad or m: see coordinate_units"}),
        "body_position": (("time", "body", "axis"), rotate(position, turn), {"units": "m", "frame": LAB}),
        "body_orientation": (
            ("time", "body", "quaternion"), _quaternions(rotation, turn), {"units": "1", "frame": LAB},
        ),
    }  # fmt: skip
    if markers:
        seen = rotate(seen, turn)
        variables["model_marker_position"] = (("time", "marker", "axis"), seen, {"units": "m", "frame": LAB})
        if measured is not None:
            error = lengths(seen - measured)
            variables["marker_position"] = (("time", "marker", "axis"), measured, {"units": "m", "frame": LAB})
            variables["marker_error"] = (("time", "marker"), error, {"units": "m"})
    data = xr.Dataset(
        variables,
        xr.Coordinates({"time": ("time", np.asarray(time, float), {"units": "s"})})
        | _names(model, tuple(marker.name for marker in markers)),
        {"rate_hz": float(rate)},
    )
    return Motion(model, data, recording, dict(settings or {}), notes)


@cached_per_model
def _names(model: Model, markers: tuple[str, ...]) -> Coordinates:
    """What the axes of a motion's data are called, but for time."""
    import xarray as xr

    return xr.Coordinates(
        {
            "coordinate": [c.name for c in model.coordinates],
            "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
            "body": [body.name for body in model.bodies],
            "marker": list(markers),
            "axis": list(AXES),
            "quaternion": list("wxyz"),
        }
    )


def _quaternions(rotation: Array, turn: Array) -> Array:
    """(frames, ..., 4) unit quaternions of rotations (frames, ..., 3, 3) in the lab, each near the one before it."""
    m = rotation.reshape(-1, 3, 3) if np.array_equal(turn, np.eye(3)) else turn.T @ rotation.reshape(-1, 3, 3)
    m = np.ascontiguousarray(m.reshape(-1, 9).T).reshape(3, 3, -1)
    # 4 q q^T: its row with the largest diagonal entry is q without division by little (Shepperd 1978)
    square = np.empty((4, 4, m.shape[-1]))
    square[0, 0] = 1.0 + m[0, 0] + m[1, 1] + m[2, 2]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        square[1 + i, 1 + i] = 1.0 + m[i, i] - m[j, j] - m[k, k]
        square[0, 1 + i] = square[1 + i, 0] = m[k, j] - m[j, k]
        square[1 + i, 1 + j] = square[1 + j, 1 + i] = m[i, j] + m[j, i]
    largest = np.argmax([square[i, i] for i in range(4)], axis=0)
    q = np.take_along_axis(square, largest[None, None], axis=0)[0]
    q /= np.sqrt((q * q).sum(axis=0))
    q = q.reshape(4, *rotation.shape[:-2])
    same = (q[:, 1:] * q[:, :-1]).sum(axis=0)
    q[:, 1:] *= np.cumprod(np.where(same < 0.0, -1.0, 1.0), axis=0)
    return np.ascontiguousarray(np.moveaxis(q, 0, -1))
