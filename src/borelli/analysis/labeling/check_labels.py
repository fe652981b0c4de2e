"""Check of labels by geometry: whether markers lie where the landmarks of their labels are on a body.

The generic human is posed with the labels as they are, and with left and right swapped. Two labels are swapped if
swapping them back brings both markers much nearer to their places on the body. Markers of one cluster are never
compared (geometry does not show their numbers), and pairs at the wrist and hand give warnings only, because the
forearm may have been rotated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from borelli.analysis.labeling.generic_body import HEIGHT, Places, Poses, PoseSearch, generic_model
from borelli.analysis.labeling.posing import (
    WIDTHS,
    HeightPrior,
    Posing,
    fit_poses,
    make_starts,
    mean_squared_distances,
)
from borelli.analysis.labeling.upright_frames import choose_upright_frames
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.landmark_atlas import MarkerLandmark, find_in_atlas
from borelli.numerics.vectors import Array
from borelli.recording.landmarks import visible

FRAMES = 7
HEADINGS = 8
MIN_MARKERS, MAX_MARKERS = 6, 400
"""Numbers of markers with a known landmark with which a body is posed."""
MIN_SEGMENTS = 3
"""Segments on which they must be."""
NEEDED = f"needed: {MIN_MARKERS} to {MAX_MARKERS} on at least {MIN_SEGMENTS}"
MIN_GAIN = 0.06
"""[m] A swap must reduce the sum of squared distances by more than the square of this."""
MAX_RATIO = 0.6
"""Largest ratio of the sums of squared distances after and before a swap."""
MAX_SWAPPED_DISTANCE = 0.2
"""[m] Largest distance of two markers from their places after a swap: beyond it, swapping does not explain them.

Markers of clusters are within 60 to 80 mm (SD) of their places along the bone; 0.2 m is 2.5 times that. The median over
frames is compared: in fast movement the posed body is lost in some of them.
"""
SIDE_RATIO = 0.75
"""Ratio of mean distances with left and right swapped to those as labeled, below which all sides are swapped."""
LIMBS = {
    "the body": ("head", "torso", "pelvis", "upper_arm", "forearm", "hand", "thigh", "shank", "foot"),
    "the arms": ("upper_arm", "forearm", "hand"),
    "the legs": ("thigh", "shank", "foot"),
}
"""Segments whose sides may be swapped together."""
LIMB_ACTIONS = {
    "the body": "borelli clean --swap-sides, or check that no axis of the file is mirrored",
    "the arms": "swap the labels of left and right arm (--markers map.toml)",
    "the legs": "swap the labels of left and right leg (--markers map.toml)",
}
MAX_RIGID_SD = 0.025
"""[m] Standard deviation of the distance of two markers of one body, above which one of them is elsewhere."""
MIN_RIGID_MATES = 4
"""Markers of one body, from which on one that is not rigid with the others is recognized."""
MAX_RIGID_FRAMES = 400
"""Frames in which distances are compared."""
TWIN_WIDTHS = 6
"""Widths, the last ones, with which poses without a pair of markers are fitted."""
UNCERTAIN_SEGMENTS = ("forearm", "hand")
"""Segments whose rotation about their axis is not known: swaps within them are warnings."""


@dataclass(frozen=True)
class LabelFinding:
    """Label that contradicts geometry.

    Attributes:
        code: "left_right_labels" (sides of the body or of limbs), "swapped_labels" (two labels), "not_rigid" (a marker
            that moves against its segment).
        labels: Labels concerned.
        evidence: Values that support it.
        action: What to do.
        severity: "error" or "warning".
    """

    code: str
    labels: tuple[str, ...]
    evidence: str
    action: str
    severity: str = "error"


@dataclass(frozen=True)
class LabelCheck:
    """Result of a check of labels.

    Attributes:
        findings: Contradictions between labels and geometry; empty if there are none.
        checked: Labels whose positions were compared with a body.
        distance: Mean distance [m] between markers and their places on the posed body; NaN if none was posed.
        height: Height [m] of the posed body; NaN if none was posed.
        reason: Why no body was posed; "" if one was.
    """

    findings: tuple[LabelFinding, ...]
    checked: tuple[str, ...]
    distance: float
    height: float
    reason: str = ""


def check_labels(points: Array, markers: Sequence[MarkerLandmark | None], height: float = np.nan) -> LabelCheck:
    """Check by geometry whether markers lie where their labels state.

    Args:
        points: Marker positions (frames, markers, 3) [m], z up; NaN where missing.
        markers: Landmark and side of each marker; None if unknown.
        height: Height of the subject [m], if known.

    Returns:
        Findings with evidence and remedy.
    """
    ensure_compiled()
    columns, places = labeled_places(markers)
    known = [i for i, column in enumerate(columns) if visible(points[:, column]).any()]
    columns, places = [columns[i] for i in known], places.select(known)
    if not MIN_MARKERS <= len(columns) <= MAX_MARKERS or len(set(places.segment)) < MIN_SEGMENTS:
        reason = f"{len(columns)} markers on {len(set(places.segment))} segments have a known landmark"
        return LabelCheck((), (), np.nan, np.nan, f"{reason} ({NEEDED})")
    labels = tuple(marker.label for marker in (markers[c] for c in columns) if marker is not None)
    own = points[:, columns]
    frames = choose_upright_frames(own, FRAMES)
    if not len(frames):
        return LabelCheck((), (), np.nan, np.nan, "no frame has enough visible markers")
    prior = HeightPrior(height, 0.03) if np.isfinite(height) else HeightPrior()
    posing = pose_labeled(own[frames], places, prior)
    findings, places, posing = _swapped_sides(own[frames], labels, places, posing, prior)
    findings += _swapped_labels(own[frames], labels, places, posing)
    findings += _moving_markers(own, labels, places)
    return LabelCheck(tuple(findings), labels, float(posing.score[0]), HEIGHT * float(posing.poses.scale[0]))


def labeled_places(markers: Sequence[MarkerLandmark | None]) -> tuple[list[int], Places]:
    """Return the columns of the markers that have a position on the generic human, and their places."""
    model = generic_model()
    found = [
        (i, one)
        for i, marker in enumerate(markers)
        if marker is not None and (one := find_in_atlas(marker.landmark, marker.side, marker.kind)) is not None
    ]
    atlas = [one for _, one in found]
    places = Places(
        tuple(one.name for one in atlas),
        tuple(one.side for one in atlas),
        tuple(one.kind for one in atlas),
        tuple(one.body for one in atlas),
        np.array([one.position(model) for one in atlas]).reshape(-1, 3),
        np.zeros(len(atlas)),
    )
    return [i for i, _ in found], places


def _swapped_sides(
    points: Array, labels: Sequence[str], places: Places, posing: Posing, prior: HeightPrior
) -> tuple[list[LabelFinding], Places, Posing]:
    """Compare the labels with those of swapped sides, of the whole body and of limbs; return the best with findings."""
    findings = []
    for limbs, segments in LIMBS.items():
        # a marker that is missing in the posed frames has no distance
        changed = [
            i
            for i, segment in enumerate(places.segment)
            if segment in segments and places.side[i] != "middle" and np.isfinite(posing.distance[0, i])
        ]
        if not changed:
            continue
        swapped = swap_place_sides(places, segments)
        other = pose_labeled(points, swapped, prior)
        before, after = (float(np.minimum(one.distance[0, changed], 1.0).mean()) for one in (posing, other))
        if after < SIDE_RATIO * before and other.score[0] < posing.score[0]:
            evidence = (
                f"markers of {limbs} are {1e3 * before:.0f} mm from their places on a body as labeled, "
                f"{1e3 * after:.0f} mm with left and right swapped"
            )
            names = tuple(labels[i] for i in changed)
            findings.append(LabelFinding("left_right_labels", names, evidence, LIMB_ACTIONS[limbs]))
            places, posing = swapped, other
    return findings, places, posing


def swap_place_sides(places: Places, segments: Collection[str]) -> Places:
    """Return the places of the same landmarks with left and right swapped on these segments."""
    other = {"left": "right", "right": "left", "middle": "middle"}
    sides = [other[side] if part in segments else side for part, side in zip(places.segment, places.side, strict=True)]
    names = zip(places.landmark, sides, places.kind, strict=True)
    return labeled_places([MarkerLandmark("", name, side, kind) for name, side, kind in names])[1]


def _moving_markers(points: Array, labels: Sequence[str], places: Places) -> list[LabelFinding]:
    """Return markers whose distances from most others of their body are not steady: they are elsewhere."""
    findings = []
    step = max(1, len(points) // MAX_RIGID_FRAMES)
    for body in dict.fromkeys(places.body):
        mates = [i for i, name in enumerate(places.body) if name == body]
        if len(mates) < MIN_RIGID_MATES:
            continue
        own = points[::step, mates]
        distance = np.linalg.norm(own[:, :, None] - own[:, None], axis=-1)
        enough = np.isfinite(distance).sum(axis=0) >= 3
        sd = np.where(enough, np.nanstd(np.where(enough, distance, 0.0), axis=0), 0.0)
        loose = (sd > MAX_RIGID_SD).sum(axis=1)
        worst = int(loose.argmax())
        # one marker moves against most others, which are rigid among themselves
        if 2 * loose[worst] > len(mates) - 1 and np.delete(loose, worst).max() <= 1:
            evidence = f"its distances from other markers of {body} vary by {1e3 * np.median(sd[worst]):.0f} mm (SD)"
            label = labels[mates[worst]]
            text = f"{label}: {evidence}"
            findings.append(LabelFinding("not_rigid", (label,), text, "borelli markers FILE", "warning"))
    return findings


def pose_labeled(points: Array, places: Places, prior: HeightPrior) -> Posing:
    """Pose the generic human to points (frames, markers, 3) whose places are given; return the best start."""
    search = PoseSearch(places)
    headings = np.arange(HEADINGS) * 2.0 * np.pi / HEADINGS
    starts = make_starts(points, places, headings)
    given = np.arange(len(places.landmark))
    rough = fit_poses(search, points, starts, places, given, prior, WIDTHS[:6])
    kept = np.argsort(rough.score, kind="stable")[:3]
    posing = fit_poses(search, points, rough.poses.select(kept), places, given, prior, WIDTHS[6:])
    return posing.select(np.argsort(posing.score, kind="stable")[:1])


def _swapped_labels(points: Array, labels: Sequence[str], places: Places, posing: Posing) -> list[LabelFinding]:
    """Return the pairs of labels that fit much better when they are swapped, the largest gain first."""
    search, seen = PoseSearch(places), visible(points)
    filled = np.where(seen[..., None], points, 0.0)
    positions = search.place_positions(posing.poses)[0]
    squared = mean_squared_distances(positions, filled, seen, 1.0)
    pairs = [
        (*_sums_before_and_after(squared, i, k), i, k, positions)
        for i, k in combinations(range(len(labels)), 2)
        if not _same_cluster(places, i, k)
    ]
    twins = _twins(places)
    for (i, k), pose in zip(twins, _poses_without(points, places, posing, twins), strict=True):
        positions = search.place_positions(pose)[0]
        squared = mean_squared_distances(positions, filled, seen, 1.0)
        pairs.append((*_sums_before_and_after(squared, i, k), i, k, positions))
    findings, used = [], set[int]()
    for before, after, i, k, positions in sorted(pairs, key=lambda pair: (pair[1] - pair[0], *pair[2:4])):
        better = before - after > MIN_GAIN**2 and after < MAX_RATIO * before
        if not better or {i, k} & used:
            continue
        swapped = _median_distance(points, positions, (i, k), (k, i))
        if swapped < MAX_SWAPPED_DISTANCE:
            used |= {i, k}
            labeled = _median_distance(points, positions, (i, k), (i, k))
            findings.append(_swap_finding(places, labels, (i, k), labeled, swapped))
    return findings


def _median_distance(points: Array, positions: Array, markers: tuple[int, int], places: tuple[int, int]) -> float:
    """Return the distance [m] of two markers from places: RMS of both, median over the frames that show one of them."""
    squared = ((points[:, markers] - positions[:, places]) ** 2).sum(axis=-1)
    seen = np.isfinite(squared)
    mean = np.where(seen, squared, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    return float(np.sqrt(np.median(mean[seen.any(axis=1)]))) if seen.any() else np.inf


def _sums_before_and_after(squared: Array, i: int, k: int) -> tuple[float, float]:
    """Return the sums of squared distances (points, places) [m^2] of two markers as labeled, and swapped."""
    return float(squared[i, i] + squared[k, k]), float(squared[i, k] + squared[k, i])


def _swap_finding(
    places: Places, labels: Sequence[str], markers: tuple[int, int], labeled: float, swapped: float
) -> LabelFinding:
    i, k = markers
    evidence = (
        f"{labels[i]} and {labels[k]} are {1e3 * labeled:.0f} mm from their places on the body, "
        f"{1e3 * swapped:.0f} mm if swapped"
    )
    near = places.side[i] == places.side[k] and {places.segment[i], places.segment[k]} <= set(UNCERTAIN_SEGMENTS)
    action = f'swap_markers(recording, "{labels[i]}", "{labels[k]}")'
    pair = (labels[i], labels[k])
    return LabelFinding("swapped_labels", pair, evidence, action, "warning" if near else "error")


def _twins(places: Places) -> list[tuple[int, int]]:
    """Return the left and right markers of landmarks that occur once on each side."""
    names = list(zip(places.landmark, places.kind, places.side, strict=True))
    lefts = [(i, (name, kind, "right")) for i, (name, kind, side) in enumerate(names) if side == "left"]
    return [(i, names.index(other)) for i, other in lefts if names.count(names[i]) == names.count(other) == 1]


def _poses_without(points: Array, places: Places, posing: Posing, pairs: Sequence[tuple[int, int]]) -> list[Poses]:
    """Return poses fitted without each pair of markers: swapped ones cannot rotate their segment to where they are."""
    if not pairs:
        return []
    given = np.tile(np.arange(len(places.landmark)), (len(pairs), 1))
    for row, pair in zip(given, pairs, strict=True):
        row[list(pair)] = -1
    starts = posing.poses.select([0] * len(pairs))
    fitted = fit_poses(PoseSearch(places), points, starts, places, given, widths=WIDTHS[-TWIN_WIDTHS:])
    return [fitted.poses.select([i]) for i in range(len(pairs))]


def _same_cluster(places: Places, i: int, k: int) -> bool:
    loose = ("cluster", "wand")
    same_body = places.body[i] == places.body[k]
    return same_body and (places.landmark[i] == places.landmark[k] or {places.kind[i], places.kind[k]} <= set(loose))
