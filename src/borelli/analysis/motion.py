"""Motion: coordinates of a model in time, with the poses of its bodies, its markers and their errors.

Everything public is in lab axes, z up. `to_model_axes` rotates vectors into model axes, whose vertical may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.tree_kernels.marker_energy import Points
from borelli.analysis.tree_kernels.newton_ik import find_body_poses
from borelli.errors import ModelError
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.kernels.array_checks import as_floats
from borelli.model.kinematics import root_coordinates
from borelli.model.model import GROUND, Marker, Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.quaternions import quaternion_series
from borelli.numerics.vectors import Array
from borelli.recording.identify_marker_set import common_prefix, normalize_label
from borelli.recording.recording import LAB, Note, Recording
from borelli.tree.kinematic_tree import Tree, make_tree

if TYPE_CHECKING:
    from xarray import Coordinates, Dataset

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Motion:
    """Motion of a model.

    Attributes:
        model: The model that moves.
        data: By time: `coordinate_value` [rad or m], `body_position` [m], `body_orientation` (w, x, y, z), and with
            markers `model_marker_position`, `marker_position` [m] as measured, and `marker_error` [m]; with objects
            `object_position` [m], `object_orientation` and `object_marker_error` [m].
        recording: Recording it was computed from; None if there is none.
        settings: Method and options, as plain values.
        notes: Assumptions, changes and problems.
    """

    model: Model
    data: Dataset
    recording: Recording | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        time = self.data["time"].values
        rows = [
            ("model", self.model.name),
            ("frames", f"{len(time)} at {self.rate:g} Hz"),
            ("coordinates", len(self.model.coordinates)),
            ("method", self.settings.get("method", "given coordinates")),
            ("notes", len(self.notes)),
        ]
        if "marker_error" in self.data:
            rows.insert(3, ("marker error", f"{1e3 * self.marker_rms:.1f} mm RMS, {self.data.sizes['marker']} markers"))
        angles = self.data[["coordinate_value"]].isel(coordinate=self.data["coordinate_units"].values == "rad")
        series = main_series(angles, "coordinate_value", scale=57.29577951308232)
        return Summary("Motion", rows, time.tolist(), series, "Angles with the largest range [deg]")

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
        """RMS distance [m] between model markers and measured markers."""
        errors = self.data["marker_error"].values
        return float(np.sqrt(np.nanmean(errors**2)))


def to_model_axes(model: Model) -> Array:
    """Return the rotation matrix from lab axes to model axes: lab z becomes the direction against gravity."""
    gravity = np.array(model.gravity)
    size = np.abs(gravity).max()
    if not size > 0.0 or np.count_nonzero(np.abs(gravity) > 1e-9 * size) != 1:
        raise ModelError(
            f"Model {model.name!r}: Gravity {model.gravity} is not along one of the model's axes, so the vertical is "
            "unknown. Align gravity with an axis."
        )
    axis = int(np.abs(gravity).argmax())
    up = -np.sign(gravity[axis])
    if axis == 2:
        return np.diag([1.0, up, up])
    # x stays forward with y up, y stays left with x up
    if axis == 1:
        return np.array([[1.0, 0.0, 0.0], [0.0, 0.0, up], [0.0, -up, 0.0]])
    return np.array([[0.0, 0.0, up], [0.0, 1.0, 0.0], [-up, 0.0, 0.0]])


def rotate(vectors: Array, rotation: Array) -> Array:
    """Return vectors (..., 3) in lab axes from model axes; as they are if `rotation`, of `to_model_axes`, is none."""
    return vectors if np.array_equal(rotation, np.eye(3)) else np.asarray(vectors @ rotation)


def root_columns(model: Model) -> list[int]:
    """Return the columns of the root's coordinates; empty if the model is fixed to the ground."""
    names = [c.name for c in model.coordinates]
    return [names.index(name) for name in root_coordinates(model)]


def coordinate_labels(model: Model) -> dict[str, Any]:
    """Return the labels of a dataset's coordinates, with their units."""
    return {
        "coordinate": [c.name for c in model.coordinates],
        "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
    }


def lengths(vectors: Array) -> Array:
    """Return the lengths of vectors (..., 3)."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.asarray(np.sqrt(x * x + y * y + z * z))


def match_markers(markers: Sequence[Marker], labels: Sequence[str]) -> list[int]:
    """Return the index of each model marker among a recording's labels; -1 if it is not there.

    Names are compared exactly, then without the subject's prefix and case, then by their aliases.
    """
    exact = {label: i for i, label in enumerate(labels)}
    prefix = common_prefix(labels)
    loose = {normalize_label(label.removeprefix(prefix)): i for i, label in reversed(list(enumerate(labels)))}

    def find(marker: Marker) -> int:
        names = (marker.name, *marker.aliases)
        for name in names:
            if name in exact:
                return exact[name]
        return next((loose[key] for key in map(normalize_label, names) if key in loose), -1)

    return [find(marker) for marker in markers]


def marker_points(model: Model, markers: Sequence[Marker]) -> Points:
    """Return the markers as points for the kernels."""
    index = {body.name: i for i, body in enumerate(model.bodies)} | {GROUND: -1}
    offset = np.array([marker.position for marker in markers], dtype=float).reshape(-1, 3)
    return Points(np.array([index[marker.body] for marker in markers], dtype=np.int64), offset)


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
    """Return the motion of a model with given coordinates.

    Args:
        model: A model that `validate` accepts.
        coordinates: (frames, coordinates) [rad or m]; coupled ones are set by their couplings.
        time: (frames,) [s].
        rate: Frames per second [Hz].
        tree: The model's tree, if already made.
        markers: Model markers to include.
        measured: (frames, markers, 3) measured positions [m], lab axes; NaN where missing.
        recording: Recording that the motion was computed from.
        settings: Method and options.
        notes: Assumptions, changes and problems.

    Returns:
        The motion.

    Raises:
        SettingsError: The coordinates have the wrong shape.
    """
    import xarray as xr

    tree = tree or make_tree(model)
    clock = as_floats("time", time, (None,))
    q = as_floats("coordinates", coordinates, (len(clock), len(model.coordinates)), finite=False).copy()
    if measured is not None:
        measured = as_floats("measured", measured, (len(clock), len(markers), 3), finite=False)
    position, orientation, modeled = find_body_poses(tree, marker_points(model, markers), q)
    rotation = to_model_axes(model)
    in_lab = orientation if np.array_equal(rotation, np.eye(3)) else rotation.T @ orientation
    variables = {
        "coordinate_value": (("time", "coordinate"), q, {"units": "rad or m: see coordinate_units"}),
        "body_position": (("time", "body", "axis"), rotate(position, rotation), {"units": "m", "frame": LAB}),
        "body_orientation": (
            ("time", "body", "quaternion"), quaternion_series(in_lab), {"units": "1", "frame": LAB},
        ),
    }  # fmt: skip
    if markers:
        modeled = rotate(modeled, rotation)
        variables["model_marker_position"] = (("time", "marker", "axis"), modeled, {"units": "m", "frame": LAB})
        if measured is not None:
            error = lengths(modeled - measured)
            variables["marker_position"] = (("time", "marker", "axis"), measured, {"units": "m", "frame": LAB})
            variables["marker_error"] = (("time", "marker"), error, {"units": "m"})
    stamps = xr.Coordinates({"time": ("time", clock, {"units": "s"})})
    labels = _labels(model, tuple(marker.name for marker in markers))
    data = xr.Dataset(variables, stamps.assign(labels), {"rate_hz": float(rate)})
    return Motion(model, data, recording, dict(settings or {}), notes)


@cached_per_model
def _labels(model: Model, markers: tuple[str, ...]) -> Coordinates:
    """Return the labels of the dataset's dimensions other than time."""
    import xarray as xr

    return xr.Coordinates(
        {
            **coordinate_labels(model),
            "body": [body.name for body in model.bodies],
            "marker": list(markers),
            "axis": list(AXES),
            "quaternion": list("wxyz"),
        }
    )
