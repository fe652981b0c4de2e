"""A motion becomes a character: it follows the motion by control, gives way when disturbed, and comes back.

Joints are controlled by impulse-based PD towards the motion. No joint could carry the root, so it is led from outside
by forces and torques within limits: what nature did not supply, and told as such. Contacts are not known to the
controller. On ground that is touched the root goes on being led, and feet that would pass through give way; where the
limits are lower than the weight, the ground carries the rest, but nothing keeps the balance of who walks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.differentiation import Derivatives, differentiate
from borelli.analysis.motion import Motion
from borelli.control.apply_perturbations import Perturbed, heading_at, perturbed
from borelli.control.controls import Control
from borelli.control.perturbations import Perturbation
from borelli.control.response import PD
from borelli.control.targets import Targets
from borelli.control.track_targets import track_targets
from borelli.control.tracking_error import figures_of, measured, root_coordinates
from borelli.errors import SettingsError, list_names
from borelli.model.kinematics import poses
from borelli.model.model import Coordinate, Model, Shape
from borelli.physics.prescribed_motion import prescribe_motion, mask_absent_bodies
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from xarray import Dataset

Array = NDArray[np.float64]

ROOM = 1e-6
"""By how much stops are put beyond what the motion does [rad or m]."""


@dataclass(frozen=True)
class TrackingSettings:
    """How a character follows."""

    joints: float = 0.3
    """Settling time of joints [s], after which 2 % of an error are left."""
    root: float = 0.6
    """Of the root [s]."""
    force: float = 3.0
    """Largest force that leads the root, along each axis [body weights]."""
    torque: float = 1.0
    """Largest torque that leads the root, about each axis [body weights times m]."""
    ground: bool = False
    """Whether the ground is touched; otherwise it is only drawn."""

    def __post_init__(self) -> None:
        for what in ("force", "torque"):
            value = getattr(self, what)
            if not value >= 0.0:
                raise SettingsError(f"the limit of the root's {what} is {value:g}; it must be 0 or larger")


DEFAULT_TRACKING = TrackingSettings()


@dataclass(frozen=True)
class Animation:
    """What a character did."""

    data: Dataset
    """As of `track_targets`, with `deviation` (time) [m]: root mean square distance of bodies from the motion's."""
    figures: Mapping[str, float | None]
    """By name, with the unit in it."""
    notes: tuple[Note, ...] = ()


def animate(
    motion: Motion,
    perturbations: Sequence[Perturbation] = (),
    *,
    leading: TrackingSettings = DEFAULT_TRACKING,
    step: float = 1 / 240,
    cutoff: float | None = None,
    every: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Animation:
    """Let a character follow a motion while it is disturbed. Times count from the motion's first frame.

    Args:
        motion: What is followed.
        perturbations: What disturbs it.
        leading: How it follows.
        step: [s]
        cutoff: Of the low-pass on the motion's coordinates [Hz]; 6 if not given.
        every: Steps between two records.
        progress: Called now and then with the share done, 0 to 1.

    Raises:
        SettingsError: a perturbation that does not fit the model, or a motion too short to follow.
    """
    curves = differentiate(motion, cutoff=cutoff)
    steps = int((curves.time[-1] - curves.time[0]) / step + 1e-9)
    if steps < 1:
        raise SettingsError(f"the motion is shorter than a step of {step:g} s; take shorter steps")
    table = curves.at(curves.time[0] + step * np.arange(steps + 1))[0]
    model, notes = _ready(motion.model, table, leading)

    def heads(time: float) -> Array:
        return heading_at(model, table[min(max(round(time / step), 0), steps)])

    middle = poses(model, table.mean(axis=0))[0][0].mean(axis=0)
    disturbed = perturbed(model, perturbations, heads, start=table[0], middle=middle)
    strength: dict[str, float] = {}
    if disturbed.weakened:
        # what following takes while nothing disturbs it is what there is to lose
        calm = _follow(Perturbed(model), curves, leading, steps, step, 1, None, strength)
        strength = dict(zip(calm["coordinate"].values, np.abs(calm["torque"].values).max(axis=0), strict=True))
    data = _follow(disturbed, curves, leading, steps, step, every, progress, strength)
    data = measured(mask_absent_bodies(data, disturbed.paths), model, table[::every], perturbations)
    data.attrs |= {"leading": json.dumps(asdict(leading)), "perturbations": json.dumps([str(p) for p in perturbations])}
    return Animation(data, figures_of(data), (*curves.notes, *notes))


def _ready(model: Model, table: Array, leading: TrackingSettings) -> tuple[Model, tuple[Note, ...]]:
    """The model with stops that let the motion (frames, coordinates) pass, on ground that is there or only drawn."""
    column = {c.name: i for i, c in enumerate(model.coordinates)}
    least, most = table.min(axis=0), table.max(axis=0)
    widened = []

    def passing(old: Coordinate) -> Coordinate:
        low, high = least[column[old.name]], most[column[old.name]]
        if old.lower <= low and high <= old.upper:
            return old
        widened.append(old.name)
        return replace(old, lower=min(old.lower, low - ROOM), upper=max(old.upper, high + ROOM))

    joints = tuple(replace(j, coordinates=tuple(map(passing, j.coordinates))) for j in model.joints)
    notes = []
    if widened:
        notes.append(
            Note(f"the motion passes the stops of {list_names(widened)}: they are moved out of its way", "changed")
        )
    ground = model.ground
    if leading.ground and not any(shape.collides for shape in ground):
        if tuple(np.sign(model.gravity)) != (0.0, 0.0, -1.0):
            raise SettingsError(f"model {model.name!r} has no ground, and z is not up in it; give it a ground")
        ground = (*ground, Shape("plane"))
        notes.append(Note("the model has no ground: it is put at z = 0", "inferred", "a ground in the model"))
    if not leading.ground:
        ground = tuple(replace(shape, collides=False) for shape in ground)
    return replace(model, joints=joints, ground=ground, muscles=(), markers=()), tuple(notes)


def _follow(
    disturbed: Perturbed,
    curves: Derivatives,
    leading: TrackingSettings,
    steps: int,
    step: float,
    every: int,
    progress: Callable[[float], None] | None,
    strength: Mapping[str, float],
) -> Dataset:
    """The run; `strength` [N m or N] is what coordinates have before they are weakened."""
    model = disturbed.model
    coupled = {coupling.coordinate for coupling in model.couplings}
    own = [c.name for c in curves.model.coordinates if not c.locked and c.name not in coupled]
    columns = [i for i, c in enumerate(curves.model.coordinates) if c.name in own]
    begin = float(curves.time[0])
    targets = Targets(model, tuple(own), lambda t: curves.at(begin + t)[0][:, columns], 0.0, steps * step)
    weight = sum(b.mass for b in curves.model.bodies) * float(np.linalg.norm(model.gravity) or 9.81)
    root = root_coordinates(curves.model)
    rotational = {c.name: c.rotational for c in model.coordinates}
    weak = {name for w in disturbed.weakened for name in w.coordinates(model)}

    def limit(name: str) -> float | Callable[[float], float]:
        most = weight * (leading.torque if rotational[name] else leading.force) if name in root else inf

        def weakened(time: float) -> float:
            share = disturbed.share_left(name, time)
            return most if share == 1.0 else share * min(most, strength[name])

        return weakened if name in weak else most

    of_joints, of_root = PD.from_settling_time(leading.joints), PD.from_settling_time(leading.root)
    controls = [Control(name, targets, of_root if name in root else of_joints, limit(name)) for name in own]
    return track_targets(
        model,
        controls,
        duration=steps * step,
        step=step,
        outside=disturbed.outside,
        forces=disturbed.forces,
        steer=prescribe_motion(model, disturbed.paths, step) if disturbed.paths else None,
        every=every,
        progress=progress,
    )
