"""Data of the 3-D player in the report: bodies as triangles; poses, markers and forces as 16-bit integers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import Motion
from borelli.analysis.strides import find_strides
from borelli.export.stage_files import LONG_TRIAL
from borelli.model.model import Body, Frame, Model, Shape
from borelli.recording.landmarks import mean_position
from borelli.reports.muscle_player import pack_muscles
from borelli.view.drawing import body_colors
from borelli.view.mesh import join, shape_mesh

Array = NDArray[np.float64]

MAX_FRAMES = 1500
"""Number of frames; longer recordings are subsampled."""
MAX_DURATION = 60.0
"""Time [s] from the beginning that is shown of a trial of more than `LONG_TRIAL` frames."""
POSITION_UNIT = 5e-4
"""Resolution of positions [m]."""
FORCE_SCALE = 1.0 / 1000.0
"""Length of a force arrow [m/N]: body weight is about as long as a thigh."""
FORCE_UNIT = 1e-4
"""Resolution of force arrows [m]."""
MISSING = -32768
ROD_RADIUS = 0.02
"""Radius [m] of the rods that represent bodies without shapes."""


def pack_motion(energy: Energy) -> dict[str, Any]:
    """Return the data that the script of the page plays."""
    motion, data = energy.torques.motion, energy.torques.motion.data
    count = shown_frames(motion)
    every = max(1, -(-count // MAX_FRAMES))
    frames = np.arange(0, count, every)
    data = data.isel(time=slice(0, count))
    time = data["time"].values
    position = data["body_position"].values[frames]
    known = np.isfinite(position).all(axis=(1, 2))
    path = _camera_path(energy, frames, position)
    low, high = (np.nan_to_num(edge(position.reshape(-1, 3), axis=0)) for edge in (np.nanmin, np.nanmax))
    origin = (low + high) / 2.0
    markers = int(data.sizes.get("marker", 0)) if "marker_position" in data else 0
    measured = data["marker_position"].values[frames] if markers else np.zeros((len(frames), 0, 3))
    modeled = data["model_marker_position"].values[frames] if markers else np.zeros((len(frames), 0, 3))
    pose = np.concatenate(
        [
            _to_int16(position, origin),
            np.rint(32767 * np.nan_to_num(data["body_orientation"].values[frames])).astype(np.int16),
        ],
        axis=2,
    )
    feet, forces = _forces(energy, time[frames], origin)
    start = int(np.flatnonzero(known)[0]) if known.any() else 0
    return {
        "frames": len(frames),
        "rate": motion.rate / every,
        "start": float(time[0]),
        "first": start + (len(frames) - start) // 3,
        "unit": POSITION_UNIT,
        "forceUnit": FORCE_UNIT,
        "origin": [round(float(v), 6) for v in origin],
        "low": [round(float(v), 3) for v in low],
        "high": [round(float(v), 3) for v in high],
        "far": round(max(3.2, 2.4 * float(high[2] - min(low[2], 0.0))), 2),
        "path": [[None] * 3 if not np.isfinite(p).all() else [round(float(v), 3) for v in p] for p in path],
        "bodies": _meshes(motion.model),
        "markers": markers,
        "feet": feet,
        "pose": _base64(pose),
        "measured": _base64(_to_int16(measured, origin)),
        "modeled": _base64(_to_int16(modeled, origin)),
        "forces": _base64(forces),
        "muscles": pack_muscles(energy, frames, origin),
        "plates": _plates(motion),
        "cycles": [[one.side, one.start, one.end] for one in find_strides(motion, time)],
    }


def shown_frames(motion: Motion) -> int:
    """Return the number of frames that the player shows: all, or those of an excerpt."""
    count = int(motion.data.sizes["time"])
    return count if count <= LONG_TRIAL else min(count, round(MAX_DURATION * motion.rate) + 1)


def _camera_path(energy: Energy, frames: NDArray[np.int64], position: Array) -> Array:
    """Return the points that the camera follows (frames, 3): the smoothed mean body position at constant height."""
    from scipy.ndimage import uniform_filter1d

    path = mean_position(position, range(position.shape[1])) if len(position) else position
    known = np.isfinite(path).all(axis=1)
    if not known.any():
        return path
    where = np.arange(len(path))
    filled = np.stack([np.interp(where, where[known], path[known, i]) for i in range(3)], axis=1)
    size = max(1, round(0.5 * energy.torques.motion.rate * len(frames) / max(1, frames[-1] + 1)))
    smooth = uniform_filter1d(filled, size=size, axis=0, mode="nearest")
    smooth[:, 2] = np.median(filled[:, 2])
    return np.asarray(smooth)


def _meshes(model: Model) -> list[dict[str, Any]]:
    colors = body_colors(model)
    children: dict[str, list[tuple[float, float, float]]] = {}
    for joint in model.joints:
        children.setdefault(joint.parent, []).append(joint.parent_frame.position)
    meshes = []
    for body in model.bodies:
        mesh = join([shape_mesh(shape) for shape in body.shapes or _rods(body, children.get(body.name, []))])
        meshes.append(
            {
                "vertices": _base64(np.rint(mesh.vertices / 1e-4).astype(np.int16)),
                "normals": _base64(np.rint(127 * mesh.normals).astype(np.int8)),
                "triangles": _base64(mesh.triangles.astype(np.uint16)),
                "color": [round(value, 3) for value in colors[body.name]],
            }
        )
    return meshes


def _rods(body: Body, ends: list[tuple[float, float, float]]) -> list[Shape]:
    """Return rods from a body's origin to its distal joints, else to its center of mass; a ball if these coincide."""
    shapes = []
    for end in ends or [body.center_of_mass]:
        vector = np.array(end)
        length = float(np.linalg.norm(vector))
        if length > 2.0 * ROD_RADIUS:
            z = vector / length
            axis = np.cross([0.0, 0.0, 1.0], z)
            w = 1.0 + z[2]
            q = np.array([w, *axis]) if w > 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
            q = q / np.linalg.norm(q)
            center = vector / 2.0
            frame = Frame((center[0], center[1], center[2]), (q[0], q[1], q[2], q[3]))
            shapes.append(Shape("capsule", (ROD_RADIUS, length / 2.0), frame))
    return shapes or [Shape("sphere", (1.2 * ROD_RADIUS,))]


def _forces(energy: Energy, time: Array, origin: Array) -> tuple[int, NDArray[np.int16]]:
    """Return the number of feet, and centers of pressure and force arrows (frames, feet, 6)."""
    data = energy.torques.data
    if "ground_reaction_force" not in data:
        return 0, np.zeros((len(time), 0, 6), np.int16)
    clock = data["time"].values
    at = np.clip(np.searchsorted(clock, time - 1e-9), 0, len(clock) - 1)
    inside = (time >= clock[0] - 1e-9) & (time <= clock[-1] + 1e-9)
    force = np.where(inside[:, None, None], data["ground_reaction_force"].values[at], 0.0)
    center = data["center_of_pressure"].values[at]
    arrows = np.clip(np.rint(np.nan_to_num(force) * FORCE_SCALE / FORCE_UNIT), -32000, 32000).astype(np.int16)
    return int(force.shape[1]), np.concatenate([_to_int16(center, origin), arrows], axis=2)


def _plates(motion: Motion) -> list[list[list[float]]]:
    if motion.recording is None or "plate_corners" not in motion.recording.data:
        return []
    corners = motion.recording.data["plate_corners"].values
    return [np.round(plate, 4).tolist() for plate in corners if np.isfinite(plate).all()]


def _to_int16(positions: Array, origin: Array) -> NDArray[np.int16]:
    steps = np.rint((positions - origin) / POSITION_UNIT)
    known = np.isfinite(steps).all(axis=-1, keepdims=True) & (np.abs(np.nan_to_num(steps)) < 32000).all(
        -1, keepdims=True
    )
    return np.where(known, np.nan_to_num(np.clip(steps, -32000, 32000)), MISSING).astype(np.int16)


def _base64(array: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()
