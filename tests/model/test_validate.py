"""Every fault of a model is refused in one sentence that names the culprit."""

from dataclasses import replace
from math import inf, nan

import pytest

from borelli.errors import ModelError
from borelli.model import (
    Body,
    Coordinate,
    Coupling,
    Frame,
    Function,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    Shape,
    Softness,
    Surface,
    TransformAxis,
    constant,
    linear,
    validate,
)
from borelli.model.model import CoordinateRange, PathWrap, WrapObject
from borelli.model.people.human import human

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def body(name: str = "arm", **changes) -> Body:
    return replace(Body(name, 2.0, shapes=(Shape("box", (0.1, 0.1, 0.3)),)), **changes)


def hinge(name: str = "elbow", parent: str = "ground", child: str = "arm", **changes) -> Joint:
    return replace(Joint(name, "hinge", parent, child, coordinates=(Coordinate(f"{name}_angle"),)), **changes)


def joint(kind: str, count: int, shifts: int = 0, **changes) -> Joint:
    coordinates = tuple(Coordinate(f"q{i}", rotational=i >= shifts) for i in range(count))
    return replace(Joint("elbow", kind, "ground", "arm", coordinates=coordinates), **changes)


def motion(**changes) -> Joint:
    parts = tuple(TransformAxis(axis, constant(0.0)) for axis in (X, Y, Z, X, Y, Z))
    parts = (TransformAxis(X, linear(1.0), "q0"), *parts[1:])
    return replace(joint("coordinate", 1, motion=parts), **changes)


def model(*joints: Joint, bodies=None, **rest) -> Model:
    return Model("test", tuple(bodies or [body()]), joints, **rest)


def shaped(shape: Shape) -> Model:
    return model(bodies=[body(shapes=(shape,))])


def limited(**changes) -> Model:
    return model(hinge(coordinates=(Coordinate("bend", **changes),)))


def inertia(*rows) -> Model:
    return model(bodies=[body(inertia=rows)])


def surfaced(**changes) -> Model:
    return shaped(Shape("sphere", (0.1,), surface=Surface(**changes)))


def coupled(*couplings: Coupling) -> Model:
    return model(joint("universal", 2), couplings=couplings)


def muscled(**changes) -> Model:
    path = (PathPoint("arm", X), PathPoint("ground", Y))
    return model(muscles=(replace(Muscle("biceps", path, 100.0, 0.1, 0.2), **changes),))


OVER = PathWrap("knob")


def wrapped(wrap: WrapObject, over: PathWrap = OVER) -> Model:
    return replace(muscled(wraps=(over,)), wrap_objects=(wrap,))


WRAP = WrapObject("knob", "sphere", "arm", (0.1,))
TWO, THREE = [body("a"), body("b")], [body("a"), body("b"), body("c")]

FAULTS = {
    "duplicate body": (model(bodies=[body(), body()]), "body 'arm': the name is used 2 times"),
    "duplicate joint": (
        model(hinge("j", "ground", "a"), hinge("j", "a", "b"), bodies=TWO),
        "joint 'j': the name is used 2 times",
    ),
    "duplicate coordinate": (
        model(hinge("j", "ground", "a"), hinge("k", "a", "b", coordinates=(Coordinate("j_angle"),)), bodies=TWO),
        "coordinate 'j_angle': the name is used 2 times",
    ),
    "duplicate marker": (model(markers=(Marker("M", "arm", X), Marker("M", "arm", Y))), "marker 'M': the name"),
    "duplicate muscle": (replace(muscled(), muscles=muscled().muscles * 2), "muscle 'biceps': the name"),
    "no name": (model(bodies=[body("")]), "a body has no name"),
    "ground as body": (model(bodies=[body("ground")]), "body 'ground': this name is reserved"),
    "unknown parent": (model(hinge(parent="amr")), r"joint 'elbow': unknown body 'amr' \(did you mean 'arm'\?\)"),
    "unknown child": (model(hinge(child="leg")), "joint 'elbow': unknown body 'leg'; known: arm, ground"),
    "unknown marker body": (model(markers=(Marker("M", "leg", X),)), "marker 'M': unknown body 'leg'"),
    "unknown muscle body": (muscled(path=(PathPoint("leg", X),) * 2), "muscle 'biceps': unknown body 'leg'"),
    "own parent": (model(hinge(parent="arm")), "joint 'elbow': parent and child are both 'arm'"),
    "ground as child": (model(hinge(parent="arm", child="ground")), "joint 'elbow': the child is 'ground'"),
    "cycle": (
        model(hinge("i", "c", "a"), hinge("j", "a", "b"), hinge("k", "b", "c"), bodies=THREE),
        "bodies 'a' -> 'c' -> 'b' -> 'a': .*circle",
    ),
    "two inboard joints": (
        model(hinge("i", "ground", "b"), hinge("j", "a", "b"), bodies=TWO),
        "body 'b': .*'i' and 'j'; mark one of them closes_loop",
    ),
    "zero mass": (model(bodies=[body(mass=0.0)]), "body 'arm': mass is 0.0 kg"),
    "negative mass": (model(bodies=[body(mass=-1.0)]), "body 'arm': mass is -1.0 kg"),
    "mass not a number": (model(bodies=[body(mass=nan)]), "body 'arm': mass is nan"),
    "infinite mass": (model(bodies=[body(mass=inf)]), "body 'arm': mass is inf, but must be a finite number"),
    "inertia skew": (inertia((1.0, 0.1, 0.0), (0.0, 1.0, 0.0), Z), "body 'arm': inertia .* not symmetric"),
    "inertia indefinite": (inertia((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), Z), "body 'arm': .*principal moment -1 "),
    "inertia zero": (inertia((0.0,) * 3, (0.0,) * 3, (0.0,) * 3), "body 'arm': .*principal moment 0 "),
    "inertia impossible": (inertia((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 2.1)), "'arm': .*triangle inequality"),
    "inertia shape": (inertia(X, Y), "body 'arm': inertia has shape"),
    "position not a number": (model(bodies=[body(frame=Frame((0.0, nan, 0.0)))]), "body 'arm': frame: position is nan"),
    "gravity infinite": (model(gravity=(0.0, 0.0, -inf)), "model 'test': gravity is -inf"),
    "marker not a number": (model(markers=(Marker("M", "arm", (nan, 0.0, 0.0)),)), "marker 'M': position is nan"),
    "stop not a number": (limited(lower=nan), "coordinate 'bend': lower is nan, but must be a number"),
    "damping infinite": (model(hinge(softness=Softness(1.0, inf))), "joint 'elbow': softness: damping is inf"),
    "quaternion": (
        model(bodies=[body(frame=Frame((0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)))]),
        "body 'arm': frame: orientation .* length 1.41421",
    ),
    "joint quaternion": (model(hinge(child_frame=Frame(X, (0.9, 0.0, 0.0, 0.0)))), "joint 'elbow': child_frame"),
    "shape kind": (shaped(Shape("bx", (1.0,))), r"body 'arm': shape 0: unknown kind 'bx' \(did you mean 'box'\?\)"),
    "shape sizes": (shaped(Shape("box", (1.0,))), "body 'arm': shape 0: a box takes 3 sizes, got 1"),
    "shape size zero": (shaped(Shape("sphere", (0.0,))), "body 'arm': shape 0: sizes .* positive"),
    "density": (shaped(Shape("sphere", (0.1,), density=0.0)), "body 'arm': shape 0: density is 0.0"),
    "plane on a body": (shaped(Shape("plane")), "body 'arm': shape 0 is a plane, which only the ground"),
    "flat mesh": (shaped(Shape("mesh", vertices=(X, Y, Z, X))), "body 'arm': shape 0: .*span a volume"),
    "vertices on a box": (shaped(Shape("box", (1.0,) * 3, vertices=(X, Y, Z))), "shape 0: a box has no vertices"),
    "ground shape": (model(ground=(Shape("sphere", (-1.0,)),)), "ground: shape 0: sizes"),
    "friction": (surfaced(friction=-0.1), "body 'arm': shape 0: friction is -0.1"),
    "rolling friction": (surfaced(rolling_friction=-0.1), "shape 0: rolling_friction is -0.1"),
    "restitution": (surfaced(restitution=1.1), "shape 0: restitution is 1.1"),
    "surface softness": (surfaced(softness=Softness(-1.0)), "shape 0: softness: stiffness is -1.0"),
    "joint kind": (model(joint("hing", 1)), r"joint 'elbow': unknown kind 'hing' \(did you mean 'hinge'\?\)"),
    "coordinate count": (model(joint("ball", 2)), "joint 'elbow': a ball joint has 3 coordinates, got 2"),
    "axis count": (model(joint("ball", 3, axes=(X, Y))), "joint 'elbow': a ball joint takes 3 axes or none, got 2"),
    "zero axis": (model(hinge(axes=((0.0, 0.0, 0.0),))), "joint 'elbow': axis .* no direction"),
    "parallel axes": (model(joint("universal", 2, axes=(X, (-2.0, 0.0, 0.0)))), "joint 'elbow': .*parallel"),
    "oblique universal": (
        model(joint("universal", 2, axes=(X, (1.0, 1.0, 0.0)))),
        "joint 'elbow': .*universal joint are 45 deg apart, but must be perpendicular",
    ),
    "oblique ball": (model(joint("ball", 3, axes=(X, Y, (0.0, 0.1, 1.0)))), "joint 'elbow': .*ball.*perpendicular"),
    "angle for a shift": (model(joint("slider", 1)), "coordinate 'q0' is a shift .* rotational = false"),
    "shift for an angle": (model(joint("hinge", 1, shifts=1)), "coordinate 'q0' is an angle .* rotational = true"),
    "free in wrong order": (model(joint("free", 6)), "coordinate 'q0' is a shift .*shifts come before angles"),
    "stops crossed": (limited(lower=1.0, upper=-1.0), "coordinate 'bend': lower stop 1.0 lies above upper stop -1.0"),
    "no room": (limited(lower=inf, upper=inf), "coordinate 'bend': stops .* leave no room"),
    "default outside": (limited(lower=0.5), "coordinate 'bend': default 0.0 lies outside the stops 0.5 to inf"),
    "stop softness": (limited(stop=Softness(damping=-1.0)), "coordinate 'bend': stop: damping is -1.0"),
    "erp": (model(hinge(softness=Softness(erp=1.5))), "joint 'elbow': softness: erp is 1.5"),
    "cfm": (model(hinge(softness=Softness(cfm=-1e-9))), "joint 'elbow': softness: cfm is -1e-09"),
    "no spring at all": (model(hinge(softness=Softness(0.0, 0.0))), "joint 'elbow': softness: .*both zero"),
    "motion on a hinge": (model(hinge(motion=motion().motion)), "joint 'elbow': motion belongs to kind 'coordinate'"),
    "motion too short": (model(motion(motion=motion().motion[:5])), "joint 'elbow': motion has 5 parts"),
    "motion unknown": (
        model(motion(motion=(TransformAxis(X, linear(1.0), "q1"), *motion().motion[1:]))),
        "joint 'elbow': motion 0: unknown coordinate 'q1'",
    ),
    "motion not constant": (
        model(motion(motion=(*motion().motion[:5], TransformAxis(Z, linear(1.0))))),
        "joint 'elbow': motion 5: its function is not constant",
    ),
    "motion flat": (
        model(motion(motion=(*motion().motion[:5], TransformAxis(X, constant(0.0))))),
        "joint 'elbow': the three shift axes .* one plane",
    ),
    "motion idle": (
        model(motion(motion=(TransformAxis(X, constant(0.0)), *motion().motion[1:]))),
        "joint 'elbow': coordinate 'q0' moves nothing",
    ),
    "coupling unknown": (coupled(Coupling("c", "q0", "q9", linear(1.0))), "coupling 'c': unknown coordinate 'q9'"),
    "coupling twice": (
        coupled(Coupling("c", "q0", "q1", linear(1.0)), Coupling("d", "q0", "q1", linear(2.0))),
        "coupling 'd': coordinate 'q0' is already held",
    ),
    "coupling circle": (
        coupled(Coupling("c", "q0", "q1", linear(1.0)), Coupling("d", "q1", "q0", linear(2.0))),
        "coordinates 'q0' -> 'q1' -> 'q0': coupled in a circle",
    ),
    "function breaks": (
        coupled(Coupling("c", "q0", "q1", Function((0.0, 0.0), ((1.0,),)))),
        "coupling 'c': the breaks of a function must increase",
    ),
    "function pieces": (
        coupled(Coupling("c", "q0", "q1", Function((0.0, 1.0), ((1.0,), (2.0,))))),
        "coupling 'c': 2 breaks and 2 pieces",
    ),
    "muscle path": (muscled(path=(PathPoint("arm", X),)), "muscle 'biceps': its path has 1 points"),
    "muscle force": (muscled(max_isometric_force=0.0), "muscle 'biceps': max_isometric_force is 0.0"),
    "muscle activation": (muscled(activation_time=-0.1), "muscle 'biceps': activation_time is -0.1"),
    "muscle speed": (muscled(max_contraction_velocity=0.0), "muscle 'biceps': max_contraction_velocity is 0.0"),
    "moving point": (
        muscled(path=(PathPoint("arm", X, "P", motion=(TransformAxis(X, linear(1.0), "q9"),)),) * 2),
        "muscle 'biceps': point 'P': unknown coordinate 'q9'",
    ),
    "conditional point": (
        muscled(path=(PathPoint("arm", X, "P", CoordinateRange("q9", 0.0, 1.0)),) * 2),
        "muscle 'biceps': point 'P': unknown coordinate 'q9'",
    ),
    "wrap unknown": (muscled(wraps=(PathWrap("knob"),)), "muscle 'biceps': unknown wrap object 'knob'"),
    "wrap method": (wrapped(WRAP, PathWrap("knob", method="long")), "biceps': unknown wrap method 'long'"),
    "wrap range": (wrapped(WRAP, PathWrap("knob", 0, 2)), "'knob' from point 0 to 2, but .* numbered 0 to 1"),
    "wrap side point": (wrapped(WRAP, PathWrap("knob", side_point=PathPoint("leg", X))), "unknown body 'leg'"),
    "wrap twice": (replace(wrapped(WRAP), wrap_objects=(WRAP, WRAP)), "wrap object 'knob': the name is used 2 times"),
    "wrap body": (wrapped(replace(WRAP, body="leg")), "wrap object 'knob': unknown body 'leg'"),
    "wrap kind": (wrapped(replace(WRAP, kind="cone")), "wrap object 'knob': unknown kind 'cone'"),
    "wrap sizes": (wrapped(replace(WRAP, size=(1.0, 2.0))), "wrap object 'knob': a sphere takes 1 sizes, got 2"),
    "wrap size": (wrapped(replace(WRAP, size=(0.0,))), "wrap object 'knob': sizes"),
    "wrap side": (wrapped(replace(WRAP, side="x")), "wrap object 'knob': unknown side 'x'"),
    "usual range": (limited(usual_range=(1.0, 0.0)), "coordinate 'bend': usual range 1.0 to 0.0 runs backwards"),
    "muscle pennation": (muscled(pennation_angle=2.0), "muscle 'biceps': pennation_angle is 2.0"),
}


@pytest.mark.parametrize(("faulty", "sentence"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_named(faulty: Model, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        validate(faulty)
    assert "\n" not in str(caught.value)


SOUND = {
    "free and coordinate joints": model(
        replace(joint("free", 6, shifts=3), name="root", child="b", coordinates=(
            *(Coordinate(n, rotational=False) for n in "xyz"), *(Coordinate(n) for n in "abc"))),
        motion(parent="b"),
        bodies=[body(), body("b")],
    ),
    "loop closed on purpose": model(
        hinge("i", "ground", "b"), hinge("j", "a", "b", closes_loop=True), bodies=TWO
    ),
    "body without joint": model(),
    "flat plate": inertia((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 2.0)),
    "left-handed axes": model(joint("ball", 3, axes=(Y, X, Z))),
    "locked on its stop": limited(lower=0.0, upper=0.0, locked=True),
    "coupling": coupled(Coupling("c", "q0", "q1", linear(1.0))),
    "muscle": muscled(),
    "wrapping": wrapped(WRAP),
    "human": human(),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND.keys())
def test_sound_models_pass_unchanged(sound: Model) -> None:
    assert validate(sound) is sound


def test_masses_of_other_programs_pass_where_asked() -> None:
    for strange in (body(mass=0.0, inertia=((0.0,) * 3,) * 3), body(inertia=(X, Y, (0.0, 0.0, 9.0)))):
        with pytest.raises(ModelError):
            validate(model(bodies=[strange]))
        assert validate(model(bodies=[strange]), sound_masses=False)
    with pytest.raises(ModelError, match=r"mass is -1\.0 kg, but must not be negative"):
        validate(model(bodies=[body(mass=-1.0)]), sound_masses=False)


def test_long_chain_is_checked_without_recursion() -> None:
    names = [f"link{i}" for i in range(5000)]
    links = [hinge(f"j{n}", parent, n) for parent, n in zip(["ground", *names], names, strict=False)]
    chain = model(*links, bodies=[body(n) for n in names])
    assert validate(chain) is chain


def test_lookup_names_the_nearest() -> None:
    with pytest.raises(ModelError, match=r"unknown joint 'hip_rr'.*did you mean 'hip_r'"):
        human().joint("hip_rr")
