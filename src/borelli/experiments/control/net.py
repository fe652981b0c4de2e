"""Skeleton under a net: 960 joints and 225 loops that fall on 74 controlled joints.

After Weinstein, Guendelman and Fedkiw, Fig. 10. The net hangs by two of its corners and falls on the skeleton, whose
pelvis is fixed and whose arms track B-splines. The joints of net and skeleton are solved together.

Knots collide with bones and bars do not: meshes narrower than the skull keep the head from passing between them, and
the net catches on ribs, collar bones and arms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from xarray import Dataset

from borelli.control.controls import Control, make_controls
from borelli.control.response import PD
from borelli.control.targets import b_spline_targets
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.mace import fixed_pelvis_skeleton
from borelli.experiments.control.planks import IMPULSE
from borelli.experiments.experiment import Request, figure
from borelli.experiments.outcome import NOT_GIVEN, Claim, Outcome, above, below
from borelli.model.mechanisms import net
from borelli.model.model import Body, Frame, Model, Surface
from borelli.numerics.quaternions import rotation_matrix
from borelli.physics.solver_settings import SolverSettings
from borelli.view.panels import View
from borelli.view.plot_style import BLUE, INK, ORANGE

GAINS = PD(100.0)
STEP, SECONDS = 1 / 240, 1.5
SPLINE_DURATION = 2.5
"""Duration of the complete B-splines [s]."""
KNOTS, WIDTH = 16, 1.5
"""Number of knots along each side of the net, and length of a side [m]."""
NET_FRAME = Frame((0.45, 0.0, 2.0))
"""Center of the net, at the height of the fixed corners: 0.3 m behind the skeleton, so that most falls in front."""
COLLIDING_BONES = (
    "head", "collar", "upper_arm", "ulna", "T1_T4", "T5_T8", "T9_T12", "L1", "L2", "L3", "L4", "L5", "pelvis", "thigh",
)  # fmt: skip
"""Bones that collide with knots of the net."""
FRICTION = 0.3
"""Friction coefficient of knots."""
KNOT_INERTIA_RATIO = 100.0
"""Inertia of a knot over that of a ball of its size: 8e-5 kg m^2, about twice that of a bar."""
ARM_VALUES = {
    "shoulder_flexion": (0.0, 0.0, 0.3, 1.8, 2.2, 0.9, 1.6, 1.2, 1.2),
    "shoulder_adduction": (0.0, 0.0, -0.2, -0.5, -0.2, -0.5, -0.3, -0.3, -0.3),
    "elbow_flexion": (0.2, 0.2, 0.6, 1.4, 0.6, 1.5, 0.8, 1.0, 1.0),
}
"""Control values of the B-splines [rad]."""


def caught_model(knots: int = KNOTS) -> Model:
    """Return the skeleton under a net with the given number of knots along each side."""
    skeleton = fixed_pelvis_skeleton()
    cords = net(knots, knots, spacing=WIDTH / (knots - 1), frame=NET_FRAME)
    bodies = (*map(_bone, skeleton.bodies), *map(_cord, cords.bodies))
    return Model("a skeleton and a net", bodies, (*skeleton.joints, *cords.joints), self_collision=True)


def _bone(body: Body) -> Body:
    collides = body.name.removesuffix("_l").removesuffix("_r") in COLLIDING_BONES
    return replace(body, shapes=tuple(replace(shape, collides=collides) for shape in body.shapes))


def _cord(body: Body) -> Body:
    """Return a body of the net: only knots collide, with the inertia of a bar, since tiny inertias slow the solver."""
    if body.name.startswith("bar"):
        return replace(body, shapes=tuple(replace(shape, collides=False) for shape in body.shapes))
    rough = tuple(replace(shape, surface=Surface(friction=FRICTION)) for shape in body.shapes)
    own = body.inertia[0][0] * KNOT_INERTIA_RATIO
    return replace(body, shapes=rough, inertia=((own, 0.0, 0.0), (0.0, own, 0.0), (0.0, 0.0, own)))


def struggle_controls(model: Model) -> tuple[Control, ...]:
    """Return controls of all joints of the skeleton: moving arms, all else constant."""
    pieces = len(next(iter(ARM_VALUES.values()))) - 3
    values = {
        c.name: ARM_VALUES.get(c.name[:-2], (c.default,) * (pieces + 3))
        for c in fixed_pelvis_skeleton().coordinates
        if not c.locked
    }
    return make_controls(b_spline_targets(model, np.linspace(0.0, SPLINE_DURATION, pieces + 1), values), GAINS)


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    knots, seconds = (5, 0.1) if request.quick else (KNOTS, SECONDS)
    model = caught_model(knots)
    request.log("the net falls")
    data = track_targets(
        model, struggle_controls(model), duration=seconds, step=STEP, settings=SolverSettings(friction_solves=1),
        record_every=4, progress=lambda fraction: request.log(f"the net falls: {100.0 * fraction:.0f} %"),
    )  # fmt: skip
    row = _metrics(data, model)
    _draw(data, request.plot)
    times = np.linspace(0.0, SECONDS, 6)
    view = View(width=420, height=420, azimuth=-40.0, elevation=10.0)
    files = draw_runs(request, {IMPULSE: data}, tuple(times), view=view)
    about = (
        f"a net of {knots} by {knots} knots, {row['net_joints']} joints and {row['net_loops']} loops, falls on a "
        f"skeleton of 74 joints, pelvis fixed, arms on B-splines; {seconds:g} s in steps of 1/240 s, stiffness "
        f"{GAINS.stiffness:g} 1/s^2"
    )
    return Outcome(request.name, about, [row], _claims(row, request.quick), (request.plot, *files))


def _net_bodies(data: Dataset) -> list[str]:
    return [str(name) for name in data["body"].values if str(name).startswith(("knot", "bar"))]


def _metrics(data: Dataset, model: Model) -> dict[str, Any]:
    joints = [joint for joint in model.joints if joint.name.startswith("bar")]
    bodies = [body for body in model.bodies if body.name.startswith(("knot", "bar"))]
    error = np.abs(data["coordinate_error"].values)
    forces = _load(data)
    late = data["time"].values > 0.8 * float(data["time"].values[-1])
    return {
        "net_joints": len(joints),
        "net_loops": len(joints) - len(bodies) + 1,
        "joint_gap_m": float(data["joint_gap"].values.max()),
        "largest_error_rad": float(np.nanmax(error)),
        "error_at_end_rad": float(np.nanmax(error[-1])),
        "net_weight_n": 9.81 * sum(body.mass for body in bodies),
        "largest_load_n": float(forces.max()),
        "load_at_end_n": float(forces[late].mean()),
        "nearest_to_skull": _nearest_to_skull(data, model),
        "finite": bool(np.isfinite(data["body_position"].values).all()),
    }


def _nearest_to_skull(data: Dataset, model: Model) -> float:
    """Return the smallest distance of a knot's center from that of the braincase, an ellipsoid; 1 is its surface."""
    knots = [name for name in _net_bodies(data) if name.startswith("knot")]
    skull = model.body("head").shapes[0]
    offset = data["body_position"].sel(body=knots).values - data["body_position"].sel(body="head").values[:, None]
    local = np.einsum("tkj,tji->tki", offset, rotation_matrix(data["body_orientation"].sel(body="head").values))
    return float(np.linalg.norm((local - skull.frame.position) / skull.size, axis=-1).min())


def _load(data: Dataset) -> Any:
    """Return the vertical load of the net on the skeleton [N], at every instant."""
    bones = [str(name) for name in data["body"].values if str(name) not in set(_net_bodies(data))]
    return -data["contact_force"].sel(body=bones, axis="z").values.sum(axis=1)


def _claims(row: Mapping[str, Any], quick: bool) -> list[Claim]:
    claims = [
        below("largest joint gap [m]", row["joint_gap_m"], NOT_GIVEN, 1e-6),
        Claim("all values are finite", float(row["finite"]), NOT_GIVEN, "1: finite", row["finite"]),
    ]
    if quick:
        return claims
    fraction = row["load_at_end_n"] / row["net_weight_n"]
    return [
        Claim("joints of the net", row["net_joints"], "960", "960", row["net_joints"] == 960),
        Claim("loops of the net", row["net_loops"], "over 225", "at least 225", row["net_loops"] >= 225),
        *claims,
        above("fraction of the net's weight on the skeleton at the end", fraction, "caught", 0.1),
        above("smallest distance of a knot from the skull (1: its surface)", row["nearest_to_skull"],
              NOT_GIVEN, 1.0),
        Claim("largest error of a controlled joint [rad]", row["largest_error_rad"], "yields",
              "0.01 to 1", 0.01 < row["largest_error_rad"] < 1.0),
    ]  # fmt: skip


def _draw(data: Dataset, path: Path) -> None:
    time = data["time"].values
    error = data["coordinate_error"]
    with figure(path, "load of the net on the skeleton [N]", "error [deg]") as (load, errors):
        load.plot(time[1:], _load(data)[1:], color=ORANGE, lw=0.9)
        for name, color in (("shoulder_flexion_r", BLUE), ("elbow_flexion_r", INK)):
            label = name.replace("_", " ").removesuffix(" r")
            errors.plot(time, np.degrees(np.abs(error.sel(coordinate=name).values)), color=color, label=label)
        largest = np.nanmax(np.degrees(np.abs(error.values)), axis=1)
        errors.plot(time, largest, color=ORANGE, lw=0.7, label="largest of all")
