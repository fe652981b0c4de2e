"""A person in numbers: published tables turned into lengths and solids of one mass, height and sex.

The numbers are kept with their sources in `data/human.toml`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

import numpy as np

from borelli.errors import SettingsError, unknown_name
from borelli.model.inertia import MassProperties, mass_of_shapes
from borelli.model.model import Shape
from borelli.model.transforms import Array

SEXES = ("male", "female")
MASS_RANGE = (1.0, 500.0)  # kg: anything outside is a slip of units
HEIGHT_RANGE = (0.3, 3.0)  # m


class Proportions:
    """The published numbers turned into lengths [m] and solids of one person."""

    def __init__(self, mass: float, height: float, sex: str) -> None:
        data = table("human")
        self.segments: dict[str, Any] = data[sex]
        self.share: dict[str, float] = data["share"]
        self.mass, self.height = mass, height
        # a length [m] at the tables' mean stature becomes one of this person
        self.growth = height / self.segments["stature"]
        total = sum(
            self.segments[name]["mass"] * (1 if name.endswith(("head", "trunk")) else 2)
            for name in self.segments
            if name != "stature"
        )
        self.mass_unit = mass / total  # the women's shares add up to 0.9999

        s = {name: height * fraction for name, fraction in data["stature"].items()}
        s |= {name: s["foot_length"] * fraction for name, fraction in data["foot"].items()}
        s["cervicale_height"] = height - self.growth * self.segments["head"]["length"]
        # the trunk parts were measured along its curve: they share the straight way from hips to neck
        trunk = [self.segments[f"{part}_trunk"]["length"] for part in ("lower", "middle", "upper")]
        straight = (s["cervicale_height"] - s["hip_height"]) / sum(trunk)
        s["navel_height"] = s["hip_height"] + straight * trunk[0]
        s["xiphion_height"] = s["navel_height"] + straight * trunk[1]
        self.length = s
        self.shape: dict[str, Any] = {name: height * np.array(size) for name, size in data["shape"].items()}

    def solid(self, segment: str, start: Array, end: Array) -> MassProperties:
        """A segment of the tables laid from its first end to its second."""
        numbers = self.segments[segment]
        mass = numbers["mass"] * self.mass_unit
        radii = np.array(numbers["gyration"]) * numbers["length"] * self.growth
        behind = np.array([numbers.get("behind", 0.0) * self.growth, 0.0, 0.0])
        center = start + numbers["center"] * (end - start) - behind
        return MassProperties(mass, center, mass * np.diag(radii**2))

    def part(self, segment: str, share: float, shape: Shape) -> MassProperties:
        """A share of a segment, spread evenly over a shape."""
        mass = self.segments[segment]["mass"] * self.mass_unit * share
        even = mass_of_shapes([shape])
        return even.scaled(mass / even.mass)


def check_person(mass: float, height: float, sex: str) -> None:
    """Refuses what is no person's mass [kg], height [m] or sex."""
    for name, value, unit, (low, high) in (("mass", mass, "kg", MASS_RANGE), ("height", height, "m", HEIGHT_RANGE)):
        if not (isfinite(value) and low <= value <= high):
            raise SettingsError(f"{name} of the human is {value}, but must be from {low:g} to {high:g} {unit}")
    if sex not in SEXES:
        raise SettingsError(unknown_name("sex", sex, SEXES))


@cache
def table(name: str) -> dict[str, Any]:
    """The numbers of one of the tables in `data`."""
    return tomllib.loads((files("borelli.model.people") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
