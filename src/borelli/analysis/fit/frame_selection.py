"""Which markers and which frames a fit is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.derivatives import Group
from borelli.analysis.kinematics.framewise_ik import (
    MIN_VISIBLE_MARKERS,
    MARKER_STIFFNESS,
    POSE_STIFFNESS,
    IkProblem,
    solve_framewise,
    make_ik_problem,
)
from borelli.analysis.motion import match_markers, marker_points, to_model_axes
from borelli.errors import BorelliError, SettingsError, list_names
from borelli.model.marker_sets import add_marker_set, list_marker_sets, markers_from_set
from borelli.model.model import Joint, Marker, Model
from borelli.recording.identify_marker_set import MIN_MATCHED_FRACTION, MIN_NAMES
from borelli.recording.recording import Note, Recording

Array = NDArray[np.float64]

MOST_FOLLOWED = 600
"""Frames that are posed one after the other to find a start for the fit."""
STANDING_SD = 0.05
"""[rad] by which a person who stands for a static trial is off the model's neutral pose: 3 degrees."""
NEAR_NEUTRAL = 0.6
"""[rad] Coordinates farther from neutral in the static trial say that it is not held there: raised arms."""
STILL = 0.02
"""[m] by which a marker may stray in a static trial."""


@dataclass(frozen=True)
class Choice:
    """The frames of a fit."""

    model: Model
    """Wearing only markers that some recording has."""
    groups: tuple[Group, ...]
    notes: tuple[Note, ...]


def dress(model: Model, recordings: Sequence[Recording]) -> tuple[Model, tuple[Note, ...]]:
    """The model wearing what the recordings show of its own markers or, if it wears none, of the set they fit best.

    Raises:
        SettingsError: the recordings' labels are those of no set that the model can wear.
    """
    labels = list(dict.fromkeys(label for recording in recordings for label in recording.markers))
    notes = []
    if not model.markers:
        model, name, borrowed = _best_set(model, labels)
        said = f"the model wears the marker set {name}, which the labels fit"
        if borrowed:
            said += f", and as other sets have them {list_names(borrowed)}"
        notes.append(Note(said, "inferred", "with_markers"))
    taken: set[str] = set()
    worn: set[str] = set()
    for recording in recordings:
        found = match_markers(model.markers, recording.markers)
        taken |= {recording.markers[k] for k in found if k >= 0}
        worn |= {marker.name for marker, k in zip(model.markers, found, strict=True) if k >= 0}
    if len(worn) < MIN_NAMES:
        raise SettingsError(
            f"a fit needs {MIN_NAMES} markers, but of those of model {model.name!r} "
            f"({list_names([m.name for m in model.markers])}) the recording has {len(worn)}: it has {list_names(labels)}. "
            + (
                "Take the model as it is (fit=False, --no-fit), or a recording with more of them"
                if worn
                else "Give the model the recording's markers (with_markers), or leave it out: the human wears what fits"
            )
        )
    extra = [label for label in labels if label not in taken]
    if extra:
        notes.append(Note(f"markers that the model does not wear are left out: {list_names(extra)}", "inferred"))
    absent = [marker.name for marker in model.markers if marker.name not in worn]
    if absent:
        notes.append(Note(f"markers of the model that were not recorded: {list_names(absent)}", "stated"))
    return replace(model, markers=tuple(m for m in model.markers if m.name in worn)), tuple(notes)


def _best_set(model: Model, labels: Sequence[str]) -> tuple[Model, str, list[str]]:
    """The model wearing the set that fits, the set's name, and labels that are worn as other sets have them."""
    tried: list[tuple[float, tuple[Marker, ...], str, list[int]]] = []
    for name in list_marker_sets():
        try:
            markers = markers_from_set(model, name)
        except BorelliError:
            continue  # the set names bodies that this model has not
        found = match_markers(markers, labels)
        count = len({k for k in found if k >= 0})
        # a set fits by how many labels it explains and by how few of its markers are amiss
        tried.append((count / (len(markers) + len(labels) - count), markers, name, found))
    if not tried:
        raise SettingsError(
            f"model {model.name!r} wears no markers and has not the bodies that the sets {list_names(list_marker_sets())} name: "
            "give it markers with with_markers and a set of your own"
        )
    tried.sort(key=lambda one: -one[0])
    _, markers, name, found = tried[0]
    taken = {k for k in found if k >= 0}
    if len(taken) < MIN_NAMES or len(taken) < MIN_MATCHED_FRACTION * min(len(markers), len(labels)):
        wanted = [marker.name for marker in markers]
        raise SettingsError(
            f"the labels {list_names(labels, 20)} are of no marker set that the model can wear "
            f"({list_names(list_marker_sets(), 20)}); the nearest, {name}, has {len(taken)} of them and wants "
            f"{list_names(wanted, 12)}: rename the markers, or write a set of your own, save with_markers(model, set) with "
            "write_model, and give that model (--model)"
        )
    more: dict[int, Marker] = {}
    for _, other, _, at in tried[1:]:
        for marker, k in zip(other, at, strict=True):
            if k >= 0 and k not in taken and k not in more:
                more[k] = Marker(labels[k], marker.body, marker.position)
    dressed = add_marker_set(model, name)
    return replace(dressed, markers=(*dressed.markers, *more.values())), name, [labels[k] for k in more]


def choose_frames(
    model: Model, recordings: Sequence[Recording], static: Recording | None, frames: int, held_out: int
) -> Choice:
    """Frames spread evenly over the recordings, posed with the model as it is; every other one is held out.

    Args:
        model: Wearing only markers that some recording has.
        recordings: One or more.
        static: A trial in which the subject stands; it becomes one frame.
        frames: How many are fitted, in all.
        held_out: How many are held out, in all; no more than are fitted.
    """
    groups: list[Group] = []
    notes: list[Note] = []
    share = max(1, len(recordings))
    for recording in recordings:
        problem = whole_problem(model, recording)
        count = (problem.weight > 0.0).sum(axis=1)
        good = np.flatnonzero(count >= max(MIN_VISIBLE_MARKERS, 0.5 * count.max(initial=0)))
        if not len(good):
            raise SettingsError(
                f"recording {recording.name!r}: no frame shows {MIN_VISIBLE_MARKERS} of the model's markers; see which are "
                "seen, and when, with `borelli doctor`"
            )
        good = good[:: -(-len(good) // MOST_FOLLOWED)]
        thinned = part_of(problem, good)
        q, _ = solve_framewise(thinned)
        fitted, judged = spread_frames(len(good), -(-frames // share), held_out // share)
        groups.append(Group(part_of(thinned, fitted), q[fitted]))
        if len(judged):
            groups.append(Group(part_of(thinned, judged), q[judged], fitted=False))
    if static is not None:
        group, more = standing(model, static)
        groups.append(group)
        notes += more
    return Choice(model, tuple(groups), tuple(notes))


def spread_frames(count: int, frames: int, held_out: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of frames to fit, evenly spread from the first to the last, and to hold out, between them."""
    held_out = min(held_out, frames - 1)
    fitted = np.unique(np.round(np.linspace(0, count - 1, min(frames, count))).astype(np.int64))
    between = np.unique((fitted[:-1] + fitted[1:]) // 2)
    between = between[~np.isin(between, fitted)]
    if 0 < held_out < len(between):
        between = between[np.unique(np.round(np.linspace(0, len(between) - 1, held_out)).astype(np.int64))]
    return fitted, between if held_out > 0 else between[:0]


def whole_problem(model: Model, recording: Recording) -> IkProblem:
    """The springs of all the model's markers; those the recording has not weigh nothing."""
    problem = make_ik_problem(model, recording)
    at = [[m.name for m in model.markers].index(marker.name) for marker in problem.markers]
    frames = len(problem.target)
    target, weight = np.zeros((frames, len(model.markers), 3)), np.zeros((frames, len(model.markers)))
    # many systems write (0, 0, 0) for a marker that was not seen
    seen = (problem.weight > 0.0) & (problem.target != 0.0).any(axis=-1)
    target[:, at], weight[:, at] = problem.target, problem.weight * seen
    return replace(problem, markers=model.markers, points=marker_points(model, model.markers), target=target, weight=weight)


def part_of(problem: IkProblem, frames: NDArray[np.int64]) -> IkProblem:
    """The problem of some of its frames."""
    return replace(
        problem,
        target=np.ascontiguousarray(problem.target[frames]),
        weight=np.ascontiguousarray(problem.weight[frames]),
    )


def standing(model: Model, static: Recording) -> tuple[Group, list[Note]]:
    """The static trial as one frame, in which coordinates near neutral are held there."""
    seen = static.data["marker_position"].values
    found = match_markers(model.markers, static.markers)
    columns = [k for k in found if k >= 0]
    with np.errstate(all="ignore"):
        stray = np.nanmax(np.nanstd(seen[:, columns], axis=0), axis=-1)
        middle = np.nanmedian(seen, axis=0)
    moving = [static.markers[k] for k, s in zip(columns, stray, strict=True) if s > STILL]
    if len(moving) > len(columns) // 2:
        raise SettingsError(
            f"the static trial {static.name!r} moves: {list_names(moving)} stray more than {1000 * STILL:g} mm; "
            "crop it to where the subject stands still"
        )
    at = np.array([middle[k] if k >= 0 else [np.nan] * 3 for k in found]) @ to_model_axes(model).T
    visible = (
        np.isfinite(at).all(axis=-1)
        & (at != 0.0).any(axis=-1)
        & ~np.isin([static.markers[k] if k >= 0 else "" for k in found], moving)
    )
    problem = whole_problem(model, static)
    problem = replace(
        problem,
        target=np.ascontiguousarray(np.where(visible[:, None], at, 0.0)[None]),
        weight=np.ascontiguousarray((visible * MARKER_STIFFNESS)[None]),
    )
    q, _ = solve_framewise(problem)
    free, holds = problem.tree.free, problem.rest_springs
    neutral = _neutral_limbs(model, q[0])
    held = np.array([neutral[model.coordinates[i].name] for i in free]) & (holds.stiffness > 0.0)
    stiffness = np.where(held, POSE_STIFFNESS / STANDING_SD**2, holds.stiffness)
    far = [model.coordinates[i].name for i in free[~held & (holds.stiffness > 0.0)]]
    problem = replace(problem, rest_springs=holds._replace(stiffness=stiffness))
    notes = [
        Note(
            f"the static trial {static.name!r} is taken as the model's neutral pose within "
            f"{np.degrees(STANDING_SD):.0f} degrees" + (f", but for {list_names(far)}" if far else ""),
            "inferred",
        )
    ]
    return Group(problem, q), notes


def _neutral_limbs(model: Model, q: Array) -> dict[str, bool]:
    """Whether each coordinate is one of a limb that is near neutral throughout: raised arms move collars too."""
    joints = [joint for joint in model.joints if not joint.closes_loop]
    own = {joint.child: joint for joint in joints}
    branches = [joint.parent for joint in joints]
    value = dict(zip((c.name for c in model.coordinates), q, strict=True))

    def first(joint: Joint) -> str:
        """The joint at which the limb leaves a body that carries several."""
        while branches.count(joint.parent) == 1 and joint.parent in own:
            joint = own[joint.parent]
        return joint.name

    near: dict[str, bool] = {}
    limb = {joint.name: first(joint) for joint in joints}
    for joint in joints:
        turned = [abs(value[c.name] - c.default) for c in joint.coordinates if c.rotational]
        near[limb[joint.name]] = near.get(limb[joint.name], True) and all(angle < NEAR_NEUTRAL for angle in turned)
    return {c.name: c.rotational and near[limb[joint.name]] for joint in joints for c in joint.coordinates}
