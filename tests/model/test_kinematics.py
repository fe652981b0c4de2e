"""Poses, Jacobians and inverse dynamics: against finite differences, the laws of motion and two other engines."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model import (
    GROUND,
    JOINT_KINDS,
    Body,
    Coordinate,
    Coupling,
    Frame,
    Joint,
    Marker,
    Model,
    TransformAxis,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
    validate,
)
from borelli.model.kinematics import (
    center_of_mass,
    coupled_coordinates,
    evaluate,
    generalized_forces,
    marker_jacobians,
    marker_positions,
    point_positions,
    poses,
    with_default_frames,
)
from borelli.model.transforms import compose, inverse, orientation_from_matrix, orientation_matrix, vector
from borelli.model.validate import ROTATIONAL_COORDINATES
from borelli.people.human import human

KINDS = [kind for kind in JOINT_KINDS if kind != "fixed"]
FUNCTIONS = [
    linear(1.0),
    linear(-0.7, 0.1),
    polynomial([0.1, 0.4, -0.3, 0.2]),
    natural_cubic_spline([-1.0, -0.3, 0.2, 1.0], [0.2, -0.1, 0.3, 0.1]),
]


def random_frame(rng) -> Frame:
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return Frame(vector(0.3 * rng.normal(size=3)), orientation_from_matrix(turn * np.linalg.det(turn)))


def random_body(rng, name) -> Body:
    side = rng.uniform(0.1, 0.4, 3)
    turn = orientation_matrix(random_frame(rng).orientation)
    inertia = turn @ np.diag([side[1] + side[2], side[0] + side[2], side[0] + side[1]]) @ turn.T
    return Body(name, float(rng.uniform(0.5, 3.0)), vector(0.2 * rng.normal(size=3)), tuple(map(vector, inertia)))


def random_joint(rng, kind, name, parent, child) -> Joint:
    frames = {"parent_frame": random_frame(rng), "child_frame": random_frame(rng)}
    if kind == "coordinate":
        names = [f"{name}_{k}" for k in "ab"]
        turn = orientation_matrix(random_frame(rng).orientation)
        drivers = [names[0], names[1], names[0], names[1], None, names[0]]
        functions = [*(FUNCTIONS[rng.integers(len(FUNCTIONS))] for _ in range(4)), constant(0.2), FUNCTIONS[3]]
        axes = [*turn.T, *(turn.T + 0.2 * rng.normal(size=(3, 3)))]
        motion = (TransformAxis(vector(a), f, d) for a, f, d in zip(axes, functions, drivers, strict=True))
        coordinates = tuple(Coordinate(n, default=0.1) for n in names)
        return Joint(name, kind, parent, child, coordinates=coordinates, motion=tuple(motion), **frames)
    turn = 2.0 * orientation_matrix(random_frame(rng).orientation)  # axes need not be unit vectors
    count = {"free": 3, "ball": 3, "universal": 2, "hinge": 1, "slider": 1, "planar": 2, "fixed": 0}[kind]
    axes = tuple(map(vector, turn.T[:count])) if rng.random() < 0.7 else ()
    coordinates = tuple(
        Coordinate(f"{name}_{i}", default=0.1 * i, rotational=rotational)
        for i, rotational in enumerate(ROTATIONAL_COORDINATES[kind])
    )
    return Joint(name, kind, parent, child, axes=axes, coordinates=coordinates, **frames)


def random_model(seed, kinds) -> Model:
    """A tree of joints of these kinds in random frames, each with a marker; children come before their parents."""
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    for i, kind in enumerate(kinds):
        parent = GROUND if i == 0 else f"body{rng.integers(i)}"
        bodies.append(random_body(rng, f"body{i}"))
        joints.append(random_joint(rng, kind, f"joint{i}", parent, f"body{i}"))
    markers = [Marker(f"m{i}", b.name, vector(0.3 * rng.normal(size=3))) for i, b in enumerate(bodies)]
    markers.append(Marker("fixed", GROUND, (0.1, 0.2, 0.3)))
    return validate(
        Model("random", tuple(bodies[::-1]), tuple(joints[::-1]), tuple(markers), gravity=(1.0, -2.0, -9.0))
    )


def coordinates_of(model, frames, seed=0):
    return np.random.default_rng(seed).uniform(-0.9, 0.9, (frames, len(model.coordinates)))


def obvious_pose(model, body, q) -> Frame:
    """A body's frame by composing one frame after the other: slow, and plain."""
    if body == GROUND:
        return Frame()
    values = {c.name: x for c, x in zip(model.coordinates, q, strict=True)}
    joint = next(j for j in model.joints if j.child == body)
    own = [values[c.name] for c in joint.coordinates]
    if joint.kind == "coordinate":
        parts = [(m.axis, m.function(0.0 if m.coordinate is None else values[m.coordinate])) for m in joint.motion]
        turns, shifts = parts[:3], parts[3:]
    else:
        axes = list(joint.axes or np.eye(3))
        if joint.kind == "planar":
            axes = [axes[0], axes[1], np.cross(axes[0], axes[1])]
        travels = sum(not c.rotational for c in joint.coordinates)
        shifts = list(zip(axes, own[:travels], strict=False))
        turns = list(zip(axes[2:] if joint.kind == "planar" else axes, own[travels:], strict=False))
    moved = sum((np.asarray(a) / np.linalg.norm(a) * x for a, x in shifts), np.zeros(3))
    frame = Frame(vector(moved))
    for axis, angle in turns:
        x, y, z = np.sin(angle / 2) * np.asarray(axis) / np.linalg.norm(axis)
        frame = compose(frame, Frame(orientation=(float(np.cos(angle / 2)), float(x), float(y), float(z))))
    outer = compose(obvious_pose(model, joint.parent, q), joint.parent_frame)
    return compose(compose(outer, frame), inverse(joint.child_frame))


@pytest.mark.parametrize("kind", [*KINDS, "fixed"])
def test_poses_of_every_kind_compose(kind) -> None:
    model = random_model(1, [kind, "hinge", kind])
    q = coordinates_of(model, 4)
    position, rotation = poses(model, q)
    for f, row in enumerate(q):
        for b, body in enumerate(model.bodies):
            expected = obvious_pose(model, body.name, row)
            assert position[f, b] == pytest.approx(np.array(expected.position), abs=1e-12)
            assert rotation[f, b] == pytest.approx(orientation_matrix(expected.orientation), abs=1e-12)


def test_markers_move_with_their_bodies() -> None:
    model = random_model(2, KINDS)
    q = coordinates_of(model, 3)
    position, rotation = poses(model, q)
    marker = model.markers[2]
    b = [body.name for body in model.bodies].index(marker.body)
    found = marker_positions(model, q)
    assert found[:, 2] == pytest.approx(position[:, b] + rotation[:, b] @ np.array(marker.position))
    assert (found[:, -1] == (0.1, 0.2, 0.3)).all()
    assert point_positions(model, q, [marker.body], [marker.position])[:, 0] == pytest.approx(found[:, 2])


@pytest.mark.parametrize("seed", range(4))
def test_jacobian_is_the_derivative_of_marker_positions(seed) -> None:
    model = random_model(seed, KINDS + KINDS[::-1])
    q = coordinates_of(model, 3, seed)
    jacobian = marker_jacobians(model, q)
    step = 1e-6
    for i in range(q.shape[1]):
        way = step * np.eye(q.shape[1])[i]
        difference = (marker_positions(model, q + way) - marker_positions(model, q - way)) / (2.0 * step)
        assert jacobian[..., i] == pytest.approx(difference, abs=1e-8)


def path(model, time):
    """A smooth motion of all coordinates with its exact first and second derivatives."""
    rng = np.random.default_rng(5)
    count = len(model.coordinates)
    size, rate, phase = rng.uniform(0.2, 0.6, count), rng.uniform(1.0, 4.0, count), rng.uniform(0, 6, count)
    angle = rate * time[:, None] + phase
    return size * np.sin(angle), size * rate * np.cos(angle), -size * rate**2 * np.sin(angle)


def body_motion(model, q):
    """Centres of mass and angular momentum-ready rotations along a path."""
    position, rotation = poses(model, q)
    center = position + np.einsum("fbij,bj->fbi", rotation, [body.center_of_mass for body in model.bodies])
    return center, rotation


def spins(rotation, step):
    """Spin of every body from rotations one step before and after."""
    change = (rotation[2:] - rotation[:-2]) / (2.0 * step) @ rotation[1:-1].swapaxes(-1, -2)
    return np.stack([change[..., 2, 1], change[..., 0, 2], change[..., 1, 0]], axis=-1)


@pytest.mark.parametrize("seed", range(3))
def test_forces_satisfy_d_alembert(seed) -> None:
    """Q_i = sum over bodies of (m (a - g)) . dc/dq_i + (d(I w)/dt) . dturn/dq_i, all by finite differences."""
    model = random_model(seed, KINDS)
    step, count = 1e-4, len(model.coordinates)
    q, u, a = path(model, 0.3 + step * np.arange(-2, 3))
    center, rotation = body_motion(model, q)
    pull = np.array([b.mass for b in model.bodies])[:, None] * (
        (center[3] - 2.0 * center[2] + center[1]) / step**2 - np.array(model.gravity)
    )
    spin = spins(rotation, step)
    inertia = rotation[1:-1] @ np.array([b.inertia for b in model.bodies]) @ rotation[1:-1].swapaxes(-1, -2)
    momentum = np.einsum("fbij,fbj->fbi", inertia, spin)
    twist = (momentum[2] - momentum[0]) / (2.0 * step)
    expected = np.zeros(count)
    for i in range(count):
        near = q[2] + step * np.outer([-1.0, 0.0, 1.0], np.eye(count)[i])
        c, r = body_motion(model, near)
        expected[i] = ((c[2] - c[0]) / (2.0 * step) * pull).sum() + (spins(r, step)[0] * twist).sum()
    found = generalized_forces(model, q[2], u[2], a[2])[0]
    assert found == pytest.approx(expected, abs=2e-5 * np.abs(expected).max())  # differences of 1e-4 leave 1e-6


def test_power_of_the_forces_is_the_change_of_energy() -> None:
    model = random_model(7, KINDS)
    step = 1e-4
    time = step * np.arange(-3, 4)
    q, u, a = path(model, time)
    center, rotation = body_motion(model, q)
    velocity = (center[2:] - center[:-2]) / (2.0 * step)
    spin = spins(rotation, step)
    local = np.einsum("fbji,fbj->fbi", rotation[1:-1], spin)
    masses, inertia = np.array([b.mass for b in model.bodies]), np.array([b.inertia for b in model.bodies])
    energy = (
        0.5 * np.einsum("b,fbi->f", masses, velocity**2)
        + 0.5 * np.einsum("fbi,bij,fbj->f", local, inertia, local)
        - np.einsum("b,fbi,i->f", masses, center[1:-1], model.gravity)
    )
    power = (generalized_forces(model, q, u, a) * u).sum(axis=1)
    assert (energy[3] - energy[1]) / (2.0 * step) == pytest.approx(power[3], rel=1e-5)


def serial_model(seed, kinds) -> Model:
    """Hinges and sliders whose joint frames sit at the body frames' origins, unturned in the child."""
    model = random_model(seed, kinds)
    return replace(model, joints=tuple(replace(j, child_frame=Frame(j.child_frame.position)) for j in model.joints))


def mjcf_of(model) -> str:
    """Plain MJCF of a tree of hinges and sliders whose child frames are not rotated."""
    children: dict[str, list[Joint]] = {}
    for joint in model.joints:
        children.setdefault(joint.parent, []).append(joint)

    def text(values) -> str:
        return " ".join(repr(float(v)) for v in np.ravel(values))

    def element(joint) -> str:
        body = model.body(joint.child)
        place = compose(joint.parent_frame, inverse(joint.child_frame))
        i = np.array(body.inertia)
        parts = "".join(map(element, children.get(joint.child, [])))
        kind = {"hinge": "hinge", "slider": "slide"}[joint.kind]
        axis = joint.axes[0] if joint.axes else (1, 0, 0)
        return (
            f'<body name="{body.name}" pos="{text(place.position)}" quat="{text(place.orientation)}">'
            f'<joint name="{joint.name}" type="{kind}" pos="{text(joint.child_frame.position)}" axis="{text(axis)}"/>'
            f'<inertial pos="{text(body.center_of_mass)}" mass="{body.mass!r}" '
            f'fullinertia="{text([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])}"/>{parts}</body>'
        )

    world = "".join(map(element, children[GROUND]))
    return f'<mujoco><option gravity="{text(model.gravity)}"/><worldbody>{world}</worldbody></mujoco>'


@pytest.mark.crosscheck
def test_forces_equal_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    ours = serial_model(3, ["hinge", "slider", "hinge", "hinge", "slider", "hinge", "hinge"])
    theirs = mujoco.MjModel.from_xml_string(mjcf_of(ours))
    data = mujoco.MjData(theirs)
    order = [theirs.joint(joint.name).dofadr[0] for joint in ours.joints]
    q, u, a = (coordinates_of(ours, 5, seed) for seed in range(3))
    found = generalized_forces(ours, q, u, a)
    places, _ = poses(ours, q)
    for f in range(len(q)):
        data.qpos[order], data.qvel[order], data.qacc[order] = q[f], u[f], a[f]
        mujoco.mj_inverse(theirs, data)
        assert found[f] == pytest.approx(data.qfrc_inverse[order], rel=1e-9, abs=1e-9)
        for b, body in enumerate(ours.bodies):
            assert places[f, b] == pytest.approx(data.body(body.name).xpos, abs=1e-12)


@pytest.mark.crosscheck
def test_forces_equal_pinocchio() -> None:
    pinocchio = pytest.importorskip("pinocchio")
    ours = serial_model(4, ["hinge", "slider", "hinge", "hinge", "slider", "hinge"])
    theirs = pinocchio.Model()
    theirs.gravity.linear = np.array(ours.gravity)
    number = {GROUND: 0}
    for joint in reversed(ours.joints):  # parents first
        axis = np.array(joint.axes[0] if joint.axes else (1.0, 0.0, 0.0))
        axis /= np.linalg.norm(axis)
        kind = (
            pinocchio.JointModelRevoluteUnaligned if joint.kind == "hinge" else pinocchio.JointModelPrismaticUnaligned
        )
        parent_shift = (  # pinocchio's bodies begin at the joint
            np.zeros(3)
            if joint.parent == GROUND
            else np.array(next(j for j in ours.joints if j.child == joint.parent).child_frame.position)
        )
        place = pinocchio.SE3(
            orientation_matrix(joint.parent_frame.orientation), np.array(joint.parent_frame.position) - parent_shift
        )
        body = ours.body(joint.child)
        number[body.name] = theirs.addJoint(number[joint.parent], kind(axis), place, joint.name)
        center = np.array(body.center_of_mass) - joint.child_frame.position
        inertia = pinocchio.Inertia(body.mass, center, np.array(body.inertia))
        theirs.appendBodyToJoint(number[body.name], inertia, pinocchio.SE3.Identity())
    data = theirs.createData()
    order = [theirs.joints[number[joint.child]].idx_v for joint in ours.joints]
    q, u, a = (coordinates_of(ours, 5, seed) for seed in range(3))
    found = generalized_forces(ours, q, u, a)
    for f in range(len(q)):
        rows = [np.zeros(theirs.nv) for _ in range(3)]
        for row, values in zip(rows, (q, u, a), strict=True):
            row[order] = values[f]
        assert found[f] == pytest.approx(pinocchio.rnea(theirs, data, *rows)[order], rel=1e-9, abs=1e-9)


def test_array_evaluation_equals_scalar_evaluation() -> None:
    for function in [*FUNCTIONS, constant(2.0), piecewise_linear([0.0, 1.0, 3.0], [0.0, 2.0, 1.0])]:
        x = np.linspace(-3.0, 4.0, 57)
        value, slope, curvature = evaluate(function, x)
        assert value == pytest.approx([function(v) for v in x], abs=1e-12)
        assert slope == pytest.approx([function.slope(v) for v in x], abs=1e-12)
        inner = (x > function.breaks[0] + 0.01) & (x < function.breaks[-1] - 0.01)
        rise = np.array([(function.slope(v + 1e-6) - function.slope(v - 1e-6)) / 2e-6 for v in x])
        smooth = inner & ~np.isclose(np.abs(x[:, None] - function.breaks).min(axis=1), 0.0, atol=1e-5)
        assert curvature[smooth] == pytest.approx(rise[smooth], abs=1e-6)


def test_couplings_apply_in_sequence() -> None:
    model = random_model(0, ["hinge", "hinge", "hinge"])
    a, b, c = (coordinate.name for coordinate in model.coordinates)
    model = replace(
        model, couplings=(Coupling("last", c, b, polynomial([0.0, 0.0, 1.0])), Coupling("first", b, a, linear(2.0)))
    )
    assert coupled_coordinates(model, [[0.3, 9.0, 9.0], [-0.1, 9.0, 9.0]]) == pytest.approx(
        np.array([[0.3, 0.6, 0.36], [-0.1, -0.2, 0.04]])
    )


def test_default_frames_close_the_joints() -> None:
    model = with_default_frames(random_model(3, KINDS))
    position, rotation = poses(model, [c.default for c in model.coordinates])
    for b, body in enumerate(model.bodies):
        assert body.frame.position == pytest.approx(position[0, b])
        assert orientation_matrix(body.frame.orientation) == pytest.approx(rotation[0, b])


def test_bodies_without_joint_stay_and_loops_are_ignored() -> None:
    rng = np.random.default_rng(0)
    model = random_model(0, ["hinge", "hinge"])
    loop = replace(random_joint(rng, "ball", "loop", GROUND, "body1"), closes_loop=True)
    alone = replace(random_body(rng, "alone"), frame=random_frame(rng))
    more = replace(model, bodies=(*model.bodies, alone), joints=(*model.joints, loop))
    q = coordinates_of(more, 2)
    position, _ = poses(more, q)
    assert position[:, :2] == pytest.approx(poses(model, q[:, :2])[0])
    assert position[1, 2] == pytest.approx(alone.frame.position)
    assert (generalized_forces(more, q, q, q)[:, 2:] == 0.0).all()


def test_the_center_of_mass_of_a_standing_human_is_near_its_navel() -> None:
    model = human(mass=70.0, height=1.75)
    center = center_of_mass(model, [c.default for c in model.coordinates])
    assert 0.54 * 1.75 < center[0, 2] < 0.6 * 1.75


def test_invalid_arguments_are_refused() -> None:
    model = random_model(0, ["hinge", "ball"])
    with pytest.raises(SettingsError, match=r"\(3, 5\).*\(frames, 4\)"):
        poses(model, np.zeros((3, 5)))
    with pytest.raises(SettingsError, match="1, 2 and 2 frames"):
        generalized_forces(model, np.zeros((1, 4)), np.zeros((2, 4)), np.zeros((2, 4)))
    with pytest.raises(ModelError, match="Unknown body 'arm'"):
        point_positions(model, np.zeros((1, 4)), ["arm"], [[0.0, 0.0, 0.0]])


def test_no_coordinates_no_forces() -> None:
    model = random_model(0, ["fixed"])
    assert poses(model, np.zeros((3, 0)))[0].shape == (3, 1, 3)
    assert generalized_forces(model, np.zeros((3, 0)), np.zeros((3, 0)), np.zeros((3, 0))).shape == (3, 0)
