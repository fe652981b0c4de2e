"""Perturbations in a line of text: `pelvis 200N 0.1s left at 1.2s`.

The subject comes first, then the rest in any order; a quantity has its unit, with or without a space between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import NoReturn

import numpy as np

from borelli.control.perturbations import (
    DIRECTIONS,
    CarriedLoad,
    MoveGround,
    Obstacle,
    Perturbation,
    Push,
    WeakenedJoint,
)
from borelli.errors import SettingsError, list_names, unknown_name
from borelli.model.model import Frame, Model, Shape, Vector
from borelli.model.transforms import vector

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
QUANTITY = re.compile(rf"({NUMBER}(?:\s*[x,]\s*{NUMBER})*)\s*(%|[a-z]*)", re.IGNORECASE)
TIMES = {"s": 1.0, "ms": 1e-3}
FORCES = {"N": 1.0, "kN": 1e3}
MASSES = {"kg": 1.0, "g": 1e-3}
LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
UNITS = "|".join((*TIMES, *FORCES, *MASSES, *LENGTHS, "%"))
WORD = re.compile(rf"{NUMBER}(?:\s*[x,]\s*{NUMBER})*(?:\s+(?:{UNITS})(?!\S)|\S*)|\S+", re.IGNORECASE)
SIZES = {"box": 3, "sphere": 1}
"""Numbers of an obstacle's size in the text: sides, or a diameter."""
EXAMPLES = {
    "push": "pelvis 200N 0.1s left at 1.2s",
    "carry": "hand_r 5kg",
    "weaken": "knee_flexion_r 30% at 1s",
    "obstacle": "box 0.4x0.4x0.2m on 1,0,0.1 from 0.5s to 2s",
    "move-ground": "0.2m left 0.4s at 1s",
}


class _Phrase:
    """Words of a text, consumed one after the other; remaining words are an error."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text
        self.words = [word.strip() for word in WORD.findall(text)]

    def fail(self, problem: str) -> NoReturn:
        raise SettingsError(f"{self.kind} {self.text!r}: {problem}. Example: {EXAMPLES[self.kind]!r}.")

    def name(self, what: str, known: Mapping[str, object]) -> str:
        """Consume the first word, or as many as form a known name."""
        for count in range(len(self.words), 0, -1):
            name = " ".join(self.words[:count])
            if name in known:
                del self.words[:count]
                return name
        if not self.words:
            self.fail(f"The text is empty. Begin with a {what}")
        self.fail(unknown_name(what, self.words[0], known))

    def quantity(self, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...] | None:
        """Consume the first quantity in one of the units and return it in SI; None if there is none."""
        for i, word in enumerate(self.words):
            match = QUANTITY.fullmatch(word)
            if match and match[2] in units:
                values = tuple(units[match[2]] * float(part) for part in re.split(r"[x,]", match[1]))
                if len(values) not in (1, count):
                    self.fail(f"{what.capitalize()} is {word!r}, {len(values)} numbers; it needs {count}")
                del self.words[i]
                return values
        return None

    def required(self, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...]:
        """Consume a quantity that must be present."""
        values = self.quantity(units, what, count)
        if values is None:
            self.fail(f"{what.capitalize()} in {' or '.join(units)} is missing")
        return values

    def after(self, word: str, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...] | None:
        """Consume a word such as `at` and the quantity after it; None if the word is missing."""
        if word not in self.words:
            return None
        i = self.words.index(word)
        part = _Phrase(self.kind, self.text)
        part.words = rest = self.words[i + 1 : i + 2]
        values = part.quantity(units, what, count)
        if values is None or len(values) != count:
            like = ",".join(["1"] * count)
            got = repr(rest[0]) if rest else "nothing"
            self.fail(f"After {word!r} comes {got}, not {what}, such as {word} {like}{next(iter(units))}")
        del self.words[i : i + 2]
        return values

    def flag(self, word: str) -> bool:
        """Consume a word; return True if it is present."""
        if word in self.words:
            self.words.remove(word)
            return True
        return False

    def direction(self) -> Vector | None:
        """Consume one of the direction words."""
        for word in self.words:
            if word in DIRECTIONS:
                self.words.remove(word)
                return DIRECTIONS[word]
        return None

    def vector(self, units: Mapping[str, float], what: str) -> Vector:
        """Consume a size with a direction (`200N left`), or forward, left and up at once (`0,200,0N`)."""
        values = self.required(units, what, 3)
        direction = self.direction()
        if len(values) == 3:
            if direction is not None:
                self.fail(f"{what.capitalize()} has three numbers and a direction. Remove one of them")
            return vector(np.array(values))
        if direction is None:
            rest = f", not {list_names(self.words)!r}" if self.words else ""
            self.fail(f"A direction is missing: {', '.join(DIRECTIONS)}{rest}")
        return vector(values[0] * np.array(direction))

    def end(self) -> None:
        """Raise SettingsError if words remain."""
        if self.words:
            self.fail(f"{' '.join(self.words)!r} is not understood. Remove or correct it")


def _one(values: tuple[float, ...] | None, default: float) -> float:
    return default if values is None else values[0]


def _point(values: tuple[float, ...] | None) -> Vector | None:
    return None if values is None else vector(np.array(values))


def parse_push(text: str, model: Model) -> Push:
    """Parse `BODY FORCE DURATION DIRECTION at TIME`, with `on X,Y,Z m` for the point in the body's frame."""
    phrase = _Phrase("push", text)
    body = phrase.name("body", {b.name: b for b in model.bodies})
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    point = _point(phrase.after("on", LENGTHS | {"": 1.0}, "a position", 3))
    force = phrase.vector(FORCES, "a force")
    duration = _one(phrase.quantity(TIMES, "a duration"), 0.1)
    phrase.end()
    return Push(body, force, start, duration, point)


def parse_carry(text: str, model: Model) -> CarriedLoad:
    """Parse `BODY MASS`, with `hanging` (it swings), `outside` (unknown to the controller), `on X,Y,Z m`."""
    phrase = _Phrase("carry", text)
    body = phrase.name("body", {b.name: b for b in model.bodies})
    point = _point(phrase.after("on", LENGTHS | {"": 1.0}, "a position", 3))
    (mass,) = phrase.required(MASSES, "a mass")
    hanging, outside = phrase.flag("hanging"), phrase.flag("outside")
    phrase.end()
    return CarriedLoad(body, mass, point, hanging, outside)


def parse_weaken(text: str, model: Model) -> WeakenedJoint:
    """Parse `COORDINATE PERCENT at TIME`, or a joint; the percentage remains; `for DURATION` limits the time."""
    phrase = _Phrase("weaken", text)
    coordinates = {c.name: c for c in model.coordinates}
    joints = {joint.name: joint for joint in model.joints if joint.coordinates}
    name = phrase.name("coordinate or joint", {**coordinates, **joints})
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    duration = _one(phrase.after("for", TIMES, "a duration"), inf)
    phrase.flag("to")
    (fraction,) = phrase.required({"%": 0.01}, "a remaining percentage")
    phrase.end()
    return WeakenedJoint(name, fraction, start, start + duration)


def parse_obstacle(text: str, model: Model) -> Obstacle:
    """Parse `box AxBxCm on X,Y,Z` or `sphere Dm on X,Y,Z`: full sides and center in the world; `from TIME to TIME`."""
    phrase = _Phrase("obstacle", text)
    kind = phrase.name("shape", SIZES)
    start = _one(phrase.after("from", TIMES, "a time"), 0.0)
    end = _one(phrase.after("to", TIMES, "a time"), inf)
    center = _point(phrase.after("on", LENGTHS | {"": 1.0}, "a position", 3))
    if center is None:
        phrase.fail("A position is missing: on X,Y,Z")
    sides = phrase.required(LENGTHS, "a size", SIZES[kind])
    phrase.end()
    if len(sides) != SIZES[kind] or min(sides) <= 0.0:
        phrase.fail(f"The size of a {kind} is {SIZES[kind]} positive lengths")
    return Obstacle(Shape(kind, tuple(0.5 * side for side in sides)), Frame(center), start, end)


def parse_move(text: str, model: Model) -> MoveGround:
    """Parse `DISTANCE DIRECTION DURATION at TIME`."""
    phrase = _Phrase("move-ground", text)
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    displacement = phrase.vector(LENGTHS, "a distance")
    duration = _one(phrase.quantity(TIMES, "a duration"), 0.5)
    phrase.end()
    return MoveGround(displacement, start, duration)


PARSERS: dict[str, Callable[[str, Model], Perturbation]] = {
    "push": parse_push,
    "carry": parse_carry,
    "weaken": parse_weaken,
    "obstacle": parse_obstacle,
    "move-ground": parse_move,
}


def parse_perturbation(kind: str, text: str, model: Model) -> Perturbation:
    """Parse a perturbation from text.

    Args:
        kind: One of `PARSERS`.
        text: Description, such as `pelvis 200N 0.1s left at 1.2s`.
        model: The model, whose names the text uses.

    Returns:
        A push, a pull or a change of strength.

    Raises:
        SettingsError: The text is not understood; the message contains an example.
    """
    if kind not in PARSERS:
        raise SettingsError(unknown_name("kind of perturbation", kind, PARSERS))
    return PARSERS[kind](text, model)
