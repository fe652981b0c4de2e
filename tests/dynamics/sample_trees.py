"""Small tree models with every kind of joint, couplings and custom joints, and random states of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from borelli.model.functions import Function
from borelli.model.model import GROUND, Body, Coupling, Model, Softness

from ..physics.jointed import SCENES, make_joint

KINDS = [scene for scene in SCENES if scene != "fixed"]


def random_body(name: str, rng: np.random.Generator) -> Body:
    root = rng.normal(size=(3, 3))
    spread = root @ root.T / 30.0 + 0.02 * np.eye(3)
    inertia = np.trace(spread) * np.eye(3) - spread
    rows = tuple(tuple(float(x) for x in row) for row in inertia)
    return Body(name, float(rng.uniform(0.5, 3.0)), tuple(float(x) for x in rng.normal(scale=0.1, size=3)), rows)


def tree_of(kind: str, seed: int = 0, softness: Softness | None = None) -> Model:
    """Return a free trunk with a limb on a joint of a kind and a forearm on a hinge of the limb."""
    rng = np.random.default_rng(seed)
    bodies = tuple(random_body(name, rng) for name in ("trunk", "limb", "forearm"))
    joints = (
        make_joint("free", "root", GROUND, "trunk", rng),
        make_joint(kind, "middle", "trunk", "limb", rng),
        make_joint("hinge odd", "end", "limb", "forearm", rng),
    )
    if softness is not None:
        joints = tuple(replace(joint, softness=softness) for joint in joints)
    return Model(kind, bodies, joints)


def coupled_tree(seed: int = 0) -> Model:
    """Return a tree in which a forearm's hinge follows a knee, and a universal's second angle the first."""
    model = tree_of("knee", seed)
    rng = np.random.default_rng(seed + 1)
    hand = random_body("hand", rng)
    joint = make_joint("universal odd", "wrist", "forearm", "hand", rng)
    curve = Function((-2.0, 0.2, 2.0), ((0.1, 0.4, 0.1), (1.464, 0.84, 0.1)))
    couplings = (
        Coupling("follow", "end.0", "middle.flexion", curve),
        Coupling("again", "wrist.1", "end.0", Function((-9.0, 9.0), ((0.3, -0.5, 0.02),))),
    )
    return replace(
        model, name="coupled", bodies=(*model.bodies, hand), joints=(*model.joints, joint), couplings=couplings
    )


def random_state(model: Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates away from gimbal lock, and speeds, zero where locked or coupled."""
    rng = np.random.default_rng(seed)
    count = len(model.coordinates)
    fixed = {c.coordinate for c in model.couplings} | {c.name for c in model.coordinates if c.locked}
    q = np.array([c.default for c in model.coordinates]) + rng.uniform(-0.6, 0.6, count)
    speeds = rng.uniform(-2.0, 2.0, count)
    for i, c in enumerate(model.coordinates):
        if c.name in fixed:
            speeds[i] = 0.0
            q[i] = c.default
    return q, speeds
