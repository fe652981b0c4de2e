"""Controls over the steps of a run: targets, force limits and responses as arrays."""

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
from borelli.physics.impulse_step.arrays import (
    Controls,
    ResponseCoefficients,
    StageArrays,
    TargetTrajectory,
    make_target_trajectory,
)

Array = NDArray[np.float64]


class ControlArrays:
    """Targets of controlled coordinates at the start and end of every step.

    Row 0 is one step before the start and extrapolates linearly: targets are evaluated from the start on.
    """

    def __init__(self, model: Model, controls: Sequence[Control], step: float, steps: int) -> None:
        """Evaluate all targets at all times."""
        self.model, self.controls, self.step, self.steps = model, controls, step, steps
        self.acting = {name: control for control in controls for name in control.coordinates(model)}
        self.index = {coordinate.name: i for i, coordinate in enumerate(model.coordinates)}
        self.times: Array = step * np.arange(steps + 1, dtype=np.float64)
        self.value = np.full((steps + 2, len(model.coordinates)), np.nan)
        """(steps + 2, coordinates) [rad or m]; NaN where nothing is controlled."""
        self.rotation: dict[str, Array] = {}
        """(steps + 2, 4) by ball joint, of the child's canonical joint frame in the parent's."""
        tables: dict[int, Array] = {}
        for control in controls:
            target = control.target
            if isinstance(target, Targets):
                if id(target) not in tables:
                    tables[id(target)] = target.at(self.times)
                table = tables[id(target)]
                i, column = self.index[control.name], target.coordinates.index(control.name)
                check_values(model, (control.name,), self.times, table[:, [column]])
                self.value[1:, i] = table[:, column]
            else:
                self._set_rotation(model.joint(control.name), target.at(self.times))
        self.value[0] = 2.0 * self.value[1] - self.value[2]

    def _set_rotation(self, joint: Joint, quaternions: Array) -> None:
        from scipy.spatial.transform import Rotation

        axes, sign = canonical_axes(joint)
        frame = np.roll(Rotation.from_matrix(axes).as_quat(), 1)
        rotation = quaternion_product(quaternion_product(conjugate(frame), quaternions), frame)
        self.rotation[joint.name] = _with_row_before(rotation)
        angles = Rotation.from_quat(np.roll(rotation, -1, axis=1)).as_euler("XYZ") * [1.0, 1.0, sign]
        first = self.index[joint.coordinates[0].name]
        self.value[1:, first : first + 3] = np.unwrap(angles, axis=0)

    def initial_state(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the targets of coordinates at the start [rad or m], and their velocities."""
        now, velocity = self.value[1], (self.value[1] - self.value[0]) / self.step
        return (
            {name: float(now[self.index[name]]) for name in self.acting},
            {name: float(velocity[self.index[name]]) for name in self.acting},
        )

    def responses(self, *, limited: bool = False) -> dict[str, ResponseCoefficients]:
        """Return the responses by coordinate, as the impulse step takes them; `limited`: all have force limits."""
        return {name: self._response(control, limited) for name, control in self.acting.items()}

    def _response(self, control: Control, limited: bool) -> ResponseCoefficients:
        limited = limited or callable(control.max_force) or control.max_force < np.inf
        if isinstance(control.response, PD):
            one, none = np.ones(1), np.zeros(1)
            a, b = (float(control.response.after(*unit, self.step)[0]) for unit in ((one, none), (none, one)))
            return ResponseCoefficients(a, b, limited=limited)
        return ResponseCoefficients(callback=True, limited=limited)

    def target_trajectory(self, compiled: CompiledModel, tables: Controls) -> TargetTrajectory:
        """Return targets and force limits as the impulse step takes them."""
        joints = compiled.tables.joints
        rotation = np.zeros((self.steps + 2, len(tables.ball), 4))
        for n, j in enumerate(tables.ball):
            name, i = self.model.joints[j].name, int(joints.coordinate_first[j])
            angles = self.value[1:, i : i + 3] * [1.0, 1.0, joints.sign[i + 2]]
            known = name in self.rotation
            rotation[:, n] = self.rotation[name] if known else _with_row_before(_cardan_quaternions(angles))
        return make_target_trajectory(compiled, self.value, rotation, max_impulse=self._max_impulses())

    def _max_impulses(self) -> Array | None:
        """Return the largest impulses (steps, coordinates); None if unlimited."""
        if all(not callable(control.max_force) and control.max_force == np.inf for control in self.controls):
            return None
        largest = np.full((self.steps, len(self.model.coordinates)), np.inf)
        for name, control in self.acting.items():
            largest[:, self.index[name]] = self.step * control.max_forces(self.times[:-1])
        return largest

    def response_callback(self, compiled: CompiledModel) -> Callable[[int, StageArrays], None]:
        """Return a callback that evaluates responses other than PD before each step."""
        parts: list[tuple[Control, slice]] = []
        joints, first = compiled.tables.joints, compiled.tables.joints.coordinate_first
        for name, control in self.acting.items():
            i = self.index[name]
            j = int(joints.joint[i])
            columns = slice(int(first[j]), int(first[j + 1])) if joints.rotation_driven[j] else slice(i, i + 1)
            if not isinstance(control.response, PD) and i == columns.start:
                parts.append((control, columns))

        def evaluate(index: int, stages: StageArrays) -> None:
            for control, columns in parts:
                error, rate = stages.error[columns].copy(), stages.rate[columns].copy()
                after = np.asarray(control.response.after(error, rate, self.step, self.step * index), float)
                if not np.isfinite(after).all():
                    raise SettingsError(
                        f"control of {control.name!r}: The response at {self.step * index:g} s is {after}, but it must "
                        "be finite. Correct the response."
                    )
                stages.response[columns] = after

        return evaluate

    def gains(self) -> dict[str, PD]:
        """Return the PD gains by coordinate, for springs and dampers."""
        for control in self.controls:
            if not isinstance(control.response, PD):
                raise SettingsError(
                    f"control of {control.name!r}: Springs and dampers need a PD response, got "
                    f"{type(control.response).__name__}. Use method='impulse' for other responses."
                )
        return {name: control.response for name, control in self.acting.items() if isinstance(control.response, PD)}

    def max_forces(self) -> dict[str, float]:
        """Return the force limits by coordinate [N m or N], for springs and dampers."""
        for control in self.controls:
            if callable(control.max_force):
                raise SettingsError(
                    f"control of {control.name!r}: Springs and dampers need a constant max_force. Use method='impulse' "
                    "for one that varies in time."
                )
        return {
            name: float(control.max_force) for name, control in self.acting.items() if not callable(control.max_force)
        }


def _with_row_before(rotation: Array) -> Array:
    """Prepend the rotation that precedes the first as the first precedes the second, to rotations (n, 4)."""
    before = quaternion_product(quaternion_product(rotation[:1], conjugate(rotation[1:2])), rotation[:1])
    return np.concatenate([before, rotation])


def _cardan_quaternions(angles: Array) -> Array:
    """Return the quaternions (n, 4) of Rx(a) Ry(b) Rz(c)."""
    half, zero = 0.5 * angles, np.zeros(len(angles))
    c, s = np.cos(half), np.sin(half)
    x = np.stack([c[:, 0], s[:, 0], zero, zero], axis=-1)
    y = np.stack([c[:, 1], zero, s[:, 1], zero], axis=-1)
    z = np.stack([c[:, 2], zero, zero, s[:, 2]], axis=-1)
    return quaternion_product(quaternion_product(x, y), z)
