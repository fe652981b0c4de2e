"""What a gait laboratory looks at: angles, internal moments, powers and ground forces, by side, and over the cycle.

Signs are those of the norms: flexion, adduction, inward rotation and dorsiflexion are positive angles; extensor,
abductor and plantarflexor moments are positive; pelvis: forward tilt, the side's own half up, the side's own half
forward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.torques import root_body
from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import to_model_axes
from borelli.analysis.strides import Stride, find_strides
from borelli.export.opensim_names import has_borelli_root
from borelli.model.kinematics import poses
from borelli.model.model import Coordinate, Model
from borelli.normative.gait import NormativeCurve, normative_curve, speed_class
from borelli.recording.recording import MIN_PLATE_FORCE

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

PERCENT = np.arange(101.0)
SIDES = ("right", "left")
STANDS = 0.4
"""Part of a stride in which its foot must be on a plate for the force on it to be known."""


class Curve(NamedTuple):
    """A quantity of both sides in time: (frames,) each, or None where the model has no such thing."""

    name: str
    title: str
    unit: str
    group: str
    right: Array | None
    left: Array | None


_COORDINATES = (  # name, title, coordinates that are it, the best first
    ("hip_flexion", "Hip flexion", ("hip_flexion",)),
    ("hip_adduction", "Hip adduction", ("hip_adduction",)),
    ("hip_rotation", "Hip inward rotation", ("hip_rotation",)),
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
    """Curves in time, and the strides over which to look at them."""

    time: Array
    curves: tuple[Curve, ...]
    find_strides: tuple[Stride, ...]
    speed: str
    """Class of the walking speed, for norms."""
    seen: tuple[bool, ...]
    """Of each stride, whether the force on its foot is known; plates may lie under some steps only."""
    offset: float
    """By how much [deg] norms of pelvis tilt and hip flexion are lowered: see `docs/formats.md`."""

    def normative_curve(self, curve: Curve, source: str = "schwartz2008") -> NormativeCurve | None:
        """The normal curve, at this speed; of the second source at its own."""
        found = normative_curve(curve.name, self.speed if source == "schwartz2008" else "free", source)
        if found is None:
            return None
        if curve.unit == "% BW":
            return NormativeCurve(100.0 * found.mean, 100.0 * found.sd)
        lower = self.offset if curve.name in ("pelvis_tilt", "hip_flexion") else 0.0
        return NormativeCurve(found.mean - lower, found.sd)


def gait_curves(energy: Energy) -> Gait:
    """The curves of an analysis."""
    torques, motion = energy.torques, energy.torques.motion
    data, model = torques.data, motion.model
    mass = model.mass
    time = data["time"].values
    curves = [*_pelvis(energy)]
    names = [c.name for c in model.coordinates]

    def column(candidates: tuple[str, ...], side: str) -> int | None:
        found = [f"{name}_{letter}" for name in candidates for letter in (side, {"r": "right", "l": "left"}[side])]
        return next((names.index(name) for name in found if name in names), None)

    for group, table, values, factor in (
        ("angle", _COORDINATES, data["coordinate_value"].values, 180.0 / np.pi),
        ("moment", _MOMENTS, data["torque"].values, -1.0 / mass),
    ):
        unit = "deg" if group == "angle" else "N m/kg"
        for name, title, candidates in table:
            both = []
            for side in "rl":
                k = column(candidates, side)
                both.append(None if k is None else factor * _sign(model.coordinates[k]) * values[:, k])
            curves.append(Curve(name, title, unit, group, both[0], both[1]))
    power = energy.data["joint_power"].values
    for name, title, stems in _POWERS:
        both = []
        for side in "rl":
            own = [i for i, c in enumerate(names) if c.startswith(stems) and c.endswith(f"_{side}")]
            both.append(power[:, own].sum(axis=1) / mass if own else None)
        curves.append(Curve(name, title, "W/kg", "power", both[0], both[1]))
    curves += _ground(energy)
    cycles = find_strides(motion, time)
    kept = tuple(c for c in curves if c.right is not None or c.left is not None)
    return Gait(time, kept, cycles, _speed(energy), _seen(energy, cycles), _offset(model))


def curve_by_stride(gait: Gait, curve: Curve, side: str) -> Array:
    """(cycles, 101) of a quantity over the strides of one side; of kinetics over those whose force is known."""
    rows = []
    values = curve.right if side == "right" else curve.left
    for stride, seen in zip(gait.strides, gait.seen, strict=True):
        if stride.side == side and values is not None and (seen or curve.group == "angle"):
            at = stride.start + PERCENT / 100.0 * (stride.end - stride.start)
            rows.append(np.interp(at, gait.time, values))
    return np.array(rows).reshape(-1, 101)


def curve_dataset(gait: Gait) -> Dataset:
    """The curves by side, `in_time`, and `over_cycle`: their means over the strides, by percent of the gait cycle."""
    import xarray as xr

    unknown = np.full(len(gait.time), np.nan)
    in_time = [[unknown if one is None else one for one in (curve.right, curve.left)] for curve in gait.curves]
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


def heading(energy: Energy) -> float:
    """The way the pelvis faces [rad from x, on the ground], over the whole recording."""
    forward = _root_turn(energy)[:, :, 0]
    return float(np.arctan2(np.nansum(forward[:, 1]), np.nansum(forward[:, 0])))


def _seen(energy: Energy, cycles: tuple[Stride, ...]) -> tuple[bool, ...]:
    data = energy.torques.data
    if "grf_complete" not in data:
        return (True,) * len(cycles)
    if "grf_known" in data:  # computed forces fill in for plates
        return tuple(
            bool(energy.torques.grf_known[(data["time"].values >= c.start) & (data["time"].values < c.end)].all())
            for c in cycles
        )
    found = []
    for stride in cycles:
        inside = (data["time"].values >= stride.start) & (data["time"].values < stride.end)
        loaded = data["ground_reaction_force"].sel(foot=stride.side, axis="z").values[inside] >= MIN_PLATE_FORCE
        found.append(bool(loaded.mean() >= STANDS))
    return tuple(found)


def _pelvis(energy: Energy) -> list[Curve]:
    model = energy.torques.motion.model
    if root_body(model) < 0:
        return []
    way = heading(energy)
    c, s = np.cos(way), np.sin(way)
    turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ _root_turn(energy)
    degrees = 180.0 / np.pi
    up = degrees * np.arcsin(np.clip(turn[:, 2, 1], -1.0, 1.0))  # the left half
    tilt = degrees * np.arctan2(-turn[:, 2, 0], turn[:, 2, 2])
    forward = degrees * np.arctan2(-turn[:, 0, 1], turn[:, 1, 1])  # the right half
    return [
        Curve("pelvis_tilt", "Pelvis forward tilt", "deg", "angle", tilt, tilt),
        Curve("pelvis_obliquity", "Pelvis side up", "deg", "angle", -up, up),
        Curve("pelvis_rotation", "Pelvis side forward", "deg", "angle", forward, -forward),
    ]


def _ground(energy: Energy) -> list[Curve]:
    torques = energy.torques
    if "ground_reaction_force" not in torques.data:
        return []
    weight = torques.motion.model.mass * float(np.linalg.norm(torques.motion.model.gravity))
    way = heading(energy)
    ahead = np.array([np.cos(way), np.sin(way), 0.0])
    force = {str(foot): torques.data["ground_reaction_force"].sel(foot=foot).values / weight for foot in ("right", "left")}
    aside = {"right": np.array([ahead[1], -ahead[0], 0.0]), "left": np.array([-ahead[1], ahead[0], 0.0])}
    return [
        Curve(
            "ground_force_vertical", "Ground force, vertical", "% BW", "ground",
            100.0 * force["right"][:, 2], 100.0 * force["left"][:, 2],
        ),
        Curve(
            "ground_force_forward", "Ground force, forward", "% BW", "ground",
            100.0 * force["right"] @ ahead, 100.0 * force["left"] @ ahead,
        ),
        Curve(
            "ground_force_outward", "Ground force, outward", "% BW", "ground",
            100.0 * force["right"] @ aside["right"], 100.0 * force["left"] @ aside["left"],
        ),
    ]  # fmt: skip


def _root_turn(energy: Energy) -> Array:
    """(frames, 3, 3) of the root body in the lab; none where it stands as the model's default, in lab axes."""
    model = energy.torques.motion.model
    turn = to_model_axes(model)
    rotation = poses(model, energy.torques.data["coordinate_value"].values)[1][:, max(root_body(model), 0)]
    return np.asarray(turn.T @ rotation @ turn)


def _sign(coordinate: Coordinate) -> float:
    """-1 for a knee angle that counts flexion as negative, which its range tells."""
    if not coordinate.name.startswith("knee_angle"):
        return 1.0
    low, high = coordinate.usual_range or (coordinate.lower, coordinate.upper)
    return 1.0 if abs(high) >= abs(low) else -1.0


def _speed(energy: Energy) -> str:
    speed = energy.summary.get("speed_m_per_s", float("nan"))
    length = _leg_length(energy)
    if not np.isfinite(speed) or not length > 0.0:
        return "free"
    return speed_class(float(speed), length)


def _leg_length(energy: Energy) -> float:
    """Mean distance of hip to knee to ankle [m], by the joints' places; 0 where they are not found."""
    model = energy.torques.motion.model
    lengths = []
    for side in ("r", "l"):
        found = {j.name: j for j in model.joints}
        knee = next((found[n] for n in (f"knee_{side}", f"walker_knee_{side}") if n in found), None)
        ankle = next((found[n] for n in (f"ankle_{side}",) if n in found), None)
        if knee is not None and ankle is not None:
            lengths.append(sum(float(np.linalg.norm(j.parent_frame.position)) for j in (knee, ankle)))
    # from the hip to the ankle, and a foot's height below it
    return 1.08 * float(np.mean(lengths)) if lengths and min(lengths) > 0.3 else 0.5 * 1.75


def _offset(model: Model) -> float:
    """Our human's pelvis is upright where that of landmarks, by which norms count, leans forward."""
    found = normative_curve("pelvis_tilt")
    return float(found.mean.mean()) if found is not None and has_borelli_root(model) else 0.0
