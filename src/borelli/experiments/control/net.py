"""A skeleton under a net: 960 joints and 225 loops that fall on 74 controlled joints, and are struggled with.

After Weinstein, Guendelman and Fedkiw, Fig. 10. The net hangs by two of its corners and falls on the skeleton, whose
pelvis is held and whose arms follow B-splines. The joints of net and skeleton are all solved together.

Knots touch bones and bars do not: with meshes narrower than the skull the head cannot pass between them, and the net
hooks on to ribs, collar bones and arms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from borelli.control.controls import Control, make_controls
from borelli.control.response import PD
from borelli.control.targets import b_spline_targets
from borelli.control.track_targets import track_targets
from borelli.experiments.control.filming import draw_runs
from borelli.experiments.control.mace import standing_skeleton
from borelli.experiments.outcome import Claim, Outcome, write_outcome
from borelli.experiments.control.planks import OURS
from borelli.experiments.movement.stepped_common import BLUE, INK, ORANGE, tidy
from borelli.model.mechanisms import net
from borelli.model.model import Body, Frame, Model, Surface
from borelli.physics.diagnostics import rotation_matrices
from borelli.physics.solver_settings import SolverSettings
from borelli.view.panels import View

if TYPE_CHECKING:
    from xarray import Dataset

GAINS = PD(100.0)
STEP, SECONDS = 1 / 240, 1.5
WHOLE = 2.5
"""What the B-splines would take to their end [s]."""
KNOTS, WIDTH = 16, 1.5
"""Along each side of the net, and how long a side is [m]."""
HUNG = Frame((0.45, 0.0, 2.0))
"""The middle of the net, at the height of the corners held: 0.3 m behind the skeleton, so that most falls in front."""
SOLID = (
    "head", "collar", "upper_arm", "ulna", "T1_T4", "T5_T8", "T9_T12", "L1", "L2", "L3", "L4", "L5", "pelvis", "thigh",
)  # fmt: skip
"""Bones that knots of the net touch."""
FRICTION = 0.3
"""Of knots."""
KNOT_INERTIA = 100.0
"""Of a knot, against that of a ball of its size: 8e-5 kg m^2, about twice that of a bar."""
STRUGGLE = {
    "shoulder_flexion": (0.0, 0.0, 0.3, 1.8, 2.2, 0.9, 1.6, 1.2, 1.2),
    "shoulder_adduction": (0.0, 0.0, -0.2, -0.5, -0.2, -0.5, -0.3, -0.3, -0.3),
    "elbow_flexion": (0.2, 0.2, 0.6, 1.4, 0.6, 1.5, 0.8, 1.0, 1.0),
}
"""Control values of the B-splines [rad]."""


def caught_model(knots: int = KNOTS) -> Model:
    """The skeleton under a net of so many knots along each side."""
    skeleton = standing_skeleton()
    over = net(knots, knots, spacing=WIDTH / (knots - 1), frame=HUNG)
    bodies = (*map(_bone, skeleton.bodies), *map(_cord, over.bodies))
    return Model("a skeleton and a net", bodies, (*skeleton.joints, *over.joints), self_collision=True)


def _bone(body: Body) -> Body:
    touches = body.name.removesuffix("_l").removesuffix("_r") in SOLID
    return replace(body, shapes=tuple(replace(shape, collides=touches) for shape in body.shapes))


def _cord(body: Body) -> Body:
    """Knots alone touch bones; they turn as heavily as a bar, since solves end late with ones that spin at a breath."""
    if body.name.startswith("bar"):
        return replace(body, shapes=tuple(replace(shape, collides=False) for shape in body.shapes))
    rough = tuple(replace(shape, surface=Surface(friction=FRICTION)) for shape in body.shapes)
    own = body.inertia[0][0] * KNOT_INERTIA
    return replace(body, shapes=rough, inertia=((own, 0.0, 0.0), (0.0, own, 0.0), (0.0, 0.0, own)))


def struggling(model: Model) -> tuple[Control, ...]:
    """Controls of all joints of the skeleton: arms that struggle, all else as it stands."""
    pieces = len(next(iter(STRUGGLE.values()))) - 3
    values = {
        c.name: STRUGGLE.get(c.name[:-2], (c.default,) * (pieces + 3))
        for c in standing_skeleton().coordinates
        if not c.locked
    }
    return make_controls(b_spline_targets(model, np.linspace(0.0, WHOLE, pieces + 1), values), GAINS)


def run(out: Path, *, recording: Path | None, quick: bool, say: Callable[[str], None]) -> Outcome:
    """The experiment as the catalog runs it."""
    knots, seconds = (5, 0.1) if quick else (KNOTS, SECONDS)
    model = caught_model(knots)
    say("the net falls")

    def tell(share: float) -> None:
        say(f"the net falls: {100.0 * share:.0f} %")

    data = track_targets(
        model, struggling(model), duration=seconds, step=STEP, settings=SolverSettings(friction_solves=1), every=4,
        progress=tell,
    )  # fmt: skip
    row = _figures(data, model)
    out.mkdir(parents=True, exist_ok=True)
    plot = out / "net.png"
    _draw(data, plot)
    say("drawing")
    times = np.linspace(0.0, SECONDS, 6)
    view = View(width=420, height=420, azimuth=-40.0, elevation=10.0)
    files = draw_runs({OURS: data}, out, "net", tuple(times), quick=quick, view=view)
    about = (
        f"a net of {knots} by {knots} knots, {row['net_joints']} joints and {row['net_loops']} loops, falls on a "
        f"skeleton of 74 joints, pelvis held, arms on B-splines; {seconds:g} s in steps of 1/240 s, stiffness "
        f"{GAINS.stiffness:g} 1/s^2"
    )
    return write_outcome(Outcome("net", about, [row], _claims(row, quick), (plot, *files)), out)


def _net_bodies(data: Dataset) -> list[str]:
    return [str(name) for name in data["body"].values if str(name).startswith(("knot", "bar"))]


def _figures(data: Dataset, model: Model) -> dict[str, Any]:
    joints = [joint for joint in model.joints if joint.name.startswith("bar")]
    bodies = [body for body in model.bodies if body.name.startswith(("knot", "bar"))]
    error = np.abs(data["coordinate_value"].values - data["coordinate_target"].values)
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
        "carried_at_end_n": float(forces[late].mean()),
        "nearest_to_skull": _nearest_to_skull(data, model),
        "finite": bool(np.isfinite(data["body_position"].values).all()),
    }


def _nearest_to_skull(data: Dataset, model: Model) -> float:
    """How near the middle of a knot came to that of the braincase, an ellipsoid; 1 is its surface."""
    knots = [name for name in _net_bodies(data) if name.startswith("knot")]
    skull = model.body("head").shapes[0]
    away = data["body_position"].sel(body=knots).values - data["body_position"].sel(body="head").values[:, None]
    turned = np.einsum("tkj,tji->tki", away, rotation_matrices(data["body_orientation"].sel(body="head").values))
    return float(np.linalg.norm((turned - skull.frame.position) / skull.size, axis=-1).min())


def _load(data: Dataset) -> Any:
    """The weight that the net lays on the skeleton [N], at every instant."""
    bones = [str(name) for name in data["body"].values if str(name) not in set(_net_bodies(data))]
    return -data["ground_reaction_force"].sel(body=bones, axis="z").values.sum(axis=1)


def _claims(row: Mapping[str, Any], quick: bool) -> list[Claim]:
    claims = [
        Claim("widest gap of a joint [m]", row["joint_gap_m"], "joints hold", row["joint_gap_m"] < 1e-6),
        Claim("all is finite", float(row["finite"]), "1", row["finite"]),
    ]
    if quick:
        return claims
    share = row["carried_at_end_n"] / row["net_weight_n"]
    return [
        Claim("joints of the net", row["net_joints"], "960", row["net_joints"] == 960),
        Claim("loops of the net", row["net_loops"], "over 225", row["net_loops"] >= 225),
        *claims,
        Claim("share of the net's weight on the skeleton at the end", share, "caught: 0.1 at least", share > 0.1),
        Claim("nearest that a knot comes to the skull (1: its surface)", row["nearest_to_skull"], "1 at least: outside",
              row["nearest_to_skull"] > 1.0),
        Claim("largest error of a controlled joint [rad]", row["largest_error_rad"], "0.01 to 1: gives way",
              0.01 < row["largest_error_rad"] < 1.0),
    ]  # fmt: skip


def _draw(data: Dataset, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    load, errors = figure.subplots(1, 2)
    time = data["time"].values
    load.plot(time[1:], _load(data)[1:], color=ORANGE, lw=0.9)
    load.set(xlabel="time [s]", ylabel="weight of the net on the skeleton [N]")
    error = np.degrees(np.abs(data["coordinate_value"].values - data["coordinate_target"].values))
    for name, color in (("shoulder_flexion_r", BLUE), ("elbow_flexion_r", INK)):
        index = list(data["coordinate"].values).index(name)
        errors.plot(time, error[:, index], color=color, label=name.replace("_", " ").removesuffix(" r"))
    errors.plot(time, np.nanmax(error, axis=1), color=ORANGE, lw=0.7, label="largest of all")
    errors.set(xlabel="time [s]", ylabel="error [deg]")
    errors.legend(frameon=False, fontsize=8)
    tidy([load, errors])
    figure.savefig(path, dpi=130)
