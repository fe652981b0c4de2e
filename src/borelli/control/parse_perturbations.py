"""Perturbations in a line of text: `pelvis 200N 0.1s left at 1.2s`.

What is meant comes first, then the rest in any order; a quantity has its unit, with or without a space between.
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
"""Numbers that the text gives of an obstacle's size: sides, or a diameter."""
EXAMPLES = {
    "push": "pelvis 200N 0.1s left at 1.2s",
    "carry": "hand_r 5kg",
    "weaken": "knee_flexion_r 30% at 1s",
    "obstacle": "box 0.4x0.4x0.2m on 1,0,0.1 from 0.5s to 2s",
    "move-ground": "0.2m left 0.4s at 1s",
}


class _Phrase:
    """The words of a text, taken one after the other; what is left at the end is an error."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text
        self.words = [word.strip() for word in WORD.findall(text)]

    def refuse(self, what: str) -> NoReturn:
        raise SettingsError(f"{self.kind} {self.text!r}: {what}; for example {EXAMPLES[self.kind]!r}")

    def name(self, what: str, known: Mapping[str, object]) -> str:
        """The first word, or as many as make a name that is known."""
        for count in range(len(self.words), 0, -1):
            name = " ".join(self.words[:count])
            if name in known:
                del self.words[:count]
                return name
        if not self.words:
            self.refuse(f"nothing is said; it begins with a {what}")
        self.refuse(unknown_name(what, self.words[0], known))

    def quantity(self, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...] | None:
        """The first quantity in one of the units, in SI; None: there is none."""
        for i, word in enumerate(self.words):
            found = QUANTITY.fullmatch(word)
            if found and found[2] in units:
                values = tuple(units[found[2]] * float(part) for part in re.split(r"[x,]", found[1]))
                if len(values) not in (1, count):
                    self.refuse(f"{what} is {word!r}, {len(values)} numbers; it takes {count}")
                del self.words[i]
                return values
        return None

    def needed(self, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...]:
        """The same; it must be there."""
        found = self.quantity(units, what, count)
        if found is None:
            self.refuse(f"it lacks {what} in {' or '.join(units)}")
        return found

    def after(self, word: str, units: Mapping[str, float], what: str, count: int = 1) -> tuple[float, ...] | None:
        """The quantity after a word such as `at`; None: the word is not there."""
        if word not in self.words:
            return None
        i = self.words.index(word)
        rest, self.words = self.words[i + 1 :], self.words[:i]
        later, rest = rest[1:], rest[:1]
        part = _Phrase(self.kind, self.text)
        part.words = rest
        found = part.quantity(units, what, count)
        if found is None or len(found) != count:
            like = ",".join(["1"] * count) if count > 1 else "1"
            got = repr(rest[0]) if rest else "nothing"
            self.refuse(f"after {word!r} comes {got}, not {what}, such as {word} {like}{next(iter(units))}")
        self.words += later
        return found

    def flag(self, word: str) -> bool:
        """Whether a word is there."""
        if word in self.words:
            self.words.remove(word)
            return True
        return False

    def direction(self) -> Vector | None:
        """One of the direction words."""
        for word in self.words:
            if word in DIRECTIONS:
                self.words.remove(word)
                return DIRECTIONS[word]
        return None

    def vector(self, units: Mapping[str, float], what: str) -> Vector:
        """A size with a direction (`200N left`), or forward, left and up at once (`0,200,0N`)."""
        values = self.needed(units, what, 3)
        way = self.direction()
        if len(values) == 3:
            if way is not None:
                self.refuse(f"{what} has three numbers and a direction; leave one out")
            return vector(np.array(values))
        if way is None:
            rest = f", not {list_names(self.words)!r}" if self.words else ""
            self.refuse(f"it lacks a direction: {', '.join(DIRECTIONS)}{rest}")
        return vector(values[0] * np.array(way))

    def end(self) -> None:
        """Refuse what was not understood."""
        if self.words:
            self.refuse(f"what is {' '.join(self.words)!r}?")


def _one(values: tuple[float, ...] | None, default: float) -> float:
    return default if values is None else values[0]


def _place(values: tuple[float, ...] | None) -> Vector | None:
    return None if values is None else vector(np.array(values))


def parse_push(text: str, model: Model) -> Push:
    """`BODY FORCE DURATION DIRECTION at TIME`, and `on X,Y,Z m` for where on the body: in its frame."""
    phrase = _Phrase("push", text)
    body = phrase.name("body", {b.name: b for b in model.bodies})
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    point = _place(phrase.after("on", LENGTHS | {"": 1.0}, "a place", 3))
    force = phrase.vector(FORCES, "a force")
    duration = _one(phrase.quantity(TIMES, "a duration"), 0.1)
    phrase.end()
    return Push(body, force, start, duration, point)


def parse_carry(text: str, model: Model) -> CarriedLoad:
    """`BODY MASS`, with `hanging` (it swings), `outside` (the controller does not know), `on X,Y,Z m`."""
    phrase = _Phrase("carry", text)
    body = phrase.name("body", {b.name: b for b in model.bodies})
    point = _place(phrase.after("on", LENGTHS | {"": 1.0}, "a place", 3))
    (mass,) = phrase.needed(MASSES, "a mass")
    hanging, outside = phrase.flag("hanging"), phrase.flag("outside")
    phrase.end()
    return CarriedLoad(body, mass, point, hanging, outside)


def parse_weaken(text: str, model: Model) -> WeakenedJoint:
    """`COORDINATE SHARE at TIME`, or a joint; the share is what is left; `for DURATION`: not for good."""
    phrase = _Phrase("weaken", text)
    coordinates = {c.name: c for c in model.coordinates}
    joints = {joint.name: joint for joint in model.joints if joint.coordinates}
    name = phrase.name("coordinate or joint", {**coordinates, **joints})
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    lasting = _one(phrase.after("for", TIMES, "a duration"), inf)
    phrase.flag("to")
    (share,) = phrase.needed({"%": 0.01}, "a share left")
    phrase.end()
    return WeakenedJoint(name, share, start, start + lasting)


def parse_obstacle(text: str, model: Model) -> Obstacle:
    """`box AxBxCm on X,Y,Z` or `sphere Dm on X,Y,Z`, full sides and the middle in the world; `from TIME to TIME`."""
    phrase = _Phrase("obstacle", text)
    kind = phrase.name("shape", SIZES)
    start = _one(phrase.after("from", TIMES, "a time"), 0.0)
    end = _one(phrase.after("to", TIMES, "a time"), inf)
    place = _place(phrase.after("on", LENGTHS | {"": 1.0}, "a place", 3))
    if place is None:
        phrase.refuse("it lacks a place: on X,Y,Z")
    sides = phrase.needed(LENGTHS, "a size", SIZES[kind])
    phrase.end()
    if len(sides) != SIZES[kind] or min(sides) <= 0.0:
        phrase.refuse(f"the size of a {kind} is {SIZES[kind]} positive lengths")
    return Obstacle(Shape(kind, tuple(0.5 * side for side in sides)), Frame(place), start, end)


def parse_move(text: str, model: Model) -> MoveGround:
    """`DISTANCE DIRECTION DURATION at TIME`."""
    phrase = _Phrase("move-ground", text)
    start = _one(phrase.after("at", TIMES, "a time"), 0.0)
    by = phrase.vector(LENGTHS, "a distance")
    duration = _one(phrase.quantity(TIMES, "a duration"), 0.5)
    phrase.end()
    return MoveGround(by, start, duration)


PARSERS: dict[str, Callable[[str, Model], Perturbation]] = {
    "push": parse_push,
    "carry": parse_carry,
    "weaken": parse_weaken,
    "obstacle": parse_obstacle,
    "move-ground": parse_move,
}


def parse_perturbation(kind: str, text: str, model: Model) -> Perturbation:
    """What a text of a kind says; `PARSERS` names the kinds.

    Raises:
        SettingsError: what is not understood, what is allowed, and an example.
    """
    if kind not in PARSERS:
        raise SettingsError(unknown_name("kind of perturbation", kind, PARSERS))
    return PARSERS[kind](text, model)
