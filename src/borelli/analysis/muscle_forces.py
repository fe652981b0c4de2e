"""Muscle forces that produce the torques of a motion: load sharing with Hill-type bounds, joint contact forces, cost.

Stage after inverse dynamics. Path lengths, velocities and moment arms come from the motion; the active force at full
activation from the force-length and force-velocity curves with rigid tendons (as in OpenSim's static optimization), or
with tendons that the forces stretch; activations from `share_loads`. Torque that muscles cannot attain is reported,
never hidden.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.analysis.dynamics.rnea import forward_kinematics, joint_reactions, subtree_wrenches
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.load_sharing.elastic_tendons import TENDON_TOLERANCE, share_with_elastic_tendons
from borelli.analysis.load_sharing.share_loads import STATUS, SharingResult, share_loads
from borelli.analysis.load_sharing.sharing_settings import Reserves, SharingSettings
from borelli.analysis.motion import rotate, to_model_axes
from borelli.analysis.option_values import option_value
from borelli.errors import ModelError, SettingsError, list_names, unknown_name
from borelli.files.html_repr import Summary, main_series, summary_html, summary_repr
from borelli.model.kinematics import root_coordinates
from borelli.model.model import Model
from borelli.muscles.hill import MuscleArrays, RigidTendon, make_muscle_arrays, rigid_tendon_force, status_warnings
from borelli.muscles.metabolics import metabolic_power
from borelli.muscles.paths import MusclePaths, muscle_paths
from borelli.muscles.wrenches import body_wrenches
from borelli.numerics.vectors import Array
from borelli.recording.emg.envelopes import emg_envelopes, has_emg
from borelli.recording.emg.muscle_names import matching_muscles, read_muscle_names
from borelli.recording.recording import LAB, Note

if TYPE_CHECKING:
    from xarray import Dataset

TENDONS = ("rigid", "elastic")
MIN_MOMENT_ARM = 1e-3
"""[m] Coordinates about which no muscle has a longer arm in any frame are not actuated by muscles."""
PASSIVE_COORDINATES = ("knee_rotation", "ankle_inversion", "toe_extension")
"""Coordinates of `human` whose torque ligaments and the plantar fascia carry, not muscles. The axis of inversion is
along the foot and not that of the subtalar joint, so muscles that balance moments about it would be wrong."""
SPECIFIC_TENSION = 0.6e6
"""[Pa] to which the strength of the leg models of Arnold et al. (2010) and Rajagopal et al. (2016) is scaled."""
MAX_UNATTAINED = 0.05
"""Fraction of a coordinate's peak torque beyond which unattained torque is a warning (Hicks et al. 2015: reserves)."""


@dataclass(frozen=True)
class MuscleForces:
    """Muscle forces of a motion.

    Attributes:
        torques: Torques they produce.
        data: By time and muscle `muscle_activation`, `muscle_force` [N] along the tendon, `muscle_length` [m],
            `muscle_velocity` [m/s], `fiber_length` [m], `fiber_velocity` [m/s], `max_active_force` [N]; by time and
            coordinate `muscle_torque`, `reserve_torque`, `unattained_torque` [N m or N] of the coordinates that muscles
            actuate, NaN for others; `joint_contact_force` [N] and `joint_contact_moment` [N m] of every joint on its
            child, at the joint, with muscles pulling on their own points (lab axes); `muscle_metabolic_power` by muscle
            and `metabolic_power` of the body [W]; `emg_envelope` of muscles with EMG, NaN for others; `sharing_status`
            by time.
        settings: Options, as plain values.
        notes: Assumptions and problems.
    """

    torques: Torques
    data: Dataset
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        motion, data = self.torques.motion, self.data
        worst = self.worst_unattained
        rows = [
            ("model", motion.model.name),
            ("frames", f"{data.sizes['time']} at {motion.rate:g} Hz"),
            ("muscles", data.sizes["muscle"]),
            ("cost", f"{self.settings['cost']}, exponent {self.settings['exponent']:g}"),
            ("largest unattained torque", "none" if worst is None else f"{100.0 * worst[1]:.1f} % of peak, {worst[0]}"),
            ("notes", len(self.notes)),
        ]
        time = data["time"].values.tolist()
        return Summary("Muscle forces", rows, time, main_series(data, "muscle_force"), "Largest muscle forces [N]")

    @property
    def actuated(self) -> list[str]:
        """Coordinates whose torque muscles share."""
        finite = np.isfinite(self.data["muscle_torque"].values).any(axis=0)
        return [str(name) for name in self.data["coordinate"].values[finite]]

    @property
    def worst_unattained(self) -> tuple[str, float] | None:
        """Coordinate with the largest unattained torque, as a fraction of its peak torque; None: all is attained."""
        fractions = unattained_fractions(self)
        if not fractions:
            return None
        name = max(fractions, key=lambda key: fractions[key])
        return (name, fractions[name]) if fractions[name] > 0.0 else None


def unattained_fractions(muscles: MuscleForces) -> dict[str, float]:
    """Return the largest unattained torque of each actuated coordinate, as a fraction of its peak torque.

    Over the frames with known ground reaction force; without coordinates that are missing in all of these.
    """
    known = muscles.torques.grf_known
    known = known if known.any() else np.ones(len(known), bool)
    missing = np.abs(muscles.data["unattained_torque"].sel(coordinate=muscles.actuated).values[known])
    shared = np.isfinite(missing).any(axis=0)
    names = [name for name, is_shared in zip(muscles.actuated, shared, strict=True) if is_shared]
    required = np.abs(muscles.torques.data["torque"].sel(coordinate=names).values[known])
    peak = np.maximum(np.nanmax(required, axis=0), 1e-12)
    return dict(zip(names, (np.nanmax(missing[:, shared], axis=0) / peak).tolist(), strict=True))


def muscle_forces(
    torques: Torques,
    *,
    cost: str = "activation",
    exponent: float = 2.0,
    passive: bool = False,
    tendon: str = "rigid",
    coordinates: Sequence[str] | None = None,
    reserves: float | Mapping[str, float] | None = None,
    rate_bounds: bool = False,
    emg: Dataset | None = None,
    emg_weight: float = 0.0,
    metabolics: str | None = "umberger2010",
    specific_tension: float = SPECIFIC_TENSION,
) -> MuscleForces:
    """Compute the muscle forces and activations that produce the torques of a motion.

    Args:
        torques: Torques of a model with muscles: `human(muscles=True)`, or a model file that has them.
        cost: "activation", "force", "volume" or "metabolic": see `SharingSettings`.
        exponent: Exponent of the cost, 1 to 5.
        passive: Include the passive force of stretched fibers.
        tendon: "rigid", or "elastic": tendons are stretched by their forces, and fibers have the length that this
            leaves them. The velocity of the stretch is neglected; `borelli.optimal` includes it.
        coordinates: Coordinates whose torque muscles produce. Default: all that a muscle crosses, except those of the
            root and, in `human`, rotation of the knee, inversion of the ankle and extension of the toes: ligaments
            carry these.
        reserves: Optimal force of ideal actuators [N m or N] for all coordinates, or by name. Default: none.
        rate_bounds: Bound rates of activation by the time constants of activation dynamics.
        emg: EMG from `emg_envelopes`. Default: that of the recording, if it has any. It is part of the result, next to
            the activations.
        emg_weight: Weight v of the cost v (activation - envelope)^2 against activation^p; 0: EMG does not affect the
            activations.
        metabolics: Model of metabolic power, "umberger2010" or "bhargava2004"; None: not computed. Excitations are
            assumed equal to activations.
        specific_tension: Stress [Pa] of muscles at maximum isometric force, for their masses.

    Returns:
        Forces, activations and unattained torques, with what they were computed from.

    Raises:
        ModelError: The model has no muscles.
        SettingsError: An option is out of range, or names something unknown.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> model = bo.add_muscles(walk.model)
        >>> torques = bo.inverse_dynamics(bo.inverse_kinematics(model, walk.recording))
        >>> muscles = bo.muscle_forces(torques)
        >>> muscles.data["muscle_activation"].sizes["muscle"]
        106
    """
    model, data = torques.motion.model, torques.data
    if not model.muscles:
        raise ModelError(
            f"Model {model.name!r} has no muscles. Use `add_muscles` for a model made by `human`, or a model file with "
            "muscles."
        )
    q, u = data["coordinate_value"].values, data["coordinate_velocity"].values
    paths = muscle_paths(model, q, u)
    assert paths.velocity is not None
    arrays = make_muscle_arrays(model)
    hill = rigid_tendon_force(arrays, paths.length, paths.velocity)
    chosen = _actuated_coordinates(model, paths, coordinates)
    columns = [paths.coordinate.index(name) for name in chosen]
    settings = SharingSettings(
        cost, exponent,
        activation_time=float(np.mean(arrays.activation_time)) if rate_bounds else None,
        deactivation_time=float(np.mean(arrays.deactivation_time)) if rate_bounds else None,
    )  # fmt: skip
    envelopes, emg_notes = _emg(torques, emg)
    targets = envelopes if emg_weight > 0.0 else None
    if emg_weight > 0.0 and envelopes is None:
        raise SettingsError(
            "emg_weight: The recording has no EMG of these muscles. Pass `emg`, or leave out the weight."
        )

    def share(fibers: RigidTendon) -> SharingResult:
        return share_loads(
            paths.moment_arm[:, :, columns], data["torque"].values[:, columns], fibers.active_force, settings=settings,
            volume=arrays.max_isometric_force * arrays.optimal_fiber_length, min_activation=arrays.min_activation,
            max_activation=arrays.max_activation, passive_force=fibers.passive_force if passive else None,
            targets=targets, target_weights=None if targets is None else np.full(len(model.muscles), emg_weight),
            reserves=_reserves(chosen, reserves), times=data["time"].values,
        )  # fmt: skip

    result, tendon_change = share(hill), 0.0
    if option_value("tendon", tendon, TENDONS) == "elastic":
        hill, result, tendon_change = share_with_elastic_tendons(arrays, paths, result, share)
    used = {
        "cost": cost, "exponent": float(exponent), "passive": passive, "coordinates": list(chosen),
        "reserves": reserves if reserves is None or isinstance(reserves, int | float) else dict(reserves),
        "rate_bounds": rate_bounds, "emg_weight": emg_weight, "metabolics": metabolics,
        "specific_tension_pa": specific_tension,
        "tendon": tendon,
    }  # fmt: skip
    dataset = _dataset(torques, paths, hill, result, chosen)
    dataset = dataset.assign(joint_contact_forces(torques, result.force))
    if envelopes is not None:
        dataset["emg_envelope"] = (("time", "muscle"), envelopes, {"units": "1"})
    if metabolics is not None:
        dataset = dataset.assign(_metabolic(model, arrays, hill, result, metabolics, specific_tension))
    muscles = MuscleForces(torques, dataset, used)
    notes = _notes(muscles, result, status_warnings(arrays, hill.status), coordinates is None)
    if tendon_change > TENDON_TOLERANCE:
        text = (
            f"Muscle forces and the stretch of their tendons differ by up to {100.0 * tendon_change:.1g} % of the "
            "maximum isometric force. Activations and fibers in these frames are not reliable."
        )
        notes = (*notes, Note(text, "problem", "use rigid tendons", code="tendons_not_converged"))
    return MuscleForces(torques, dataset, used, (*notes, *emg_notes))


def _actuated_coordinates(model: Model, paths: MusclePaths, requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the coordinates whose torque muscles produce."""
    crossed = np.abs(paths.moment_arm).max(axis=(0, 1)) > MIN_MOMENT_ARM
    names = [name for name, is_crossed in zip(paths.coordinate, crossed, strict=True) if is_crossed]
    if requested is None:
        left_out = {*root_coordinates(model), *(f"{name}_{side}" for name in PASSIVE_COORDINATES for side in "rl")}
        return tuple(name for name in names if name not in left_out)
    for name in requested:
        if name not in paths.coordinate:
            raise SettingsError(f"coordinates: {unknown_name('coordinate', name, paths.coordinate)}")
        if name not in names:
            raise SettingsError(f"coordinates: No muscle crosses {name!r}. Leave it out.")
    return tuple(requested)


def _emg(torques: Torques, given: Dataset | None) -> tuple[Array | None, tuple[Note, ...]]:
    """Return EMG envelopes (frames, muscles), NaN for muscles without EMG, and notes; None if there is no EMG."""
    recording = torques.motion.recording
    if given is None:
        if recording is None or not has_emg(recording):
            return None, ()
        try:
            given = emg_envelopes(recording)
        except SettingsError as error:
            return None, (Note(f"The EMG of the recording is not used. {error}", "problem", code="emg_unusable"),)
    names = [muscle.name for muscle in torques.motion.model.muscles]
    own = read_muscle_names(names)
    time = torques.data["time"].values
    envelopes = np.full((len(time), len(names)), np.nan)
    unused = []
    channels = [str(name) for name in given["muscle"].values]
    for name, channel in zip(channels, read_muscle_names(channels), strict=True):
        matching = matching_muscles(channel, own)
        values = np.interp(time, given["time"].values, given["emg_envelope"].sel(muscle=name).values)
        envelopes[:, [names.index(muscle) for muscle in matching]] = values[:, None]
        if not matching:
            unused.append(name)
    notes = tuple(Note(**fields) for fields in json.loads(given.attrs.get("notes", "[]")))
    if unused:
        text = f"EMG of {list_names(unused)} belongs to no muscle of the model."
        notes = (*notes, Note(text, "problem", "emg_envelopes(muscles=...)", code="emg_without_muscle"))
    return (None if np.isnan(envelopes).all() else envelopes), notes


def _reserves(coordinates: Sequence[str], given: float | Mapping[str, float] | None) -> Reserves | None:
    if given is None:
        return None
    if isinstance(given, int | float):
        return Reserves(np.full(len(coordinates), float(given)))
    for name in given:
        if name not in coordinates:
            raise SettingsError(f"reserves: {unknown_name('coordinate', name, coordinates)}")
    return Reserves(np.array([float(given.get(name, 0.0)) for name in coordinates]))


def _notes(
    muscles: MuscleForces, result: SharingResult, warnings: Sequence[str], coordinates_by_default: bool
) -> tuple[Note, ...]:
    notes = [Note(text, "problem", "check fiber and tendon lengths", code="muscle_state") for text in warnings]
    beyond = {name: f for name, f in unattained_fractions(muscles).items() if f > MAX_UNATTAINED}
    if beyond:
        worst = sorted(beyond, key=lambda name: -beyond[name])
        named = [f"{name} {100.0 * beyond[name]:.0f} %" for name in worst]
        text = (
            f"Muscles cannot produce the torque of {list_names(named)} (largest unattained torque, of the peak). "
            "Forces of the muscles that cross these joints are not reliable in those frames."
        )
        notes.append(Note(text, "problem", "check strength, or allow reserves", code="torque_unattained"))
    if failed := int((result.status == STATUS.index("not converged")).sum()):
        text = f"Load sharing did not converge in {failed} of {len(result.status)} frames."
        notes.append(Note(text, "problem", "check the motion in these frames", code="sharing_not_converged"))
    if coordinates_by_default:
        others = [c for c in PASSIVE_COORDINATES if f"{c}_r" in muscles.data["coordinate"].values]
        if others:
            text = f"Torque about {list_names(others)} is attributed to ligaments, not shared by muscles."
            notes.append(Note(text, "inferred", "muscle_forces(coordinates=...)", code="passive_coordinates"))
    return tuple(notes)


def _dataset(
    torques: Torques,
    paths: MusclePaths,
    hill: RigidTendon,
    result: SharingResult,
    chosen: Sequence[str],
) -> Dataset:
    import xarray as xr

    data = torques.data
    by_muscle, by_coordinate = ("time", "muscle"), ("time", "coordinate")
    columns = [paths.coordinate.index(name) for name in chosen]

    def on_all(values: Array) -> Array:
        every = np.full((len(values), len(paths.coordinate)), np.nan)
        every[:, columns] = values
        return every

    required = data["torque"].values[:, columns]
    produced = required - result.unattained_torque - result.reserve_torque
    variables: dict[str, Any] = {
        "muscle_activation": (by_muscle, result.activation, {"units": "1"}),
        "muscle_force": (by_muscle, result.force, {"units": "N"}),
        "muscle_length": (by_muscle, paths.length, {"units": "m"}),
        "muscle_velocity": (by_muscle, paths.velocity, {"units": "m/s"}),
        "max_active_force": (by_muscle, hill.active_force, {"units": "N"}),
        "fiber_length": (by_muscle, hill.fiber_length, {"units": "m"}),
        "fiber_velocity": (by_muscle, hill.fiber_velocity, {"units": "m/s"}),
        "muscle_torque": (by_coordinate, on_all(produced), {"units": "N m or N"}),
        "reserve_torque": (by_coordinate, on_all(result.reserve_torque), {"units": "N m or N"}),
        "unattained_torque": (by_coordinate, on_all(result.unattained_torque), {"units": "N m or N"}),
        "sharing_status": (("time",), result.status, {"units": "1", "meaning": ", ".join(STATUS)}),
    }
    coords = {name: data[name] for name in ("time", "coordinate", "coordinate_units", "joint", "axis")}
    attrs = {"rate_hz": float(data.attrs["rate_hz"]), "mass_kg": float(data.attrs["mass_kg"])}
    return xr.Dataset(variables, {**coords, "muscle": list(paths.muscle)}, attrs)


def joint_contact_forces(torques: Torques, force: Array) -> Dataset:
    """Compute what joints carry: net joint reactions less what muscles apply to the bodies outboard of the joint.

    A point that moves in its body does work that no force on a body represents: its torque stays in the moment.

    Args:
        torques: Torques with net joint reactions.
        force: (frames, muscles) forces along the tendon [N]; the results of frames with NaN are NaN.

    Returns:
        `joint_contact_force` [N] and `joint_contact_moment` [N m] by time and joint, on the child, at the joint center.
    """
    model, data = torques.motion.model, torques.data
    names = ("coordinate_value", "coordinate_velocity", "coordinate_acceleration")
    kinematics = forward_kinematics(model, *(data[name].values for name in names))
    wrench = body_wrenches(model, data["coordinate_value"].values, np.nan_to_num(force))
    by_muscles = joint_reactions(kinematics, subtree_wrenches(kinematics, wrench.transpose(1, 2, 0)))
    rotation, missing = to_model_axes(model), ~np.isfinite(force).all(axis=1)
    reactions = data[["joint_reaction_force", "joint_reaction_moment"]]
    result = reactions.rename({str(name): str(name).replace("reaction", "contact") for name in reactions})
    for name, values in zip(result, by_muscles, strict=True):
        result[name] = result[name] - rotate(np.ascontiguousarray(values.transpose(2, 0, 1)), rotation)
        result[name].values[missing] = np.nan
        result[name].attrs = {"units": "N" if str(name).endswith("force") else "N m", "frame": LAB}
    return result


def _metabolic(
    model: Model, arrays: MuscleArrays, hill: RigidTendon, result: SharingResult, name: str, specific_tension: float
) -> dict[str, Any]:
    """Return the metabolic power [W] of each muscle and, with the basal rate, of the body."""
    active = result.activation * hill.active_force / np.maximum(hill.pennation_cosine, 1e-6)
    power = metabolic_power(
        arrays, name, excitation=result.activation, activation=result.activation, fiber_length=hill.fiber_length,
        fiber_velocity=hill.fiber_velocity, active_force=active, body_mass=model.mass,
        passive_force=hill.passive_force / np.maximum(hill.pennation_cosine, 1e-6), specific_tension=specific_tension,
    )  # fmt: skip
    return {
        "muscle_metabolic_power": (("time", "muscle"), power.total, {"units": "W"}),
        "metabolic_power": (("time",), power.whole_body, {"units": "W"}),
    }
