"""Gait curves: angles, internal moments, powers and ground reaction forces by side, over time and over the gait cycle.

Names and signs are those of the clinic and of the normative curves. Flexion, adduction, internal rotation and
dorsiflexion are positive angles; extensor, abductor and plantarflexor moments are positive. Of the pelvis, anterior
tilt, obliquity with the own side up and rotation with the own side forward are positive; of the foot, internal
progression (toes inward). Rotation and progression are relative to the direction of travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import root_body
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import to_model_axes
from borelli.analysis.strides import Stride, find_strides, spatiotemporal_parameters
from borelli.export.foot_axis import foot_axis
from borelli.export.opensim_names import has_borelli_root
from borelli.model.kinematics import poses
from borelli.model.model import Coordinate, Model
from borelli.normative.gait import NormativeCurve, normative_curve, relative_speed, speed_class
from borelli.recording.recording import MIN_PLATE_FORCE
from borelli.recording.units_and_axes import MIN_TRAVEL_DISTANCE

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

POSED_FRAMES = 10_000
"""Frames that are posed together, to bound memory."""
PERCENT = np.arange(101.0)
SIDES = ("right", "left")
MIN_STANCE_FRACTION = 0.4
"""Fraction of a stride in which its foot must be on a plate for its force to be known."""
MAX_WALKING_SPEED = 0.9
"""Speed / sqrt(g leg length) beyond which a gait is a run: people change to running at 0.7 (Kram et al. 1997)."""
MAX_FACING_ANGLE = np.radians(45.0)
"""Angle [rad] between travel and the mean heading of the pelvis beyond which the subject walks sideways or turns."""


class Curve(NamedTuple):
    """Quantity of both sides over time, shape (frames,); None for a side that the model does not have."""

    name: str
    title: str
    unit: str
    group: str
    right: Array | None
    left: Array | None

    @property
    def sides(self) -> dict[str, Array]:
        """Values of the sides that the model has."""
        return {side: values for side, values in zip(SIDES, self[4:], strict=True) if values is not None}

    @property
    def label(self) -> str:
        """Quantity and unit."""
        return f"{'force' if self.group in ('ground', 'contact') else self.group} [{self.unit}]"


_COORDINATES = (  # name, title, names of the coordinate in order of preference
    ("hip_flexion", "Hip flexion", ("hip_flexion",)),
    ("hip_adduction", "Hip adduction", ("hip_adduction",)),
    ("hip_rotation", "Hip internal rotation", ("hip_rotation",)),
    ("knee_flexion", "Knee flexion", ("knee_flexion", "knee_angle")),
    ("ankle_dorsiflexion", "Ankle dorsiflexion", ("ankle_flexion", "ankle_angle")),
)
_MOMENTS = (
    ("hip_extensor_moment", "Hip extensor moment", ("hip_flexion",)),
    ("hip_abductor_moment", "Hip abductor moment", ("hip_adduction",)),
    ("knee_extensor_moment", "Knee extensor moment", ("knee_flexion", "knee_angle")),
    ("ankle_plantarflexor_moment", "Ankle plantarflexor moment", ("ankle_flexion", "ankle_angle")),
)
_POWERS = (
    ("hip_power", "Hip power", ("hip_",)),
    ("knee_power", "Knee power", ("knee_",)),
    ("ankle_power", "Ankle power", ("ankle_", "subtalar_")),
)


class Gait(NamedTuple):
    """Curves over time, and the strides of the recording."""

    time: Array
    curves: tuple[Curve, ...]
    strides: tuple[Stride, ...]
    parameters: Dataset
    """Spatiotemporal parameters of every stride."""
    speed: str
    """Class of the walking speed, for normative curves."""
    relative_speed: float
    """Speed / sqrt(g leg length), by which speeds are classed; NaN if it is unknown."""
    grf_known: tuple[bool, ...]
    """Whether the ground reaction force of each stride is known; plates may lie under some steps only."""
    heading: float
    """Direction of travel [rad from x]."""
    offset: float
    """Angle subtracted from normative pelvic tilt and hip flexion [deg]: see `docs/formats.md`."""

    @property
    def toe_off(self) -> dict[str, float]:
        """Mean toe-off of each side [% of the gait cycle], where it is known."""
        stance, sides = self.parameters["stance"].values, self.parameters["stride_side"].values
        known = {side: stance[(sides == side) & np.isfinite(stance)] for side in SIDES}
        return {side: float(values.mean()) for side, values in known.items() if len(values)}

    @property
    def running(self) -> bool:
        """Whether both feet are off the ground between steps: stance takes less than half of the strides.

        Toe-offs found from markers are late in running; a speed that no one walks at is that of running, too.
        """
        toe_off = list(self.toe_off.values())
        return self.relative_speed > MAX_WALKING_SPEED or (bool(toe_off) and float(np.mean(toe_off)) < 50.0)

    def normative(self, curve: Curve, source: str = "schwartz2008") -> NormativeCurve | None:
        """Return the normative curve, of Schwartz et al. (2008) at this walking speed; None for running."""
        if self.running:
            return None
        norm = normative_curve(curve.name, self.speed if source == "schwartz2008" else "free", source)
        if norm is None:
            return None
        if curve.unit == "% BW":
            return NormativeCurve(100.0 * norm.mean, 100.0 * norm.sd)
        offset = self.offset if curve.name in ("pelvis_tilt", "hip_flexion") else 0.0
        return NormativeCurve(norm.mean - offset, norm.sd)


def gait_curves(energy: Energy) -> Gait:
    """Return the gait curves of an analysis."""
    torques, motion = energy.torques, energy.torques.motion
    data, model = torques.data, motion.model
    mass = model.mass
    time = data["time"].values
    cycles = find_strides(motion, time)
    feet = {side: axis for side in SIDES if (axis := foot_axis(model, side)) is not None}
    rotations = _body_rotations(energy, [max(root_body(model), 0), *(k for axis in feet.values() for k in axis[:2])])
    heading = _heading(energy, rotations[:, 0], cycles)
    curves = [*_pelvis(model, rotations[:, 0], heading)]
    names = [c.name for c in model.coordinates]

    def column(candidates: tuple[str, ...], side: str) -> int | None:
        variants = [f"{name}_{letter}" for name in candidates for letter in (side, {"r": "right", "l": "left"}[side])]
        return next((names.index(name) for name in variants if name in names), None)

    for group, table, values, factor in (
        ("angle", _COORDINATES, data["coordinate_value"].values, 180.0 / np.pi),
        ("moment", _MOMENTS, data["torque"].values, -1.0 / mass),
    ):
        unit = "deg" if group == "angle" else "N m/kg"
        for name, title, candidates in table:
            both = []
            for side in "rl":
                k = column(candidates, side)
                both.append(None if k is None else factor * coordinate_sign(model.coordinates[k]) * values[:, k])
            curves.append(Curve(name, title, unit, group, both[0], both[1]))
    power = energy.data["joint_power"].values
    for name, title, stems in _POWERS:
        both = []
        for side in "rl":
            own = [i for i, c in enumerate(names) if c.startswith(stems) and c.endswith(f"_{side}")]
            both.append(power[:, own].sum(axis=1) / mass if own else None)
        curves.append(Curve(name, title, "W/kg", "power", both[0], both[1]))
    progression = {}
    for k, (side, axis) in enumerate(feet.items()):
        internal = _wrap(axis.heading(rotations[:, 1 + 2 * k], rotations[:, 2 + 2 * k]) - heading)
        progression[side] = np.degrees(internal if side == "right" else -internal)
    curves.append(
        Curve("foot_progression", "Foot progression (internal +)", "deg", "angle", *map(progression.get, SIDES))
    )
    curves += _ground(energy, heading)
    kept = tuple(curve for curve in curves if curve.sides)
    belt = energy.data.attrs.get("belt_velocity", (0.0, 0.0, 0.0))
    parameters = spatiotemporal_parameters(motion, belt=belt, strides=cycles)
    relative = _relative_speed(energy, parameters)
    speed = speed_class(relative) if np.isfinite(relative) else "free"
    known = _strides_with_grf(energy, cycles)
    return Gait(time, kept, cycles, parameters, speed, relative, known, heading, _offset(model))


def curve_by_stride(gait: Gait, curve: Curve, side: str) -> Array:
    """Return a curve over the strides of one side, shape (strides, 101); kinetics only where the GRF is known."""
    rows = []
    values = curve.sides.get(side)
    for stride, known in zip(gait.strides, gait.grf_known, strict=True):
        if stride.side == side and values is not None and (known or curve.group == "angle"):
            at = stride.start + PERCENT / 100.0 * (stride.end - stride.start)
            rows.append(np.interp(at, gait.time, values))
    return np.array(rows).reshape(-1, 101)


def curve_dataset(gait: Gait) -> Dataset:
    """Return the curves by side over time (`in_time`), and their means over the strides (`over_cycle`)."""
    import xarray as xr

    unknown = np.full(len(gait.time), np.nan)
    in_time = [[curve.sides.get(side, unknown) for side in SIDES] for curve in gait.curves]
    rows = [[curve_by_stride(gait, curve, side) for side in SIDES] for curve in gait.curves]
    means = [[one.mean(axis=0) if len(one) else np.full(len(PERCENT), np.nan) for one in both] for both in rows]
    stated = {"units": "see curve_units"}
    shape = (len(gait.curves), len(SIDES))
    return xr.Dataset(
        {
            "in_time": (("curve", "side", "time"), np.reshape(in_time, (*shape, len(gait.time))), stated),
            "over_cycle": (("curve", "side", "percent"), np.reshape(means, (*shape, len(PERCENT))), stated),
        },
        {
            "curve": [curve.name for curve in gait.curves],
            "curve_units": ("curve", [curve.unit for curve in gait.curves]),
            "side": list(SIDES),
            "time": ("time", gait.time, {"units": "s"}),
            "percent": ("percent", PERCENT, {"units": "%"}),
        },
    )


def _heading(energy: Energy, pelvis: Array, strides: tuple[Stride, ...]) -> float:
    """Return the direction of travel [rad from x] over the strides; the mean heading of the pelvis without travel."""
    mean = np.nansum(pelvis[:, :2, 0], axis=0)
    facing = float(np.arctan2(mean[1], mean[0]))
    motion = energy.torques.motion
    root = root_body(motion.model)
    if root < 0:
        return facing
    time = motion.data["time"].values
    inside = np.full(len(time), True)
    if strides:
        inside = (time >= strides[0].start) & (time <= max(stride.end for stride in strides))
    path = motion.data["body_position"].isel(body=root, axis=slice(2)).values[inside]
    path = path - np.outer(time[inside], energy.data.attrs.get("belt_velocity", (0.0, 0.0, 0.0))[:2])
    known = np.isfinite(path).all(axis=1)
    if known.sum() < 2:
        return facing
    # the slope over time: sway to the sides changes it less than the displacement from first to last frame
    slope = np.polyfit(time[inside][known], path[known], 1)[0]
    travel = float(np.arctan2(slope[1], slope[0]))
    far = np.linalg.norm(slope) * np.ptp(time[inside][known]) >= MIN_TRAVEL_DISTANCE
    return travel if far and abs(_wrap(travel - facing)) <= MAX_FACING_ANGLE else facing


def _wrap(angle: Array | float) -> Array:
    """Return angles [rad] between -pi and pi."""
    return np.asarray((np.asarray(angle) + np.pi) % (2.0 * np.pi) - np.pi)


def _strides_with_grf(energy: Energy, cycles: tuple[Stride, ...]) -> tuple[bool, ...]:
    data = energy.torques.data
    if "grf_complete" not in data:
        return (True,) * len(cycles)
    time = data["time"].values
    inside = [slice(*np.searchsorted(time, (stride.start, stride.end))) for stride in cycles]
    if "grf_known" in data:  # predicted forces complete those of the plates
        frames = energy.torques.grf_known
        return tuple(bool(frames[part].all()) for part in inside)
    loaded = {
        side: data["ground_reaction_force"].sel(foot=side, axis="z").values >= MIN_PLATE_FORCE
        for side in SIDES
        if side in data["foot"].values
    }
    return tuple(
        stride.side in loaded and bool(loaded[stride.side][part].mean() >= MIN_STANCE_FRACTION)
        for stride, part in zip(cycles, inside, strict=True)
    )


def _pelvis(model: Model, rotations: Array, heading: float) -> list[Curve]:
    if root_body(model) < 0:
        return []
    c, s = np.cos(heading), np.sin(heading)
    rotation = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ rotations
    degrees = 180.0 / np.pi
    up = degrees * np.arcsin(np.clip(rotation[:, 2, 1], -1.0, 1.0))  # the left half
    tilt = degrees * np.arctan2(-rotation[:, 2, 0], rotation[:, 2, 2])
    forward = degrees * np.arctan2(-rotation[:, 0, 1], rotation[:, 1, 1])  # the right half
    return [
        Curve("pelvis_tilt", "Pelvic tilt (anterior +)", "deg", "angle", tilt, tilt),
        Curve("pelvis_obliquity", "Pelvic obliquity (own side up +)", "deg", "angle", -up, up),
        Curve("pelvis_rotation", "Pelvic rotation (own side forward +)", "deg", "angle", forward, -forward),
    ]


def _ground(energy: Energy, heading: float) -> list[Curve]:
    torques = energy.torques
    if "ground_reaction_force" not in torques.data:
        return []
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    ahead = np.array([np.cos(heading), np.sin(heading), 0.0])
    outward = np.array([ahead[1], -ahead[0], 0.0])  # of the right foot
    directions = (
        ("vertical", "vertical", dict.fromkeys(SIDES, np.array([0.0, 0.0, 1.0]))),
        ("forward", "forward", dict.fromkeys(SIDES, ahead)),
        ("outward", "lateral", {"right": outward, "left": -outward}),
    )
    feet = [side for side in SIDES if side in torques.data["foot"].values]  # external loads may act on one, or on none
    percent = {side: 100.0 * (torques.data["ground_reaction_force"].sel(foot=side).values / weight) for side in feet}
    return [
        Curve(
            f"ground_force_{name}", f"Ground reaction force, {title}", "% BW", "ground",
            *(percent[side] @ along[side] if side in percent else None for side in SIDES),
        )
        for name, title, along in directions
    ]  # fmt: skip


def _body_rotations(energy: Energy, bodies: list[int]) -> Array:
    """Return rotations of bodies in lab axes (frames, bodies, 3, 3), identity in the model's default pose."""
    model = energy.torques.motion.model
    axes = to_model_axes(model)
    values = energy.torques.data["coordinate_value"].values
    # poses of all bodies in all frames would take more memory than anything else in the report
    parts = [values[start : start + POSED_FRAMES] for start in range(0, len(values), POSED_FRAMES)]
    rotation = np.concatenate([poses(model, part)[1][:, bodies] for part in parts])
    return np.asarray(axes.T @ rotation @ axes)


def coordinate_sign(coordinate: Coordinate) -> float:
    """Return -1 for a knee angle whose range shows that flexion is negative, else 1."""
    if not coordinate.name.startswith("knee_angle"):
        return 1.0
    low, high = coordinate.usual_range or (coordinate.lower, coordinate.upper)
    return 1.0 if abs(high) >= abs(low) else -1.0


def _relative_speed(energy: Energy, parameters: Dataset) -> float:
    """Return speed / sqrt(g leg length): the mean of the strides, or that of the trial where it is unknown."""
    known = parameters["speed"].values[np.isfinite(parameters["speed"].values)]
    speed = float(known.mean()) if len(known) else float(energy.summary.get("speed_m_per_s", float("nan")))
    return relative_speed(speed, _leg_length(energy))


def _leg_length(energy: Energy) -> float:
    """Return the mean leg length [m] from the joint centers; that of a person of 1.75 m where they are unknown."""
    model = energy.torques.motion.model
    lengths = []
    for side in ("r", "l"):
        joints = {j.name: j for j in model.joints}
        knee = next((joints[n] for n in (f"knee_{side}", f"walker_knee_{side}") if n in joints), None)
        ankle = joints.get(f"ankle_{side}")
        if knee is not None and ankle is not None:
            lengths.append(sum(float(np.linalg.norm(j.parent_frame.position)) for j in (knee, ankle)))
    # thigh and shank, and the height of the foot below the ankle
    return 1.08 * float(np.mean(lengths)) if lengths and min(lengths) > 0.3 else 0.5 * 1.75


def _offset(model: Model) -> float:
    """Return the normative pelvic tilt [deg] for `human()`, whose pelvis is upright in neutral pose, else 0."""
    tilt = normative_curve("pelvis_tilt")
    return float(tilt.mean.mean()) if tilt is not None and has_borelli_root(model) else 0.0
