"""The recordings themselves: markers with noise and gaps, plates under the steps, the truth kept beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import marker_positions
from borelli.model.model import Model
from borelli.model.people.human import human
from borelli.model.transforms import vector
from borelli.recording.recording import MIN_PLATE_FORCE, Note, Recording, make_dataset
from borelli.synthetic.curves import stirred
from borelli.synthetic.ground_forces import Loads, root_wrench, share_loads, sole_points
from borelli.synthetic.jump_and_reach import JUMP_DURATION, REACH_DURATION, jump_coordinates, reach_coordinates
from borelli.synthetic.walk import CYCLE, pressure_wish, walk_coordinates

Array = NDArray[np.float64]

MASS, HEIGHT = 68.0, 1.72
"""Of the subject that is made [kg, m]."""
RATE, PER_FRAME = 100.0, 4
"""Frames a second [Hz], and samples of plates to each."""
MISPLACED = 0.006
"""How far [m, standard deviation along each axis] markers sit from where the marker set has them."""


class SyntheticRecording(NamedTuple):
    """A recording and what is behind it."""

    recording: Recording
    model: Model
    """The subject, markers where they really sit."""
    coordinates: Array
    """(frames, coordinates) [rad or m], of the motion that was made."""


def synthetic_recording(task: str, *, noise: float = 0.001, gaps: float = 0.02, seed: int = 0) -> SyntheticRecording:
    """A walk, a jump or a reach, recorded by a camera system and force plates that do not exist.

    Args:
        task: "walk", "jump" or "reach".
        noise: Standard deviation [m] of each marker along each axis.
        gaps: Part of all samples in which a marker is not seen.
        seed: Of noise, gaps and where markers sit.

    Raises:
        SettingsError: if the task is not one of these.
    """
    tasks: dict[str, Callable[[Model], tuple[Array, Loads]]] = {"walk": _walk, "jump": _jump, "reach": _reach}
    if task not in tasks:
        raise SettingsError(unknown_name("task", task, tasks))
    chance = np.random.default_rng(seed)
    model = human(MASS, HEIGHT, "female", markers="cmu41")
    markers = tuple(
        replace(marker, position=vector(np.array(marker.position) + chance.normal(0.0, MISPLACED, 3)))
        for marker in model.markers
    )
    model = replace(model, markers=markers)
    fine, loads = tasks[task](model)
    q = fine[::PER_FRAME]
    points = marker_positions(model, q)
    points = points + chance.normal(0.0, noise, points.shape)
    points[_gaps(points.shape[:2], gaps, chance)] = np.nan
    variables = {"marker_position": points, **_plates(loads)}
    labels = {
        "marker": [marker.name for marker in markers],
        "plate": [f"plate {i + 1}" for i in range(variables["plate_force"].shape[1])],
    }
    data = make_dataset(
        variables, labels, rate=RATE, analog_rate=RATE * PER_FRAME,
        file_units="m", file_up="+Z", file_forward="+X",
    )  # fmt: skip
    about = (
        f"synthetic: this {task} was made, not measured (noise {1e3 * noise:g} mm, {100 * gaps:g} % of samples "
        "not seen, forces by Newton's laws from the motion)"
    )
    recording = Recording(
        data, task, subject={"name": "synthetic", "mass": MASS, "height": HEIGHT, "sex": "female"},
        metadata={"synthetic": True, "task": task, "noise_m": noise, "gaps": gaps, "seed": seed},
        notes=(Note(about, "stated"),),
    )  # fmt: skip
    return SyntheticRecording(recording, model, q)


def _clock(duration: float) -> Array:
    return np.arange(round(duration * RATE) * PER_FRAME + 1) / (RATE * PER_FRAME)


def _walk(model: Model) -> tuple[Array, Loads]:
    """Three cycles and a little, from just before a right strike."""
    time = _clock(3.2 * CYCLE) - 0.1 * CYCLE
    walk = walk_coordinates(model, time)
    q, speeds, accelerations = stirred(walk.coordinates, time[1] - time[0])
    wrench = root_wrench(model, q, speeds, accelerations)
    return q, share_loads(*wrench, walk.share, pressure_wish(model, time))


def _jump(model: Model) -> tuple[Array, Loads]:
    time = _clock(JUMP_DURATION)
    return _on_both_feet(model, jump_coordinates(model, time), time)


def _reach(model: Model) -> tuple[Array, Loads]:
    time = _clock(REACH_DURATION)
    return _on_both_feet(model, reach_coordinates(model, time), time)


def _on_both_feet(model: Model, coordinates: Array, time: Array) -> tuple[Array, Loads]:
    """Both feet carry, each as much as the place of the centre of pressure between them says."""
    q, speeds, accelerations = stirred(coordinates, time[1] - time[0])
    force, moment = root_wrench(model, q, speeds, accelerations)
    under = sole_points(model, q).mean(axis=2)
    left, right = under[:, 0, 1], under[:, 1, 1]
    sideways = moment[:, 0] / np.maximum(force[:, 2], MIN_PLATE_FORCE)
    share = np.clip((sideways - right) / (left - right), 0.0, 1.0)
    flying = force[:, 2] < MIN_PLATE_FORCE
    force, moment = np.where(flying[:, None], 0.0, force), np.where(flying[:, None], 0.0, moment)
    return q, share_loads(force, moment, share, under)


def _plates(loads: Loads) -> dict[str, Array]:
    """One plate for each step: (samples, plates, 3), and corners."""
    steps = []
    for foot in range(2):
        carried = loads.force[:, foot, 2] >= MIN_PLATE_FORCE
        edges = np.flatnonzero(np.diff(np.concatenate([[False], carried, [False]]).astype(int)))
        steps += [(foot, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    places: list[tuple[Array, list[tuple[int, int, int]]]] = []
    for step in sorted(steps, key=lambda step: step[1]):
        foot, a, b = step
        middle = np.nanmean(loads.center[a:b, foot], axis=0)
        for known, of_it in places:  # a foot that comes back to its plate
            if of_it[0][0] == foot and np.linalg.norm(known - middle) < 0.15:
                of_it.append(step)
                break
        else:
            places.append((middle, [step]))
    shape = (len(loads.force), len(places), 3)
    force, center, moment = np.zeros(shape), np.full(shape, np.nan), np.zeros(shape)
    corners = np.zeros((len(places), 4, 3))
    half = np.array([[0.3, 0.2, 0.0], [-0.3, 0.2, 0.0], [-0.3, -0.2, 0.0], [0.3, -0.2, 0.0]])
    for k, (middle, of_it) in enumerate(places):
        corners[k] = middle * (1.0, 1.0, 0.0) + half
        for foot, a, b in of_it:
            force[a:b, k] = loads.force[a:b, foot]
            center[a:b, k] = loads.center[a:b, foot]
            moment[a:b, k] = loads.free_moment[a:b, foot]
    return {
        "plate_force": force, "plate_center_of_pressure": center, "plate_free_moment": moment, "plate_corners": corners,
    }  # fmt: skip


def _gaps(shape: tuple[int, int], part: float, chance: np.random.Generator) -> NDArray[np.bool_]:
    """Which samples are not seen: stretches of 30 to 150 ms, here and there, of one marker each."""
    frames, markers = shape
    missing = np.zeros(shape, bool)
    while missing.mean() < part:
        length = int(chance.integers(3, 16))
        start = int(chance.integers(1, max(frames - length - 1, 2)))
        missing[start : start + length, int(chance.integers(markers))] = True
    return missing
