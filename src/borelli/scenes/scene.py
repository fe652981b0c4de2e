"""A scene: a model, its initial state, its drives and perturbations, and a duration. `run_scene` simulates it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.control.apply_perturbations import PerturbedModel, apply_perturbations, heading_of_pose
from borelli.control.perturbations import CarriedLoad, MoveGround, Obstacle, Perturbation, Push, WeakenedJoint
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.model.model import Model
from borelli.physics.force_elements.elements import (
    Bushing,
    DriveSchedule,
    ForceElement,
    ForceTable,
    Spring,
    check_elements,
)
from borelli.physics.force_elements.evaluate import check_schedules, check_stiffness
from borelli.physics.force_elements.sensors import ContactSensor, ForcePlate, Imu, Sensor, check_sensors
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.prescribed_motion import mask_absent_bodies, prescribe_motion
from borelli.physics.solver_settings import SolverSettings
from borelli.scenes.scene_excitations import SceneExcitations, check_scene_excitations

if TYPE_CHECKING:
    from xarray import Dataset

Twist = tuple[float, float, float, float, float, float]

STEPPINGS = {
    "soft": "soft rows: springs and dampers as the model states",
    "impulse": "hard rows; joints are closed by Newton's method",
}


@dataclass(frozen=True)
class Scene:
    """Everything `simulate` needs, under one name. `validate_scene` checks it."""

    name: str
    model: Model
    description: str = ""
    step: float = 1 / 240
    """[s]."""
    duration: float = 2.0
    """[s]."""
    coordinates: Mapping[str, float] = field(default_factory=dict)
    """Initial values by coordinate [rad or m]; others start at their defaults."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Initial velocities by coordinate [rad/s or m/s]."""
    twists: Mapping[str, Twist] = field(default_factory=dict)
    """Initial velocity of the center of mass [m/s], then angular velocity [rad/s], by body, world axes."""
    drives: tuple[Drive, ...] = ()
    forces: tuple[AppliedForce, ...] = ()
    springs: tuple[Spring, ...] = ()
    bushings: tuple[Bushing, ...] = ()
    force_tables: tuple[ForceTable, ...] = ()
    drive_schedules: tuple[DriveSchedule, ...] = ()
    imus: tuple[Imu, ...] = ()
    force_plates: tuple[ForcePlate, ...] = ()
    contact_sensors: tuple[ContactSensor, ...] = ()
    pushes: tuple[Push, ...] = ()
    loads: tuple[CarriedLoad, ...] = ()
    weakened: tuple[WeakenedJoint, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    ground_moves: tuple[MoveGround, ...] = ()
    excitations: SceneExcitations = None
    """Excitations of muscles, 0 to 1: a table, or numbers by muscle (0 for others), or one number for all. None:
    muscles and ligaments exert no force."""
    settings: SolverSettings = field(default_factory=SolverSettings)
    stepping: str = "soft"
    """One of `STEPPINGS`."""

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [
            ("description", self.description), ("model", repr(self.model)), ("duration", f"{self.duration:g} s"),
            ("step", f"{self.step:g} s, {self.stepping}"), ("drives", len(self.drives)), ("forces", len(self.forces)),
            ("perturbations", len(self.perturbations)),
        ]  # fmt: skip
        return Summary(f"Scene {self.name}", rows)

    @property
    def elements(self) -> tuple[ForceElement, ...]:
        """All force elements of the scene."""
        return (*self.springs, *self.bushings, *self.force_tables)

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """All virtual sensors of the scene."""
        return (*self.imus, *self.force_plates, *self.contact_sensors)

    @property
    def perturbations(self) -> tuple[Perturbation, ...]:
        """All perturbations of the scene."""
        return (*self.loads, *self.pushes, *self.weakened, *self.obstacles, *self.ground_moves)


def validate_scene(scene: Scene) -> Scene:
    """Check every part of a scene and return the scene.

    Args:
        scene: Scene with its model.

    Returns:
        The scene, unchanged.

    Raises:
        SettingsError: A part is not valid; the message names the first.
    """
    where = f"scene {scene.name!r}"
    for what in ("step", "duration"):
        value = getattr(scene, what)
        if not (isfinite(value) and value > 0.0):
            raise SettingsError(f"{where}: {what} is {value} s. Pass a positive number of seconds.")
    if scene.step > scene.duration:
        raise SettingsError(
            f"{where}: The step of {scene.step} s is longer than the duration of {scene.duration} s. Shorten it."
        )
    if scene.stepping not in STEPPINGS:
        raise SettingsError(f"{where}: {unknown_name('stepping', scene.stepping, STEPPINGS)}")
    if scene.stepping == "impulse" and scene.drives:
        raise SettingsError(
            f"{where}: drive of {scene.drives[0].coordinate!r}: Impulse steps have no springs. Use stepping = 'soft', "
            "or controls (`track_targets`)."
        )
    coordinates = [coordinate.name for coordinate in scene.model.coordinates]
    bodies = [body.name for body in scene.model.bodies]
    for part, what, names, known in (
        ("coordinates", "coordinate", scene.coordinates, coordinates),
        ("speeds", "coordinate", scene.speeds, coordinates),
        ("twists", "body", scene.twists, bodies),
        ("drives", "coordinate", [drive.coordinate for drive in scene.drives], coordinates),
        ("forces", "body", [force.body for force in scene.forces], bodies),
    ):
        for name in names:
            if name not in known:
                raise SettingsError(f"{where}: {part}: {unknown_name(what, name, known)}")
    for what in ("coordinates", "speeds"):
        for name, value in getattr(scene, what).items():
            _check_finite(f"{where}: {what}: {name!r}", (value,))
    for name, twist in scene.twists.items():
        if len(twist) != 6:
            raise SettingsError(f"{where}: twists: {name!r} has {len(twist)} numbers. Pass 6 (v, then omega).")
        _check_finite(f"{where}: twists: {name!r}", twist)
    for force in scene.forces:
        _check_finite(f"{where}: force on {force.body!r}", (*force.force, *force.torque))
        if not force.end > force.start:
            raise SettingsError(
                f"{where}: force on {force.body!r}: Start {force.start} s, end {force.end} s. The end must be later."
            )
    try:
        check_elements(scene.model, scene.elements)
        check_stiffness(scene.model, scene.springs, scene.bushings, scene.step)
        check_schedules(scene.model, scene.drives, scene.drive_schedules)
        check_sensors(scene.model, scene.sensors)
        check_scene_excitations(scene.model, scene.excitations)
        if scene.perturbations:
            _perturbed(scene).before_step(scene.drives)
    except (SettingsError, ModelError) as error:
        raise type(error)(f"{where}: {error}") from None
    return scene


def _perturbed(scene: Scene) -> PerturbedModel:
    """Apply the scene's perturbations to its model, with the heading of the initial pose."""
    initial = np.array([scene.coordinates.get(c.name, c.default) for c in scene.model.coordinates])
    return apply_perturbations(
        scene.model, scene.perturbations, lambda _: heading_of_pose(scene.model, initial), initial_coordinates=initial
    )


def run_scene(scene: Scene, progress: Callable[[float], None] | None = None, *, record_every: int = 1) -> Dataset:
    """Simulate a scene.

    Args:
        scene: The scene.
        progress: Called with the fraction done, 0 to 1.
        record_every: Steps between two records.

    Returns:
        A dataset as of `simulate`.

    Examples:
        >>> result = bo.run_scene(bo.gallery_scene("stack"))
        >>> bool(result["joint_gap"].max() == 0.0)
        True
    """
    validate_scene(scene)
    disturbed = _perturbed(scene)
    model, paths = disturbed.model, disturbed.paths
    options: dict[str, Any] = {
        "duration": scene.duration,
        "step": scene.step,
        "initial_coordinates": scene.coordinates,
        "initial_velocities": scene.speeds,
        "initial_twists": scene.twists,
        "forces": (*scene.forces, *disturbed.forces),
        "elements": scene.elements,
        "sensors": scene.sensors,
        "excitations": scene.excitations,
        "settings": scene.settings,
        "record_every": record_every,
        "progress": progress,
    }
    if scene.stepping == "impulse":
        from borelli.control.track_targets import track_targets

        steer = prescribe_motion(model, paths, scene.step) if paths else None
        data = track_targets(model, (), steer=steer, **options)
    else:
        from borelli.physics.simulate import simulate

        data = simulate(
            model, drives=scene.drives, schedules=scene.drive_schedules,
            before_step=disturbed.before_step(scene.drives), **options,
        )  # fmt: skip
    return mask_absent_bodies(data, paths)


def _check_finite(where: str, values: Iterable[float]) -> None:
    for value in values:
        if not isfinite(value):
            raise SettingsError(f"{where} is {value}. Pass a finite number.")
