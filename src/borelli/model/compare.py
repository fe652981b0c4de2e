"""Comparison of two models: masses, lengths, positions and inverse dynamics over the same random poses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from borelli.errors import SettingsError, list_names, unknown_name
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.model.kinematics import (
    center_of_mass,
    coupled_forces,
    coupled_motion,
    generalized_forces,
    marker_positions,
    poses,
)
from borelli.model.model import Coordinate, Model
from borelli.model.transforms import Array
from borelli.numerics.quaternions import smallest_rotation

if TYPE_CHECKING:
    from rich.table import Table

MAX_DISPLACEMENT = 1.0
"""Largest distance [rad or m] of a coordinate from its default in a random pose."""
ROUNDING = 1e-9
"""Differences below this, in any unit, are not listed row by row."""
MAX_SPEED, MAX_ACCELERATION = 2.0, 10.0
"""Largest random speed [rad/s, m/s] and acceleration [rad/s^2, m/s^2] for inverse dynamics."""


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """One element in both models."""

    name: str
    a: tuple[float, ...]
    """Value in the first model, in the default pose."""
    b: tuple[float, ...]
    difference: float
    """Largest difference over all poses."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """All compared values of one quantity."""

    name: str
    unit: str
    rows: tuple[ComparedValue, ...]

    @property
    def worst(self) -> ComparedValue | None:
        """Row with the largest difference; None if there are no rows."""
        return max(self.rows, key=lambda row: row.difference, default=None)


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """Differences between two models."""

    a: str
    b: str
    poses: int
    quantities: tuple[Quantity, ...]
    only_a: Mapping[str, tuple[str, ...]]
    """Names in the first model only, by kind of element."""
    only_b: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [(q.name, f"at most {self.worst(q.name):.3g} {q.unit}") for q in self.quantities]
        return Summary(
            f"ModelComparison {self.a}, {self.b}", [*rows, ("poses", self.poses), ("notes", len(self.notes))]
        )

    @check_arguments
    def quantity(self, name: str) -> Quantity:
        """Return the quantity called `name`."""
        for quantity in self.quantities:
            if quantity.name == name:
                return quantity
        raise SettingsError(unknown_name("quantity", name, (q.name for q in self.quantities)))

    @check_arguments
    def worst(self, name: str) -> float:
        """Return the largest difference of a quantity; zero if no element is in both models."""
        row = self.quantity(name).worst
        return 0.0 if row is None else row.difference

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, ready for JSON."""
        table = asdict(self)
        for entry, quantity in zip(table["quantities"], self.quantities, strict=True):
            entry["worst"] = None if quantity.worst is None else quantity.worst.difference
        return table

    @check_arguments
    def tables(self, rows: int = 5) -> list[Table]:
        """Return tables for a terminal: a summary, and for each quantity the rows with the largest differences."""
        from rich.table import Table

        summary = Table("quantity", "in both", "largest difference", "element", title=f"{self.a}  |  {self.b}")
        details = []
        for quantity in self.quantities:
            if quantity.worst is None:
                summary.add_row(quantity.name, "0", "", "")
                continue
            largest = f"{quantity.worst.difference:.3g} {quantity.unit}"
            summary.add_row(quantity.name, str(len(quantity.rows)), largest, quantity.worst.name)
            if quantity.worst.difference > ROUNDING:
                details.append(_detail(quantity, self.a, self.b, rows))
        return [summary, *details]

    @check_arguments
    def text(self, rows: int = 5) -> str:
        """Return the comparison as plain text."""
        from rich.console import Console

        console = Console(width=110, color_system=None)
        with console.capture() as captured:
            for table in self.tables(rows):
                console.print(table)
            for which, only in ((self.a, self.only_a), (self.b, self.only_b)):
                for kind, names in only.items():
                    console.print(f"{kind} only in {which}: {list_names(names)}", markup=False)
            for note in self.notes:
                console.print(note, markup=False)
        return captured.get()


def compare_models(
    a: Model,
    b: Model,
    *,
    poses: int = 100,
    seed: int = 0,
    frame: str | None = None,
    labels: tuple[str, str] | None = None,
) -> ModelComparison:
    """Compare two models over random poses in which the coordinates of both have the same values.

    Bodies, coordinates, markers and muscles are matched by name, or else by name without case and punctuation.
    Coordinates of one model only stay at their defaults; coupled ones follow their couplings. Where the direction of
    gravity differs, `b` is rotated to that of `a`.

    Args:
        a: First model.
        b: Second model.
        poses: Number of random poses.
        seed: Seed of the random numbers.
        frame: Body of `a` in whose frame positions are compared. Default: the world.
        labels: Names of the models in the report. Default: their own.

    Returns:
        Largest differences by quantity, and what only one of the models has.

    Raises:
        SettingsError: if `poses` is less than 1, or `frame` is not a body of both models.
    """
    if poses < 1:
        raise SettingsError(f"poses is {poses}. It must be at least 1.")
    pair = _Pair.of(a, b, poses, seed, frame)
    quantities = (
        Quantity("total mass", "kg", (_compared("total", a.mass, b.mass),)),
        _values("body mass", "kg", pair, "bodies", "mass"),
        _values("body center of mass", "m", pair, "bodies", "center_of_mass"),
        _values("body inertia", "kg m^2", pair, "bodies", "inertia"),
        _segment_lengths(pair),
        _series("body position", "m", pair.bodies, pair.positions),
        _orientations(pair),
        _series("model center of mass", "m", [("model", "model")] if a.mass and b.mass else [], pair.centers),
        _series("marker position", "m", pair.markers, pair.marker_positions),
        _series("inverse dynamics", "N m or N", pair.free_coordinates(), pair.forces),
        _values("muscle maximum isometric force", "N", pair, "muscles", "max_isometric_force"),
        _values("optimal fiber length", "m", pair, "muscles", "optimal_fiber_length"),
        _values("tendon slack length", "m", pair, "muscles", "tendon_slack_length"),
    )
    first, second = labels or ((a.name, b.name) if a.name != b.name else (f"{a.name} (1)", f"{b.name} (2)"))
    return ModelComparison(first, second, poses, quantities, pair.only(0), pair.only(1), tuple(pair.notes))


Names = Sequence[tuple[str, str]]
"""Names, in the first and second model, of elements in both."""
Motion = tuple[Array, Array, Array]
"""Coordinates, speeds and accelerations (frames, coordinates)."""
_KINDS = ("bodies", "coordinates", "markers", "muscles")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both models in the same poses; the first pose is the default one."""

    models: tuple[Model, Model]
    bodies: Names
    coordinates: Names
    markers: Names
    muscles: Names
    motion: tuple[Motion, Motion]
    rotation: Array
    """From the world of the second model to that of the first."""
    frame: str | None
    notes: list[str]

    @staticmethod
    def of(a: Model, b: Model, count: int, seed: int, frame: str | None) -> _Pair:
        names = [[[e.name for e in getattr(m, kind)] for m in (a, b)] for kind in _KINDS]
        bodies, coordinates, markers, muscles = (_match_names(first, second) for first, second in names)
        known = dict(bodies)
        if frame is not None and frame not in known:
            raise SettingsError(f"frame: {unknown_name('body in both models', frame, known)}")
        notes: list[str] = []
        motion = _random_motion(a, b, coordinates, count, seed)
        down = np.array(b.gravity), np.array(a.gravity)
        rotation = smallest_rotation(*down) if all(one.any() for one in down) else np.eye(3)
        if np.abs(rotation - np.eye(3)).max() > 1e-9:
            difference = f"Gravity is {a.gravity} in the first model and {b.gravity} in the second"
            notes.append(f"{difference}. The second model is rotated to match.")
        return _Pair((a, b), bodies, coordinates, markers, muscles, motion, rotation, frame, notes)

    def only(self, which: int) -> dict[str, tuple[str, ...]]:
        """Return the names of elements that only one model has, by kind."""
        result = {}
        for kind in _KINDS:
            shared = {names[which] for names in getattr(self, kind)}
            own = [e.name for e in getattr(self.models[which], kind) if e.name not in shared]
            if own:
                result[kind] = tuple(own)
        return result

    def free_coordinates(self) -> Names:
        """Return the coordinates that no coupling determines in either model."""
        coupled = [{coupling.coordinate for coupling in model.couplings} for model in self.models]
        return [(a, b) for a, b in self.coordinates if a not in coupled[0] and b not in coupled[1]]

    # The following return values (frames, components) by name, of one of the models.

    def positions(self, which: int) -> dict[str, Array]:
        model = self.models[which]
        return self._in_frame([body.name for body in model.bodies], poses(model, self.motion[which][0])[0], which)

    def marker_positions(self, which: int) -> dict[str, Array]:
        model = self.models[which]
        return self._in_frame([m.name for m in model.markers], marker_positions(model, self.motion[which][0]), which)

    def centers(self, which: int) -> dict[str, Array]:
        return self._in_frame(["model"], center_of_mass(self.models[which], self.motion[which][0])[:, None], which)

    def forces(self, which: int) -> dict[str, Array]:
        """Return the forces of inverse dynamics; those of coupled coordinates count at those they depend on."""
        model, (q, u, a) = self.models[which], self.motion[which]
        forces = coupled_forces(model, q, generalized_forces(model, q, u, a))
        return {c.name: forces[:, i, None] for i, c in enumerate(model.coordinates)}

    def _in_frame(self, names: Sequence[str], points: Array, which: int) -> dict[str, Array]:
        """Return points (frames, elements, 3) in the common frame, by name."""
        if self.frame is not None:
            body = self.frame if which == 0 else dict(self.bodies)[self.frame]
            position, rotation = poses(self.models[which], self.motion[which][0])
            i = [b.name for b in self.models[which].bodies].index(body)
            points = np.einsum("fji,fkj->fki", rotation[:, i], points - position[:, i : i + 1])
        elif which == 1:
            points = points @ self.rotation.T
        return {name: points[:, k] for k, name in enumerate(names)}


def _match_names(first: Sequence[str], second: Sequence[str]) -> Names:
    """Return pairs of names that are equal, or equal without case and punctuation if that is unambiguous."""
    exact = set(first) & set(second)
    plain = [_plain_names(names, exact) for names in (first, second)]
    loose = {plain[0][key]: plain[1][key] for key in plain[0].keys() & plain[1].keys()}
    return [(name, name if name in exact else loose[name]) for name in first if name in exact or name in loose]


def _plain_names(names: Iterable[str], exact: set[str]) -> dict[str, str]:
    plain = [(re.sub(r"[^a-z0-9]", "", name.lower()), name) for name in names if name not in exact]
    counts = Counter(key for key, _ in plain)
    return {key: name for key, name in plain if key and counts[key] == 1}


def _random_motion(a: Model, b: Model, shared: Names, count: int, seed: int) -> tuple[Motion, Motion]:
    """Return the motion of both models; the first frame is the default pose at rest."""
    rng = np.random.default_rng(seed)
    known = [{c.name: (i, c) for i, c in enumerate(model.coordinates)} for model in (a, b)]
    tables = []
    for model in (a, b):
        q = np.tile([c.default for c in model.coordinates], (count + 1, 1)).reshape(count + 1, -1)
        tables.append((q, np.zeros_like(q), np.zeros_like(q)))
    for first, second in shared:
        (i, one), (k, other) = known[0][first], known[1][second]
        lower, upper = _common_range(one, other)
        value = np.concatenate([[one.default], rng.uniform(lower, upper, count)])
        rates = [np.concatenate([[0.0], rng.uniform(-most, most, count)]) for most in (MAX_SPEED, MAX_ACCELERATION)]
        for column, (q, u, acceleration) in ((i, tables[0]), (k, tables[1])):
            q[:, column], u[:, column], acceleration[:, column] = value, rates[0], rates[1]
    return coupled_motion(a, *tables[0]), coupled_motion(b, *tables[1])


def _common_range(one: Coordinate, other: Coordinate) -> tuple[float, float]:
    """Return the range that both coordinates allow; the first one's own range where the two do not overlap."""

    def of(c: Coordinate) -> tuple[float, float]:
        limits = (c.lower, c.upper)
        lower, upper = c.usual_range if limits == (-inf, inf) and c.usual_range else limits
        return max(lower, c.default - MAX_DISPLACEMENT), min(upper, c.default + MAX_DISPLACEMENT)

    (a, b), (c, d) = of(one), of(other)
    lower, upper = max(a, c), min(b, d)
    return (lower, upper) if lower < upper else (min(a, b), max(a, b))


def _compared(name: str, a: ArrayLike, b: ArrayLike) -> ComparedValue:
    one, other = (tuple(map(float, np.ravel(value))) for value in (a, b))
    return ComparedValue(name, one, other, float(np.abs(np.subtract(one, other)).max()))


def _values(name: str, unit: str, pair: _Pair, kind: str, field: str) -> Quantity:
    """Compare a field of all elements of a kind, which does not depend on the pose."""
    a, b = ({element.name: getattr(element, field) for element in getattr(model, kind)} for model in pair.models)
    return Quantity(name, unit, tuple(_compared(one, a[one], b[other]) for one, other in getattr(pair, kind)))


def _series(name: str, unit: str, names: Names, values: Callable[[int], dict[str, Array]]) -> Quantity:
    """Compare vectors in every pose."""
    rows = []
    if names:
        a, b = values(0), values(1)
        for first, second in names:
            one, other = a[first], b[second]
            distance = float(np.linalg.norm(one - other, axis=1).max())
            rows.append(ComparedValue(first, tuple(map(float, one[0])), tuple(map(float, other[0])), distance))
    return Quantity(name, unit, tuple(rows))


def _orientations(pair: _Pair) -> Quantity:
    """Return the angles between the bodies of the two models."""
    from scipy.spatial.transform import Rotation

    (a, b), rows = pair.models, []
    one, other = poses(a, pair.motion[0][0])[1], poses(b, pair.motion[1][0])[1]
    index = [{body.name: i for i, body in enumerate(model.bodies)} for model in (a, b)]
    for first, second in pair.bodies:
        between = np.einsum("fji,fjk->fik", one[:, index[0][first]], pair.rotation @ other[:, index[1][second]])
        angle = Rotation.from_matrix(between).magnitude()
        rows.append(ComparedValue(first, (0.0,), (float(angle[0]),), float(angle.max())))
    return Quantity("body orientation", "rad", tuple(rows))


def _segment_lengths(pair: _Pair) -> Quantity:
    """Compare the distances between joints on the bodies that have both."""
    lengths, others = (_segments(model) for model in pair.models)
    bodies, rows = dict(pair.bodies), []
    for name, length in lengths.items():
        parent, child = name.split(" to ", 1)
        other = others.get(f"{bodies.get(parent, '')} to {bodies.get(child, '')}")
        if other is not None:
            rows.append(_compared(name, length, other))
    return Quantity("segment length", "m", tuple(rows))


def _segments(model: Model) -> dict[str, float]:
    """Return the distance [m] on each body from its inboard joint to each outboard joint."""
    inboard = {joint.child: joint for joint in model.joints if not joint.closes_loop}
    return {
        f"{joint.parent} to {joint.child}": float(
            np.linalg.norm(np.subtract(joint.parent_frame.position, inboard[joint.parent].child_frame.position))
        )
        for joint in inboard.values()
        if joint.parent in inboard
    }


def _detail(quantity: Quantity, a: str, b: str, count: int) -> Table:
    from rich.table import Table

    table = Table("name", a, b, "difference", title=f"{quantity.name} [{quantity.unit}]".replace("[", r"\["))
    for row in sorted(quantity.rows, key=lambda row: -row.difference)[:count]:
        values = (" ".join(f"{v:.4g}" for v in side) for side in (row.a, row.b))
        table.add_row(row.name.replace("[", r"\["), *values, f"{row.difference:.3g}")
    return table
