"""Controls laid out over the steps of a run: targets, limits and responses as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from borelli.control.controls import Control
from borelli.control.response import PD
from borelli.control.targets import Targets, check_values
from borelli.errors import SettingsError
from borelli.model.model import Joint, Model
from borelli.numerics.quaternions import conjugate, quaternion_product
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.joints import canonical_axes
from borelli.physics.impulse_step.arrays import Controls, TargetTrajectory, ResponseCoefficients, StageArrays, make_target_trajectory

Array = NDArray[np.float64]


class Plan:
    """Where controlled coordinates of a model are to be at the start and end of every step.

    Row 0 is a step before the start, in a straight line with what follows: targets are asked for from the start on.
    """

    def __init__(self, model: Model, controls: Sequence[Control], step: float, steps: int) -> None:
        """Ask all targets for all times."""
        self.model, self.controls, self.step, self.steps = model, controls, step, steps
        self.acting = {name: control for control in controls for name in control.coordinates(model)}
        self.index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
        self.times: Array = step * np.arange(steps + 1, dtype=np.float64)
        self.value = np.full((steps + 2, len(model.coordinates)), np.nan)
        """(steps + 2, coordinates) [rad or m]; not a number where nothing is controlled."""
        self.turn: dict[str, Array] = {}
        """(steps + 2, 4) by ball joint, of its child's canonical joint frame in its parent's."""
        asked: dict[int, Array] = {}
        for control in controls:
            target = control.target
            if isinstance(target, Targets):
                if id(target) not in asked:
                    asked[id(target)] = target.at(self.times)
                table = asked[id(target)]
                i, column = self.index[control.name], target.coordinates.index(control.name)
                check_values(model, (control.name,), self.times, table[:, [column]])
                self.value[1:, i] = table[:, column]
            else:
                self._turn(model.joint(control.name), target.at(self.times))
        self.value[0] = 2.0 * self.value[1] - self.value[2]

    def _turn(self, joint: Joint, quaternions: Array) -> None:
        from scipy.spatial.transform import Rotation

        axes, sign = canonical_axes(joint)
        frame = np.roll(Rotation.from_matrix(axes).as_quat(), 1)
        turn = quaternion_product(quaternion_product(conjugate(frame), quaternions), frame)
        self.turn[joint.name] = _with_row_before(turn)
        angles = Rotation.from_quat(np.roll(turn, -1, axis=1)).as_euler("XYZ") * [1.0, 1.0, sign]
        first = self.index[joint.coordinates[0].name]
        self.value[1:, first : first + 3] = np.unwrap(angles, axis=0)

    def start(self) -> tuple[dict[str, float], dict[str, float]]:
        """Coordinates at their targets, and speeds with which these move."""
        now, speed = self.value[1], (self.value[1] - self.value[0]) / self.step
        return (
            {name: float(now[self.index[name]]) for name in self.acting},
            {name: float(speed[self.index[name]]) for name in self.acting},
        )

    def responses(self) -> dict[str, ResponseCoefficients]:
        """By coordinate, as the impulse step takes them."""
        return {name: self._response(control) for name, control in self.acting.items()}

    def _response(self, control: Control) -> ResponseCoefficients:
        limited = callable(control.limit) or control.limit < np.inf
        if isinstance(control.response, PD):
            one, none = np.ones(1), np.zeros(1)
            a, b = (float(control.response.after(*given, self.step)[0]) for given in ((one, none), (none, one)))
            return ResponseCoefficients(a, b, limited=limited)
        return ResponseCoefficients(callback=True, limited=limited)

    def course(self, compiled: CompiledModel, tables: Controls) -> TargetTrajectory:
        """Targets and limits as the impulse step takes them."""
        joints = compiled.tables.joints
        turn = np.zeros((self.steps + 2, len(tables.ball), 4))
        for n, j in enumerate(tables.ball):
            name, i = self.model.joints[j].name, int(joints.coordinate_first[j])
            angles = self.value[1:, i : i + 3] * [1.0, 1.0, joints.sign[i + 2]]
            turn[:, n] = self.turn[name] if name in self.turn else _with_row_before(_cardan_quaternions(angles))
        return make_target_trajectory(compiled, self.value, turn, max_impulse=self._most())

    def _most(self) -> Array | None:
        """Largest impulses (steps, coordinates)."""
        if all(not callable(control.limit) and control.limit == np.inf for control in self.controls):
            return None
        most = np.full((self.steps, len(self.model.coordinates)), np.inf)
        for name, control in self.acting.items():
            most[:, self.index[name]] = self.step * control.limits(self.times[:-1])
        return most

    def respond(self, compiled: CompiledModel) -> Callable[[int, StageArrays], None]:
        """What tells the step the responses that are neither PD nor known before."""
        parts: list[tuple[Control, slice]] = []
        joints, first = compiled.tables.joints, compiled.tables.joints.coordinate_first
        for name, control in self.acting.items():
            i = self.index[name]
            j = int(joints.joint[i])
            whole = slice(int(first[j]), int(first[j + 1])) if joints.rotation_driven[j] else slice(i, i + 1)
            if not isinstance(control.response, PD) and i == whole.start:
                parts.append((control, whole))

        def tell(index: int, stages: StageArrays) -> None:
            for control, whole in parts:
                error, rate = stages.error[whole].copy(), stages.rate[whole].copy()
                after = np.asarray(control.response.after(error, rate, self.step, self.step * index), float)
                if not np.isfinite(after).all():
                    raise SettingsError(
                        f"control of {control.name!r}: its response at {self.step * index:g} s is {after}; it must "
                        "be finite"
                    )
                stages.response[whole] = after

        return tell

    def gains(self) -> dict[str, PD]:
        """By coordinate, for springs and dampers."""
        for control in self.controls:
            if not isinstance(control.response, PD):
                raise SettingsError(
                    f"control of {control.name!r}: springs and dampers take a PD response, got "
                    f"{type(control.response).__name__}; take the method 'impulse' for others"
                )
        return {name: control.response for name, control in self.acting.items() if isinstance(control.response, PD)}

    def limits(self) -> dict[str, float]:
        """By coordinate, for springs and dampers [N m or N]."""
        for control in self.controls:
            if callable(control.limit):
                raise SettingsError(
                    f"control of {control.name!r}: springs and dampers take a limit that is a number; take the method "
                    "'impulse' for one that changes"
                )
        return {name: float(control.limit) for name, control in self.acting.items() if not callable(control.limit)}

    def only_springs(self, method: str, **given: object) -> None:
        """Raises SettingsError if something is asked for that springs and dampers do not have."""
        for name, value in given.items():
            if value:
                raise SettingsError(f"following targets: {name} was given; the method {method!r} does not have it")


def _with_row_before(turn: Array) -> Array:
    """Rotations (n, 4) with one before them, from which the first turns as it does to the second."""
    before = quaternion_product(quaternion_product(turn[:1], conjugate(turn[1:2])), turn[:1])
    return np.concatenate([before, turn])


def _cardan_quaternions(angles: Array) -> Array:
    """The quaternions (n, 4) of Rx(a) Ry(b) Rz(c)."""
    half, zero = 0.5 * angles, np.zeros(len(angles))
    c, s = np.cos(half), np.sin(half)
    x = np.stack([c[:, 0], s[:, 0], zero, zero], axis=-1)
    y = np.stack([c[:, 1], zero, s[:, 1], zero], axis=-1)
    z = np.stack([c[:, 2], zero, zero, s[:, 2]], axis=-1)
    return quaternion_product(quaternion_product(x, y), z)
