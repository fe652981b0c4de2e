"""Animation: a simulated character tracks a motion, reacts to perturbations and recovers.

Joints are controlled by impulse-based PD towards the motion. No joint torque can move the root, so external forces and
torques of limited size drive it; they are reported as root residuals. The controller does not know of contacts. With
ground contact the root is still driven, and feet that would penetrate the ground yield. Where the limits are lower than
body weight, the ground supports the rest, but there is no balance control for walking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import Motion
from borelli.control.apply_perturbations import PerturbedModel, apply_perturbations, heading_of_pose, late_notes
from borelli.control.controls import Control
from borelli.control.ground_shift import ground_shift
from borelli.control.perturbations import Obstacle, Perturbation
from borelli.control.plant_feet import plant_feet
from borelli.control.response import PD
from borelli.control.self_collision import overlapping_bodies
from borelli.control.targets import Targets
from borelli.control.track_targets import track_targets
from borelli.control.tracking_error import add_tracking_error, free_root_coordinates, tracking_metrics
from borelli.errors import SettingsError, list_names
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.model.kinematics import poses
from borelli.model.model import Coordinate, Model, Shape
from borelli.physics.prescribed_motion import mask_absent_bodies, prescribe_motion
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

LIMIT_MARGIN = 1e-6
"""Distance of widened joint limits from the motion [rad or m]."""


@dataclass(frozen=True)
class TrackingSettings:
    """Settling times and force limits of a tracking character."""

    joint_settling_time: float = 0.3
    """Time [s] after which a joint's tracking error is below 2 %."""
    root_settling_time: float = 0.6
    """The same for the root [s]."""
    max_root_force: float = 3.0
    """Largest external force on the root, along each axis [body weights]."""
    max_root_torque: float = 1.0
    """Largest external torque on the root, about each axis [body weights times m]."""
    ground_contact: bool = False
    """Enable ground contact; without it, the ground is only drawn."""

    def __post_init__(self) -> None:
        for name in ("max_root_force", "max_root_torque"):
            value = getattr(self, name)
            if not value >= 0.0:
                raise SettingsError(f"{name}: The limit is {value:g}, but it must be 0 or larger. Correct it.")


DEFAULT_TRACKING = TrackingSettings()


@dataclass(frozen=True)
class Animation:
    """Result of `animate`."""

    data: Dataset
    """As of `track_targets`, with `body_tracking_error` (time) [m]: RMS distance of bodies from the motion's."""
    metrics: Mapping[str, float | None]
    """By name with unit; None where there is no value."""
    notes: tuple[Note, ...] = ()

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [(name, "none" if value is None else f"{value:.4g}") for name, value in self.metrics.items()]
        error = (1e3 * self.data["body_tracking_error"].values).tolist()
        return Summary("Animation", rows, self.data["time"].values.tolist(), {"bodies": error}, "Tracking error [mm]")


def animate(
    motion: Motion,
    perturbations: Sequence[Perturbation] = (),
    *,
    tracking: TrackingSettings = DEFAULT_TRACKING,
    step: float = 1 / 240,
    cutoff: float | None = None,
    record_every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Animation:
    """Track a motion with a simulated character under perturbations; times count from the motion's first frame.

    Args:
        motion: Target motion.
        perturbations: Perturbations that act on the character.
        tracking: Settling times and limits.
        step: Step length [s].
        cutoff: Low-pass cutoff for the motion's coordinates [Hz]. Default: 6.
        record_every: Steps between two records.
        progress: Called with the fraction done, 0 to 1.

    Returns:
        The recorded dataset with tracking error and root residuals, metrics and notes.

    Raises:
        SettingsError: A perturbation does not fit the model, or the motion is shorter than a step.

    Examples:
        >>> reach = bo.synthetic_recording("reach")
        >>> motion = bo.inverse_kinematics(reach.model, bo.clean(reach.recording))
        >>> animation = bo.animate(motion, [bo.Push("hand_r", (0.0, 80.0, 0.0), start=0.4, duration=0.1)])
        >>> bool(animation.data["body_tracking_error"].max() > 0.001)  # m
        True
    """
    curves = differentiate(motion, cutoff=cutoff)
    steps = int((curves.time[-1] - curves.time[0]) / step + 1e-9)
    if steps < 1:
        raise SettingsError(f"step: The motion is shorter than one step of {step:g} s. Choose a shorter step.")
    table = curves.at(curves.time[0] + step * np.arange(steps + 1))[0]
    grounded, notes = _with_ground(motion.model, tracking)
    table, shift, grounding = _set_on_ground(grounded, table, step)
    model, widened = _widen_limits(grounded, table)
    apart, passing = _passing_bodies(model, table)

    def heading(time: float) -> Array:
        return heading_of_pose(model, table[min(max(round(time / step), 0), steps)])

    ground_center = poses(model, table.mean(axis=0))[0][0].mean(axis=0)
    disturbed = apply_perturbations(
        model, perturbations, heading, initial_coordinates=table[0], ground_center=ground_center
    )
    strength: dict[str, float] = {}
    if disturbed.weakened:
        # the strength of a joint is the largest force of an undisturbed run
        calm = _track(PerturbedModel(model), model, table, tracking, step, 1, None, strength, apart)
        strength = dict(zip(calm["coordinate"].values, np.abs(calm["torque"].values).max(axis=0), strict=True))
    data = _track(disturbed, model, table, tracking, step, record_every, progress, strength, apart)
    data = add_tracking_error(mask_absent_bodies(data, disturbed.paths), model, table[::record_every], perturbations)
    data.attrs |= {
        "tracking": json.dumps(asdict(tracking)),
        "perturbations": json.dumps([str(p) for p in perturbations]),
    }
    late = late_notes(perturbations, steps * step)
    metrics = tracking_metrics(data) | ({"shift onto the ground [m]": shift} if grounding else {})
    untouched = _untouched_notes(data, perturbations)
    return Animation(data, metrics, (*curves.notes, *notes, *grounding, *widened, *passing, *late, *untouched))


def _untouched_notes(data: Dataset, perturbations: Sequence[Perturbation]) -> list[Note]:
    """Return notes on obstacles that nothing touched in the recorded steps."""
    notes = []
    for one in (p for p in perturbations if isinstance(p, Obstacle)):
        if one.name in data["body"].values and not np.any(data["contact_force"].sel(body=one.name).values):
            text = f"Obstacle {one.name!r} touched nothing and had no effect."
            notes.append(Note(text, "problem", "move it, or change its times", code="perturbation_contact"))
    return notes


def _with_ground(model: Model, tracking: TrackingSettings) -> tuple[Model, tuple[Note, ...]]:
    """Return the model without muscles and markers, with the ground that the settings need."""
    ground, notes = model.ground, tuple[Note, ...]()
    if tracking.ground_contact and not any(shape.collides for shape in ground):
        if tuple(np.sign(model.gravity)) != (0.0, 0.0, -1.0):
            raise SettingsError(
                f"ground: Model {model.name!r} has no ground, and its z axis is not up. Add a ground to the model."
            )
        ground = (*ground, Shape("plane"))
        text = "The model has no ground. A plane at z = 0 was added."
        notes = (Note(text, "inferred", "a ground in the model", code="ground"),)
    if not tracking.ground_contact:
        ground = tuple(replace(shape, collides=False) for shape in ground)
    return replace(model, ground=ground, muscles=(), markers=(), self_collision=True), notes


def _set_on_ground(model: Model, table: Array, step: float) -> tuple[Array, float, tuple[Note, ...]]:
    """Return the motion (frames, coordinates) on the model's ground, its largest shift [m], and notes.

    A model without a plane has no ground to stand on.
    """
    if not any(shape.kind == "plane" for shape in model.ground):
        return table, 0.0, ()
    shift, notes = ground_shift(model, table)
    if any(note.kind == "problem" for note in notes):
        return table, 0.0, notes
    planted, more = plant_feet(model, table + shift, step)
    return planted, float(np.abs(shift).max()), (*notes, *more)


def _widen_limits(model: Model, table: Array) -> tuple[Model, tuple[Note, ...]]:
    """Return the model with joint limits widened to the motion (frames, coordinates), and a note if they were."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    lowest, highest = table.min(axis=0), table.max(axis=0)
    widened = []

    def widen(old: Coordinate) -> Coordinate:
        low, high = lowest[column[old.name]], highest[column[old.name]]
        if old.lower <= low and high <= old.upper:
            return old
        widened.append(old.name)
        return replace(old, lower=min(old.lower, low - LIMIT_MARGIN), upper=max(old.upper, high + LIMIT_MARGIN))

    joints = tuple(replace(j, coordinates=tuple(map(widen, j.coordinates))) for j in model.joints)
    if not widened:
        return model, ()
    text = f"The motion exceeds the joint limits of {list_names(widened)}. These limits were widened."
    return replace(model, joints=joints), (Note(text, "changed", code="joint_limits"),)


def _passing_bodies(model: Model, table: Array) -> tuple[tuple[tuple[str, str], ...], tuple[Note, ...]]:
    """Return the pairs of bodies that overlap in the motion (frames, coordinates), and a note on them."""
    pairs = overlapping_bodies(model, table)
    if not pairs:
        return pairs, ()
    names = list_names([f"{a} and {b}" for a, b in pairs])
    text = f"Bodies overlap in the motion, so they do not collide: {names}."
    return pairs, (Note(text, "changed", code="self_collision"),)


def _track(
    disturbed: PerturbedModel,
    character: Model,
    table: Array,
    tracking: TrackingSettings,
    step: float,
    record_every: int,
    progress: Callable[[float], None] | None,
    strength: Mapping[str, float],
    apart: Sequence[tuple[str, str]],
) -> Dataset:
    """Track a motion (steps + 1, coordinates) of a character, which perturbations may have given more bodies.

    `strength` [N m or N] is that of coordinates before they are weakened.
    """
    from scipy.interpolate import CubicSpline

    model, steps = disturbed.model, len(table) - 1
    coupled = {coupling.coordinate for coupling in model.couplings}
    columns = [i for i, c in enumerate(character.coordinates) if not c.locked and c.name not in coupled]
    names = [character.coordinates[i].name for i in columns]
    curve = CubicSpline(step * np.arange(steps + 1), table[:, columns])
    targets = Targets(model, tuple(names), curve, 0.0, steps * step)
    weight = sum(b.mass for b in character.bodies) * float(np.linalg.norm(model.gravity) or 9.81)
    root = free_root_coordinates(character)
    rotational = {c.name: c.rotational for c in model.coordinates}
    weak = {name for w in disturbed.weakened for name in w.coordinates(model)}

    def max_force(name: str) -> float | Callable[[float], float]:
        highest = inf
        if name in root:
            highest = weight * (tracking.max_root_torque if rotational[name] else tracking.max_root_force)

        def weakened(time: float) -> float:
            fraction = disturbed.remaining_strength(name, time)
            return highest if fraction == 1.0 else fraction * min(highest, strength[name])

        return weakened if name in weak else highest

    of_joints = PD.from_settling_time(tracking.joint_settling_time)
    of_root = PD.from_settling_time(tracking.root_settling_time)
    controls = [Control(name, targets, of_root if name in root else of_joints, max_force(name)) for name in names]
    return track_targets(
        model,
        controls,
        duration=steps * step,
        step=step,
        outside=disturbed.outside,
        no_contact=apart,
        forces=disturbed.forces,
        steer=prescribe_motion(model, disturbed.paths, step) if disturbed.paths else None,
        record_every=record_every,
        progress=progress,
    )
