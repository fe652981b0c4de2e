"""Compile the kernels of this room for the types every model has."""

from __future__ import annotations

import numpy as np

from borelli.model.model import Body, Coordinate, Joint, Model
from borelli.reduced.pose import find_bodies, find_derivatives, make_search, settle_frames
from borelli.reduced.springs import Holds, Points
from borelli.reduced.tree import make_tree


def warm_up() -> None:
    """Call every kernel once on a pendulum."""
    joint = Joint("hinge", "hinge", "ground", "body", coordinates=(Coordinate("angle"),))
    tree = make_tree(Model("pendulum", (Body("body", 1.0),), (joint,)))
    points = Points(np.zeros(1, np.int64), np.ones((1, 3)))
    one = np.ones(1)
    holds, search = Holds(one, one.copy(), -one, one.copy(), one.copy()), make_search(tree, 1)
    rest, target, weight, q = np.zeros((1, 1)), np.ones((1, 1, 3)), np.ones((1, 1)), np.zeros((1, 1))
    energy, matrix = np.zeros(1), np.zeros((1, 1, 1))
    settle_frames(tree, points, holds, rest, target, weight, q, search, 9, True, energy, np.zeros(1, np.int64))
    find_derivatives(tree, points, holds, rest, target, weight, q, search, energy, q.copy(), matrix)
    find_bodies(tree, points, q, search, target.copy(), np.zeros((1, 1, 3, 3)), target.copy())
