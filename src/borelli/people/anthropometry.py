"""Anthropometry: lengths and mass properties of a person, from published tables scaled to mass, height and sex.

The numbers and their sources are in `data/human.toml`.
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
MASS_RANGE = (1.0, 500.0)  # [kg]; values outside indicate wrong units
HEIGHT_RANGE = (0.3, 3.0)  # [m]


class Proportions:
    """Lengths [m] and mass properties of the segments of one person."""

    def __init__(self, mass: float, height: float, sex: str) -> None:
        data = table("human")
        self.segments: dict[str, Any] = data[sex]
        self.mass_fraction: dict[str, float] = data["mass_fraction"]
        self.mass, self.height = mass, height
        self.length_scale = height / self.segments["stature"]  # from the mean stature of the tables
        total = sum(
            self.segments[name]["mass"] * (1 if name.endswith(("head", "trunk")) else 2)
            for name in self.segments
            if name != "stature"
        )
        self.mass_scale = mass / total  # the fractions of the female table add up to 0.9999

        s = {name: height * fraction for name, fraction in data["stature"].items()}
        s |= {name: s["foot_length"] * fraction for name, fraction in data["foot"].items()}
        s |= _trunk_heights(self.segments, height, s["hip_height"])
        # women's navels are higher above their hips in the tables, their iliac spines are not (Harrington et al. 2007)
        s["pelvis_top_height"] = _trunk_heights(data["male"], height, s["hip_height"])["navel_height"]
        self.length = s
        self.shape: dict[str, Any] = {name: height * np.array(size) for name, size in data["shape"].items()}

    def shoulder(self, side: float) -> Array:
        """Return the shoulder joint of the standing person; `side` is the sign of its y."""
        return np.array([0.0, side * self.length["shoulder_half_width"], self.length["shoulder_height"]])

    def leg(self, side: float) -> list[Array]:
        """Return hip, knee and ankle joint of the standing person."""
        heights = (self.length[f"{name}_height"] for name in ("hip", "knee", "ankle"))
        return [np.array([0.0, side * self.length["hip_half_width"], height]) for height in heights]

    def solid(self, segment: str, start: Array, end: Array) -> MassProperties:
        """Return a segment of the tables, from its first end to its second."""
        numbers = self.segments[segment]
        mass = numbers["mass"] * self.mass_scale
        radii = np.array(numbers["gyration"]) * numbers["length"] * self.length_scale
        behind = np.array([numbers.get("behind", 0.0) * self.length_scale, 0.0, 0.0])
        center = start + numbers["center"] * (end - start) - behind
        return MassProperties(mass, center, mass * np.diag(radii**2))

    def part(self, segment: str, fraction: float, shape: Shape) -> MassProperties:
        """Return a fraction of a segment's mass, distributed evenly over a shape."""
        mass = self.segments[segment]["mass"] * self.mass_scale * fraction
        even = mass_of_shapes([shape])
        return even.scaled(mass / even.mass)


def _trunk_heights(segments: dict[str, Any], height: float, hip_height: float) -> dict[str, float]:
    """Return heights [m] of the ends of the parts of the trunk in standing."""
    cervicale = height - height / segments["stature"] * segments["head"]["length"]
    # the trunk was measured along its curve: its parts divide the straight line from hips to neck
    trunk = [segments[f"{part}_trunk"]["length"] for part in ("lower", "middle", "upper")]
    straight = (cervicale - hip_height) / sum(trunk)
    navel = hip_height + straight * trunk[0]
    return {"navel_height": navel, "xiphion_height": navel + straight * trunk[1], "cervicale_height": cervicale}


def check_person(mass: float, height: float, sex: str) -> None:
    """Raise SettingsError for an implausible mass [kg] or height [m], or an unknown sex."""
    for name, value, unit, (low, high) in (("mass", mass, "kg", MASS_RANGE), ("height", height, "m", HEIGHT_RANGE)):
        if not (isfinite(value) and low <= value <= high):
            raise SettingsError(f"{name} is {value} {unit}. It must be from {low:g} to {high:g} {unit}.")
    if sex not in SEXES:
        raise SettingsError(unknown_name("sex", sex, SEXES))


@cache
def table(name: str) -> dict[str, Any]:
    """Return one of the tables in `data`."""
    return tomllib.loads((files("borelli.people") / "data" / f"{name}.toml").read_text(encoding="utf-8"))
