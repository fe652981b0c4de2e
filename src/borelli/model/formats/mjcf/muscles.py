"""The muscles of an MJCF file: tendons that muscle actuators pull.

MuJoCo states a muscle's lengths by the range over which its tendon moves (lengthrange [m]) and the range of fibre
lengths (in optimal ones) this stands for; so, as its manual gives them, with the tendon's length LT as constant,

    L0 = (lengthrange1 - lengthrange0) / (range1 - range0)        LT = lengthrange0 - range0 L0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from borelli.errors import unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf.bodies import Tree
from borelli.model.formats.mjcf.defaults import MUSCLE_PARAMETERS, Values
from borelli.model.kinematics import poses
from borelli.model.model import GROUND, Model, Muscle, PathPoint, PathWrap, WrapObject

Array = NDArray[np.float64]
T = TypeVar("T")

MAX_MUSCLES = 5000
"""The largest model met has 416."""
SAMPLES = 200
"""Random poses in which the length of a path is looked for where the file does not give its range."""


@dataclass(slots=True)
class _Path:
    """A spatial tendon."""

    points: list[PathPoint] = field(default_factory=list)
    wraps: list[PathWrap] = field(default_factory=list)
    pulleys: int = 0


@dataclass(slots=True)
class Muscles:
    """Muscles, what they wrap over, and what could not be said of them."""

    muscles: list[Muscle] = field(default_factory=list)
    wrap_objects: dict[str, WrapObject] = field(default_factory=dict)
    guessed_lengths: list[str] = field(default_factory=list)
    guessed_forces: list[str] = field(default_factory=list)
    short_tendons: list[str] = field(default_factory=list)
    branched: list[str] = field(default_factory=list)
    sampled: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    """Places and rotations of the bodies in the poses in which lengths are looked for."""


def read_muscles(root: Element, tree: Tree, model: Model) -> Muscles:
    """The muscles of a file whose bodies are those of `model`."""
    found = Muscles()
    tendons = {e.attributes.get("name", ""): e for section in root.all("tendon") for e in section.children}
    used: set[str] = set()
    for section in root.all("actuator"):
        for element in section.children:
            values = tree.settings.actuator(element)
            tendon = values.text("tendon")
            if values.text("gaintype") != "muscle" or not tendon:
                what = (
                    "muscle that pulls no tendon" if values.text("gaintype") == "muscle" else f"{element.tag} actuator"
                )
                tree.settings.leave_out(what)
                continue
            if tendon not in tendons:
                raise element.error(f"{element.tag}: {unknown_name('tendon', tendon, tendons)}")
            if tendons[tendon].tag != "spatial":
                tree.settings.leave_out("muscle on a tendon of joints")
                continue
            if len(found.muscles) >= MAX_MUSCLES:
                raise element.error(f"the model has more than {MAX_MUSCLES} muscles, which are not read")
            used.add(tendon)
            path = _path(tendons[tendon], tree, found)
            found.muscles.append(_muscle(values, path, tree, model, found))
    for _ in tendons.keys() - used:
        tree.settings.leave_out("tendon that no muscle pulls")
    return found


def _path(element: Element, tree: Tree, found: Muscles) -> _Path:
    """The points a spatial tendon passes and the surfaces between them."""
    path = _Path()
    sites = tree.sites
    for part in element.children:
        values = Values(part, part.attributes)
        if part.tag == "site":
            marker = _known(values, "site", sites)
            path.points.append(PathPoint(marker.body, marker.position, marker.name))
        elif part.tag == "geom":
            wrap = _wrap_object(values, tree, found)
            side = _known(values, "sidesite", sites) if "sidesite" in values else None
            point = None if side is None else PathPoint(side.body, side.position, side.name)
            # a tendon wraps between the site before the geom and the one after it
            first = max(len(path.points) - 1, 0)
            path.wraps.append(PathWrap(wrap.name, first, first + 1, side_point=point))
        elif part.tag == "pulley":
            path.pulleys += 1
    if len(path.points) < 2:
        raise element.error(f"tendon {element.attributes.get('name', '')!r}: its path needs two sites or more")
    last = len(path.points) - 1
    path.wraps = [
        w if w.last <= last else PathWrap(w.wrap_object, last - 1, last, w.method, w.side_point) for w in path.wraps
    ]
    return path


def _wrap_object(values: Values, tree: Tree, found: Muscles) -> WrapObject:
    """The geom a tendon wraps over; MuJoCo takes spheres and cylinders, the latter without ends."""
    name = values.text("geom")
    if name not in found.wrap_objects:
        body, geom = _known(values, "geom", tree.geoms)
        if geom.kind not in ("sphere", "cylinder") or geom.shape is None:
            raise values.element.error(
                f"geom {name!r}: a tendon wraps over spheres and cylinders, not over a {geom.kind}"
            )
        found.wrap_objects[name] = WrapObject(name, geom.kind, body, geom.shape.size, geom.frame)
    return found.wrap_objects[name]


def _muscle(values: Values, path: _Path, tree: Tree, model: Model, found: Muscles) -> Muscle:
    element = values.element
    gain = values.numbers("gainprm", 1, 10) or ()
    if len(gain) < 9:
        raise element.error(f"{element.tag}: the gainprm of a muscle holds 9 numbers or more, got {len(gain)}")
    name = tree.free_name("muscle", values.text("name") or values.text("tendon"))
    if path.pulleys:
        found.branched.append(name)
    lengths = values.numbers("lengthrange", 2, 2)
    if lengths is None or lengths[0] == lengths[1]:
        lengths = _length_range(path, model, found)
        found.guessed_lengths.append(name)
    span = gain[1] - gain[0]
    if not span > 0.0 or not lengths[1] > lengths[0]:
        raise element.error(f"muscle {name!r}: its range {gain[:2]} and lengthrange {lengths} must each rise")
    fiber = (lengths[1] - lengths[0]) / span
    tendon = lengths[0] - gain[0] * fiber
    if tendon < 0.0:
        found.short_tendons.append(name)
    force, times = gain[2], values.numbers("dynprm", 1, 10) or (0.01, 0.04)
    if not force > 0.0:
        found.guessed_forces.append(name)
        force = gain[3]
    parameters = {"range0": gain[0], "range1": gain[1], "lengthrange0": lengths[0], "lengthrange1": lengths[1]}
    parameters |= dict(zip(MUSCLE_PARAMETERS, gain[2:9], strict=True))
    return Muscle(
        name,
        tuple(path.points),
        force,
        fiber,
        max(tendon, 0.0),
        kind="MuJoCo",
        max_contraction_velocity=gain[6] if gain[6] > 0.0 else 1.5,
        activation_time=max(times[0], 0.0),
        deactivation_time=max((*times, 0.04)[1], 0.0),
        default_activation=0.0,
        wraps=tuple(path.wraps),
        parameters=tuple(parameters.items()),
    )


def _length_range(path: _Path, model: Model, found: Muscles) -> tuple[float, float]:
    """Least and greatest length [m] of the straight path over random poses within the stops."""
    if not found.sampled:
        found.sampled = _sampled(model)
    places = np.stack([place + turn @ np.array(point.position) for point, (place, turn) in
                       ((point, found.sampled[point.body]) for point in path.points)], axis=1)  # fmt: skip
    lengths = np.linalg.norm(np.diff(places, axis=1), axis=2).sum(axis=1)
    least, most = float(lengths.min()), float(lengths.max())
    return least, most if most > least else 1.01 * least + 1e-6


def _sampled(model: Model) -> dict[str, tuple[Array, Array]]:
    """Places (poses, 3) and rotations (poses, 3, 3) of all bodies, and of the ground, in random poses."""
    rng = np.random.default_rng(0)
    lower = np.array([max(c.lower, c.default - 1.0) for c in model.coordinates])
    upper = np.array([min(c.upper, c.default + 1.0) for c in model.coordinates])
    position, rotation = poses(model, rng.uniform(lower, upper, (SAMPLES, len(lower))))
    bodies = {body.name: (position[:, i], rotation[:, i]) for i, body in enumerate(model.bodies)}
    return {**bodies, GROUND: (np.zeros((SAMPLES, 3)), np.tile(np.eye(3), (SAMPLES, 1, 1)))}


def notes(found: Muscles) -> list[str]:
    """What the user must know of the muscles read."""
    told = []
    if found.guessed_lengths:
        told.append(
            f"{_few(found.guessed_lengths)}: no lengthrange in the file, so the fibre and tendon lengths are guessed "
            "from the straight path over random poses"
        )
    if found.guessed_forces:
        told.append(
            f"{_few(found.guessed_forces)}: the file leaves the peak force to MuJoCo's compiler (scale / acceleration "
            "at unit force); the scale stands in its place, which is no force: set max_isometric_force"
        )
    if found.short_tendons:
        told.append(
            f"{_few(found.short_tendons)}: the lengths in the file make the tendon shorter than nothing; it is zero"
        )
    if found.branched:
        told.append(
            f"{_few(found.branched)}: the pulleys of its tendon are left out; its branches stand one after the other"
        )
    return told


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    plural = "s" if len(names) > 1 else ""
    return f"muscle{plural} {shown}{f' and {len(names) - 5} more' if len(names) > 5 else ''}"


def _known(values: Values, kind: str, known: Mapping[str, T]) -> T:
    """What an attribute names."""
    name = values.text(kind)
    if name not in known:
        raise values.element.error(f"tendon: {unknown_name(kind, name, known)}")
    return known[name]
