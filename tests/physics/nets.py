"""Nets of bars: a grid of small balls with a bar along every edge and a point joint at each bar's end ."""

from __future__ import annotations

from collections import deque

import numpy as np

from borelli.model.inertia import body_from_shapes
from borelli.model.model import Body, Coordinate, Frame, Joint, Model, Shape

SPACING, BALL, THICKNESS = 0.2, 0.02, 0.01
ALONG_Y = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
"""Rotates x to y."""


def net_model(size: int, *, held: tuple[tuple[int, int], ...] | None = None) -> Model:
    """A flat net of size x size balls; those `held` (by default two neighboring corners) are kinematic."""
    if held is None:
        held = ((0, 0), (size - 1, 0))
    bodies: dict[str, Body] = {}
    ends: list[tuple[str, str, int, float]] = []  # bar, ball, direction, side
    for i in range(size):
        for j in range(size):
            place = Frame((SPACING * i, SPACING * j, 0.0))
            ball = body_from_shapes(f"ball {i} {j}", (Shape("sphere", (BALL,)),), frame=place)
            bodies[ball.name] = Body(
                ball.name, ball.mass, ball.center_of_mass, ball.inertia, frame=place, kinematic=(i, j) in held
            )
    half = SPACING / 2 - BALL
    for i in range(size):
        for j in range(size):
            for way, (di, dj) in enumerate(((1, 0), (0, 1))):
                if i + di == size or j + dj == size:
                    continue
                middle = (SPACING * (i + di / 2), SPACING * (j + dj / 2), 0.0)
                frame = Frame(middle, ALONG_Y if way else (1.0, 0.0, 0.0, 0.0))
                name = f"bar {i} {j} {'xy'[way]}"
                bar = body_from_shapes(name, (Shape("box", (half, THICKNESS, THICKNESS)),), frame=frame)
                bodies[name] = Body(name, bar.mass, bar.center_of_mass, bar.inertia, frame=frame)
                ends += [(name, f"ball {i} {j}", way, -1.0), (name, f"ball {i + di} {j + dj}", way, 1.0)]
    return Model("net", tuple(bodies.values()), tuple(_joints(bodies, ends, half)), gravity=(0.0, 0.0, -9.81))


def _joints(bodies: dict[str, Body], ends: list[tuple[str, str, int, float]], half: float) -> list[Joint]:
    """Point joints, those beyond a spanning tree (breadth first from the held balls) marked as closing loops."""
    at: dict[str, list[int]] = {name: [] for name in bodies}
    for number, (bar, ball, _, _) in enumerate(ends):
        at[bar].append(number)
        at[ball].append(number)
    starts = [name for name, body in bodies.items() if body.kinematic] or [next(iter(bodies))]
    reached, queue, tree = set(starts), deque(starts), {}
    while queue:
        above = queue.popleft()
        for number in at[above]:
            other = ends[number][0] if ends[number][1] == above else ends[number][1]
            if other not in reached:
                reached.add(other)
                tree[number] = other
                queue.append(other)
    joints = []
    for number, (bar, ball, way, side) in enumerate(ends):
        on_bar = Frame((side * half, 0.0, 0.0), (ALONG_Y[0], 0.0, 0.0, -ALONG_Y[3]) if way else (1.0, 0.0, 0.0, 0.0))
        on_ball = Frame((0.0, -side * BALL, 0.0) if way else (-side * BALL, 0.0, 0.0))
        ball_is_child = tree.get(number) == ball
        parent, child = (bar, ball) if ball_is_child else (ball, bar)
        first, second = (on_bar, on_ball) if ball_is_child else (on_ball, on_bar)
        name = f"{bar}{'-+'[side > 0]}"
        turns = tuple(Coordinate(f"{name} {axis}") for axis in "xyz")
        joints.append(
            Joint(name, "ball", parent, child, first, second, coordinates=turns, closes_loop=number not in tree)
        )
    return joints
