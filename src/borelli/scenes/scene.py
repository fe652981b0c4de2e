"""A scene: a model, how it starts, what drives it, and for how long. `run_scene` plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from borelli.control.apply_perturbations import Perturbed, heading_at, perturbed
from borelli.control.perturbations import CarriedLoad, MoveGround, Obstacle, Perturbation, Push, WeakenedJoint
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.solver_settings import SolverSettings

if TYPE_CHECKING:
    from xarray import Dataset

Twist = tuple[float, float, float, float, float, float]

STEPPINGS = {
    "soft": "rows give way by springs and dampers, as the model says",
    "impulse": "everything is hard; joints are closed by Newton's method",
}


@dataclass(frozen=True)
class Scene:
    """Everything `simulate` needs, under one name. `validate_scene` says whether it holds together."""

    name: str
    model: Model
    description: str = ""
    step: float = 1 / 240
    """[s]."""
    duration: float = 2.0
    """[s]."""
    coordinates: Mapping[str, float] = field(default_factory=dict)
    """Where coordinates start [rad or m]; those left out start at their defaults."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """How fast coordinates start [rad/s or m/s]."""
    twists: Mapping[str, Twist] = field(default_factory=dict)
    """How fast bodies start: velocity of the centre of mass [m/s], then spin [rad/s], in the world."""
    drives: tuple[Drive, ...] = ()
    forces: tuple[AppliedForce, ...] = ()
    pushes: tuple[Push, ...] = ()
    loads: tuple[CarriedLoad, ...] = ()
    weakened: tuple[WeakenedJoint, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    ground_moves: tuple[MoveGround, ...] = ()
    settings: SolverSettings = field(default_factory=SolverSettings)
    stepping: str = "soft"
    """One of `STEPPINGS`."""

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """All that disturbs the scene."""
        return (*self.loads, *self.pushes, *self.weakened, *self.obstacles, *self.ground_moves)


def validate_scene(scene: Scene) -> Scene:
    """The scene itself, once every part has been found sound.

    Raises:
        SettingsError: naming the first part that is not.
    """
    where = f"scene {scene.name!r}"
    for what in ("step", "duration"):
        value = getattr(scene, what)
        if not (isfinite(value) and value > 0.0):
            raise SettingsError(f"{where}: {what} is {value} s, but must be a positive number of seconds")
    if scene.step > scene.duration:
        raise SettingsError(f"{where}: the step of {scene.step} s is longer than the duration of {scene.duration} s")
    if scene.stepping not in STEPPINGS:
        raise SettingsError(f"{where}: {unknown_name('stepping', scene.stepping, STEPPINGS)}")
    if scene.stepping == "impulse" and scene.drives:
        raise SettingsError(
            f"{where}: drive of {scene.drives[0].coordinate!r}: impulse steps have no springs; take the stepping "
            "'soft', or controls (`track_targets`)"
        )
    coordinates = [coordinate.name for coordinate in scene.model.coordinates]
    bodies = [body.name for body in scene.model.bodies]
    _check_names(f"{where}: coordinates", "coordinate", scene.coordinates, coordinates)
    _check_names(f"{where}: speeds", "coordinate", scene.speeds, coordinates)
    _check_names(f"{where}: twists", "body", scene.twists, bodies)
    _check_names(f"{where}: drives", "coordinate", (drive.coordinate for drive in scene.drives), coordinates)
    _check_names(f"{where}: forces", "body", (force.body for force in scene.forces), bodies)
    for what in ("coordinates", "speeds"):
        for name, value in getattr(scene, what).items():
            _check_finite(f"{where}: {what}: {name!r}", (value,))
    for name, twist in scene.twists.items():
        if len(twist) != 6:
            raise SettingsError(f"{where}: twists: {name!r} has {len(twist)} numbers, but must have 6 (velocity, spin)")
        _check_finite(f"{where}: twists: {name!r}", twist)
    for force in scene.forces:
        _check_finite(f"{where}: force on {force.body!r}", (*force.force, *force.torque))
        if not force.end > force.start:
            raise SettingsError(
                f"{where}: force on {force.body!r} starts at {force.start} s, ends at {force.end} s; it must end later"
            )
    if scene.perturbations:
        try:
            _perturbed(scene).before_step(scene.drives)
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from None
    return scene


def _perturbed(scene: Scene) -> Perturbed:
    """The scene's model under its perturbations; it heads for good where it heads at the start."""
    start = np.array([scene.coordinates.get(c.name, c.default) for c in scene.model.coordinates])
    return perturbed(scene.model, scene.perturbations, lambda time: heading_at(scene.model, start), start=start)


def run_scene(scene: Scene, progress: Callable[[float], None] | None = None, *, every: int = 1) -> Dataset:
    """The scene played from start to end; `progress` is told the share done, `every` nth step is kept."""
    from borelli.physics.prescribed_motion import prescribe_motion, mask_absent_bodies

    validate_scene(scene)
    disturbed = _perturbed(scene)
    forces = (*scene.forces, *disturbed.forces)
    if scene.stepping == "impulse":
        from borelli.control.track_targets import track_targets

        dataset = track_targets(
            disturbed.model,
            (),
            duration=scene.duration,
            step=scene.step,
            start=scene.coordinates,
            speeds=scene.speeds,
            twists=scene.twists,
            forces=forces,
            settings=scene.settings,
            steer=prescribe_motion(disturbed.model, disturbed.paths, scene.step) if disturbed.paths else None,
            every=every,
            progress=progress,
        )
        return mask_absent_bodies(dataset, disturbed.paths)
    from borelli.physics.simulate import simulate

    dataset = simulate(
        disturbed.model,
        duration=scene.duration,
        step=scene.step,
        initial_coordinates=scene.coordinates,
        initial_velocities=scene.speeds,
        initial_twists=scene.twists,
        drives=scene.drives,
        forces=forces,
        settings=scene.settings,
        record_every=every,
        progress=progress,
        before_step=disturbed.before_step(scene.drives),
    )
    return mask_absent_bodies(dataset, disturbed.paths)


def _check_names(where: str, what: str, names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise SettingsError(f"{where}: {unknown_name(what, name, known)}")


def _check_finite(where: str, values: Iterable[float]) -> None:
    for value in values:
        if not isfinite(value):
            raise SettingsError(f"{where} is {value}, but must be a finite number")
