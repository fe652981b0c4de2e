"""Torques: what the joints must supply for a motion, given what the ground supplied.

*Smooth*: Newton's and Euler's laws at every frame, on splined coordinates, as OpenSim and a gait laboratory mean by
inverse dynamics. *Stepped*: the torques that reproduce the motion in our own simulation. What no joint and no ground
supplies is left at the root, as residual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads, predicted_loads, plate_loads
from borelli.analysis.dynamics.plate_coverage import PlateCoverage, find_plate_coverage, write_plate_coverage
from borelli.analysis.dynamics.rnea import BodyKinematics, subtree_wrenches, coordinate_forces, load_wrenches, forward_kinematics, joint_reactions
from borelli.analysis.kinematics.differentiation import Derivatives, differentiate
from borelli.analysis.kinematics.framewise_ik import root_coordinates
from borelli.analysis.motion import AXES, Motion, to_model_axes, rotate
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import coupled_forces, tree_links
from borelli.model.model import Model
from borelli.model.model_cache import cached_per_model
from borelli.numerics.vectors import cross
from borelli.recording.recording import LAB, Note, Recording

if TYPE_CHECKING:
    from xarray import Coordinates, Dataset

Array = NDArray[np.float64]

METHODS = ("newton_euler", "stepped")
SOURCES = ("plates", "contacts", "plates and predicted")


@dataclass(frozen=True)
class Torques:
    """What moved a model.

    Attributes:
        motion: The motion they belong to.
        data: By time: `coordinates`, `speeds`, `accelerations`; `torque` of every coordinate [N m or N] and its parts
            `torque_inertial`, `torque_gravity`, `torque_ground`, which add up to it; `residual_force` [N] and
            `residual_torque` [N m] on the root body at its origin; `reaction_force` and `reaction_moment` of every
            joint on its child, about the joint; `foot_force`, `foot_center_of_pressure`, `foot_free_moment` where
            forces were given, and `covered` where those were plates: whether they carried the whole body; where
            computed forces fill in for plates `foot_source` of each foot and `known`, see `beside.py`; lab axes.
        settings: How they were found, as plain values.
        notes: What was decided or noticed.
        derivatives: The splines of the smooth method, for times between the frames; None otherwise.
        loads: What was measured or computed of the ground, at its own times; None: nothing.
    """

    motion: Motion
    data: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    differentiate: Derivatives | None = None
    loads: Loads | None = None

    @property
    def grf_source(self) -> str:
        """Where the ground's forces come from: "plates", "contacts", "plates and predicted" or "none"."""
        return str(self.data.attrs.get("grf_source", "none"))

    @property
    def on_plates(self) -> bool:
        """Whether plates measured the ground's forces, all or some."""
        return self.grf_source.startswith("plates")

    @property
    def evaluated(self) -> NDArray[np.bool_]:
        """(frames,) in which residuals are judged: those that plates cover, if there are any, else all."""
        covered = np.asarray(self.data["grf_complete"].values, bool) if "grf_complete" in self.data else np.zeros(1, bool)
        return covered if covered.any() else np.ones(self.data.sizes["time"], bool)

    @property
    def grf_known(self) -> NDArray[np.bool_]:
        """(frames,) whether the forces that carry the body are known, measured or computed."""
        told = next((name for name in ("grf_known", "grf_complete") if name in self.data), None)
        return np.ones(self.data.sizes["time"], bool) if told is None else np.asarray(self.data[told].values, bool)

    @property
    def residual_force_rms(self) -> float:
        """[N], of its length, over the frames that are judged."""
        return float(np.sqrt(np.mean((self.data["residual_force"].values[self.evaluated] ** 2).sum(axis=-1))))

    @property
    def residual_moment_rms(self) -> float:
        """[N m], of its length, over the frames that are judged."""
        return float(np.sqrt(np.mean((self.data["residual_moment"].values[self.evaluated] ** 2).sum(axis=-1))))


def inverse_dynamics(
    motion: Motion,
    *,
    method: str = "newton_euler",
    forces: str | Recording | Loads | None = None,
    filter: str = "default",
    cutoff: float | None = None,
    plate_cutoff: float | None = None,
    feet: Mapping[str, str] | None = None,
    residual: Any = None,
    **stepped: Any,
) -> Torques:
    """The torques that make a motion.

    Args:
        motion: Of a model with masses.
        method: "newton_euler" or "stepped".
        forces: What the ground supplied: None: nothing; "plates": what the plates of the motion's recording measured;
            "contacts": computed from the motion; "plates and predicted": of plates, and computed under feet that stood
            beside them; or a recording with plates, or loads.
        filter: "default", "strides", "opensim" or "none": see `derivatives`.
        cutoff: Of the low-pass on coordinates [Hz]; 6 by default.
        plate_cutoff: Of a low-pass on measured forces [Hz], for the smooth method; None leaves them as measured.
        feet: Bodies of the "right" and "left" foot, where their names do not tell.
        residual: None: told as it is; "reduce": masses are changed within bounds so that it gets small, see
            `reduce_residuals`. The stepped method has others: see `stepped_torques`.
        stepped: Further settings of the stepped method.

    Raises:
        SettingsError: unknown method, source or filter; or there is nothing to take forces from.
    """
    if method not in METHODS:
        raise SettingsError(unknown_name("method", method, METHODS))
    if isinstance(forces, str) and forces not in SOURCES:
        raise SettingsError(unknown_name("source of forces", forces, SOURCES))
    if method == "stepped":
        from borelli.analysis.stepped.marker_driven_ik import stepped_torques

        if plate_cutoff is not None:
            raise SettingsError("the stepped method takes plates as measured: give it loads.smoothed(plate_cutoff)")
        if forces == "plates and predicted":
            from borelli.analysis.ground.off_plate_steps import stepped_beside

            return stepped_beside(motion, filter=filter, cutoff=cutoff, residual=residual, feet=feet, **stepped)
        return stepped_torques(
            motion, forces=forces, filter=filter, cutoff=cutoff, residual=residual, feet=feet, **stepped
        )
    if stepped:
        raise SettingsError(f"the smooth method has no setting {next(iter(stepped))!r}; the stepped method may")
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    fills = forces == "plates and predicted"
    moved = forward_kinematics(motion.model, curves.coordinates, curves.speeds, curves.accelerations)
    loads = _loads(motion, curves, moved, "plates" if fills else forces, feet)
    if loads is not None and plate_cutoff is not None:
        loads = loads.smoothed(plate_cutoff)
    settings = {"method": "newton_euler", **curves.settings, "plate_cutoff_hz": plate_cutoff}
    if fills and loads is not None:
        from borelli.analysis.ground.off_plate_steps import torques_with_predicted_steps

        if residual is not None:
            raise SettingsError('residuals are reduced against what was measured alone: take forces="plates"')
        return torques_with_predicted_steps(motion, curves, moved, loads, settings, feet)
    if residual == "reduce":
        from borelli.analysis.residual_reduction.masses import reduce_residuals

        return reduce_residuals(motion, curves, loads, settings).torques
    if residual is not None:
        raise SettingsError(unknown_name("residual", str(residual), ("reduce",)))
    return newton_euler_torques(motion, curves, loads, settings, moved)


def newton_euler_torques(
    motion: Motion,
    curves: Derivatives,
    loads: Loads | None,
    settings: Mapping[str, Any] | None = None,
    moved: BodyKinematics | None = None,
    support: PlateCoverage | None = None,
) -> Torques:
    """Inverse dynamics at the frames of the derivatives, with these loads.

    `moved` is given where it is known already, `support` what plates carried where the loads are not theirs alone.
    """
    now = None if loads is None else loads.at(curves.time)
    moved = moved or forward_kinematics(curves.model, curves.coordinates, curves.speeds, curves.accelerations)
    balance = newton_euler(moved, now)
    data = _dataset(motion, curves, balance, now)
    notes = (*curves.notes, *(() if loads is None else loads.notes))
    if loads is not None and loads.source == "plates":
        needed = data["residual_force"].values[:, 2] + data["ground_reaction_force"].values[..., 2].sum(axis=1)
        support = find_plate_coverage(motion, curves.time, needed, loads, curves.settings["cutoff_hz"])
        notes += support.notes(motion.model.mass)
    if support is not None:
        write_plate_coverage(data, support)
    return Torques(motion, data, dict(settings or curves.settings), notes, curves, loads)


@dataclass(frozen=True)
class GeneralizedForces:
    """The laws of motion at some times: model axes, time last where it is not said otherwise."""

    moved: BodyKinematics
    torque: Array
    """(3, frames, coordinates): inertial, gravity, ground; coupled coordinates count where they lead."""
    carried: Array
    """(bodies, 6, frames): the wrench each body's joint must supply, about the world's origin."""
    ground_power: Array
    """(frames,) [W] of the loads on the bodies."""


def newton_euler(moved: BodyKinematics, loads: Loads | None) -> GeneralizedForces:
    """What every coordinate must supply, by cause, with loads stated at the same times."""
    model, frames = moved.model, len(moved.coordinates)
    carried, by_ground, power = moved.required_wrench.sum(axis=0), np.zeros((frames, len(model.coordinates))), np.zeros(frames)
    if loads is not None:
        bodies, force, point, moment = _in_model(model, loads)
        of_ground = subtree_wrenches(moved, load_wrenches(moved, bodies, force, point, moment))
        by_ground = coordinate_forces(moved, of_ground)
        carried += of_ground
        for k, body in enumerate(bodies):
            power += (force[:, k] * moved.point_velocity(body, point[:, k])).sum(axis=-1)
            power += (moment[:, k] * moved.angular_velocity[body].T).sum(axis=-1)
    torque = np.stack([*moved.required_force, by_ground])
    if model.couplings:
        torque = np.stack([coupled_forces(model, moved.coordinates, part) for part in torque])
    return GeneralizedForces(moved, torque, carried, power)


def _loads(
    motion: Motion,
    curves: Derivatives,
    moved: BodyKinematics,
    forces: str | Recording | Loads | None,
    feet: Mapping[str, str] | None,
) -> Loads | None:
    if forces is None or isinstance(forces, Loads):
        return forces
    if isinstance(forces, Recording):
        return plate_loads(motion.model, forces, feet)
    if forces == "contacts":
        from borelli.analysis.ground.predict_grf import solve_ground_reaction

        ground = solve_ground_reaction(moved, curves)
        return predicted_loads(motion.model, ground.time, *ground.on_feet(), ground.belt, feet)
    if motion.recording is None:
        raise SettingsError("the motion has no recording, so there are no plates: give forces a recording or loads")
    return plate_loads(motion.model, motion.recording, feet)


def _in_model(model: Model, loads: Loads) -> tuple[list[int], Array, Array, Array]:
    names = [body.name for body in model.bodies]
    for name in loads.body:
        if name not in names:
            raise SettingsError(f"loads: {unknown_name('body', name, names)}")
    turn = to_model_axes(model).T
    force, point, moment = (rotate(values, turn) for values in (loads.force, loads.point, loads.moment))
    return [names.index(name) for name in loads.body], force, point, moment


@cached_per_model
def root_body(model: Model) -> int:
    """The body whose joint carries the whole through the world; -1 where the model stands on the ground for good."""
    first = next(iter(root_coordinates(model)), None)
    if first is None:
        return -1
    joint = next(j for j in model.joints if any(c.name == first for c in j.coordinates))
    return [body.name for body in model.bodies].index(joint.child)


def _dataset(motion: Motion, curves: Derivatives, balance: GeneralizedForces, loads: Loads | None) -> Dataset:
    import xarray as xr

    model, moved = curves.model, balance.moved
    turn = to_model_axes(model)
    root = root_body(model)
    residual = np.zeros((2, len(curves.time), 3))
    if root >= 0:
        wrench = balance.carried[root]
        residual[0] = wrench[3:].T
        residual[1] = (wrench[:3] - cross(moved.position[root], wrench[3:])).T
    force, moment = (
        rotate(np.ascontiguousarray(values.transpose(2, 0, 1)), turn) for values in joint_reactions(moved, balance.carried)
    )
    by_coordinate, by_axis, lab = ("time", "coordinate"), ("time", "axis"), {"frame": LAB}
    per_second = "rad or m, per second"
    inertial, gravity, ground = balance.torque
    variables: dict[str, Any] = {
        "coordinates": (by_coordinate, curves.coordinates, {"units": "rad or m: see coordinate_units"}),
        "speeds": (by_coordinate, curves.speeds, {"units": per_second}),
        "accelerations": (by_coordinate, curves.accelerations, {"units": f"{per_second} squared"}),
        "torque": (by_coordinate, inertial + gravity + ground, {"units": "N m or N"}),
        "torque_inertial": (by_coordinate, inertial, {"units": "N m or N"}),
        "torque_gravity": (by_coordinate, gravity, {"units": "N m or N"}),
        "torque_ground": (by_coordinate, ground, {"units": "N m or N"}),
        "residual_force": (by_axis, rotate(residual[0], turn), {"units": "N"} | lab),
        "residual_moment": (by_axis, rotate(residual[1], turn), {"units": "N m"} | lab),
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
    return xr.Dataset(variables, coords | _names(model, () if loads is None else loads.name), attrs)


@cached_per_model
def _names(model: Model, feet: tuple[str, ...]) -> Coordinates:
    """What the axes of the torques' data are called, but for time."""
    import xarray as xr

    joints = {joint.child: joint.name for joint in model.joints if not joint.closes_loop}
    names: dict[str, Any] = {
        "coordinate": [c.name for c in model.coordinates],
        "coordinate_units": ("coordinate", ["rad" if c.rotational else "m" for c in model.coordinates]),
        "joint": [joints[model.bodies[link.child].name] for link in tree_links(model)],
        "axis": list(AXES),
    }
    return xr.Coordinates(names | ({"foot": list(feet)} if feet else {}))
