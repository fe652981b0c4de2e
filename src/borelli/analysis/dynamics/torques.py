"""Torques: generalized forces, joint reactions and residual of a motion, by Newton's and Euler's laws at every frame.

What neither joints nor ground supply is left at the root: the residual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.plate_coverage import PlateCoverage, find_plate_coverage, write_plate_coverage
from borelli.analysis.dynamics.rnea import (
    BodyKinematics,
    coordinate_forces,
    forward_kinematics,
    joint_reactions,
    load_wrenches,
    subtree_wrenches,
)
from borelli.analysis.kinematics.differentiation import Derivatives
from borelli.analysis.motion import AXES, Motion, coordinate_labels, rotate, to_model_axes
from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.model.kinematics import coupled_forces, root_coordinates, tree_links
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.series_extension import mask_inner_frames
from borelli.numerics.vectors import Array, cross
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Coordinates, Dataset


class PeakTorque(NamedTuple):
    """Largest torque of a joint."""

    per_mass: float
    """Magnitude, divided by body mass [N m/kg]."""
    coordinate: str
    time: float
    """[s]."""


@dataclass(frozen=True)
class Torques:
    """Torques, joint reactions and residual of a motion.

    Attributes:
        motion: The motion they belong to.
        data: By time: `coordinate_value`, `coordinate_velocity`, `coordinate_acceleration`; `torque` of every
            coordinate [N m or N] and its parts `torque_inertial`, `torque_gravity`, `torque_ground`, which add up to
            it; `residual_force` [N] and `residual_moment` [N m] on the root body at its origin;
            `joint_reaction_force` and `joint_reaction_moment` of every joint on its child, at the joint;
            `ground_reaction_force`, `center_of_pressure`, `free_moment` of each foot where forces were given;
            `grf_complete` where those were plates; `grf_source` of each foot and `grf_known` where predicted forces
            replace missing ones. Lab axes.
        settings: Method and options, as plain values.
        notes: Assumptions, changes and problems.
        derivatives: Splines of the coordinates (newton_euler), for times between the frames; None otherwise.
        loads: External loads at their own times; None: none.
    """

    motion: Motion
    data: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    derivatives: Derivatives | None = None
    loads: Loads | None = None

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        peak = self.peak_joint_torque
        rows = [
            ("model", self.motion.model.name),
            ("frames", f"{self.data.sizes['time']} at {self.motion.rate:g} Hz"),
            ("method", self.settings.get("method", "newton_euler")),
            ("ground reaction force", self.grf_source),
            ("residual", f"{self.residual_force_rms:.1f} N, {self.residual_moment_rms:.1f} N m RMS"),
            ("peak joint torque", "none" if peak is None else f"{peak.per_mass:.2f} N m/kg, {peak.coordinate}"),
            ("notes", len(self.notes)),
        ]
        joints = self.data[["torque"]].isel(coordinate=self.data["coordinate_units"].values == "rad")
        time = self.data["time"].values.tolist()
        return Summary("Torques", rows, time, main_series(joints, "torque"), "Torques with the largest range [N m]")

    @property
    def grf_source(self) -> str:
        """Source of the ground reaction forces: "plates", "predicted", "plates and predicted", "contacts", "none"."""
        return str(self.data.attrs.get("grf_source", "none"))

    @property
    def on_plates(self) -> bool:
        """Whether plates measured the ground reaction forces, all or some."""
        return self.grf_source.startswith("plates")

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """(frames,) in which residuals are evaluated: those with complete GRF on plates, if any, else all.

        Frames near the ends are left out, if others remain: accelerations depend there on the extension of the motion
        as much as on its samples.
        """
        complete = np.asarray(self.data["grf_complete"].values if "grf_complete" in self.data else (), bool)
        known = complete if complete.any() else np.ones(self.data.sizes["time"], bool)
        inner = known & mask_inner_frames(self.data["time"].values)
        return inner if inner.any() else known

    @property
    def grf_known(self) -> NDArray[np.bool_]:
        """(frames,) whether the ground reaction force is known, measured or predicted."""
        name = next((name for name in ("grf_known", "grf_complete") if name in self.data), None)
        return np.ones(self.data.sizes["time"], bool) if name is None else np.asarray(self.data[name].values, bool)

    @property
    def peak_joint_torque(self) -> PeakTorque | None:
        """Largest torque of a joint over frames with known ground reaction force, if any; None without joints.

        The residual says nothing about it: contact forces of any size can balance a motion.
        """
        model, data = self.motion.model, self.data
        driven = set(data["coordinate"].values.tolist()) - set(root_coordinates(model))
        joints = [c.name for c in model.coordinates if c.rotational and c.name in driven]
        known = self.grf_known if self.grf_known.any() else np.ones(data.sizes["time"], bool)
        torque = np.abs(data["torque"].sel(coordinate=joints).values[known])
        if not np.isfinite(torque).any() or model.mass <= 0.0:
            return None
        frame, joint = np.unravel_index(int(np.nanargmax(torque)), torque.shape)
        time = float(data["time"].values[known][frame])
        return PeakTorque(float(torque[frame, joint]) / model.mass, joints[joint], time)

    @property
    def residual_force_rms(self) -> float:
        """RMS magnitude [N] over the evaluated frames."""
        return float(np.sqrt(np.mean((self.data["residual_force"].values[self.evaluated] ** 2).sum(axis=-1))))

    @property
    def residual_moment_rms(self) -> float:
        """RMS magnitude [N m] over the evaluated frames."""
        return float(np.sqrt(np.mean((self.data["residual_moment"].values[self.evaluated] ** 2).sum(axis=-1))))


@dataclass(frozen=True)
class GeneralizedForces:
    """Generalized forces that a motion requires; model axes, time last unless stated otherwise."""

    kinematics: BodyKinematics
    torque: Array
    """(3, frames, coordinates): inertial, gravity, ground; those of coupled coordinates are moved to their drivers."""
    wrench: Array
    """(bodies, 6, frames): wrench that each body's joint must supply, about the world origin."""


def newton_euler_torques(
    motion: Motion,
    curves: Derivatives,
    loads: Loads | None,
    settings: Mapping[str, Any] | None = None,
    kinematics: BodyKinematics | None = None,
    coverage: PlateCoverage | None = None,
) -> Torques:
    """Compute inverse dynamics at the frames of the curves; `coverage` if the loads themselves do not determine it."""
    now = None if loads is None else loads.at(curves.time)
    kinematics = kinematics or forward_kinematics(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    data = _dataset(motion, curves, newton_euler(kinematics, now), now)
    notes = (*curves.notes, *(() if loads is None else loads.notes))
    if coverage is None and loads is not None and loads.source == "plates":
        needed = data["residual_force"].values[:, 2] + data["ground_reaction_force"].values[..., 2].sum(axis=1)
        coverage = find_plate_coverage(motion, curves.time, needed, loads, curves.settings["cutoff_hz"])
        notes += coverage.notes(motion.model.mass)
    if coverage is not None:
        write_plate_coverage(data, coverage)
    return Torques(motion, data, dict(settings or curves.settings), notes, curves, loads)


def newton_euler(kinematics: BodyKinematics, loads: Loads | None) -> GeneralizedForces:
    """Compute the generalized forces of a motion, by cause, with loads (lab axes) given at the same times."""
    model, frames = kinematics.model, len(kinematics.coordinates)
    wrench = kinematics.required_wrench.sum(axis=0)
    by_ground = np.zeros((frames, len(model.coordinates)))
    if loads is not None:
        bodies, force, point, moment = _in_model_axes(model, loads)
        of_ground = subtree_wrenches(kinematics, load_wrenches(kinematics, bodies, force, point, moment))
        by_ground = coordinate_forces(kinematics, of_ground)
        wrench += of_ground
    torque = np.stack([*kinematics.required_force, by_ground])
    if model.couplings:
        torque = np.stack([coupled_forces(model, kinematics.coordinates, part) for part in torque])
    return GeneralizedForces(kinematics, torque, wrench)


def load_power(kinematics: BodyKinematics, loads: Loads | None) -> Array:
    """Return the power (frames,) of loads on the bodies [W]."""
    power = np.zeros(len(kinematics.coordinates))
    if loads is not None:
        bodies, force, point, moment = _in_model_axes(kinematics.model, loads)
        for k, body in enumerate(bodies):
            power += (force[:, k] * kinematics.point_velocity(body, point[:, k])).sum(axis=-1)
            power += (moment[:, k] * kinematics.angular_velocity[body].T).sum(axis=-1)
    return power


def _in_model_axes(model: Model, loads: Loads) -> tuple[list[int], Array, Array, Array]:
    names = [body.name for body in model.bodies]
    for name in loads.body:
        if name not in names:
            raise SettingsError(f"Loads: {unknown_name('body', name, names)}")
    rotation = to_model_axes(model).T
    force, point, moment = (rotate(values, rotation) for values in (loads.force, loads.point, loads.moment))
    return [names.index(name) for name in loads.body], force, point, moment


@cached_per_model
def root_body(model: Model) -> int:
    """Return the index of the body that the root joint moves; -1 if the model is fixed to the ground."""
    first = next(iter(root_coordinates(model)), None)
    if first is None:
        return -1
    joint = next(j for j in model.joints if any(c.name == first for c in j.coordinates))
    return [body.name for body in model.bodies].index(joint.child)


def _dataset(motion: Motion, curves: Derivatives, forces: GeneralizedForces, loads: Loads | None) -> Dataset:
    import xarray as xr

    model, kinematics = curves.model, forces.kinematics
    rotation = to_model_axes(model)
    root = root_body(model)
    residual = np.zeros((2, len(curves.time), 3))
    if root >= 0:
        wrench = forces.wrench[root]
        residual[0] = wrench[3:].T
        residual[1] = (wrench[:3] - cross(kinematics.position[root], wrench[3:])).T
    force, moment = (
        rotate(np.ascontiguousarray(values.transpose(2, 0, 1)), rotation)
        for values in joint_reactions(kinematics, forces.wrench)
    )
    by_coordinate, by_axis, lab = ("time", "coordinate"), ("time", "axis"), {"frame": LAB}
    per_second = "rad or m, per second"
    inertial, gravity, ground = forces.torque
    variables: dict[str, Any] = {
        "coordinate_value": (by_coordinate, curves.coordinates, {"units": "rad or m: see coordinate_units"}),
        "coordinate_velocity": (by_coordinate, curves.speeds, {"units": per_second}),
        "coordinate_acceleration": (by_coordinate, curves.accelerations, {"units": f"{per_second} squared"}),
        "torque": (by_coordinate, inertial + gravity + ground, {"units": "N m or N"}),
        "torque_inertial": (by_coordinate, inertial, {"units": "N m or N"}),
        "torque_gravity": (by_coordinate, gravity, {"units": "N m or N"}),
        "torque_ground": (by_coordinate, ground, {"units": "N m or N"}),
        "residual_force": (by_axis, rotate(residual[0], rotation), {"units": "N"} | lab),
        "residual_moment": (by_axis, rotate(residual[1], rotation), {"units": "N m"} | lab),
        "joint_reaction_force": (("time", "joint", "axis"), force, {"units": "N"} | lab),
        "joint_reaction_moment": (("time", "joint", "axis"), moment, {"units": "N m"} | lab),
    }
    if loads is not None:
        at = ("time", "foot", "axis")
        variables["ground_reaction_force"] = (at, loads.force, {"units": "N"} | lab)
        variables["center_of_pressure"] = (at, loads.point, {"units": "m"} | lab)
        variables["free_moment"] = (at, loads.moment, {"units": "N m"} | lab)
    source = "none" if loads is None else loads.source
    attrs = {
        "rate_hz": float(motion.rate), "method": "newton_euler", "grf_source": source,
        "root_body": model.bodies[root].name if root >= 0 else "", "mass_kg": float(model.mass),
    }  # fmt: skip
    coords = xr.Coordinates({"time": ("time", curves.time, {"units": "s"})})
    return xr.Dataset(variables, coords.assign(torque_labels(model, () if loads is None else loads.name)), attrs)


@cached_per_model
def torque_labels(model: Model, feet: tuple[str, ...]) -> Coordinates:
    """Return the labels of the dataset's dimensions other than time."""
    import xarray as xr

    joints = {joint.child: joint.name for joint in model.joints if not joint.closes_loop}
    names: dict[str, Any] = {
        **coordinate_labels(model),
        "joint": [joints[model.bodies[link.child].name] for link in tree_links(model)],
        "axis": list(AXES),
    }
    return xr.Coordinates(names | ({"foot": list(feet)} if feet else {}))
