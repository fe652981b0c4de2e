"""Muscles of an MJCF file: tendons with muscle actuators.

MuJoCo states a muscle's lengths by the range over which its tendon moves (lengthrange [m]) and the corresponding range
of fiber lengths (in optimal fiber lengths). With a constant tendon length LT, as in its manual,

    L0 = (lengthrange1 - lengthrange0) / (range1 - range0)        LT = lengthrange0 - range0 L0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from borelli.errors import list_names, unknown_name
from borelli.files.xml import Element
from borelli.model.formats.mjcf.bodies import Tree
from borelli.model.formats.mjcf.defaults import MUSCLE_PARAMETERS, Values
from borelli.model.kinematics import poses
from borelli.model.model import GROUND, Model, Muscle, PathPoint, PathWrap, Pulley, WrapObject
from borelli.model.transforms import Array

T = TypeVar("T")

MAX_MUSCLES = 5000
"""Maximum number of muscles; the largest known model has 416."""
SAMPLES = 200
"""Random poses for the range of a path's length, where the file does not state it."""


@dataclass(slots=True)
class _Path:
    """Spatial tendon."""

    points: list[PathPoint] = field(default_factory=list)
    wraps: list[PathWrap] = field(default_factory=list)
    pulleys: list[Pulley] = field(default_factory=list)


@dataclass(slots=True)
class Muscles:
    """Muscles, wrap objects, and names of muscles with assumed parameters."""

    muscles: list[Muscle] = field(default_factory=list)
    wrap_objects: dict[str, WrapObject] = field(default_factory=dict)
    inferred_lengths: list[str] = field(default_factory=list)
    inferred_forces: list[str] = field(default_factory=list)
    short_tendons: list[str] = field(default_factory=list)
    sampled: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    """Positions and rotations of the bodies in the sampled poses."""


def read_muscles(root: Element, tree: Tree, model: Model) -> Muscles:
    """Return the muscles of a file whose bodies are those of `model`."""
    result = Muscles()
    tendons = {e.attributes.get("name", ""): e for section in root.all("tendon") for e in section.children}
    for section in root.all("actuator"):
        for element in section.children:
            values = tree.settings.actuator(element)
            tendon = values.text("tendon")
            if values.text("gaintype") != "muscle":
                continue  # listed with everything that is not read
            if not tendon:
                tree.settings.leave_out(element, "muscle without tendon")
                continue
            if tendon not in tendons:
                raise element.error(f"{element.tag}: {unknown_name('tendon', tendon, tendons)}")
            if tendons[tendon].tag != "spatial":
                tree.settings.leave_out(element, "muscle on a tendon of joints")
                continue
            if len(result.muscles) >= MAX_MUSCLES:
                raise element.error(f"The model has more than {MAX_MUSCLES} muscles.")
            element.was_read = tendons[tendon].was_read = True
            path = _path(tendons[tendon], tree, result)
            result.muscles.append(_muscle(values, path, tree, model, result))
    return result


def _path(element: Element, tree: Tree, result: Muscles) -> _Path:
    """Return the points of a spatial tendon and the surfaces between them."""
    path = _Path()
    sites = tree.sites
    for part in element.children:
        values = Values(part, part.attributes)
        part.was_read = part.tag in ("site", "geom", "pulley")
        if part.tag == "site":
            marker = _known(values, "site", sites)
            path.points.append(PathPoint(marker.body, marker.position, marker.name))
        elif part.tag == "geom":
            wrap = _wrap_object(values, tree, result)
            side = _known(values, "sidesite", sites) if "sidesite" in values else None
            point = None if side is None else PathPoint(side.body, side.position, side.name)
            # a tendon wraps between the sites before and after the geom
            first = max(len(path.points) - 1, 0)
            path.wraps.append(PathWrap(wrap.name, first, first + 1, "tendon", point))
        elif part.tag == "pulley":
            path.pulleys.append(_pulley(values, len(path.points)))
    if len(path.points) < 2:
        raise element.error(
            f"Tendon {element.attributes.get('name', '')!r}: The path has fewer than two sites. Add sites."
        )
    last = len(path.points) - 1
    path.wraps = [
        w if w.last <= last else PathWrap(w.wrap_object, last - 1, last, w.method, w.side_point) for w in path.wraps
    ]
    return path


def _pulley(values: Values, first: int) -> Pulley:
    divisor = (values.numbers("divisor", 1, 1) or (1.0,))[0]
    if not divisor > 0.0:
        raise values.element.error(f"The divisor of a pulley is {divisor:g}. It must be positive.")
    return Pulley(first, divisor)


def _wrap_object(values: Values, tree: Tree, result: Muscles) -> WrapObject:
    """Return the geom that a tendon wraps over; MuJoCo allows spheres and infinite cylinders."""
    name = values.text("geom")
    if name not in result.wrap_objects:
        body, geom = _known(values, "geom", tree.geoms)
        if geom.kind not in ("sphere", "cylinder") or geom.shape is None:
            raise values.element.error(
                f"Geom {name!r}: A tendon cannot wrap over a {geom.kind}. Use a sphere or a cylinder."
            )
        result.wrap_objects[name] = WrapObject(name, geom.kind, body, geom.shape.size, geom.frame)
    return result.wrap_objects[name]


def _muscle(values: Values, path: _Path, tree: Tree, model: Model, result: Muscles) -> Muscle:
    element = values.element
    gain = values.numbers("gainprm", 1, 10) or ()
    if len(gain) < 9:
        raise element.error(f"{element.tag}: The gainprm of a muscle has {len(gain)} numbers. Give at least 9.")
    name = tree.unique_name("muscle", values.text("name") or values.text("tendon"))
    lengths = values.numbers("lengthrange", 2, 2)
    if lengths is None or lengths[0] == lengths[1]:
        lengths = _length_range(path, model, result)
        result.inferred_lengths.append(name)
    span = gain[1] - gain[0]
    if not span > 0.0 or not lengths[1] > lengths[0]:
        found = f"range {gain[0]:g} {gain[1]:g} and lengthrange {lengths[0]:g} {lengths[1]:g}"
        raise element.error(f"Muscle {name!r}: The {found} must be increasing.")
    fiber = (lengths[1] - lengths[0]) / span
    tendon = lengths[0] - gain[0] * fiber
    if tendon < 0.0:
        result.short_tendons.append(name)
    force, times = gain[2], values.numbers("dynprm", 1, 10) or (0.01, 0.04)
    if not force > 0.0:
        result.inferred_forces.append(name)
        force = gain[3]
    parameters = {"range0": gain[0], "range1": gain[1], "lengthrange0": lengths[0], "lengthrange1": lengths[1]}
    parameters |= dict(zip(MUSCLE_PARAMETERS, gain[2:9], strict=True))
    if len(times) > 2 and times[2] > 0.0:
        parameters["tausmooth"] = times[2]
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
        pulleys=tuple(pulley for pulley in path.pulleys if pulley.first < len(path.points)),
    )


def _length_range(path: _Path, model: Model, result: Muscles) -> tuple[float, float]:
    """Return the smallest and largest length [m] of the straight path over random poses within the range of motion."""
    if not result.sampled:
        result.sampled = _sampled(model)
    points = np.stack([position + rotation @ np.array(point.position) for point, (position, rotation) in
                       ((point, result.sampled[point.body]) for point in path.points)], axis=1)  # fmt: skip
    weight, divisors = np.ones(len(path.points) - 1), {pulley.first: pulley.divisor for pulley in path.pulleys}
    for first in sorted(divisors):
        weight[first:] = 1.0 / divisors[first]
        weight[first - 1 : first] = 0.0  # the path is interrupted
    lengths = np.linalg.norm(np.diff(points, axis=1), axis=2) @ weight
    least, most = float(lengths.min()), float(lengths.max())
    return least, most if most > least else 1.01 * least + 1e-6


def _sampled(model: Model) -> dict[str, tuple[Array, Array]]:
    """Return positions (poses, 3) and rotations (poses, 3, 3) of all bodies, and of the ground, in random poses."""
    rng = np.random.default_rng(0)
    lower = np.array([max(c.lower, c.default - 1.0) for c in model.coordinates])
    upper = np.array([min(c.upper, c.default + 1.0) for c in model.coordinates])
    position, rotation = poses(model, rng.uniform(lower, upper, (SAMPLES, len(lower))))
    bodies = {body.name: (position[:, i], rotation[:, i]) for i, body in enumerate(model.bodies)}
    return {**bodies, GROUND: (np.zeros((SAMPLES, 3)), np.tile(np.eye(3), (SAMPLES, 1, 1)))}


def notes(result: Muscles) -> list[str]:
    """Return sentences on how the muscles were read."""
    lengths = "fiber and tendon lengths are inferred from the straight path over random poses"
    compiled = "left to MuJoCo's compiler (scale / acceleration at unit force)"
    sentences = {
        f"The file has no lengthrange; {lengths}.": result.inferred_lengths,
        f"The maximum force is {compiled}; the scale is used in its place. Set max_isometric_force.": (
            result.inferred_forces
        ),
        "The lengths in the file imply a negative tendon length; zero is used.": result.short_tendons,
    }
    return [
        f"Muscle{'s' * (len(names) > 1)} {list_names(names, 5)}: {text}" for text, names in sentences.items() if names
    ]


def _known(values: Values, kind: str, known: Mapping[str, T]) -> T:
    name = values.text(kind)
    if name not in known:
        raise values.element.error(f"Tendon: {unknown_name(kind, name, known)}")
    return known[name]
