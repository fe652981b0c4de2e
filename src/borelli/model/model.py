"""The body as a person describes it: named, immutable, SI units; gravity says which way is down (z up by default).

A body's own frame is where its anchors, shapes and markers are stated; its centre of mass may lie elsewhere. Joint
frames are fixed one to the parent and one to the child; the joint says how the child frame may move in the parent
frame. The world is the body called `ground`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TypeVar

from borelli.errors import ModelError, unknown_name
from borelli.model.functions import Function

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

GROUND = "ground"

SHAPE_KINDS = {  # number of sizes [m] each kind takes
    "sphere": 1,  # radius
    "box": 3,  # half extents
    "capsule": 2,  # radius, half length of the cylindrical part; axis z
    "cylinder": 2,  # radius, half length; axis z
    "ellipsoid": 3,  # half axes
    "plane": 0,  # z is the outward normal; on the ground only
    "mesh": 0,  # convex hull of `vertices`
}

WRAP_KINDS = {  # number of sizes [m] each kind takes
    "sphere": 1,  # radius
    "cylinder": 2,  # radius, half length; axis z
    "ellipsoid": 3,  # half axes
    "torus": 2,  # radius of the hole, outer radius; axis z
}
WRAP_SIDES = ("all", "+x", "-x", "+y", "-y", "+z", "-z")
WRAP_METHODS = ("hybrid", "midpoint", "axial")

# kind: number of coordinates (None: as many as the motion names)
JOINT_KINDS = {
    "free": 6,
    "ball": 3,
    "universal": 2,
    "hinge": 1,
    "slider": 1,
    "planar": 3,
    "fixed": 0,
    "coordinate": None,
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A pose: position [m] and orientation (w, x, y, z) in the frame it is stated in."""

    position: Vector = (0.0, 0.0, 0.0)
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Softness:
    """How a row gives way: an implicit spring [N/m or N m/rad] and damper [N s/m or N m s/rad] (seed 004, eq. 14).

    A row is hard when the stiffness is infinite: it then corrects the share `erp` of its error each step.
    `erp` and `cfm` together state the row in ODE's numbers instead; stiffness and damping are then not used.
    """

    stiffness: float = inf
    damping: float = 0.0
    erp: float = 0.2
    cfm: float | None = None

    def at_step(self, step: float) -> tuple[float, float]:
        """Alpha (share of the error corrected) and beta [s/kg or s/(kg m^2)] for a step [s]."""
        if self.cfm is not None:
            return self.erp, self.cfm / step
        if self.stiffness == inf:
            return self.erp, 0.0
        spring = step * self.stiffness + self.damping
        return step * self.stiffness / spring, 1.0 / (step * spring)

    @staticmethod
    def of_frequency(frequency: float, damping_ratio: float, mass: float) -> Softness:
        """Softness under which `mass` [kg or kg m^2] swings at `frequency` [Hz] with a damping ratio."""
        omega = 6.283185307179586 * frequency
        return Softness(mass * omega * omega, 2.0 * damping_ratio * mass * omega)


@dataclass(frozen=True, slots=True)
class Surface:
    """What happens where a shape touches another."""

    friction: float = 0.8
    """Coulomb coefficient; a pair takes the geometric mean."""
    restitution: float = 0.0
    """Share of the approach speed given back; a pair takes the larger."""
    rolling_friction: float = 0.0
    """Resisting moment per normal force [m]; a pair takes the larger."""
    softness: Softness = Softness(stiffness=inf, erp=0.2, cfm=1e-6)
    """Of the normal direction; a pair adds the two compliances."""
    velocity: Vector = (0.0, 0.0, 0.0)
    """How the surface itself moves in the frame of its body [m/s]: a belt."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A geometric shape fixed to a body (or to the ground)."""

    kind: str
    size: tuple[float, ...] = ()
    frame: Frame = Frame()
    density: float = 1000.0
    """[kg/m^3]; used when the body's mass is not given."""
    surface: Surface = Surface()
    collides: bool = True
    vertices: tuple[Vector, ...] = ()
    name: str = ""
    """As the file it came from calls it; may be empty."""


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid segment. Inertia is about the centre of mass, in the axes of the body frame."""

    name: str
    mass: float
    center_of_mass: Vector = (0.0, 0.0, 0.0)
    inertia: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    shapes: tuple[Shape, ...] = ()
    frame: Frame = Frame()
    """Pose in the world in the reference configuration (all coordinates at their defaults)."""
    kinematic: bool = False
    """Moves as prescribed, whatever pushes it: a moving plate, a belt."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One number that says how a joint stands [rad or m]."""

    name: str
    default: float = 0.0
    lower: float = -inf
    upper: float = inf
    limit_softness: Softness = Softness(erp=0.2, cfm=1e-8)
    locked: bool = False
    rotational: bool = True
    usual_range: tuple[float, float] | None = None
    """Where the coordinate is expected to lie although no stop holds it there (OpenSim's range, when not clamped)."""


@dataclass(frozen=True, slots=True)
class TransformAxis:
    """One of the six parts of a coordinate joint: a rotation about, or shift along, `axis` by function(coordinate)."""

    axis: Vector
    function: Function
    coordinate: str | None = None
    """None: the function is constant."""


@dataclass(frozen=True, slots=True)
class Joint:
    """How the child may move in the parent.

    `axes` are stated in the joint frames: the hinge or slider axis; the universal's first (fixed in the parent) and
    second (fixed in the child); the ball's three, about which its Cardan angles are counted in this order (each
    turning with the one before); the planar joint's two directions of travel (it turns about their normal). Empty
    means x, then y, then z.
    Coordinates that shift come before those that turn: a free joint has three shifts of the child frame's origin along
    the axes, then three Cardan angles about them; a planar joint two shifts, then its turn.
    `motion` belongs to the coordinate joint: three rotations (applied in this order, each about the axis carried by
    the ones before) and three shifts (in the parent frame), as OpenSim's CustomJoint.
    """

    name: str
    kind: str
    parent: str
    child: str
    parent_frame: Frame = Frame()
    child_frame: Frame = Frame()
    axes: tuple[Vector, ...] = ()
    coordinates: tuple[Coordinate, ...] = ()
    motion: tuple[TransformAxis, ...] = ()
    softness: Softness = Softness(erp=0.2)
    closes_loop: bool = False
    """The joint that closes a loop; all others must form a tree."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """A coordinate held at a function of another: coordinate = function(on)."""

    name: str
    coordinate: str
    on: str
    function: Function
    softness: Softness = Softness(erp=0.2)


@dataclass(frozen=True, slots=True)
class Marker:
    """A point fixed to a body, in the body's frame [m]."""

    name: str
    body: str
    position: Vector
    aliases: tuple[str, ...] = ()
    """Other labels under which recordings know it."""


@dataclass(frozen=True, slots=True)
class CoordinateRange:
    """From `lower` to `upper` of a coordinate [rad or m]."""

    coordinate: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class PathPoint:
    """A point a muscle passes, in a body's frame [m]."""

    body: str
    position: Vector
    """For a moving point, its place when all coordinates are at their defaults."""
    name: str = ""
    only_within: CoordinateRange | None = None
    """The muscle passes here only while the coordinate lies in this span; None: always."""
    motion: tuple[TransformAxis, ...] = ()
    """A moving point is at the sum of these shifts, each along its axis by function(coordinate); empty: it is fixed."""


@dataclass(frozen=True, slots=True)
class WrapObject:
    """A smooth surface fixed to a body that muscles slide over; its frame is stated in the body's."""

    name: str
    kind: str
    body: str
    size: tuple[float, ...]
    frame: Frame = Frame()
    side: str = "all"
    """The half on which a muscle may lie, as an axis of the frame."""
    active: bool = True


@dataclass(frozen=True, slots=True)
class PathWrap:
    """That a muscle may wrap over an object, between two points of its path."""

    wrap_object: str
    first: int = 0
    last: int = -1
    """Numbers, from 0, of the path points between which it may wrap; -1 is the last one."""
    method: str = "hybrid"
    """How OpenSim chooses the path over an ellipsoid."""
    side_point: PathPoint | None = None
    """A point on the side where the muscle must pass (MuJoCo's sidesite); None: the shorter way."""


@dataclass(frozen=True, slots=True)
class Muscle:
    """A muscle's path and parameters: data only."""

    name: str
    path: tuple[PathPoint, ...]
    max_isometric_force: float
    optimal_fiber_length: float
    tendon_slack_length: float
    pennation_angle: float = 0.0
    """[rad] when the fibres have their optimal length."""
    kind: str = ""
    """The muscle model as the file names it, such as `Thelen2003Muscle`; may be empty."""
    max_contraction_velocity: float = 10.0
    """[optimal fibre lengths per s]"""
    activation_time: float = 0.01
    """Time constant [s] of activation."""
    deactivation_time: float = 0.04
    """Time constant [s] of deactivation."""
    default_activation: float = 0.05
    wraps: tuple[PathWrap, ...] = ()
    parameters: tuple[tuple[str, float], ...] = ()
    """Whatever else the file says of this kind of muscle, by the file's names; truths are 0 and 1."""

    def parameter(self, name: str, default: float | None = None) -> float:
        """The value of one of `parameters`, or the default where the file does not say."""
        for key, value in self.parameters:
            if key == name:
                return value
        if default is None:
            known = (key for key, _ in self.parameters)
            raise ModelError(f"muscle {self.name!r}: {unknown_name('parameter', name, known)}")
        return default


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Model:
    """A whole body and the ground it stands on. `validate` says whether it holds together."""

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    markers: tuple[Marker, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    muscles: tuple[Muscle, ...] = ()
    ground: tuple[Shape, ...] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    self_collision: bool = False
    """Whether bodies of this model may touch each other (joined neighbours never do)."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What a reader noticed or changed, in sentences for the user."""
    wrap_objects: tuple[WrapObject, ...] = ()

    @property
    def mass(self) -> float:
        """Total mass [kg] of the moving bodies."""
        return sum(body.mass for body in self.bodies if not body.kinematic)

    def body(self, name: str) -> Body:
        """The body of that name."""
        return _named(self.bodies, "body", name)

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        return _named(self.joints, "joint", name)

    def marker(self, name: str) -> Marker:
        """The marker of that name."""
        return _named(self.markers, "marker", name)

    def muscle(self, name: str) -> Muscle:
        """The muscle of that name."""
        return _named(self.muscles, "muscle", name)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All coordinates, in the order of the joints."""
        return tuple(chain.from_iterable([joint.coordinates for joint in self.joints]))


_Named = TypeVar("_Named", Body, Joint, Marker, Muscle)


def _named(elements: Sequence[_Named], what: str, name: str) -> _Named:
    for element in elements:
        if element.name == name:
            return element
    raise ModelError(unknown_name(what, name, (element.name for element in elements)))
