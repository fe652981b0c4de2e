"""Synthetic recordings: markers with noise and gaps, plates under the steps, and the ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.files.html_repr import Summary, fields_summary, summary_html, summary_repr
from borelli.model.kinematics import marker_positions, poses
from borelli.model.model import Model
from borelli.model.transforms import vector
from borelli.numerics.runs import find_runs
from borelli.people.human import human
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording, make_dataset
from borelli.synthetic.curves import spline_derivatives
from borelli.synthetic.ground_forces import Loads, distribute_load, root_wrench, sole_points
from borelli.synthetic.jump_and_reach import JUMP_DURATION, REACH_DURATION, jump_coordinates, reach_coordinates
from borelli.synthetic.sit_to_stand import SIT_TO_STAND_DURATION, seat_load, sit_to_stand_coordinates
from borelli.synthetic.walk import CYCLE, preferred_pressure, walk_coordinates

Array = NDArray[np.float64]

MASS, HEIGHT = 68.0, 1.72
"""Mass and height of the synthetic subject [kg, m]."""
RATE, SAMPLES_PER_FRAME = 100.0, 4
"""Frame rate [Hz], and plate samples per frame."""
MARKER_OFFSET_SD = 0.006
"""Standard deviation of marker offsets from the marker set, along each axis [m]."""


class SyntheticRecording(NamedTuple):
    """A recording and its ground truth."""

    recording: Recording
    model: Model
    """The subject, with true marker offsets."""
    coordinates: Array
    """(frames, coordinates) of the true motion [rad or m]."""
    seat_force: Array | None = None
    """(frames, 3) force of the seat on the pelvis [N], which no plate records; None without a seat."""

    def __repr__(self) -> str:
        return summary_repr(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def _summary(self) -> Summary:
        return fields_summary(self)


class _Task(NamedTuple):
    """Motion and forces at the samples of the plates."""

    coordinates: Array
    loads: Loads
    seat_force: Array | None = None


def synthetic_recording(task: str, *, noise: float = 0.001, gaps: float = 0.02, seed: int = 0) -> SyntheticRecording:
    """Create a recording of a walk, a jump, a reach or of standing up, with markers and force plates.

    Args:
        task: "walk", "jump", "reach" or "sit_to_stand" (plates under the feet, none under the seat).
        noise: Standard deviation of each marker along each axis [m].
        gaps: Fraction of marker samples that are missing.
        seed: Seed of noise, gaps and marker offsets.

    Returns:
        The recording with the true model and motion.

    Raises:
        SettingsError: The task is unknown.

    Examples:
        >>> jump = bo.synthetic_recording("jump", noise=0.0, gaps=0.0)
        >>> force = jump.recording.data["plate_force"].sel(axis="z").sum("plate")
        >>> bool(force.min() < 1.0)  # in flight
        True
    """
    tasks: dict[str, Callable[[Model], _Task]] = {
        "walk": _walk, "jump": _jump, "reach": _reach, "sit_to_stand": _sit_to_stand,
    }  # fmt: skip
    if task not in tasks:
        raise SettingsError(unknown_name("task", task, tasks))
    random = np.random.default_rng(seed)
    model = human(MASS, HEIGHT, "female", markers="cmu41")
    markers = tuple(
        replace(marker, position=vector(np.array(marker.position) + random.normal(0.0, MARKER_OFFSET_SD, 3)))
        for marker in model.markers
    )
    model = replace(model, markers=markers)
    fine, loads, seat = tasks[task](model)
    q = fine[::SAMPLES_PER_FRAME]
    points = marker_positions(model, q)
    points = points + random.normal(0.0, noise, points.shape)
    points[_gaps(points.shape[:2], gaps, random)] = np.nan
    variables = {"marker_position": points, **plate_variables(loads)}
    labels = {
        "marker": [marker.name for marker in markers],
        "plate": [f"plate {i + 1}" for i in range(variables["plate_force"].shape[1])],
    }
    data = make_dataset(
        variables, labels, rate=RATE, analog_rate=RATE * SAMPLES_PER_FRAME,
        file_units="m", file_up="+Z", file_forward="+X",
    )  # fmt: skip
    about = (
        f"Synthetic {task}, not measured: marker noise {1e3 * noise:g} mm, {100 * gaps:g} % of marker samples missing, "
        "forces from the motion by Newton's laws."
    )
    recording = Recording(
        data, task, subject={"name": "synthetic", "mass": MASS, "height": HEIGHT, "sex": "female"},
        metadata={"synthetic": True, "task": task, "noise_m": noise, "gaps": gaps, "seed": seed},
        notes=(Note(about, "stated", code="synthetic"),),
    )  # fmt: skip
    return SyntheticRecording(recording, model, q, None if seat is None else seat[::SAMPLES_PER_FRAME])


def _clock(duration: float) -> Array:
    return np.arange(round(duration * RATE) * SAMPLES_PER_FRAME + 1) / (RATE * SAMPLES_PER_FRAME)


def _walk(model: Model) -> _Task:
    """Return three cycles and a little, from just before a right foot strike."""
    time = _clock(3.2 * CYCLE) - 0.1 * CYCLE
    walk = walk_coordinates(model, time)
    q, velocities, accelerations = spline_derivatives(walk.coordinates, time[1] - time[0])
    wrench = root_wrench(model, q, velocities, accelerations)
    return _Task(q, distribute_load(*wrench, walk.left_load, preferred_pressure(model, time)))


def _jump(model: Model) -> _Task:
    time = _clock(JUMP_DURATION)
    return _on_both_feet(model, jump_coordinates(model, time), time)


def _reach(model: Model) -> _Task:
    time = _clock(REACH_DURATION)
    return _on_both_feet(model, reach_coordinates(model, time), time)


def _sit_to_stand(model: Model) -> _Task:
    time = _clock(SIT_TO_STAND_DURATION)
    return _on_both_feet(model, sit_to_stand_coordinates(model, time), time, seated=True)


def _on_both_feet(model: Model, coordinates: Array, time: Array, *, seated: bool = False) -> _Task:
    """Load both feet, and first a seat, according to the position of the center of pressure between them."""
    q, velocities, accelerations = spline_derivatives(coordinates, time[1] - time[0])
    force, moment = root_wrench(model, q, velocities, accelerations)
    under = sole_points(model, q).mean(axis=2)
    seat = None
    if seated:
        seat, point = seat_load(force, moment, poses(model, q)[0][:, 0], under.mean(axis=1))
        force, moment = force - seat, moment - np.cross(point, seat)
    left, right = under[:, 0, 1], under[:, 1, 1]
    sideways = moment[:, 0] / np.maximum(force[:, 2], MIN_PLATE_FORCE)
    fraction = np.clip((sideways - right) / (left - right), 0.0, 1.0)
    flying = force[:, 2] < MIN_PLATE_FORCE
    force, moment = np.where(flying[:, None], 0.0, force), np.where(flying[:, None], 0.0, moment)
    return _Task(q, distribute_load(force, moment, fraction, under), seat)


def plate_variables(loads: Loads) -> dict[str, Array]:
    """Return one plate for each step: (samples, plates, 3), and corners."""
    steps = []
    for foot in range(2):
        steps += [(foot, a, b) for a, b in find_runs(loads.force[:, foot, 2] >= MIN_PLATE_FORCE)]
    plates: list[tuple[Array, list[tuple[int, int, int]]]] = []
    for step in sorted(steps, key=lambda step: step[1]):
        foot, a, b = step
        center_of_plate = np.nanmean(loads.center[a:b, foot], axis=0)
        for known, plate_steps in plates:  # a foot that returns to its plate
            if plate_steps[0][0] == foot and np.linalg.norm(known - center_of_plate) < 0.15:
                plate_steps.append(step)
                break
        else:
            plates.append((center_of_plate, [step]))
    shape = (len(loads.force), len(plates), 3)
    force, center, moment = np.zeros(shape), np.full(shape, np.nan), np.zeros(shape)
    corners = np.zeros((len(plates), 4, 3))
    half = np.array([[0.3, 0.2, 0.0], [-0.3, 0.2, 0.0], [-0.3, -0.2, 0.0], [0.3, -0.2, 0.0]])
    for k, (center_of_plate, plate_steps) in enumerate(plates):
        corners[k] = center_of_plate * (1.0, 1.0, 0.0) + half
        for foot, a, b in plate_steps:
            force[a:b, k] = loads.force[a:b, foot]
            center[a:b, k] = loads.center[a:b, foot]
            moment[a:b, k] = loads.free_moment[a:b, foot]
    return {
        "plate_force": force, "plate_center_of_pressure": center, "plate_free_moment": moment, "plate_corners": corners,
    }  # fmt: skip


def _gaps(shape: tuple[int, int], fraction: float, random: np.random.Generator) -> NDArray[np.bool_]:
    """Return the missing samples: random stretches of 30 to 150 ms of one marker each."""
    frames, markers = shape
    missing = np.zeros(shape, bool)
    while missing.mean() < fraction:
        length = int(random.integers(3, 16))
        start = int(random.integers(1, max(frames - length - 1, 2)))
        missing[start : start + length, int(random.integers(markers))] = True
    return missing
