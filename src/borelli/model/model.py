"""Models: named, immutable descriptions of bodies, joints, markers and muscles, in SI units.

Shapes, markers and joint frames are stated in the frame of their body; the center of mass may lie elsewhere. A joint
has one frame fixed to the parent and one fixed to the child, and defines how the child frame moves in the parent
frame. The world is the body `ground`. `Model.gravity` defines the vertical direction (default: z up).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Any, TypeVar

from borelli.errors import ModelError, unknown_name
from borelli.files.html_repr import fields_repr, html_table
from borelli.model.functions import Function

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

GROUND = "ground"
MAX_TABLE_ROWS = 100
"""Bodies or joints in the HTML summary of a model."""

SHAPE_KINDS = {  # number of sizes [m] of each kind
    "sphere": 1,  # radius
    "box": 3,  # half extents
    "capsule": 2,  # radius, half length of the cylindrical part; axis z
    "cylinder": 2,  # radius, half length; axis z
    "ellipsoid": 3,  # half axes
    "plane": 0,  # z is the outward normal; on the ground only
    "mesh": 0,  # convex hull of `vertices`
}

WRAP_KINDS = {  # number of sizes [m] of each kind
    "sphere": 1,  # radius
    "cylinder": 2,  # radius, half length; axis z
    "ellipsoid": 3,  # half axes
    "torus": 2,  # radius of the tube, radius of its center circle; axis z
}
WRAP_SIDES = ("all", "+x", "-x", "+y", "-y", "+z", "-z")
WRAP_METHODS = ("hybrid", "midpoint", "axial", "tendon")

# kind: number of coordinates (None: any number)
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
    """Pose: position [m] and orientation (w, x, y, z) in the frame in which it is stated."""

    position: Vector = (0.0, 0.0, 0.0)
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Softness:
    """Compliance of a constraint row: implicit spring [N/m or N m/rad] and damper [N s/m or N m s/rad].

    See Liu, Cooper and Ballard, eq. 14.

    A row with infinite stiffness is hard: each step corrects the fraction `erp` of its error. `erp` and `cfm` together
    state the row in the parameters of ODE; stiffness and damping are then not used.
    """

    stiffness: float = inf
    damping: float = 0.0
    erp: float = 0.2
    cfm: float | None = None

    def at_step(self, step: float) -> tuple[float, float]:
        """Return alpha (fraction of the error corrected) and beta [s/kg or s/(kg m^2)] for a time step [s]."""
        if self.cfm is not None:
            return self.erp, self.cfm / step
        if self.stiffness == inf:
            return self.erp, 0.0
        spring = step * self.stiffness + self.damping
        return step * self.stiffness / spring, 1.0 / (step * spring)

    @staticmethod
    def of_frequency(frequency: float, damping_ratio: float, mass: float) -> Softness:
        """Return the softness under which `mass` [kg or kg m^2] oscillates at `frequency` [Hz] with a damping ratio."""
        omega = 6.283185307179586 * frequency
        return Softness(mass * omega * omega, 2.0 * damping_ratio * mass * omega)


@dataclass(frozen=True, slots=True)
class Surface:
    """Contact properties of a shape."""

    friction: float = 0.8
    """Coulomb coefficient; a pair has the geometric mean."""
    restitution: float = 0.0
    """Ratio of separation to approach speed, 0 to 1; a pair has the larger value."""
    rolling_friction: float = 0.0
    """Resisting moment per normal force [m]; a pair has the larger value."""
    softness: Softness = Softness(stiffness=inf, erp=0.2, cfm=1e-6)
    """In the normal direction; the compliances of a pair add up."""
    velocity: Vector = (0.0, 0.0, 0.0)
    """Velocity of the surface in the frame of its body [m/s], as of a treadmill belt."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Geometric shape fixed to a body or to the ground."""

    kind: str
    size: tuple[float, ...] = ()
    frame: Frame = Frame()
    density: float = 1000.0
    """[kg/m^3]; used when the mass of the body is not given."""
    surface: Surface = Surface()
    collides: bool = True
    vertices: tuple[Vector, ...] = ()
    name: str = ""
    """Name in the file of origin; may be empty."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Body:
    """Rigid body segment. The inertia is about the center of mass, in the axes of the body frame."""

    name: str
    mass: float
    center_of_mass: Vector = (0.0, 0.0, 0.0)
    inertia: tuple[Vector, Vector, Vector] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    shapes: tuple[Shape, ...] = ()
    frame: Frame = Frame()
    """Pose in the world in the reference configuration (all coordinates at their defaults)."""
    kinematic: bool = False
    """Prescribed motion that forces do not affect, as of a moving plate or belt."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Generalized coordinate: a joint angle [rad] or displacement [m]."""

    name: str
    default: float = 0.0
    lower: float = -inf
    upper: float = inf
    limit_softness: Softness = Softness(erp=0.2, cfm=1e-8)
    """Compliance of the joint limits `lower` and `upper`."""
    locked: bool = False
    rotational: bool = True
    usual_range: tuple[float, float] | None = None
    """Expected range without joint limits (OpenSim's range of a coordinate that is not clamped)."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class TransformAxis:
    """One of the six axes of a coordinate joint: rotation about or translation along `axis` by function(coordinate)."""

    axis: Vector
    function: Function
    coordinate: str | None = None
    """None: the function is constant."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Joint:
    """Joint: the motion of a child body in its parent.

    `axes` are stated in the joint frames: the axis of a hinge or slider; the first (fixed in the parent) and second
    (fixed in the child) axis of a universal joint; the three axes of a ball joint, about which its Cardan angles are
    counted in this order (each axis rotates with the ones before); the two translation axes of a planar joint, which
    rotates about their normal. Empty means x, then y, then z.
    Translations come before rotations: a free joint has three translations of the child frame's origin along the axes,
    then three Cardan angles about them; a planar joint has two translations, then its angle.
    `motion` is used by the coordinate joint only: three rotations (applied in this order, each about an axis rotated by
    the ones before) and three translations (in the parent frame), as in OpenSim's CustomJoint.
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
    """True for a joint that closes a kinematic loop; all others must form a tree."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Coupling:
    """Constraint that sets a coordinate to a function of another: coordinate = function(on)."""

    name: str
    coordinate: str
    on: str
    function: Function
    softness: Softness = Softness(erp=0.2)

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Marker:
    """Marker fixed to a body: marker offset [m] in the body's frame."""

    name: str
    body: str
    position: Vector
    aliases: tuple[str, ...] = ()
    """Other labels of the marker in recordings."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class CoordinateRange:
    """Interval of a coordinate [rad or m]."""

    coordinate: str
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class PathPoint:
    """Point of a muscle path, in a body's frame [m]."""

    body: str
    position: Vector
    """For a moving point, the position when all coordinates have their defaults."""
    name: str = ""
    only_within: CoordinateRange | None = None
    """Range of a coordinate in which the point is active; None: always."""
    motion: tuple[TransformAxis, ...] = ()
    """Translations, each along its axis by function(coordinate), whose sum is the position of a moving point."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class WrapObject:
    """Smooth surface fixed to a body over which muscles wrap; its frame is stated in the body's."""

    name: str
    kind: str
    body: str
    size: tuple[float, ...]
    frame: Frame = Frame()
    side: str = "all"
    """Half on which a muscle may lie, as an axis of the frame."""
    active: bool = True

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class PathWrap:
    """Wrap object that a muscle may wrap over between two points of its path."""

    wrap_object: str
    first: int = 0
    last: int = -1
    """Indices of the path points between which the muscle may wrap; -1 is the last point."""
    method: str = "hybrid"
    """OpenSim's method for the path over an ellipsoid; "tendon": MuJoCo's rules, with endless cylinders."""
    side_point: PathPoint | None = None
    """Point on the side on which a tendon passes (MuJoCo's sidesite), inside the surface for a path within it; None:
    the shorter path."""

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True)
class Pulley:
    """Begin of a branch of a path, as in MuJoCo: the path is interrupted before it.

    The length of the branch, up to the next pulley, counts divided by `divisor`.
    """

    first: int
    """Index of the branch's first path point."""
    divisor: float = 1.0


@dataclass(frozen=True, slots=True)
class Muscle:
    """Muscle path and parameters: data only."""

    name: str
    path: tuple[PathPoint, ...]
    max_isometric_force: float
    optimal_fiber_length: float
    tendon_slack_length: float
    pennation_angle: float = 0.0
    """[rad] at optimal fiber length."""
    kind: str = ""
    """Muscle class of the file, such as `Thelen2003Muscle`; may be empty."""
    max_contraction_velocity: float = 10.0
    """[optimal fiber lengths per s]"""
    activation_time: float = 0.01
    """Time constant [s] of activation."""
    deactivation_time: float = 0.04
    """Time constant [s] of deactivation."""
    default_activation: float = 0.05
    wraps: tuple[PathWrap, ...] = ()
    parameters: tuple[tuple[str, float], ...] = ()
    """Other parameters of the file, by their names there; booleans are 0 and 1."""
    pulleys: tuple[Pulley, ...] = ()
    """Branches of the path; () means a single one."""

    __repr__ = fields_repr

    def parameter(self, name: str, default: float | None = None) -> float:
        """Return a value of `parameters`, or the default where the file does not state it.

        Raises:
            ModelError: if the parameter is missing and there is no default.
        """
        for key, value in self.parameters:
            if key == name:
                return value
        if default is None:
            known = (key for key, _ in self.parameters)
            raise ModelError(f"Muscle {self.name!r}: {unknown_name('parameter', name, known)}")
        return default


@dataclass(frozen=True, slots=True)
class Ligament:
    """Passive tissue along a path that pulls with force_scale times force_length(length / resting_length).

    It exerts no force at or below its resting length.
    """

    name: str
    path: tuple[PathPoint, ...]
    resting_length: float
    """[m]"""
    force_scale: float
    """[N]"""
    force_length: Function
    """Force over `force_scale`, as a function of length over resting length."""
    wraps: tuple[PathWrap, ...] = ()

    __repr__ = fields_repr


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Model:
    """Model of a body and the ground. `validate` checks its consistency."""

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    markers: tuple[Marker, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    muscles: tuple[Muscle, ...] = ()
    ground: tuple[Shape, ...] = ()
    gravity: Vector = (0.0, 0.0, -9.81)
    self_collision: bool = False
    """Bodies of the model may collide with each other; bodies connected by a joint never do."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Sentences on what a reader assumed, changed or left out."""
    wrap_objects: tuple[WrapObject, ...] = ()
    ligaments: tuple[Ligament, ...] = ()

    @property
    def mass(self) -> float:
        """Total mass [kg] of the bodies that are not kinematic."""
        return sum(body.mass for body in self.bodies if not body.kinematic)

    def body(self, name: str) -> Body:
        """Return the body called `name`."""
        return _named(self.bodies, "body", name)

    def joint(self, name: str) -> Joint:
        """Return the joint called `name`."""
        return _named(self.joints, "joint", name)

    def marker(self, name: str) -> Marker:
        """Return the marker called `name`."""
        return _named(self.markers, "marker", name)

    def muscle(self, name: str) -> Muscle:
        """Return the muscle called `name`."""
        return _named(self.muscles, "muscle", name)

    def ligament(self, name: str) -> Ligament:
        """Return the ligament called `name`."""
        return _named(self.ligaments, "ligament", name)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """All coordinates, in the order of the joints."""
        return tuple(chain.from_iterable([joint.coordinates for joint in self.joints]))

    def __repr__(self) -> str:
        counts = ", ".join(f"{kind}={count}" for kind, count in self._counts())
        name = self.name if len(self.name) <= 200 else f"{self.name[:200]}..."
        return f"Model({name!r}, mass={self.mass:.4g} kg, {counts})"

    def _repr_html_(self) -> str:
        """Return tables of the model's counts and joints for a notebook."""
        summary = html_table(self.name, [("mass", f"{self.mass:.4g} kg"), *self._counts()])
        joints = [
            (joint.name, f"{joint.kind}: {joint.parent} to {joint.child}, {len(joint.coordinates)} coordinates")
            for joint in self.joints[:MAX_TABLE_ROWS]
        ]
        bodies = [(body.name, f"{body.mass:.4g} kg") for body in self.bodies[:MAX_TABLE_ROWS]]
        return summary + html_table("Bodies", bodies) + html_table("Joints", joints)

    def _counts(self) -> list[tuple[str, int]]:
        kinds = ("bodies", "joints", "coordinates", "markers", "muscles")
        return [(kind, len(getattr(self, kind))) for kind in kinds]


def names_by_kind(model: Model) -> dict[str, list[str]]:
    """Return the names of all elements, which are unique within a kind."""
    elements: dict[str, Sequence[Any]] = {
        "body": model.bodies,
        "joint": model.joints,
        "coordinate": model.coordinates,
        "marker": model.markers,
        "coupling": model.couplings,
        "muscle": model.muscles,
        "wrap object": model.wrap_objects,
        "ligament": model.ligaments,
    }
    return {kind: [element.name for element in own] for kind, own in elements.items()}


_Named = TypeVar("_Named", Body, Joint, Marker, Muscle, Ligament)


def _named(elements: Sequence[_Named], kind: str, name: str) -> _Named:
    for element in elements:
        if element.name == name:
            return element
    raise ModelError(unknown_name(kind, name, (element.name for element in elements)))
