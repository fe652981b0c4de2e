"""Selection of the markers and frames that a model is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.fit.derivatives import FrameGroup
from borelli.analysis.fit.landmark_dressing import dress_by_landmarks, further_landmarks
from borelli.analysis.kinematics.framewise_ik import (
    MARKER_STIFFNESS,
    MIN_VISIBLE_MARKERS,
    POSE_STIFFNESS,
    IkProblem,
    make_ik_problem,
    solve_framewise,
)
from borelli.analysis.motion import marker_points, match_markers, to_model_axes
from borelli.errors import BorelliError, SettingsError, list_names
from borelli.model.kinematics import root_coordinates
from borelli.model.marker_sets import add_marker_set, list_marker_sets, markers_from_set
from borelli.model.model import Joint, Marker, Model
from borelli.numerics.vectors import Array
from borelli.recording.identify_marker_set import MIN_MATCHED_FRACTION, MIN_NAMES
from borelli.recording.recording import Note, Recording

MAX_MARKERS = 300
"""Markers that a model is fitted to, at most: a fit of 533 took more than a minute of processor time."""
MAX_POSED_FRAMES = 600
"""Frames that are posed one after the other to find a start for the fit."""
LONG_TRIAL = 10_000
"""Frames of a trial beyond which those that are posed are in windows."""
WINDOWS, WINDOW_DURATION = 10, 3.0
"""Number of windows, and their duration [s]: two strides or more."""
SET_MATCHED = "marker_set"
"""Code of the note on a marker set that was identified."""
MIN_RIVAL_FRACTION = 0.9
"""Fraction of the labels of the set with the most of them that another set must have to be compared with it."""


class FrameWeights(NamedTuple):
    """Weights of the frames of a fit.

    Attributes:
        motion: Weight of all fitted frames of a motion together, in independent frames.
        static: Weight of the static trial.
        standing_sd: Standard deviation of the static trial from the model's neutral pose [rad].
    """

    motion: float
    static: float
    standing_sd: float


TIED_WEIGHTS = FrameWeights(3.1, 0.25, 0.1)
"""Weights if landmarks determine the joint centers.

Skin moves with the gait, by about 10 mm where `MARKER_SD` is 5 mm, and the same in every stride: 31 frames of a walk
know as much as 2.5 to 12 independent ones. Markers of a static trial are off by 10 mm rather than 5, too; persons stand
neutral within 6 degrees.
"""
UNTIED_WEIGHTS = FrameWeights(np.inf, 1.0, 0.05)
"""Weights if nothing but the motion and the given model determines them."""
WALKING_SPREAD = 0.06
"""[rad] Standard deviation of hip adduction in walking, which limits what a walk says about the hips.

The error that skin motion causes falls with the range of motion: frames of a functional trial weigh as much more as the
square of its range over this one, up to all frames.
"""
MAX_NEUTRAL_ANGLE = 0.6
"""[rad] Limbs with a larger angle in the static trial are not in their neutral pose: raised arms."""
MAX_STATIC_DRIFT = 0.02
"""[m] RMS distance of a marker from its mean position that a static trial allows."""


def choose_marker_set(
    model: Model, recordings: Sequence[Recording], first: str | None = None
) -> tuple[Model, tuple[Note, ...]]:
    """Return the model with those markers that were recorded.

    They are its own or, if it has none, those of the best matching set; if no set matches, the landmarks of the labels.
    `first` is the name of a set to use in place of the best matching one.
    """
    labels = list(dict.fromkeys(label for recording in recordings for label in recording.markers))
    notes: list[Note] = []
    if not model.markers:
        model, notes = _add_markers(model, recordings, labels, first)
    matched: set[str] = set()
    recorded: set[str] = set()
    for recording in recordings:
        column = match_markers(model.markers, recording.markers)
        matched |= {recording.markers[k] for k in column if k >= 0}
        recorded |= {marker.name for marker, k in zip(model.markers, column, strict=True) if k >= 0}
    if len(recorded) < MIN_NAMES:
        action = (
            "Use the model without fitting (fit=False, --no-fit), or a recording with more of its markers."
            if recorded
            else "Add the recording's markers to the model (add_marker_set), or omit the model to use a generic human."
        )
        raise SettingsError(
            f"A fit needs {MIN_NAMES} markers, but the recording has {len(recorded)} of those of model {model.name!r} "
            f"(model: {list_names([m.name for m in model.markers])}; recording: {list_names(labels)}). {action}"
        )
    if len(recorded) > MAX_MARKERS:
        raise SettingsError(
            f"The recording has {len(recorded)} markers of model {model.name!r}; a fit takes at most {MAX_MARKERS}. "
            "Leave out those that are not on the subject: `borelli markers FILE --write map.toml`, empty their "
            "meanings, and use --markers map.toml; or use the model without fitting (--no-fit)."
        )
    extra = [label for label in labels if label not in matched]
    if extra:
        text = f"Recorded markers that the model does not have are not used: {list_names(extra)}."
        notes.append(Note(text, "inferred", code="unused_markers"))
    absent = [marker.name for marker in model.markers if marker.name not in recorded]
    if absent:
        text = f"Markers of the model that were not recorded: {list_names(absent)}."
        notes.append(Note(text, "stated", code="absent_markers"))
    return replace(model, markers=tuple(m for m in model.markers if m.name in recorded)), tuple(notes)


def rival_sets(model: Model, recordings: Sequence[Recording]) -> list[str]:
    """Return the names of the marker sets that contain nearly as many of the labels as any, those with most first."""
    labels = list(dict.fromkeys(label for recording in recordings for label in recording.markers))
    counts = {name: len({k for k in column if k >= 0}) for _, _, name, column in _match_sets(model, labels)}
    most = max(counts.values())
    return sorted((n for n in counts if counts[n] >= MIN_RIVAL_FRACTION * most), key=lambda name: -counts[name])


def _add_markers(
    model: Model, recordings: Sequence[Recording], labels: Sequence[str], first: str | None
) -> tuple[Model, list[Note]]:
    """Return the model with the markers of the best matching set; if none matches, of the labels' landmarks."""
    best = _add_best_set(model, labels, first)
    if best is None:
        dressed, notes = dress_by_landmarks(model, recordings)
        return dressed, list(notes)
    model, name, borrowed = best
    text = f"Marker set: {name}, identified from the labels"
    if borrowed:
        text += f"; from other sets: {list_names(borrowed)}"
    known = [labels[k] for k in match_markers(model.markers, labels) if k >= 0]
    named = further_landmarks(model, labels, known)
    if named:
        model = replace(model, markers=(*model.markers, *named))
        text += f"; by landmark: {list_names([marker.name for marker in named])}"
    return model, [Note(f"{text}.", "inferred", "add_marker_set", code=SET_MATCHED)]


def _match_sets(model: Model, labels: Sequence[str]) -> list[tuple[float, tuple[Marker, ...], str, list[int]]]:
    """Return score, markers, name, and column of each marker among the labels, of all marker sets, the best first."""
    tried = []
    for name in list_marker_sets():
        try:
            markers = markers_from_set(model, name)
        except BorelliError:
            continue  # the set names bodies that this model does not have
        column = match_markers(markers, labels)
        count = len({k for k in column if k >= 0})
        # labels in common, as a fraction of all labels of both (Jaccard index)
        tried.append((count / (len(markers) + len(labels) - count), markers, name, column))
    return sorted(tried, key=lambda one: -one[0])


def _add_best_set(model: Model, labels: Sequence[str], first: str | None) -> tuple[Model, str, list[str]] | None:
    """Return the model with the best matching set, the set's name, and the labels found in other sets.

    None if no set has most of the labels.
    """
    tried = sorted(_match_sets(model, labels), key=lambda one: one[2] != first)
    if not tried:
        raise SettingsError(
            f"Model {model.name!r}: It has no markers, and not the bodies of any marker set "
            f"({list_names(list_marker_sets())}). Add markers of your own with add_marker_set."
        )
    _, markers, name, column = tried[0]
    matched = {k for k in column if k >= 0}
    if len(matched) < MIN_NAMES or len(matched) < MIN_MATCHED_FRACTION * min(len(markers), len(labels)):
        return None
    more: dict[int, Marker] = {}
    for _, other, _, at in tried[1:]:
        for marker, k in zip(other, at, strict=True):
            if k >= 0 and k not in matched and k not in more:
                more[k] = Marker(labels[k], marker.body, marker.position)
    marked = add_marker_set(model, name)
    return replace(marked, markers=(*marked.markers, *more.values())), name, [labels[k] for k in more]


def choose_frames(
    model: Model,
    recordings: Sequence[Recording],
    static: Recording | None,
    frames: int,
    held_out: int,
    functional: Sequence[Recording] = (),
    weights: FrameWeights = UNTIED_WEIGHTS,
) -> tuple[tuple[FrameGroup, ...], tuple[Note, ...]]:
    """Return frames spread evenly over the recordings, with poses of the given model; every other one is held out.

    `frames` and `held_out` are numbers in all; at most as many are held out as fitted. The static trial is one frame;
    functional trials have twice as many frames, none held out.
    """
    groups: list[FrameGroup] = []
    notes: list[Note] = []
    for recording in recordings:
        own, test = _pose_frames(model, recording, -(-frames // len(recordings)), held_out // len(recordings))
        groups.append(replace(own, weight=min(1.0, weights.motion / len(recordings) / len(own.q))))
        if len(test.q):
            groups.append(test)
    for recording in functional:
        own, _ = _pose_frames(model, recording, -(-2 * frames // len(functional)), 0)
        more_range = max(1.0, _hip_spread(model, own.q) / WALKING_SPREAD) ** 2
        groups.append(replace(own, weight=min(1.0, more_range * weights.motion / len(functional) / len(own.q))))
    if static is not None:
        group, more = static_frame(model, static, weights)
        groups.append(group)
        notes += more
    return tuple(groups), tuple(notes)


def _hip_spread(model: Model, q: Array) -> float:
    """Return the standard deviation [rad] of hip flexion or adduction, the smaller, of the leg that moves less."""
    names = [c.name for c in model.coordinates]
    sides = [
        [names.index(f"hip_{move}_{side}") for move in ("flexion", "adduction")]
        for side in "rl"
        if f"hip_flexion_{side}" in names
    ]
    return min((float(q[:, side].std(axis=0).min()) for side in sides), default=0.0)


def _pose_frames(model: Model, recording: Recording, frames: int, held_out: int) -> tuple[FrameGroup, FrameGroup]:
    """Return frames of a recording to fit, and to hold out, with poses of the given model."""
    count = count_visible(model, recording)
    good = np.flatnonzero(count >= max(MIN_VISIBLE_MARKERS, 0.5 * count.max(initial=0)))
    if not len(good):
        raise SettingsError(
            f"Recording {recording.name!r}: Fewer than {MIN_VISIBLE_MARKERS} of the model's markers are visible in "
            "every frame. Check the markers with `borelli doctor`."
        )
    windows = _windows(good, recording)
    good = np.concatenate(windows)
    thinned = problem_of_all_markers(model, recording.with_data(recording.data.isel(time=good)))
    ends = np.cumsum([len(window) for window in windows])
    parts = [thinned.select(slice(end - len(one), end)) for end, one in zip(ends, windows, strict=True)]
    q = np.concatenate([solve_framewise(part)[0] for part in parts])
    fitted, test = spread_frames(len(good), frames, held_out)
    return FrameGroup(thinned.select(fitted), q[fitted]), FrameGroup(thinned.select(test), q[test], fitted=False)


def _windows(good: NDArray[np.int64], recording: Recording) -> list[NDArray[np.int64]]:
    """Return the frames that are posed one after the other: all of a trial, or those of windows of a long one.

    Evenly spread frames of a long trial would be too far apart to start a pose from the one before it.
    """
    if recording.frames <= LONG_TRIAL:
        return [good[:: -(-len(good) // MAX_POSED_FRAMES)]]
    count = MAX_POSED_FRAMES // WINDOWS
    step = max(1, round(WINDOW_DURATION * recording.rate / count))
    starts = np.linspace(0, max(0, len(good) - count * step), WINDOWS).astype(int)
    return [good[start : start + count * step : step] for start in starts]


def count_visible(model: Model, recording: Recording) -> NDArray[np.int64]:
    """Return how many of the model's markers are visible in each frame; a part of a long recording at a time."""
    parts = [recording.data.isel(time=slice(a, a + LONG_TRIAL)) for a in range(0, recording.frames, LONG_TRIAL)]
    counts = [(make_ik_problem(model, recording.with_data(part)).weight > 0.0).sum(axis=1) for part in parts]
    return np.concatenate(counts) if counts else np.zeros(0, np.int64)


def spread_frames(count: int, frames: int, held_out: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return indices of frames to fit, evenly spread from the first to the last, and to hold out, between them."""
    held_out = min(held_out, frames - 1)
    fitted = np.unique(np.round(np.linspace(0, count - 1, min(frames, count))).astype(np.int64))
    between = np.unique((fitted[:-1] + fitted[1:]) // 2)
    between = between[~np.isin(between, fitted)]
    if 0 < held_out < len(between):
        between = between[np.unique(np.round(np.linspace(0, len(between) - 1, held_out)).astype(np.int64))]
    return fitted, between if held_out > 0 else between[:0]


def problem_of_all_markers(model: Model, recording: Recording) -> IkProblem:
    """Return the inverse kinematics problem with all the model's markers; those not recorded have no weight."""
    # no prior of the trunk: repeated in every frame it would count as evidence for the zeros of its angles
    springs = {c.name: POSE_STIFFNESS for c in model.coordinates if c.name not in root_coordinates(model)}
    problem = make_ik_problem(model, recording, pose_stiffness=springs)
    at = [[m.name for m in model.markers].index(marker.name) for marker in problem.markers]
    frames = len(problem.target)
    target, weight = np.zeros((frames, len(model.markers), 3)), np.zeros((frames, len(model.markers)))
    target[:, at], weight[:, at] = problem.target, problem.weight
    points = marker_points(model, model.markers)
    return replace(problem, markers=model.markers, points=points, target=target, weight=weight)


def static_frame(
    model: Model, static: Recording, weights: FrameWeights = UNTIED_WEIGHTS
) -> tuple[FrameGroup, list[Note]]:
    """Return the static trial as one frame, with stiff springs on coordinates of limbs near neutral; and notes."""
    measured = static.data["marker_position"].values
    column = match_markers(model.markers, static.markers)
    used = [k for k in column if k >= 0]
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # markers that are never visible
        # means and lengths do not depend on the axes of the lab, as medians along them would
        drift = np.sqrt(np.nanvar(measured[:, used], axis=0).sum(axis=-1))
        mean = np.nanmean(measured, axis=0)
    moving = [static.markers[k] for k, s in zip(used, drift, strict=True) if s > MAX_STATIC_DRIFT]
    if len(moving) > len(used) // 2:
        raise SettingsError(
            f"Static trial {static.name!r}: The subject moves ({list_names(moving)} vary by more than "
            f"{1000 * MAX_STATIC_DRIFT:g} mm). Crop it to where the subject stands still."
        )
    at = np.array([mean[k] if k >= 0 else [np.nan] * 3 for k in column]) @ to_model_axes(model).T
    visible = (
        np.isfinite(at).all(axis=-1)
        & (at != 0.0).any(axis=-1)
        & ~np.isin([static.markers[k] if k >= 0 else "" for k in column], moving)
    )
    target, weight = np.where(visible[:, None], at, 0.0)[None], (visible * MARKER_STIFFNESS)[None]
    problem = replace(problem_of_all_markers(model, static), target=target, weight=weight)
    q, _ = solve_framewise(problem)
    free, springs = problem.tree.free, problem.rest_springs
    neutral = _neutral_coordinates(model, q[0])
    stiff = np.array([neutral[model.coordinates[i].name] for i in free]) & (springs.stiffness > 0.0)
    # the weight of the frame is that of its markers, not of the pose
    stiffness = np.where(stiff, POSE_STIFFNESS / weights.standing_sd**2 / weights.static, springs.stiffness)
    others = [model.coordinates[i].name for i in free[~stiff & (springs.stiffness > 0.0)]]
    problem = replace(problem, rest_springs=springs._replace(stiffness=stiffness))
    text = f"The static trial {static.name!r} is assumed to be the neutral pose within "
    text += f"{np.degrees(weights.standing_sd):.0f} degrees"
    text += f", except for {list_names(others)}." if others else "."
    return FrameGroup(problem, q, weight=weights.static), [Note(text, "inferred", code="static_pose")]


def _neutral_coordinates(model: Model, q: Array) -> dict[str, bool]:
    """Return whether each coordinate rotates a limb that is near neutral throughout: raised arms move collars too."""
    joints = [joint for joint in model.joints if not joint.closes_loop]
    own = {joint.child: joint for joint in joints}
    parents = [joint.parent for joint in joints]
    value = dict(zip((c.name for c in model.coordinates), q, strict=True))

    def first(joint: Joint) -> str:
        """Return the joint at which the limb leaves a body with several joints."""
        while parents.count(joint.parent) == 1 and joint.parent in own:
            joint = own[joint.parent]
        return joint.name

    near: dict[str, bool] = {}
    limb = {joint.name: first(joint) for joint in joints}
    for joint in joints:
        angles = [abs(value[c.name] - c.default) for c in joint.coordinates if c.rotational]
        near[limb[joint.name]] = near.get(limb[joint.name], True) and all(a < MAX_NEUTRAL_ANGLE for a in angles)
    return {c.name: c.rotational and near[limb[joint.name]] for joint in joints for c in joint.coordinates}
