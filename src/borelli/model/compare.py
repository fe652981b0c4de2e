"""Two models side by side: masses, places, lengths and the forces that move them, over the same random poses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import (
    center_of_mass,
    coupled_forces,
    coupled_motion,
    generalized_forces,
    marker_positions,
    poses,
)
from borelli.model.model import Coordinate, Model

if TYPE_CHECKING:
    from rich.table import Table

Array = NDArray[np.float64]

TRAVEL = 1.0
"""How far from its default [rad or m] a coordinate without stops goes in a random pose."""
ROUNDING = 1e-9
"""Differences below this [in any unit] are not shown row by row."""
SPEED, ACCELERATION = 2.0, 10.0
"""Largest random speed [rad/s, m/s] and acceleration [rad/s^2, m/s^2] for inverse dynamics."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One thing in both models."""

    name: str
    a: tuple[float, ...]
    """In the first model; what moves, in the default pose."""
    b: tuple[float, ...]
    difference: float
    """The largest over all poses."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """All things of one sort."""

    text: str
    unit: str
    rows: tuple[Compared, ...]

    @property
    def worst(self) -> Compared | None:
        """The row that differs most; None if there are no rows."""
        return max(self.rows, key=lambda row: row.difference, default=None)


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """How far two models agree."""

    a: str
    b: str
    poses: int
    quantities: tuple[Quantity, ...]
    only_a: Mapping[str, tuple[str, ...]]
    """Names found in the first model only, by sort."""
    only_b: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]

    def quantity(self, what: str) -> Quantity:
        """The quantity of that name."""
        for quantity in self.quantities:
            if quantity.text == what:
                return quantity
        raise SettingsError(unknown_name("quantity", what, (q.text for q in self.quantities)))

    def worst(self, what: str) -> float:
        """The largest difference of a quantity; zero if nothing of it is in both models."""
        row = self.quantity(what).worst
        return 0.0 if row is None else row.difference

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain values, ready for JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "poses": self.poses,
            "notes": list(self.notes),
            "only_a": {key: list(names) for key, names in self.only_a.items()},
            "only_b": {key: list(names) for key, names in self.only_b.items()},
            "quantities": [
                {
                    "text": quantity.text,
                    "unit": quantity.unit,
                    "worst": None if quantity.worst is None else quantity.worst.difference,
                    "rows": [
                        {"name": row.name, "a": list(row.a), "b": list(row.b), "difference": row.difference}
                        for row in quantity.rows
                    ],
                }
                for quantity in self.quantities
            ],
        }

    def tables(self, rows: int = 5) -> list[Table]:
        """The report for a terminal: a summary, and of each quantity the rows that differ most."""
        from rich.table import Table

        summary = Table("quantity", "in both", "largest difference", "of", title=f"{self.a}  |  {self.b}")
        details = []
        for quantity in self.quantities:
            if quantity.worst is None:
                summary.add_row(quantity.text, "0", "", "")
                continue
            largest = f"{quantity.worst.difference:.3g} {quantity.unit}"
            summary.add_row(quantity.text, str(len(quantity.rows)), largest, quantity.worst.name)
            if quantity.worst.difference > ROUNDING:
                details.append(_detail(quantity, self.a, self.b, rows))
        return [summary, *details]

    def text(self, rows: int = 5) -> str:
        """The report as plain text."""
        from rich.console import Console

        console = Console(width=110, color_system=None)
        with console.capture() as captured:
            for table in self.tables(rows):
                console.print(table)
            for which, only in ((self.a, self.only_a), (self.b, self.only_b)):
                for sort, names in only.items():
                    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
                    console.print(f"{sort} only in {which}: {shown}", markup=False)
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
    """Two models side by side, over random poses in which the coordinates they share have the same values.

    Bodies, coordinates, markers and muscles are matched by name, failing that by name without case and punctuation.
    Coordinates of one model only stay at their defaults; coupled ones follow. Where gravity points another way in `b`,
    its world is turned to that of `a`.

    Args:
        a: one model.
        b: the other.
        poses: how many random poses.
        seed: of the random numbers.
        seen_from: the body, called as in `a`, from whose frame places are seen; None: from the world.
        labels: what the models are called in the report; their own names unless given.
    """
    if poses < 1:
        raise SettingsError(f"poses is {poses}, but must be at least 1")
    pair = _Pair.of(a, b, poses, seed, seen_from)
    quantities = (
        Quantity("total mass", "kg", (_scalar("total", a.mass, b.mass),)),
        _scalars("body mass", "kg", pair.bodies, lambda m, name: m.body(name).mass, pair),
        _vectors("body centre of mass", "m", pair, lambda m, name: m.body(name).center_of_mass),
        _vectors("body inertia", "kg m^2", pair, lambda m, name: sum(m.body(name).inertia, ())),
        _scalars("segment length", "m", *_lengths(pair)),
        _places("body position", pair, pair.bodies, pair.positions),
        _turns(pair),
        _places("whole centre of mass", pair, [("whole", "whole")] if a.mass and b.mass else [], pair.centers),
        _places("marker position", pair, pair.markers, pair.marker_places),
        _forces(pair),
        _scalars("muscle peak force", "N", pair.muscles, lambda m, name: m.muscle(name).max_isometric_force, pair),
        _scalars("muscle fibre length", "m", pair.muscles, lambda m, name: m.muscle(name).optimal_fiber_length, pair),
        _scalars("muscle tendon length", "m", pair.muscles, lambda m, name: m.muscle(name).tendon_slack_length, pair),
    )
    first, second = labels or ((a.name, b.name) if a.name != b.name else (f"{a.name} (1)", f"{b.name} (2)"))
    return ModelComparison(first, second, poses, quantities, pair.only(0), pair.only(1), tuple(pair.notes))


Names = Sequence[tuple[str, str]]
"""Names in the first and second model of what is in both."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both models in the same poses; the first of these is the default one."""

    models: tuple[Model, Model]
    bodies: Names
    coordinates: Names
    markers: Names
    muscles: Names
    motion: tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]
    turn: Array
    """From the second world to the first."""
    frame: str | None
    notes: list[str]

    @staticmethod
    def of(a: Model, b: Model, count: int, seed: int, seen_from: str | None) -> _Pair:
        sorts = [[[e.name for e in getattr(m, sort)] for m in (a, b)] for sort in _SORTS]
        bodies, coordinates, markers, muscles = (_matched(first, second) for first, second in sorts)
        known = dict(bodies)
        if seen_from is not None and seen_from not in known:
            raise SettingsError(f"seen_from: {unknown_name('body in both models', seen_from, known)}")
        notes: list[str] = []
        motion = _random_motion(a, b, coordinates, count, seed)
        turn = _turn_between(np.array(b.gravity), np.array(a.gravity))
        if np.abs(turn - np.eye(3)).max() > 1e-9:
            notes.append(
                f"gravity points to {a.gravity} in one and {b.gravity} in the other: the other's world is turned"
            )
        return _Pair((a, b), bodies, coordinates, markers, muscles, motion, turn, seen_from, notes)

    def only(self, which: int) -> dict[str, tuple[str, ...]]:
        """Names of one model that the other has not, by sort."""
        found = {}
        for sort in _SORTS:
            shared = {names[which] for names in getattr(self, sort)}
            own = [e.name for e in getattr(self.models[which], sort) if e.name not in shared]
            if own:
                found[sort] = tuple(own)
        return found

    def positions(self, which: int) -> dict[str, Array]:
        """Body origins (frames, 3) by body."""
        model = self.models[which]
        return self._named([body.name for body in model.bodies], poses(model, self.motion[which][0])[0], which)

    def marker_places(self, which: int) -> dict[str, Array]:
        """Markers (frames, 3) by name."""
        model = self.models[which]
        return self._named([m.name for m in model.markers], marker_positions(model, self.motion[which][0]), which)

    def centers(self, which: int) -> dict[str, Array]:
        """The centre of mass (frames, 3) of the whole."""
        return self._named(["whole"], center_of_mass(self.models[which], self.motion[which][0])[:, None], which)

    def _named(self, names: Sequence[str], places: Array, which: int) -> dict[str, Array]:
        """Places (frames, things, 3) in the common frame, by name."""
        if self.frame is not None:
            body = self.frame if which == 0 else dict(self.bodies)[self.frame]
            position, rotation = poses(self.models[which], self.motion[which][0])
            i = [b.name for b in self.models[which].bodies].index(body)
            places = np.einsum("fji,fkj->fki", rotation[:, i], places - position[:, i : i + 1])
        elif which == 1:
            places = places @ self.turn.T
        return {name: places[:, k] for k, name in enumerate(names)}


_SORTS = ("bodies", "coordinates", "markers", "muscles")


def _matched(first: Sequence[str], second: Sequence[str]) -> Names:
    """Pairs of names that mean the same: equal, or equal without case and punctuation if that is unambiguous."""
    exact = set(first) & set(second)
    plain = [_plain_names(names, exact) for names in (first, second)]
    loose = {plain[0][key]: plain[1][key] for key in plain[0].keys() & plain[1].keys()}
    return [(name, name if name in exact else loose[name]) for name in first if name in exact or name in loose]


def _plain_names(names: Iterable[str], exact: set[str]) -> dict[str, str]:
    plain = [(re.sub(r"[^a-z0-9]", "", name.lower()), name) for name in names if name not in exact]
    counts = Counter(key for key, _ in plain)
    return {key: name for key, name in plain if key and counts[key] == 1}


def _random_motion(
    a: Model, b: Model, shared: Names, count: int, seed: int
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Coordinates, speeds and accelerations of both models; the first frame is the first one's default pose at rest."""
    rng = np.random.default_rng(seed)
    known = [{c.name: (i, c) for i, c in enumerate(model.coordinates)} for model in (a, b)]
    tables = []
    for model in (a, b):
        q = np.tile([c.default for c in model.coordinates], (count + 1, 1)).reshape(count + 1, -1)
        tables.append((q, np.zeros_like(q), np.zeros_like(q)))
    for first, second in shared:
        (i, one), (k, other) = known[0][first], known[1][second]
        lower, upper = _span(one, other)
        value = np.concatenate([[one.default], rng.uniform(lower, upper, count)])
        rates = [np.concatenate([[0.0], rng.uniform(-most, most, count)]) for most in (SPEED, ACCELERATION)]
        for column, (q, u, acceleration) in ((i, tables[0]), (k, tables[1])):
            q[:, column], u[:, column], acceleration[:, column] = value, rates[0], rates[1]
    return coupled_motion(a, *tables[0]), coupled_motion(b, *tables[1])


def _span(one: Coordinate, other: Coordinate) -> tuple[float, float]:
    """Where both coordinates may be; the first one's own range where they share none."""

    def of(c: Coordinate) -> tuple[float, float]:
        lower, upper = (
            (c.usual_range or (c.lower, c.upper)) if c.lower == -inf and c.upper == inf else (c.lower, c.upper)
        )
        return max(lower, c.default - TRAVEL), min(upper, c.default + TRAVEL)

    (a, b), (c, d) = of(one), of(other)
    lower, upper = max(a, c), min(b, d)
    return (lower, upper) if lower < upper else (min(a, b), max(a, b))


def _turn_between(from_down: Array, to_down: Array) -> Array:
    """The least rotation that takes one direction to another; none if one of them has no length."""
    if not (from_down.any() and to_down.any()):
        return np.eye(3)
    a, b = from_down / np.linalg.norm(from_down), to_down / np.linalg.norm(to_down)
    axis, cosine = np.cross(a, b), float(a @ b)
    if cosine < -1.0 + 1e-12:
        across = np.eye(3)[int(np.argmin(np.abs(a)))]
        across = across - (across @ a) * a
        across /= np.linalg.norm(across)
        return np.asarray(2.0 * np.outer(across, across) - np.eye(3))
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + skew + skew @ skew / (1.0 + cosine))


def _scalar(name: str, a: float, b: float) -> Compared:
    return Compared(name, (float(a),), (float(b),), abs(float(a) - float(b)))


def _scalars(what: str, unit: str, names: Names, value: Callable[[Model, str], float], pair: _Pair) -> Quantity:
    a, b = pair.models
    return Quantity(what, unit, tuple(_scalar(first, value(a, first), value(b, second)) for first, second in names))


def _vectors(what: str, unit: str, pair: _Pair, value: Callable[[Model, str], Sequence[float]]) -> Quantity:
    """Things stated in the bodies' own frames."""
    rows = []
    for first, second in pair.bodies:
        one, other = (tuple(map(float, value(m, n))) for m, n in zip(pair.models, (first, second), strict=True))
        rows.append(Compared(first, one, other, float(np.abs(np.subtract(one, other)).max())))
    return Quantity(what, unit, tuple(rows))


def _places(what: str, pair: _Pair, names: Names, places: Callable[[int], dict[str, Array]]) -> Quantity:
    rows = []
    if names:
        a, b = places(0), places(1)
        for first, second in names:
            one, other = a[first], b[second]
            away = float(np.linalg.norm(one - other, axis=1).max())
            rows.append(Compared(first, tuple(map(float, one[0])), tuple(map(float, other[0])), away))
    return Quantity(what, "m", tuple(rows))


def _turns(pair: _Pair) -> Quantity:
    """How far bodies are turned against each other."""
    (a, b), rows = pair.models, []
    one, other = poses(a, pair.motion[0][0])[1], poses(b, pair.motion[1][0])[1]
    index = [{body.name: i for i, body in enumerate(model.bodies)} for model in (a, b)]
    for first, second in pair.bodies:
        between = np.einsum("fji,fjk->fik", one[:, index[0][first]], pair.turn @ other[:, index[1][second]])
        sine = 0.5 * np.linalg.norm(
            [
                between[:, 2, 1] - between[:, 1, 2],
                between[:, 0, 2] - between[:, 2, 0],
                between[:, 1, 0] - between[:, 0, 1],
            ],
            axis=0,
        )
        angle = np.arctan2(sine, 0.5 * (np.trace(between, axis1=1, axis2=2) - 1.0))
        rows.append(Compared(first, (0.0,), (float(angle[0]),), float(angle.max())))
    return Quantity("body orientation", "rad", tuple(rows))


def _lengths(pair: _Pair) -> tuple[Names, Callable[[Model, str], float], _Pair]:
    """Pairs of joints and the distance between them on the body that has both."""
    found = [_segments(model) for model in pair.models]
    bodies = dict(pair.bodies)
    names = []
    for name in found[0]:
        parent, child = name.split(" to ", 1)
        other = f"{bodies.get(parent, '')} to {bodies.get(child, '')}"
        if other in found[1]:
            names.append((name, other))
    by_model = {id(model): lengths for model, lengths in zip(pair.models, found, strict=True)}
    return names, lambda model, name: by_model[id(model)][name], pair


def _segments(model: Model) -> dict[str, float]:
    """Distance [m] on each body from the joint it hangs on to each joint it carries."""
    inboard = {joint.child: joint for joint in model.joints if not joint.closes_loop}
    return {
        f"{joint.parent} to {joint.child}": float(
            np.linalg.norm(np.subtract(joint.parent_frame.position, inboard[joint.parent].child_frame.position))
        )
        for joint in inboard.values()
        if joint.parent in inboard
    }


def _forces(pair: _Pair) -> Quantity:
    """Inverse dynamics; forces of coupled coordinates are counted at those they follow."""
    found, free = [], []
    for model, (q, u, a) in zip(pair.models, pair.motion, strict=True):
        forces = coupled_forces(model, q, generalized_forces(model, q, u, a))
        found.append({c.name: forces[:, i] for i, c in enumerate(model.coordinates)})
        free.append({c.name for c in model.coordinates} - {coupling.coordinate for coupling in model.couplings})
    rows = []
    for first, second in pair.coordinates:
        if first in free[0] and second in free[1]:
            one, other = found[0][first], found[1][second]
            rows.append(Compared(first, (float(one[0]),), (float(other[0]),), float(np.abs(one - other).max())))
    return Quantity("inverse dynamics", "N m or N", tuple(rows))


def _detail(quantity: Quantity, a: str, b: str, count: int) -> Table:
    """The rows of a quantity that differ most."""
    from rich.table import Table

    table = Table("name", a, b, "difference", title=f"{quantity.text} [{quantity.unit}]".replace("[", r"\["))
    for row in sorted(quantity.rows, key=lambda row: -row.difference)[:count]:
        values = (" ".join(f"{v:.4g}" for v in side) for side in (row.a, row.b))
        table.add_row(row.name.replace("[", r"\["), *values, f"{row.difference:.3g}")
    return table
