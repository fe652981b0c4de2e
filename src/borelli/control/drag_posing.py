"""Posing: a point of a body is dragged, and post-stabilisation finds the pose (key-framing, seed 000, section 3).

Post-stabilisation gives the velocity change with the least kinetic energy that meets its rows: with M the masses, J the
rows and l their impulses,

    dv = M^-1 J^T l,     l = (J M^-1 J^T)^-1 (wanted - J v).

A pose at rest that is asked to take the dragged point a little way along, joints shut, moves so by dq = M^-1 J^T l:
heavy parts stay where light ones can do it. The soft step solves exactly these rows (stops are one-sided ones among
them), so a drag is a sequence of its steps without gravity, each from rest, of one second each, so that velocities are
displacements. Far goals are walked to in short strides: where a drag leads depends on the way, not on its pieces.

Goals out of reach have no such l. The point's row therefore gives way by b, (J M^-1 J^T + b) l = wanted, as little as
rounding allows while strides succeed, and more (Levenberg 1944, Marquardt 1963) when one would lead away from its goal,
leap, or pass a stop. What it then ends at is the nearest point: no small motion that stops allow leads nearer. (Limbs
that are exactly straight are bent a little first, since along them nothing moves at first order.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import coupled_coordinates
from borelli.model.model import Coordinate, Joint, Marker, Model, Softness, Vector
from borelli.numerics.quaternions import rotate
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities, joint_gap
from borelli.physics.joints.coordinates import poses_from_coordinates
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import make_inputs

Array = NDArray[np.float64]

SHUT = Softness(erp=1.0)
"""A hard row whose error is gone after one step."""
STRIDE = 0.005
"""How far the point is taken at once [m]."""
REACHED = 1e-6
"""A point this near to its goal [m] is there."""
CLOSE = 1e-11
"""A point this near [m] is there but for rounding."""
MAX_COORDINATE_CHANGE = 0.09
"""Most that a coordinate may change at once [rad or m]: stops are seen from 0.1 rad on."""
OVERSHOT = 1e-5
"""How far a stop may be passed by the curvature of one stride [rad or m]; the coordinate is then put on it."""
LEAST, MOST = 1e-7, 1e9
"""Giving way b of the dragged point's row, times the model's mass [s]; where it is the most, nothing moves."""
HELD = 1e-10
"""The same of held bodies, which are gripped at three points each."""
GRIPS: tuple[Vector, ...] = ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.3))
"""In the body's frame [m]."""
NUDGE = 0.01
"""By how much joints are bent [rad] when nothing moves."""
TRIES = 2000
"""Solves at the goal itself: those that end at a nearest point come nearer by a share each time."""


@dataclass(frozen=True)
class DragResult:
    """Where a drag ended."""

    coordinates: Mapping[str, float]
    """[rad or m], of the whole model."""
    point: Vector
    """Where the dragged point is [m], world."""
    miss: float
    """How far that is from where it was to be [m]."""

    @property
    def reached(self) -> bool:
        """Whether the point is where it was to be; if not, it is as near as it gets."""
        return self.miss <= REACHED


def drag_point(
    model: Model,
    coordinates: Mapping[str, float],
    body: str,
    point: Vector,
    to: Vector,
    *,
    held: Sequence[str] = (),
) -> DragResult:
    """The pose after a point of a body was dragged somewhere, along a straight line, by the least motion.

    Joints stay shut, stops are respected; ground and bodies do not touch.

    Args:
        model: Whose pose it is.
        coordinates: The pose dragged from [rad or m]; those left out are at their defaults.
        body: What is dragged.
        point: Where it is taken hold of, in the body's frame [m].
        to: Where that point is to be [m], world.
        held: Bodies that stay where they are and coordinates that keep their values.

    Raises:
        SettingsError: a name that is not in the model, a place that is not finite, or a body that nothing can move.
    """
    _check(model, body, point, to, held)
    return _Drag(model, coordinates, body, point, held).to(np.array(to, float))


class _Drag:
    """A model taken hold of at a point."""

    def __init__(
        self, model: Model, coordinates: Mapping[str, float], body: str, point: Vector, held: Sequence[str]
    ) -> None:
        markers = [Marker("dragged", body, point)]
        markers += [
            Marker(f"{name} {i}", name, at) for name in held if name in _bodies(model) for i, at in enumerate(GRIPS)
        ]
        self.compiled = compile_model(_weightless(model, held, markers), step=1.0, marker_springs=SHUT)
        self.state = initial_state(self.compiled, coordinates=coordinates)
        self.wanted = self.places()
        inputs = make_inputs(self.compiled, marker=np.stack([self.wanted, self.wanted]))
        self.simulation = Simulation(self.compiled, self.state, inputs)
        self.record = make_record(self.compiled, 1)
        # those of joints that close loops follow from the rest
        self.compiled.tables.joints.default[:] = self.state.coordinate
        self.state.coordinate[:] = self.read()
        self.unit = 1.0 / model.mass
        self.give = LEAST

    def to(self, goal: Array) -> DragResult:
        """Along a straight line, then until nothing brings the point nearer."""
        begin = self.wanted[0].copy()
        strides = int(np.ceil(np.linalg.norm(goal - begin) / STRIDE))
        tried = False
        for k in range(1, strides + 1):
            last = self.places()[0]
            self.pull(begin + k / strides * (goal - begin), 4 if k < strides else TRIES)
            stuck = float(np.linalg.norm(self.places()[0] - last)) < 0.1 * STRIDE
            # once, while nothing moves; and where all ends
            if (stuck and not tried) or (k == strides and self.off() > REACHED):
                tried = not self.nudge()
        x, y, z = self.places()[0].tolist()
        names = [c.name for c in self.compiled.model.coordinates]
        values = dict(zip(names, self.state.coordinate.tolist(), strict=True))
        return DragResult(values, (x, y, z), float(np.linalg.norm(np.array([x, y, z]) - goal)))

    def pull(self, goal: Array, tries: int) -> None:
        """Take the point to a goal near by, in so many solves at most."""
        self.wanted[0] = goal
        self.simulation.inputs.marker[:] = self.wanted
        off = self.off()
        for _ in range(tries):
            if off <= CLOSE:
                return
            before = self.state.copy()
            fits = self.solve()
            now = self.off()
            if fits and now < off:
                self.give = max(LEAST, 0.1 * self.give)
                if off - now < CLOSE:
                    return
                off = now
                continue
            self.state.restore(before)
            self.give *= 10.0
            if self.give > MOST:
                self.give = LEAST
                return

    def nudge(self) -> bool:
        """Bend joints a little and pull again; undone unless it leads nearer. Whether it did.

        Straight limbs are singular: what is dragged along them cannot begin to move, although bent ones could go. Those
        that stand at a stop, as straight knees do, are bent away from it; if there are none, all are.
        """
        before, off = self.state.copy(), self.off()
        joints, value = self.compiled.tables.joints, self.state.coordinate
        bent = np.clip(value + NUDGE, joints.lower, joints.upper)
        bent = np.where(bent < value + NUDGE, value - NUDGE, bent)
        turning = joints.rotational.astype(bool) & ~joints.locked.astype(bool)
        at_stop = turning & ((value <= joints.lower + OVERSHOT) | (value >= joints.upper - OVERSHOT))
        self.put(np.where(at_stop if at_stop.any() else turning, bent, value))
        self.pull(self.wanted[0].copy(), 50)
        if self.off() < off - REACHED:
            return True
        self.state.restore(before)
        return False

    def put(self, coordinates: Array) -> None:
        """Place all bodies by their coordinates, couplings met."""
        state, still = self.state, np.zeros(len(coordinates))
        state.coordinate[:] = coupled_coordinates(self.compiled.model, coordinates)
        joints = self.compiled.tables.joints
        poses_from_coordinates(joints, state.coordinate, still, state.position, state.quaternion, state.twist)

    def solve(self) -> bool:
        """One post-stabilisation from rest; whether it neither leapt nor passed a stop."""
        state, tables = self.state, self.compiled.tables
        tables.marker_springs.beta[0], tables.marker_springs.beta[1:] = self.give * self.unit, HELD * self.unit
        state.twist[:] = 0.0
        last = tables.joints.default[:] = state.coordinate.copy()  # where locked ones are held
        lower, upper = tables.joints.lower, tables.joints.upper
        self.simulation.index = 0
        self.simulation.advance(1, self.record)
        values = self.read()
        # one that was beyond before need not come back at once
        beyond = np.abs(last - np.clip(last, lower, upper)).max()
        inside = np.clip(values, lower, upper)
        fits = np.abs(values - inside).max() <= OVERSHOT + beyond and np.abs(values - last).max() <= MAX_COORDINATE_CHANGE
        # joints shut, stops kept, locked ones held and couplings met to the last digit
        self.put(np.where(tables.joints.locked, last, inside))
        return bool(fits)

    def read(self) -> Array:
        """The coordinates of the bodies as they are, angles counted on from the tables' defaults."""
        pose = np.hstack([self.state.position, self.state.quaternion])
        return coordinates_and_velocities(self.compiled, pose[None], self.state.twist[None])[0][0]

    def places(self) -> Array:
        """Where the dragged point is, then the grips of what is held (points, 3) [m]."""
        anchors = self.compiled.tables.marker_springs
        return np.asarray(
            self.state.position[anchors.body] + rotate(self.state.quaternion[anchors.body], anchors.offset)
        )

    def off(self) -> float:
        """How far all points are from where they are to be, and loops from shut, added up [m]."""
        off = float(np.linalg.norm(self.places() - self.wanted, axis=1).sum())
        if any(joint.closes_loop for joint in self.compiled.model.joints):
            off += float(joint_gap(self.compiled, np.hstack([self.state.position, self.state.quaternion])[None])[0])
        return off


def _bodies(model: Model) -> list[str]:
    return [body.name for body in model.bodies]


def _weightless(model: Model, held: Sequence[str], markers: Sequence[Marker]) -> Model:
    """The model with hard joints and these markers, where nothing acts, and held coordinates are locked."""

    def coordinate(old: Coordinate) -> Coordinate:
        return replace(old, locked=old.locked or old.name in held)

    def joint(old: Joint) -> Joint:
        return replace(old, softness=SHUT, coordinates=tuple(map(coordinate, old.coordinates)))

    return replace(
        model,
        joints=tuple(map(joint, model.joints)),
        couplings=tuple(replace(coupling, softness=SHUT) for coupling in model.couplings),
        markers=tuple(markers),
        muscles=(),
        ground=(),
        self_collision=False,
        gravity=(0.0, 0.0, 0.0),
    )


def _check(model: Model, body: str, point: Vector, to: Vector, held: Sequence[str]) -> None:
    bodies, coordinates = _bodies(model), [c.name for c in model.coordinates]
    if body not in bodies:
        raise SettingsError(f"drag: {unknown_name('body', body, bodies)}")
    for name in held:
        if name not in (*bodies, *coordinates):
            raise SettingsError(f"drag: held: {unknown_name('body or coordinate', name, (*bodies, *coordinates))}")
    for what, vector in (("point", point), ("to", to)):
        if len(vector) != 3 or not np.isfinite(vector).all():
            raise SettingsError(f"drag: {what} is {vector}; it must be three finite numbers [m], such as (0.4, 0, 1.2)")
    if body in held or model.body(body).kinematic:
        raise SettingsError(f"drag: body {body!r} is held, so it cannot be dragged; leave it out of `held`")
    if all(joint.child != body for joint in model.joints):
        raise SettingsError(f"drag: body {body!r} hangs on no joint, so no coordinate says where it is; drag another")
