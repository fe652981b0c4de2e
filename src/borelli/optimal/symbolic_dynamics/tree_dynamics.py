"""Dynamics of a model's tree as CasADi expressions of its free coordinates, speeds and accelerations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from borelli.errors import ModelError
from borelli.model.model import Model
from borelli.optimal.casadi_import import ca
from borelli.optimal.symbolic_dynamics.coordinates import (
    CoordinateMotion,
    Variables,
    coordinate_motion,
    move_coupled_forces,
    split_coordinates,
)
from borelli.optimal.symbolic_dynamics.newton_euler import (
    BodyMotion,
    LinkMotion,
    body_motions,
    inverse_dynamics,
    link_motions,
)
from borelli.optimal.symbolic_dynamics.poses import Poses
from borelli.optimal.symbolic_dynamics.vectors import (
    Expression,
    Vector,
    add,
    column,
    cross,
    multiply,
    multiply_transposed,
    subtract,
)


@dataclass(frozen=True, slots=True)
class Wrench:
    """Force [N] at a point [m] and moment [N m] on a body, in the world."""

    body: int
    force: Vector
    point: Vector
    moment: Vector = field(default_factory=lambda: [0.0, 0.0, 0.0])


@dataclass(frozen=True, slots=True)
class TreeDynamics:
    """Tree of a model with symbols for the motion of its free coordinates, in the order of `names`."""

    model: Model
    variables: Variables
    q: ca.SX
    v: ca.SX
    a: ca.SX
    motion: CoordinateMotion
    links: tuple[LinkMotion, ...]
    motions: Mapping[int, BodyMotion]
    poses: Poses

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free coordinates."""
        return tuple(self.model.coordinates[i].name for i in self.variables.free)

    @property
    def held_names(self) -> tuple[str, ...]:
        """Names of the held coordinates."""
        return tuple(self.model.coordinates[i].name for i in self.variables.held)

    def required_forces(self, wrenches: Sequence[Wrench] = ()) -> dict[str, Expression]:
        """Return the generalized forces [N m or N] of free and held coordinates that the motion requires.

        Q = M(q) a + c(q, v) - gravity - external wrenches, with couplings; by name of the coordinate.
        """
        forces = inverse_dynamics(self.model, self.links, self.motions, self._body_wrenches(wrenches))
        rows = move_coupled_forces(self.variables, self.motion, forces)
        return {self.model.coordinates[i].name: rows[i] for i in (*self.variables.free, *self.variables.held)}

    def mass_matrix(self) -> ca.SX:
        """Return the mass matrix (free, free) [kg m^2, kg m or kg]."""
        required = self.required_forces()
        return ca.jacobian(column([required[name] for name in self.names]), self.a)

    def angular_velocity(self, body: int) -> Vector:
        """Return the angular velocity [rad/s] of a body in the world."""
        return multiply(self.poses.pose(body).rotation, self.motions[body].angular_velocity)

    def rates(self, expressions: Sequence[Expression]) -> list[Expression]:
        """Return the time derivatives of expressions of the coordinates."""
        rate = ca.jtimes(column(list(expressions)), self.q, self.v)
        return [rate[i] for i in range(len(expressions))]

    def _body_wrenches(self, wrenches: Sequence[Wrench]) -> dict[int, tuple[Vector, Vector]]:
        """Return the force, and the moment about the inboard joint center, on each body in its axes."""
        total: dict[int, tuple[Vector, Vector]] = {}
        for wrench in wrenches:
            if wrench.body < 0:
                continue
            arm = subtract(wrench.point, self.poses.pose(wrench.body).joint_center)
            moment = add(wrench.moment, cross(arm, wrench.force))
            force = wrench.force
            if wrench.body in total:
                force, moment = add(total[wrench.body][0], force), add(total[wrench.body][1], moment)
            total[wrench.body] = force, moment
        return {
            body: (
                multiply_transposed(self.poses.pose(body).rotation, force),
                multiply_transposed(self.poses.pose(body).rotation, moment),
            )
            for body, (force, moment) in total.items()
        }


def make_tree_dynamics(model: Model, held: Mapping[str, float] | None = None) -> TreeDynamics:
    """Return the dynamics of a model's tree.

    Args:
        model: Model that `validate` accepts, without joints that close loops.
        held: Values [rad or m] of coordinates that are held, by name. They are not variables; `required_forces` has the
            forces that hold them.

    Raises:
        ModelError: if the model has loops, ligaments, kinematic bodies or bodies without joint.
        SettingsError: if a coordinate cannot be held.
    """
    _check(model)
    variables = split_coordinates(model, held)
    q, v, a = (ca.SX.sym(name, len(variables.free)) for name in ("q", "v", "a"))
    motion = coordinate_motion(len(model.coordinates), variables, q, v, a)
    links = link_motions(model, motion)
    return TreeDynamics(model, variables, q, v, a, motion, links, body_motions(model, links), Poses(model, links))


def _check(model: Model) -> None:
    """Raise ModelError where a model contains what the equations do not."""
    where = f"Model {model.name!r}"
    if model.ligaments:
        raise ModelError(
            f"{where}: Its {len(model.ligaments)} ligaments have no symbolic forces. Remove them from the model, or "
            "state their forces with `forces`."
        )
    jointed = {joint.child for joint in model.joints}
    for body in model.bodies:
        if body.kinematic:
            raise ModelError(f"{where}: Body {body.name!r} has a prescribed motion. Remove it from the model.")
        if body.name not in jointed:
            raise ModelError(f"{where}: Body {body.name!r} has no joint. Give it one: a free or a fixed joint.")
