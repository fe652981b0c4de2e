"""Collisions between the bodies of a character, but for those whose shapes overlap in its motion anyway."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.errors import ModelError, unknown_name
from borelli.kernels.shared_tuples import SharedTuple
from borelli.model.kinematics import poses
from borelli.model.model import Model
from borelli.physics.arrays.compile_model import CompiledModel
from borelli.physics.arrays.shapes import compile_shapes
from borelli.physics.collision.detect import find_contacts, make_contacts

Array = NDArray[np.float64]
BodyPair = tuple[str, str]

MIN_DISTANCE = 0.01
"""Distance [m] within which shapes count as overlapping: they may come closer between frames."""


def overlapping_bodies(model: Model, table: Array) -> tuple[BodyPair, ...]:
    """Return the pairs of bodies that may collide and whose shapes overlap in a motion (frames, coordinates)."""
    index = {body.name: i for i, body in enumerate(model.bodies)}
    shapes = compile_shapes(replace(model, ground=(), self_collision=True), index)
    if not len(shapes.pair_a):
        return ()
    contacts = make_contacts(shapes)
    position, rotation = poses(model, table)
    centers = position + np.einsum("fbij,bj->fbi", rotation, [body.center_of_mass for body in model.bodies])
    shared, found = (SharedTuple(shapes), SharedTuple(contacts)), np.zeros(len(shapes.pair_a), bool)
    for center, turn in zip(np.ascontiguousarray(centers), np.ascontiguousarray(rotation), strict=True):
        count = find_contacts(shared[0], center, turn, MIN_DISTANCE, shared[1])
        found[contacts.pair[:count]] = True
    of_pairs = np.sort(np.stack([shapes.body[shapes.pair_a], shapes.body[shapes.pair_b]], axis=1)[found], axis=1)
    return tuple((model.bodies[a].name, model.bodies[b].name) for a, b in np.unique(of_pairs, axis=0).tolist())


def without_pairs(compiled: CompiledModel, pairs: Collection[BodyPair]) -> CompiledModel:
    """Return a compiled model in which these pairs of bodies do not collide.

    Raises:
        ModelError: A body is unknown.
    """
    shapes, laws = compiled.tables.shapes, compiled.tables.contacts
    for name in (name for pair in pairs for name in pair):
        if name not in compiled.body_index:
            raise ModelError(f"no_contact: {unknown_name('body', name, compiled.body_index)}")
    apart = {frozenset(compiled.body_index[name] for name in pair) for pair in pairs}
    bodies = zip(shapes.body[shapes.pair_a].tolist(), shapes.body[shapes.pair_b].tolist(), strict=True)
    keep = np.array([frozenset(pair) not in apart for pair in bodies], bool)
    if keep.all():
        return compiled
    slots = np.concatenate([[0], np.cumsum(np.diff(shapes.pair_first)[keep])])
    of_each = ("pair_a", "pair_b", "pair_body", "pair_friction", "pair_restitution", "pair_rolling")
    shapes = shapes._replace(**{name: getattr(shapes, name)[keep] for name in of_each}, pair_first=slots)
    laws = laws._replace(alpha=laws.alpha[keep], beta=laws.beta[keep], tangent_beta=laws.tangent_beta[keep])
    return compiled._replace(tables=compiled.tables._replace(shapes=shapes, contacts=laws))
