"""Every inconsistency of a model is refused in one sentence that names the element."""

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
from borelli.people.human import human

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def body(name: str = "arm", **changes) -> Body:
    return replace(Body(name, 2.0, shapes=(Shape("box", (0.1, 0.1, 0.3)),)), **changes)


def hinge(name: str = "elbow", parent: str = "ground", child: str = "arm", **changes) -> Joint:
    return replace(Joint(name, "hinge", parent, child, coordinates=(Coordinate(f"{name}_angle"),)), **changes)


def joint(kind: str, count: int, translations: int = 0, **changes) -> Joint:
    coordinates = tuple(Coordinate(f"q{i}", rotational=i >= translations) for i in range(count))
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

PROBLEMS = {
    "duplicate body": (model(bodies=[body(), body()]), "Body 'arm': The name is used 2 times"),
    "duplicate joint": (
        model(hinge("j", "ground", "a"), hinge("j", "a", "b"), bodies=TWO),
        "Joint 'j': The name is used 2 times",
    ),
    "duplicate coordinate": (
        model(hinge("j", "ground", "a"), hinge("k", "a", "b", coordinates=(Coordinate("j_angle"),)), bodies=TWO),
        "Coordinate 'j_angle': The name is used 2 times",
    ),
    "duplicate marker": (model(markers=(Marker("M", "arm", X), Marker("M", "arm", Y))), "Marker 'M': The name"),
    "duplicate muscle": (replace(muscled(), muscles=muscled().muscles * 2), "Muscle 'biceps': The name"),
    "no name": (model(bodies=[body("")]), "A body has no name"),
    "ground as body": (model(bodies=[body("ground")]), "Body 'ground': This name is reserved"),
    "unknown parent": (model(hinge(parent="amr")), r"Joint 'elbow': Unknown body 'amr' \(did you mean 'arm'\?\)"),
    "unknown child": (model(hinge(child="leg")), "Joint 'elbow': Unknown body 'leg'; known: arm, ground"),
    "unknown marker body": (model(markers=(Marker("M", "leg", X),)), "Marker 'M': Unknown body 'leg'"),
    "unknown muscle body": (muscled(path=(PathPoint("leg", X),) * 2), "Muscle 'biceps': Unknown body 'leg'"),
    "own parent": (model(hinge(parent="arm")), "Joint 'elbow': Parent and child are both 'arm'"),
    "ground as child": (model(hinge(parent="arm", child="ground")), "Joint 'elbow': The child is 'ground'"),
    "cycle": (
        model(hinge("i", "c", "a"), hinge("j", "a", "b"), hinge("k", "b", "c"), bodies=THREE),
        "closed loop through bodies 'a', 'c', 'b', 'a'. Set closes_loop",
    ),
    "two inboard joints": (
        model(hinge("i", "ground", "b"), hinge("j", "a", "b"), bodies=TWO),
        "Body 'b' is the child of two joints, 'i' and 'j'. Set closes_loop = true",
    ),
    "zero mass": (model(bodies=[body(mass=0.0)]), "Body 'arm': Mass is 0.0 kg"),
    "negative mass": (model(bodies=[body(mass=-1.0)]), "Body 'arm': Mass is -1.0 kg"),
    "mass not a number": (model(bodies=[body(mass=nan)]), "Body 'arm': mass is nan"),
    "infinite mass": (model(bodies=[body(mass=inf)]), "Body 'arm': mass is inf. It must be a finite number"),
    "inertia skew": (inertia((1.0, 0.1, 0.0), (0.0, 1.0, 0.0), Z), "Body 'arm': Inertia .* not symmetric"),
    "inertia indefinite": (inertia((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), Z), ".*principal moment of inertia is -1 "),
    "inertia zero": (inertia((0.0,) * 3, (0.0,) * 3, (0.0,) * 3), "Body 'arm': .*principal moment of inertia is 0 "),
    "inertia impossible": (inertia((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 2.1)), "'arm': .*triangle inequality"),
    "inertia shape": (inertia(X, Y), "Body 'arm': Inertia has shape"),
    "position not a number": (model(bodies=[body(frame=Frame((0.0, nan, 0.0)))]), "Body 'arm': frame: position is nan"),
    "gravity infinite": (model(gravity=(0.0, 0.0, -inf)), "Model 'test': gravity is -inf"),
    "marker not a number": (model(markers=(Marker("M", "arm", (nan, 0.0, 0.0)),)), "Marker 'M': position is nan"),
    "limit not a number": (limited(lower=nan), "Coordinate 'bend': lower is nan. It must be a number"),
    "damping infinite": (model(hinge(softness=Softness(1.0, inf))), "Joint 'elbow': softness: damping is inf"),
    "quaternion": (
        model(bodies=[body(frame=Frame((0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)))]),
        "Body 'arm': frame: Orientation .* length 1.41421",
    ),
    "joint quaternion": (model(hinge(child_frame=Frame(X, (0.9, 0.0, 0.0, 0.0)))), "Joint 'elbow': child_frame"),
    "shape kind": (shaped(Shape("bx", (1.0,))), r"Body 'arm': Shape 0: Unknown kind 'bx' \(did you mean 'box'\?\)"),
    "shape sizes": (shaped(Shape("box", (1.0,))), "Body 'arm': Shape 0: A box has 3 sizes \\(found 1\\)"),
    "shape size zero": (shaped(Shape("sphere", (0.0,))), "Body 'arm': Shape 0: Sizes .* positive"),
    "density": (shaped(Shape("sphere", (0.1,), density=0.0)), "Body 'arm': Shape 0: Density is 0.0"),
    "plane on a body": (shaped(Shape("plane")), "Body 'arm': Shape 0 is a plane, which only the ground"),
    "flat mesh": (shaped(Shape("mesh", vertices=(X, Y, Z, X))), "Body 'arm': Shape 0: .*span no volume"),
    "vertices on a box": (shaped(Shape("box", (1.0,) * 3, vertices=(X, Y, Z))), "Shape 0: A box has 3 vertices"),
    "ground shape": (model(ground=(Shape("sphere", (-1.0,)),)), "Ground: Shape 0: Sizes"),
    "friction": (surfaced(friction=-0.1), "Body 'arm': Shape 0: friction is -0.1"),
    "rolling friction": (surfaced(rolling_friction=-0.1), "Shape 0: rolling_friction is -0.1"),
    "restitution": (surfaced(restitution=1.1), "Shape 0: restitution is 1.1"),
    "surface softness": (surfaced(softness=Softness(-1.0)), "Shape 0: softness: stiffness is -1.0"),
    "joint kind": (model(joint("hing", 1)), r"Joint 'elbow': Unknown kind 'hing' \(did you mean 'hinge'\?\)"),
    "coordinate count": (model(joint("ball", 2)), "Joint 'elbow': A ball joint has 3 coordinates \\(found 2\\)"),
    "axis count": (model(joint("ball", 3, axes=(X, Y))), r"'elbow': A ball joint has 3 axes or none \(found 2\)"),
    "zero axis": (model(hinge(axes=((0.0, 0.0, 0.0),))), "Joint 'elbow': Axis .* no direction"),
    "parallel axes": (model(joint("universal", 2, axes=(X, (-2.0, 0.0, 0.0)))), "Joint 'elbow': .*parallel"),
    "oblique universal": (
        model(joint("universal", 2, axes=(X, (1.0, 1.0, 0.0)))),
        "Joint 'elbow': .*universal axes are 45 deg apart. Make them perpendicular",
    ),
    "oblique ball": (model(joint("ball", 3, axes=(X, Y, (0.0, 0.1, 1.0)))), "Joint 'elbow': .*ball.*perpendicular"),
    "angle for a translation": (model(joint("slider", 1)), "'q0' must be a translation .* rotational = false"),
    "translation for an angle": (model(joint("hinge", 1, translations=1)), "'q0' must be an angle .*rotational = true"),
    "free in wrong order": (model(joint("free", 6)), "'q0' must be a translation .*translations come before"),
    "limits crossed": (limited(lower=1.0, upper=-1.0), "'bend': The lower joint limit 1.0 is above the upper one"),
    "empty range": (limited(lower=inf, upper=inf), "Coordinate 'bend': The range of motion .* is empty"),
    "default outside": (limited(lower=0.5), "Coordinate 'bend': Default 0.0 is outside the joint limits 0.5 to inf"),
    "limit softness": (limited(limit_softness=Softness(damping=-1.0)), "'bend': limit_softness: damping is -1.0"),
    "erp": (model(hinge(softness=Softness(erp=1.5))), "Joint 'elbow': softness: erp is 1.5"),
    "cfm": (model(hinge(softness=Softness(cfm=-1e-9))), "Joint 'elbow': softness: cfm is -1e-09"),
    "no spring at all": (model(hinge(softness=Softness(0.0, 0.0))), "Joint 'elbow': softness: .*both zero"),
    "motion on a hinge": (model(hinge(motion=motion().motion)), "Joint 'elbow': A hinge joint has no motion"),
    "motion too short": (model(motion(motion=motion().motion[:5])), "Joint 'elbow': motion has 5 axes"),
    "motion unknown": (
        model(motion(motion=(TransformAxis(X, linear(1.0), "q1"), *motion().motion[1:]))),
        "Joint 'elbow': motion 0: Unknown coordinate 'q1'",
    ),
    "motion not constant": (
        model(motion(motion=(*motion().motion[:5], TransformAxis(Z, linear(1.0))))),
        "Joint 'elbow': motion 5: The function is not constant",
    ),
    "motion flat": (
        model(motion(motion=(*motion().motion[:5], TransformAxis(X, constant(0.0))))),
        "Joint 'elbow': The three translation axes .* one plane",
    ),
    "motion idle": (
        model(motion(motion=(TransformAxis(X, constant(0.0)), *motion().motion[1:]))),
        "Joint 'elbow': Coordinate 'q0' moves nothing",
    ),
    "coupling unknown": (coupled(Coupling("c", "q0", "q9", linear(1.0))), "Coupling 'c': Unknown coordinate 'q9'"),
    "coupling twice": (
        coupled(Coupling("c", "q0", "q1", linear(1.0)), Coupling("d", "q0", "q1", linear(2.0))),
        "Coupling 'd': Coordinate 'q0' already depends on another coupling",
    ),
    "coupling cycle": (
        coupled(Coupling("c", "q0", "q1", linear(1.0)), Coupling("d", "q1", "q0", linear(2.0))),
        "Couplings form a cycle through coordinates 'q0', 'q1', 'q0'",
    ),
    "function breaks": (
        coupled(Coupling("c", "q0", "q1", Function((0.0, 0.0), ((1.0,),)))),
        "Coupling 'c': The breaks of a function do not increase",
    ),
    "function pieces": (
        coupled(Coupling("c", "q0", "q1", Function((0.0, 1.0), ((1.0,), (2.0,))))),
        "Coupling 'c': A function has 2 breaks and 2 pieces",
    ),
    "muscle path": (muscled(path=(PathPoint("arm", X),)), "Muscle 'biceps': The path has 1 points"),
    "muscle force": (muscled(max_isometric_force=0.0), "Muscle 'biceps': max_isometric_force is 0.0"),
    "muscle activation": (muscled(activation_time=-0.1), "Muscle 'biceps': activation_time is -0.1"),
    "muscle speed": (muscled(max_contraction_velocity=0.0), "Muscle 'biceps': max_contraction_velocity is 0.0"),
    "moving point": (
        muscled(path=(PathPoint("arm", X, "P", motion=(TransformAxis(X, linear(1.0), "q9"),)),) * 2),
        "Muscle 'biceps': Point 'P': Unknown coordinate 'q9'",
    ),
    "conditional point": (
        muscled(path=(PathPoint("arm", X, "P", CoordinateRange("q9", 0.0, 1.0)),) * 2),
        "Muscle 'biceps': Point 'P': Unknown coordinate 'q9'",
    ),
    "wrap unknown": (muscled(wraps=(PathWrap("knob"),)), "Muscle 'biceps': Unknown wrap object 'knob'"),
    "wrap method": (wrapped(WRAP, PathWrap("knob", method="long")), "biceps': Unknown wrap method 'long'"),
    "wrap range": (wrapped(WRAP, PathWrap("knob", 0, 2)), "'knob' is from point 0 to 2, but .* numbered 0 to 1"),
    "wrap side point": (wrapped(WRAP, PathWrap("knob", side_point=PathPoint("leg", X))), "Unknown body 'leg'"),
    "wrap twice": (replace(wrapped(WRAP), wrap_objects=(WRAP, WRAP)), "Wrap object 'knob': The name is used 2 times"),
    "wrap body": (wrapped(replace(WRAP, body="leg")), "Wrap object 'knob': Unknown body 'leg'"),
    "wrap kind": (wrapped(replace(WRAP, kind="cone")), "Wrap object 'knob': Unknown kind 'cone'"),
    "wrap sizes": (wrapped(replace(WRAP, size=(1.0, 2.0))), "Wrap object 'knob': A sphere has 1 sizes \\(found 2\\)"),
    "wrap size": (wrapped(replace(WRAP, size=(0.0,))), "Wrap object 'knob': Sizes"),
    "wrap side": (wrapped(replace(WRAP, side="x")), "Wrap object 'knob': Unknown side 'x'"),
    "usual range": (limited(usual_range=(1.0, 0.0)), "Coordinate 'bend': usual_range 1.0 to 0.0 is reversed"),
    "muscle pennation": (muscled(pennation_angle=2.0), "Muscle 'biceps': pennation_angle is 2.0"),
}


@pytest.mark.parametrize(("inconsistent", "sentence"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problem_is_named(inconsistent: Model, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as caught:
        validate(inconsistent)
    assert "\n" not in str(caught.value)


SOUND = {
    "free and coordinate joints": model(
        replace(joint("free", 6, translations=3), name="root", child="b", coordinates=(
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
    "locked at its limit": limited(lower=0.0, upper=0.0, locked=True),
    "coupling": coupled(Coupling("c", "q0", "q1", linear(1.0))),
    "muscle": muscled(),
    "wrapping": wrapped(WRAP),
    "human": human(),
}  # fmt: skip


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND.keys())
def test_sound_models_pass_unchanged(sound: Model) -> None:
    assert validate(sound) is sound


def test_unsound_masses_pass_on_request() -> None:
    for strange in (body(mass=0.0, inertia=((0.0,) * 3,) * 3), body(inertia=(X, Y, (0.0, 0.0, 9.0)))):
        with pytest.raises(ModelError):
            validate(model(bodies=[strange]))
        assert validate(model(bodies=[strange]), sound_masses=False)
    with pytest.raises(ModelError, match=r"Mass is -1\.0 kg. It must not be negative"):
        validate(model(bodies=[body(mass=-1.0)]), sound_masses=False)


def test_long_chain_is_checked_without_recursion() -> None:
    names = [f"link{i}" for i in range(5000)]
    links = [hinge(f"j{n}", parent, n) for parent, n in zip(["ground", *names], names, strict=False)]
    chain = model(*links, bodies=[body(n) for n in names])
    assert validate(chain) is chain


def test_lookup_suggests_the_nearest_name() -> None:
    with pytest.raises(ModelError, match=r"Unknown joint 'hip_rr'.*did you mean 'hip_r'"):
        human().joint("hip_rr")
