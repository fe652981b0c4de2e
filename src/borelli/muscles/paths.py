"""Muscle paths: length, lengthening speed, moment arms, lines of action and polylines for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.kernels.compile_cache import ensure_compiled
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.model import GROUND, Model
from borelli.muscles.path_arrays import PathArrays, PathWork, make_path_arrays, make_path_work
from borelli.tree.forward_kinematics import make_tree_pose
from borelli.tree.kinematic_tree import make_tree

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GEOMETRIES = ("exact", "opensim")
"""Geodesics; or the plane sections and one-wrap cylinders of OpenSim, whose arms violate virtual work by up to 12 %."""


@dataclass(frozen=True, slots=True, repr=False)
class MusclePaths:
    """Lengths and moment arms of muscles in every frame.

    `coordinate` has all coordinates of the model in their order. Moment arms are effective: where a coordinate drives
    coupled ones, its arm contains those by the chain rule, and the arms of coupled and locked coordinates are zero.
    """

    muscle: tuple[str, ...]
    coordinate: tuple[str, ...]
    length: Floats
    """(frames, muscles) [m]"""
    moment_arm: Floats
    """(frames, muscles, coordinates) -dl/dq [m per rad, or 1]."""
    velocity: Floats | None
    """(frames, muscles) lengthening speed [m/s]; None without coordinate velocities."""
    wrap: tuple[tuple[str, str], ...]
    """Muscle and wrap object of every wrap."""
    wrap_state: Integers
    """(frames, wraps) -1: an end is inside the surface; 0: straight; 1, 2: wrapped; 3: wrapped, geodesic not found."""

    def __repr__(self) -> str:
        frames, muscles = self.length.shape
        return f"MusclePaths({frames} frames, {muscles} muscles, {len(self.coordinate)} coordinates)"

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)

    @property
    def not_converged(self) -> tuple[str, ...]:
        """Muscles whose path over a surface was not found in some frame: it is a plane section there."""
        names = [muscle for (muscle, _), bad in zip(self.wrap, (self.wrap_state == 3).any(axis=0), strict=True) if bad]
        return tuple(dict.fromkeys(names))

    @check_arguments
    def to_dataset(self, time: ArrayLike) -> xarray.Dataset:
        """Return `muscle_length`, `moment_arm` and, if known, `muscle_velocity`, labeled by `time` [s]."""
        import xarray

        both = ("time", "muscle")
        variables = {
            "muscle_length": (both, self.length, {"units": "m"}),
            "moment_arm": ((*both, "coordinate"), self.moment_arm, {"units": "m or 1"}),
        }
        if self.velocity is not None:
            variables["muscle_velocity"] = (both, self.velocity, {"units": "m/s"})
        clock = ("time", np.asarray(time, float), {"units": "s"})
        labels = {"time": clock, "muscle": list(self.muscle), "coordinate": list(self.coordinate)}
        return xarray.Dataset(variables, labels)


@dataclass(frozen=True, slots=True)
class LineOfAction:
    """Forces of unit tension of one muscle on the bodies of its path, in one pose."""

    muscle: str
    body: tuple[str, ...]
    point: Floats
    """(points, 3) in the world [m]; tangent points belong to the body of the wrap object."""
    force: Floats
    """(points, 3) force on the body per unit tension: the sum of the unit vectors to the neighboring points."""

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary


def muscle_paths(
    model: Model,
    coordinates: ArrayLike,
    velocities: ArrayLike | None = None,
    *,
    geometry: str = "exact",
    muscles: Sequence[str] | None = None,
) -> MusclePaths:
    """Compute the lengths, lengthening speeds and moment arms of muscles.

    Args:
        model: Model that `validate` accepts.
        coordinates: Coordinates (frames, coordinates) [rad or m], or one such row; coupled ones are computed.
        velocities: Their derivatives [rad/s or m/s].
        geometry: "exact" (geodesics), or "opensim" (OpenSim's approximate paths over ellipsoids and cylinders).
        muscles: Names of muscles. Default: all.

    Returns:
        Arrays by frame and muscle, with the names of muscles and coordinates.

    Raises:
        SettingsError: if the arrays do not fit the model or contain NaN, or the geometry is unknown.
        ModelError: if a muscle is unknown.
    """
    frames = PathFrames(model, coordinates, geometry, muscles)
    rows, arrays = frames.q, frames.arrays
    length = np.zeros((len(rows), len(frames.names)))
    arm = np.zeros((*length.shape, rows.shape[1]))
    state = np.zeros((len(rows), len(arrays.wrap_object)), np.int64)
    frames.run(rows, length, arm, state)
    speed = None
    if velocities is not None:
        speed = -np.einsum("fmc,fc->fm", arm, _rows(model, velocities, "velocities", len(rows)))
    names = {muscle.name: muscle for muscle in model.muscles}
    wraps = tuple((name, wrap.wrap_object) for name in frames.names for wrap in names[name].wraps)
    coordinate = tuple(c.name for c in model.coordinates)
    return MusclePaths(frames.names, coordinate, length, arm, speed, wraps, state)


def path_points(
    model: Model, coordinates: ArrayLike, *, geometry: str = "exact", muscles: Sequence[str] | None = None
) -> list[list[Floats]]:
    """Return the polylines (points, 3) [m] of muscles in the world, by frame and muscle, to be drawn.

    Arcs over surfaces have a point about every 0.1 rad. Branches of a path with pulleys are separated by NaN.

    Args:
        model: Model with muscles.
        coordinates: Values (frames, coordinates) [rad or m], or one row, in the order of the model's coordinates.
        geometry: "exact" (geodesics), or "opensim" (OpenSim's approximate paths over ellipsoids and cylinders).
        muscles: Names of the muscles. Default: all.
    """
    from borelli.muscles.polylines import polyline

    frames = PathFrames(model, coordinates, geometry, muscles)
    result = []
    for row in frames.q:
        frames.run(row[None])
        result.append([polyline(frames.arrays, frames.work, m) for m in range(len(frames.names))])
    return result


def lines_of_action(
    model: Model, coordinates_row: ArrayLike, *, geometry: str = "exact", muscles: Sequence[str] | None = None
) -> tuple[LineOfAction, ...]:
    """Return the forces of unit tension of each muscle on its bodies in one pose.

    Args:
        model: Model with muscles.
        coordinates_row: One value per coordinate of the model [rad or m].
        geometry: "exact" (geodesics), or "opensim" (OpenSim's approximate paths over ellipsoids and cylinders).
        muscles: Names of the muscles. Default: all.
    """
    frames = PathFrames(model, coordinates_row, geometry, muscles)
    if len(frames.q) != 1:
        raise SettingsError(f"coordinates_row: Found {len(frames.q)} rows. Give the coordinates of one pose.")
    frames.run(frames.q)
    bodies = [*(body.name for body in model.bodies), GROUND]  # index -1 is the ground
    work, lines = frames.work, []
    for m, name in enumerate(frames.names):
        first = frames.arrays.first_node[m]
        used = slice(first, first + work.node_count[m])
        body = tuple(bodies[b] for b in work.node_body[used])
        lines.append(LineOfAction(name, body, work.node_position[used].copy(), work.node_force[used].copy()))
    return tuple(lines)


class PathFrames:
    """Arrays of a model's paths with the coordinates of frames."""

    def __init__(
        self, model: Model, coordinates: ArrayLike, geometry: str, muscles: Sequence[str] | None = None
    ) -> None:
        ensure_compiled("muscles")
        if geometry not in GEOMETRIES:
            raise SettingsError(f"geometry: {unknown_name('value', str(geometry), GEOMETRIES)}")
        self.geometry = GEOMETRIES.index(geometry)
        self.names = tuple(m.name for m in model.muscles) if muscles is None else tuple(muscles)
        for muscle in map(model.muscle, self.names):
            if len(muscle.path) < 2:
                raise ModelError(f"Muscle {muscle.name!r}: The path has {len(muscle.path)} points. Give at least two.")
        self.arrays: PathArrays = make_path_arrays(model, self.names)
        self.work: PathWork = make_path_work(self.arrays)
        self.q = _rows(model, coordinates, "coordinates")
        tree = make_tree(model)
        tuples = (self.arrays, tree, make_tree_pose(tree), self.work)
        self._shared: tuple[Any, ...] = tuple(SharedTuple(one) for one in tuples)

    def run(
        self, rows: Floats, length: Floats | None = None, arm: Floats | None = None, state: Integers | None = None
    ) -> None:
        """Compute the paths of rows of coordinates; the work arrays contain those of the last row."""
        from borelli.muscles.path_kernels.moment_arms import compute_path_frames

        muscles, wraps = len(self.names), len(self.arrays.wrap_object)
        arrays, tree, pose, work = self._shared
        compute_path_frames(
            arrays,
            tree,
            pose,
            work,
            self.geometry,
            rows,
            np.zeros(len(self.arrays.entry_coordinate)),
            np.zeros((len(rows), muscles)) if length is None else length,
            np.zeros((len(rows), muscles, rows.shape[1])) if arm is None else arm,
            np.zeros((len(rows), wraps), np.int64) if state is None else state,
        )


def _rows(model: Model, values: ArrayLike, name: str, frames: int | None = None) -> Floats:
    """Return a new table (frames, coordinates) of finite numbers."""
    rows = np.array(values, dtype=np.float64, ndmin=2, order="C")
    count = len(model.coordinates)
    if rows.ndim != 2 or rows.shape[1] != count or (frames is not None and len(rows) != frames):
        expected = f"({'frames' if frames is None else frames}, {count})"
        raise SettingsError(f"{name}: The array has shape {rows.shape}, expected {expected}. Pass one row per frame.")
    if not np.isfinite(rows).all():
        frame, column = np.argwhere(~np.isfinite(rows))[0]
        where = f"coordinate {model.coordinates[column].name!r} in frame {frame}"
        raise SettingsError(f"{name}: Found {rows[frame, column]} for {where}. Pass finite numbers.")
    return rows
