"""Changes of a person for what-if: muscle strength, added mass and joint springs, as short texts.

"soleus 50%": strength of all muscles with this name, both sides. "torso 20kg": mass at the body's center of mass.
"ankle_angle 60Nm/rad": passive spring of a device at all coordinates with this name, about zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model

FORM = re.compile(r"^\s*(?P<name>\S+)\s+(?P<number>[-+]?[0-9]*\.?[0-9]+)\s*(?P<unit>%|kg|Nm/rad)\s*$")
SIDES = re.compile(r"(_r|_l|_right|_left)$")
EXAMPLES = '"soleus 50%", "torso 20kg" or "ankle_angle 60Nm/rad"'
MAX_STRENGTH = 1000.0
"""[%]"""


@dataclass(frozen=True)
class Change:
    """Change of a person: strength of muscles [%], mass of a body [kg] or stiffness at coordinates [N m/rad]."""

    name: str
    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name} {self.amount:g}{'' if self.unit == '%' else ' '}{self.unit}"


@dataclass(frozen=True)
class ChangedPerson:
    """Model with its changes, and springs by coordinate [N m/rad]."""

    model: Model
    springs: dict[str, float]
    mass_ratio: float
    """Mass with the changes, divided by that of the original."""


def parse_change(text: str) -> Change:
    """Return the change that a text states; raise SettingsError if it has another form."""
    found = FORM.match(text)
    if found is None:
        raise SettingsError(f"change {text!r}: The text has another form. Use {EXAMPLES}.")
    change = Change(found["name"], float(found["number"]), found["unit"])
    if change.unit == "%" and not 0.0 < change.amount <= MAX_STRENGTH:
        raise SettingsError(f"change {text!r}: {change.amount:g} % is not between 0 and {MAX_STRENGTH:g} %.")
    if change.unit != "%" and not change.amount >= 0.0:
        raise SettingsError(f"change {text!r}: {change.amount:g} {change.unit} is negative. Give zero or more.")
    return change


def apply_changes(model: Model, changes: Sequence[Change]) -> ChangedPerson:
    """Return the model with changes.

    Raises:
        SettingsError: A change names a muscle, body or coordinate that the model does not have.
    """
    changed = model
    springs: dict[str, float] = {}
    for change in changes:
        if change.unit == "%":
            changed = _with_strength(changed, change)
        elif change.unit == "kg":
            changed = _with_mass(changed, change)
        else:
            known = [c.name for c in model.coordinates if c.rotational]
            springs |= dict.fromkeys(_matching(change, known, "angle"), change.amount)
    return ChangedPerson(changed, springs, changed.mass / model.mass)


def _matching(change: Change, known: Sequence[str], what: str) -> list[str]:
    """Return the names that a change means: its own, or that of both sides."""
    found = [name for name in known if name == change.name or SIDES.sub("", name) == change.name]
    if not found:
        raise SettingsError(f"change '{change}': {unknown_name(what, change.name, known)}.")
    return found


def _with_strength(model: Model, change: Change) -> Model:
    chosen = _matching(change, [m.name for m in model.muscles], "muscle")
    factor = change.amount / 100.0
    muscles: list[Any] = [
        replace(m, max_isometric_force=factor * m.max_isometric_force) if m.name in chosen else m for m in model.muscles
    ]
    return replace(model, muscles=tuple(muscles))


def _with_mass(model: Model, change: Change) -> Model:
    (name,) = _matching(change, [body.name for body in model.bodies], "body")[:1]
    bodies = [replace(b, mass=b.mass + change.amount) if b.name == name else b for b in model.bodies]
    return replace(model, bodies=tuple(bodies))
