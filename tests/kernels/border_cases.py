"""Arrays of every wrong kind, given to all functions that hand arrays to kernels; run by `test_borders` as a process.

Each case must end with an error of borelli's or with the result of the right array. The process prints a case before it
runs it, so that a crash is attributed, and a line for each case that fails.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import borelli as bo
from borelli.analysis import make_motion
from borelli.analysis.stepped.rollout import Rollout, StepInputs, StepRecord, make_step_inputs, make_step_record
from borelli.control import (
    MinimumJerk,
    MoveGround,
    Obstacle,
    Push,
    Targets,
    b_spline_targets,
    drag_point,
    keyframes,
    make_controls,
    rotation_keyframes,
    targets_from_functions,
)
from borelli.errors import BorelliError
from borelli.model.inertia import body_from_shapes
from borelli.model.model import Coordinate, Frame, Joint, Marker, Model, Shape, Softness
from borelli.physics.arrays.compile_model import compile_model
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.impulse_step.arrays import (
    Controls,
    ResponseCoefficients,
    TargetTrajectory,
    compile_impulse,
    make_target_trajectory,
)
from borelli.physics.impulse_step.run_impulse_steps import ImpulseSimulation
from borelli.physics.inputs import AppliedForce, Drive
from borelli.physics.post_stabilization import PostStabilizer
from borelli.physics.run_soft_steps import Record, Simulation, make_record
from borelli.physics.simulate import initial_state
from borelli.physics.state import Inputs, State, make_inputs, make_state
from borelli.recording.live import LiveFrame

STEPS = 4


def make_model(links: int) -> Model:
    """Return a chain on the ground: a free box, ball and hinge joints, markers."""
    bodies = tuple(body_from_shapes(f"b{i}", (Shape("box", (0.1, 0.08, 0.06)),)) for i in range(links))
    free = tuple(Coordinate(f"r{i}", rotational=i >= 3) for i in range(6))
    joints = [Joint("root", "free", "ground", "b0", Frame((0.0, 0.0, 0.065)), coordinates=free)]
    for i in range(1, links):
        kind, names = ("ball", "xyz") if i == 1 else ("hinge", "h")
        at = Frame((0.11, 0.0, 0.0)), Frame((-0.11, 0.0, 0.0))
        coordinates = tuple(Coordinate(f"j{i}{n}") for n in names)
        joints.append(Joint(f"j{i}", kind, f"b{i - 1}", f"b{i}", *at, coordinates=coordinates))
    points = ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
    markers = tuple(Marker(f"m{b.name}{i}", b.name, p) for b in bodies for i, p in enumerate(points))
    return Model(f"chain{links}", bodies, tuple(joints), markers, ground=(Shape("plane"),))


MODEL, OTHER = make_model(3), make_model(4)
DRIVE = Drive("j2h", stiffness=10.0, damping=1.0)
FORCE = AppliedForce("b1", (1.0, 2.0, 3.0), (0.5, 0.25, 0.125), (0.5, 0.0, 0.25))
COMPILED = compile_model(MODEL, step=0.005, drives=[DRIVE], marker_springs=Softness(100.0, 1.0))
OTHER_COMPILED = compile_model(OTHER, step=0.005)


@dataclass
class Subject:
    """A function of arrays; `may_differ` are variations (of one array, if named) that may change the result."""

    name: str
    run: Callable[..., Any]
    arrays: dict[str, Any]
    may_differ: set[str] = field(default_factory=set)


def values(result: Any) -> Any:
    """Return a copy of all numbers of a result."""
    if isinstance(result, (tuple, list)):
        return [values(item) for item in result]
    return np.array(result, float)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=True)


def strided(array: np.ndarray) -> np.ndarray:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def unaligned(array: np.ndarray) -> np.ndarray:
    place = np.zeros(array.nbytes + 1, np.uint8)[1:]
    place[:] = np.frombuffer(array.tobytes(), np.uint8)
    return place.view(array.dtype).reshape(array.shape)


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def with_first(value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[(0,) * array.ndim] = value
        return array

    return change


VARIATIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda a: a.astype(np.float32),
    "int": lambda a: a.astype(np.int64),
    "bool": lambda a: a.astype(bool),
    "object": lambda a: a.astype(object),
    "complex": lambda a: a.astype(complex),
    "str": lambda a: a.astype(str),
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "list": lambda a: a.tolist(),
    "None": lambda a: None,
    "scalar": lambda a: 0.0,
    "read-only": read_only,
    "unaligned": unaligned,
    "empty": lambda a: a[:0] if a.ndim else np.zeros(0),
    "extra axis": lambda a: a[None],
    "flat": lambda a: a.ravel() if a.ndim != 1 else a[:, None],
    "longer": lambda a: np.concatenate([a, a]) if a.ndim else np.stack([a, a]),
    "huge": with_first(1e300),
    "nan": with_first(np.nan),
    "inf": with_first(np.inf),
    "index below": with_first(-(10**6)),
    "index above": with_first(10**6),
}
OF_AXES: dict[str, Callable[[np.ndarray], Any]] = {
    "shorter": lambda a: a[:-1],
    "narrower": lambda a: a[..., :-1],
    "fortran": lambda a: np.asfortranarray(a.copy()),
    "strided": strided,
    "reversed": lambda a: a[::-1],
}
CHANGES = {"int", "bool", "huge", "reversed"}
"""Variations that change the content of an array but not its kind, so that another result is right."""


def variations(array: Any) -> dict[str, Any]:
    array, made = np.asarray(array), {}
    for name, change in {**VARIATIONS, **(OF_AXES if array.ndim else {})}.items():
        if array.size == 0 and name in ("nan", "inf", "huge", "index below", "index above", "unaligned"):
            continue
        if array.dtype.kind in "iub" and name in ("nan", "inf", "huge"):
            continue
        if array.dtype.kind not in "iu" and name.startswith("index"):
            continue
        if array.dtype == np.uint8 and name.startswith("index"):
            continue
        made[name] = change(array)
    return made


def tuple_subject(name: str, run: Callable[[Any], Any], make: Callable[[], Any], **options: Any) -> Subject:
    """Return the subject of all arrays of a named tuple that `make` returns; `run` takes such a tuple."""
    template = make()
    arrays = {n: a for n, a in zip(template._fields, template, strict=True) if not isinstance(a, tuple)}
    return Subject(name, lambda **given: run(make()._replace(**given)), arrays, **options)


def trajectory() -> tuple[np.ndarray, np.ndarray]:
    state = make_state(COMPILED)
    pose = np.hstack([state.position, state.quaternion])
    return np.repeat(pose[None], STEPS + 1, axis=0), np.zeros((STEPS + 1, len(pose), 6))


def all_inputs() -> Inputs:
    poses, _ = trajectory()
    noise = np.random.default_rng(0).normal(size=(STEPS + 1, len(MODEL.markers), 3)) * 0.01
    marker = noise.astype(np.float32).astype(float)  # so that single precision changes nothing
    target = np.zeros((STEPS, len(MODEL.coordinates)))
    return make_inputs(COMPILED, drives=[DRIVE], forces=[FORCE], marker=marker, drive_target=target, pose=poses)


def advance(
    state: State | None = None, inputs: Inputs | None = None, record: Record | None = None, **options: Any
) -> Any:
    record = make_record(COMPILED, STEPS) if record is None else record
    simulation = Simulation(COMPILED, state or make_state(COMPILED), inputs or make_inputs(COMPILED, drives=[DRIVE]))
    simulation.advance(STEPS, record, **options)
    return record


def roll(
    state: State | None = None,
    inputs: Inputs | None = None,
    step_inputs: StepInputs | None = None,
    record: StepRecord | None = None,
    **options: Any,
) -> Any:
    step_inputs = make_step_inputs(COMPILED) if step_inputs is None else step_inputs
    return Rollout(COMPILED).run(
        state or make_state(COMPILED), inputs or make_inputs(COMPILED), step_inputs, STEPS, record=record, **options
    )


def all_step_inputs() -> StepInputs:
    poses, _ = trajectory()
    return make_step_inputs(
        COMPILED,
        drive_force=np.full((STEPS, len(MODEL.coordinates)), 0.25),
        applied_force=np.full((STEPS, 1, 9), 0.5),
        marker_beta=np.full((STEPS, len(MODEL.markers)), 2.0),
        pose=poses[:STEPS],
        nominal_pose=poses[:STEPS],
    )


RESPONSES = {name: ResponseCoefficients(0.5, 0.001) for name in ("j1x", "j1y", "j1z", "j2h")}


def all_targets() -> TargetTrajectory:
    compiled, controls = compile_impulse(MODEL, step=0.005, controlled=RESPONSES)
    rotation = np.zeros((STEPS + 2, len(controls.ball), 4))
    rotation[..., 0] = 1.0
    largest = np.full((STEPS, len(MODEL.coordinates)), 5.0)
    value = np.full((STEPS + 2, len(MODEL.coordinates)), 0.125)
    return make_target_trajectory(compiled, value, rotation, max_impulse=largest)


def control(controls: Controls | None = None, targets: TargetTrajectory | None = None) -> Any:
    compiled, made = compile_impulse(MODEL, step=0.005, controlled=RESPONSES)
    arguments = controls or made, targets or all_targets()
    simulation = ImpulseSimulation(compiled, make_state(compiled), make_inputs(compiled), *arguments)
    record = make_record(compiled, STEPS)
    simulation.advance_impulses(STEPS, record)
    return record


def make_trajectory(value: Any, rotation: Any, max_impulse: Any) -> Any:
    compiled, _ = compile_impulse(MODEL, step=0.005, controlled=RESPONSES)
    return control(targets=make_target_trajectory(compiled, value, rotation, max_impulse=max_impulse))


def live(markers: Any) -> Any:
    class Source:
        markers = tuple(marker.name for marker in MODEL.markers)
        rate = 100.0

        def frames(self) -> Any:
            return iter([LiveFrame(0.0, given, 0.0)])

    given = markers
    pose = next(bo.live_inverse_kinematics(MODEL, Source()))
    return pose.coordinates, pose.marker_rms


def live_markers() -> np.ndarray:
    motion = make_motion(MODEL, np.zeros((1, len(MODEL.coordinates))), [0.0], 100.0, markers=MODEL.markers)
    return np.array(motion.data["model_marker_position"].values[0]).astype(np.float32).astype(float)


def simulated(**options: Any) -> Any:
    data = bo.simulate(MODEL, duration=0.02, step=0.005, **options)
    return data["coordinate_value"].values, data["coordinate_velocity"].values


def picture(**arrays: Any) -> Any:
    from borelli.view.drawing import make_drawing, transform_vertices
    from borelli.view.render import Actors, Camera, render

    drawing, state = make_drawing(MODEL), make_state(COMPILED)
    vertices, normals = transform_vertices(drawing, state.position, state.quaternion)
    good = {
        "vertices": vertices,
        "normals": normals,
        "triangles": drawing.triangles,
        "colors": drawing.colors,
        "eye": np.array([2.0, 2.0, 1.0]),
        "target": np.zeros(3),
    }
    if not arrays:
        return good
    use = good | arrays
    camera = Camera(use.pop("eye"), use.pop("target"))
    return np.asarray(render(drawing, Actors(**use), camera, 16, 12, samples=1))


def physics_subjects() -> list[Subject]:
    poses, twists = trajectory()
    warm, rows = {"active_piece index below", "active_piece index above"}, {"longer"}
    of_state = {"slot_step index below", "slot_step index above", "slot_active_piece index below"}
    of_state |= {"clock index below", "clock index above", "slot_active_piece index above", *warm}
    empty = {"drive_target empty", "marker empty", "pose empty"}
    states = {"position", "quaternion", "twist", "coordinate"}
    return [
        tuple_subject(
            "Simulation: state", lambda s: advance(state=s), lambda: make_state(COMPILED), may_differ=of_state
        ),
        tuple_subject(
            "Simulation: inputs",
            lambda i: advance(inputs=i),
            all_inputs,
            may_differ={*empty, "marker nan", "marker inf", "substeps index above"},
        ),
        tuple_subject(
            "Simulation: drives",
            lambda d: advance(inputs=all_inputs()._replace(drives=d)),
            lambda: all_inputs().drives,
        ),
        tuple_subject(
            "Simulation: applied forces",
            lambda f: advance(inputs=all_inputs()._replace(applied_forces=f)),
            lambda: all_inputs().applied_forces,
            may_differ={"span inf"},
        ),
        tuple_subject(
            "Simulation: record", lambda r: [advance(record=r).pose[:STEPS]], lambda: make_record(COMPILED, STEPS)
        ),
        Subject("advance", advance, {"poses": poses, "twists": twists}, {*rows}),
        Subject(
            "make_inputs",
            lambda **a: advance(inputs=make_inputs(COMPILED, drives=[DRIVE], **a)),
            {n: getattr(all_inputs(), n) for n in ("drive_target", "marker", "pose")},
            {"empty", "marker nan", "marker inf", "None", *rows},
        ),
        Subject(
            "AppliedForce",
            lambda **a: simulated(forces=[replace(FORCE, **a)]),
            {"force": np.array(FORCE.force), "torque": np.array(FORCE.torque), "point": np.array(FORCE.point)},
            {"None"},
        ),
        Subject(
            "Drive",
            lambda **a: simulated(drives=[replace(DRIVE, **a)]),
            {n: np.array(v) for n, v in (("target", 0.25), ("stiffness", 8.0), ("damping", 1.0), ("max_force", 4.0))},
            {"inf", "scalar"},
        ),
        Subject("initial_twists", lambda t: simulated(initial_twists={"b1": t}), {"t": np.arange(6.0) / 8}, set()),
        Subject("initial_coordinates", lambda c: simulated(initial_coordinates={"j2h": c}), {"c": np.array(0.25)}),
        Subject("initial_velocities", lambda c: simulated(initial_velocities={"j2h": c}), {"c": np.array(0.25)}),
        tuple_subject("restore", lambda s: [make_state(COMPILED).restore(s) or 0.0], lambda: make_state(COMPILED)),
        Subject(
            "coordinates_and_velocities",
            lambda pose, twist: coordinates_and_velocities(COMPILED, pose, twist),
            {"pose": poses, "twist": twists},
            {"nan", "inf"},
        ),
        Subject(
            "PostStabilizer: state",
            lambda **a: PostStabilizer(MODEL).solve(make_state(COMPILED)._replace(**a)),
            {n: a for n, a in make_state(COMPILED)._asdict().items() if n in states},
            {"coordinate nan", "coordinate inf"},
        ),
        Subject(
            "PostStabilizer: weights",
            lambda weights: PostStabilizer(MODEL, weights=weights).solve(make_state(COMPILED)),
            {"weights": np.full(len(PostStabilizer(MODEL).row_names), 2.0)},
            {"None"},
        ),
        Subject(
            "PostStabilizer: targets",
            lambda t: PostStabilizer(MODEL, controlled=["j1"]).solve(make_state(COMPILED), {"j1": t}),
            {"t": np.array([0.5, 0.25, 0.125])},
            set(),
        ),
    ]


def control_subjects() -> list[Subject]:
    made = compile_impulse(MODEL, step=0.005, controlled=RESPONSES)[1]
    t, v = np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.25, 0.5])
    turn = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    changed = {"longer"}

    def track(targets: Targets) -> Any:
        return bo.track_targets(MODEL, make_controls(targets), duration=0.02, step=0.005)["torque"].values

    return [
        tuple_subject("Controls", lambda c: control(controls=c), lambda: made, may_differ={"extent inf"}),
        tuple_subject(
            "TargetTrajectory",
            lambda x: control(targets=x),
            all_targets,
        ),
        Subject("make_target_trajectory", make_trajectory, all_targets()._asdict(), {"nan", "inf", "longer", "None"}),
        Subject(
            "keyframes",
            lambda times, values: track(keyframes(MODEL, times, {"j2h": values})),
            {"times": t, "values": v},
            changed,
        ),
        Subject(
            "b_spline_targets",
            lambda times, values: track(b_spline_targets(MODEL, times, {"j2h": values}, degree=1)),
            {"times": t, "values": v},
            changed,
        ),
        Subject(
            "Targets.at",
            lambda time: [keyframes(MODEL, t, {"j2h": v}).at(time)],
            {"time": t},
            {"empty", "shorter", "longer", "flat", "narrower", "extra axis", "scalar"},
        ),
        Subject(
            "targets_from_functions",
            lambda v: track(targets_from_functions(MODEL, {"j2h": lambda _: v})),
            {"v": np.array(0.25)},
            changed,
        ),
        Subject(
            "rotation_keyframes",
            lambda times, quaternions: [rotation_keyframes(MODEL, "j1", times, quaternions).at([0.25])],
            {"times": t, "quaternions": turn},
            changed,
        ),
        Subject(
            "Push", lambda **a: [Push("b1", **a).start], {"force": v, "point": v, "start": np.array(0.5)}, {"None"}
        ),
        Subject("MoveGround", lambda displacement: [MoveGround(displacement).start], {"displacement": v}, {"None"}),
        Subject(
            "Obstacle",
            lambda velocity: [Obstacle(Shape("sphere", (0.1,)), Frame(), velocity=velocity).start],
            {"velocity": v},
            {"None"},
        ),
        Subject(
            "MinimumJerk",
            lambda error, rate: [MinimumJerk(error, rate, 1.0, bo.PD(1.0)).path(0.5)],
            {"error": v, "rate": v},
            {"scalar"},
        ),
        Subject(
            "drag_point",
            lambda point, goal: [drag_point(MODEL, {}, "b2", point, goal).point],
            {"point": np.zeros(3), "goal": np.array([0.25, 0.125, 0.125])},
        ),
    ]


def analysis_subjects() -> list[Subject]:
    q = np.full((2, len(MODEL.coordinates)), 0.125)
    own = {"active_piece index below", "active_piece index above", "slot_step index below", "slot_step index above"}
    own |= {"clock index below", "clock index above", "slot_active_piece index below", "slot_active_piece index above"}
    one = all_inputs()

    def moved(**a: Any) -> Any:
        arrays = {"coordinates": q, "time": np.array([0.0, 0.5]), "measured": np.zeros((2, len(MODEL.markers), 3))} | a
        motion = make_motion(
            MODEL, arrays["coordinates"], arrays["time"], 2.0, markers=MODEL.markers, measured=arrays["measured"]
        )
        return [motion.data[name].values for name in ("body_position", "time", "model_marker_position")]

    return [
        tuple_subject("Rollout: state", lambda s: roll(state=s), lambda: make_state(COMPILED), may_differ=own),
        tuple_subject(
            "Rollout: inputs",
            lambda i: roll(inputs=i),
            all_inputs,
            may_differ={"empty", "marker nan", "marker inf", "substeps index above"},
        ),
        tuple_subject(
            "Rollout: step inputs",
            lambda s: roll(inputs=all_inputs(), step_inputs=s, target_frame=2),
            all_step_inputs,
            may_differ={"empty"},
        ),
        tuple_subject(
            "Rollout: record", lambda r: [roll(record=r).pose[: STEPS + 1]], lambda: make_step_record(COMPILED, STEPS)
        ),
        Subject(
            "make_step_inputs",
            lambda **a: roll(inputs=all_inputs(), step_inputs=make_step_inputs(COMPILED, **a)),
            {n: a for n, a in all_step_inputs()._asdict().items() if n != "nominal_pose"},
            {"empty", "longer", "None"},
        ),
        Subject("live_inverse_kinematics", live, {"markers": live_markers()}, {"nan", "inf"}),
        Subject(
            "make_motion",
            moved,
            {"coordinates": q, "time": np.array([0.0, 0.5]), "measured": one.marker[:2]},
            {"nan", "inf", "None"},
        ),
        Subject("render", picture, picture(), {"triangles empty", "triangles longer", "triangles shorter"}),
    ]


def rollout_poses(poses: int, **options: Any) -> Any:
    inputs = make_inputs(COMPILED, pose=trajectory()[0][:poses])
    return roll(inputs=inputs, **options)


def single_cases() -> dict[str, Callable[[], Any]]:
    """Return calls that must be refused."""
    poses, twists = trajectory()
    state, inputs, record = make_state(COMPILED), make_inputs(COMPILED), make_record(COMPILED, STEPS)
    other, of_other = make_state(OTHER_COMPILED), make_inputs(OTHER_COMPILED)
    simulation = Simulation(COMPILED, state, inputs)
    stepped = all_step_inputs()
    compiled, controls = compile_impulse(MODEL, step=0.005, controlled=RESPONSES)
    others, of_others = compile_impulse(OTHER, step=0.005, controlled={"j2h": ResponseCoefficients(0.5, 0.0)})
    impulses = ImpulseSimulation(compiled, make_state(compiled), make_inputs(compiled), controls, all_targets())

    def replaced(**attributes: Any) -> None:
        own = Simulation(COMPILED, make_state(COMPILED), make_inputs(COMPILED))
        for name, value in attributes.items():
            setattr(own, name, value)
        own.advance(1, record)

    def bad_body(body: int) -> None:
        forces = all_inputs().applied_forces._replace(body=np.array([body]))
        advance(inputs=all_inputs()._replace(applied_forces=forces))

    return {
        "state of another model": lambda: Simulation(COMPILED, other, inputs),
        "inputs of another model": lambda: Simulation(COMPILED, state, of_other),
        "state replaced by one of another model": lambda: replaced(state=other),
        "inputs replaced by those of another model": lambda: replaced(inputs=of_other),
        "negative number of the step": lambda: replaced(index=-3),
        "snapshot of another model": lambda: state.restore(other),
        "record of another model": lambda: simulation.advance(1, make_record(OTHER_COMPILED, STEPS)),
        "record too short": lambda: simulation.advance(STEPS + 1, record),
        "record with negative length": lambda: make_record(COMPILED, -1),
        "frame after the record": lambda: simulation.advance(1, record, frame=STEPS),
        "negative frame": lambda: simulation.advance(1, record, frame=-1),
        "frame is a float": lambda: simulation.advance(1, record, frame=0.0),
        "negative steps": lambda: simulation.advance(-1, record),
        "record_every is 0": lambda: simulation.advance(1, record, record_every=0),
        "no record": lambda: simulation.advance(1, None),
        "record is a list": lambda: simulation.advance(1, list(record)),
        "poses without twists": lambda: simulation.advance(1, record, poses=poses),
        "twists without poses": lambda: simulation.advance(1, record, twists=twists),
        "poses of fewer steps": lambda: simulation.advance(STEPS, record, poses=poses[:2], twists=twists[:2]),
        "markers of fewer frames": lambda: advance(inputs=all_inputs()._replace(marker=all_inputs().marker[:2])),
        "targets of fewer steps": lambda: advance(inputs=all_inputs()._replace(drive_target=np.zeros((1, 10)))),
        "substeps are 0": lambda: make_inputs(COMPILED, substeps=0),
        "substeps set to 0": lambda: advance(inputs=inputs._replace(substeps=np.zeros(1, np.int64))),
        "force on body -1": lambda: bad_body(-1),
        "force on body 3": lambda: bad_body(3),
        "drive of an unknown coordinate": lambda: make_inputs(COMPILED, drives=[Drive("x")]),
        "rollout: steps without record": lambda: roll(record=make_step_record(COMPILED, STEPS - 1)),
        "rollout: record of another model": lambda: roll(record=make_step_record(OTHER_COMPILED, STEPS)),
        "rollout: state of another model": lambda: roll(state=other),
        "rollout: root 3": lambda: roll(root=3),
        "rollout: unknown target frame": lambda: roll(target_frame=3),
        "rollout: no passes": lambda: roll(passes=0),
        "rollout: two passes without poses": lambda: roll(passes=2),
        "rollout: two passes, too few poses": lambda: rollout_poses(STEPS, passes=2),
        "rollout: poses without room": lambda: roll(step_inputs=stepped._replace(applied_force=np.zeros((0, 0, 9)))),
        "rollout: loads that inputs do not have": lambda: roll(step_inputs=stepped._replace(pose=poses[:0])),
        "rollout: no nominal poses": lambda: roll(
            inputs=all_inputs(), step_inputs=stepped._replace(nominal_pose=poses[:0]), target_frame=1
        ),
        "rollout: slopes without springs": lambda: Rollout(compiled).run(
            make_state(compiled),
            make_inputs(compiled),
            make_step_inputs(compiled, marker_beta=np.ones((STEPS, len(MODEL.markers)))),
            STEPS,
        ),
        "controls of another model": lambda: ImpulseSimulation(
            compiled, make_state(compiled), make_inputs(compiled), of_others, all_targets()
        ),
        "targets of another model": lambda: ImpulseSimulation(
            others, make_state(others), make_inputs(others), of_others, all_targets()
        ),
        "impulse steps after the targets": lambda: impulses.advance_impulses(STEPS + 1, make_record(compiled, 20)),
        "impulse record too short": lambda: impulses.advance_impulses(STEPS, make_record(compiled, 1)),
        "unknown coordinate": lambda: initial_state(COMPILED, coordinates={"x": 0.0}),
        "post-stabilization of another model": lambda: PostStabilizer(MODEL).solve(other),
        "ragged list": lambda: make_inputs(COMPILED, drive_target=[[0.0], [0.0, 1.0]]),
        "triangle without vertex": lambda: picture(triangles=picture()["triangles"] + 10**6),
        "record_every of simulate": lambda: simulated(record_every=1.5),
    }


GROUPS = {"physics": physics_subjects, "control": control_subjects, "analysis": analysis_subjects}


def outcome(run: Callable[[], Any], expected: Any, may_differ: bool) -> str:
    """Return an empty string if a case ended well."""
    try:
        result = values(run())
    except BorelliError as error:
        return "" if str(error) else "an error without a sentence"
    except Exception as error:  # everything else is what this campaign looks for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "" if may_differ or (expected is not None and equal(result, expected)) else "another result"


def run_group(group: str, part: int, parts: int) -> None:
    """Run every `parts`-th case from `part` on, and print their number last."""
    count = 0
    for subject in GROUPS[group]():
        expected = values(subject.run(**{name: np.array(array) for name, array in subject.arrays.items()}))
        for array_name, array in subject.arrays.items():
            for kind, variant in variations(array).items():
                count += 1
                if count % parts != part:
                    continue
                case = f"{subject.name}: {array_name}: {kind}"
                print("case", case, flush=True)
                given = {name: np.array(good) for name, good in subject.arrays.items()} | {array_name: variant}
                allowed = subject.may_differ | CHANGES | ({"scalar"} if np.ndim(array) == 0 else set())
                differs = {kind, f"{array_name} {kind}"} & allowed
                failure = outcome(lambda run=subject.run, given=given: run(**given), expected, bool(differs))
                if failure:
                    print(f"FAILED {case}: {failure}", flush=True)


def run_single() -> None:
    """Run the calls that must be refused."""
    cases = single_cases()
    for name, call in cases.items():
        print("case", name, flush=True)
        failure = outcome(call, None, False)
        if failure:
            print(f"FAILED {name}: {failure}", flush=True)


if __name__ == "__main__":
    np.seterr(all="ignore")
    run_single()
    for group in GROUPS:
        run_group(group, int(sys.argv[1]), int(sys.argv[2]))
    print("done", flush=True)
