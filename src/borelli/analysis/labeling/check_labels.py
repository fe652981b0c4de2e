"""Check of labels by geometry: whether markers lie where the landmarks of their labels are on a body.

The generic human is posed with the labels as they are, and with left and right swapped. Two labels are swapped if
swapping them back brings both markers much nearer to their places on the body. Markers of one cluster are never
compared (their numbers mean nothing to the body), and pairs at the wrist and hand give warnings only, because the
forearm may have been rotated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from borelli.analysis.labeling.generic_body import HEIGHT, Places, PoseSearch, generic_model
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
MIN_MARKERS = 6
"""Markers with a known landmark without which a body cannot be posed."""
MIN_SEGMENTS = 3
"""Segments on which they must be."""
MIN_GAIN = 0.06
"""[m] A swap must reduce the sum of squared distances by more than the square of this."""
MAX_RATIO = 0.6
"""Largest ratio of the sums of squared distances after and before a swap."""
SIDE_RATIO = 0.75
"""Ratio of mean distances with left and right swapped to those as labeled, below which all sides are swapped."""
MAX_RIGID_SD = 0.025
"""[m] Standard deviation of the distance of two markers of one segment, above which one of them is elsewhere."""
UNCERTAIN_SEGMENTS = ("forearm", "hand")
"""Segments whose rotation about their axis is not known: swaps within them are warnings."""


@dataclass(frozen=True)
class LabelFinding:
    """Label that contradicts geometry.

    Attributes:
        code: "left_right_labels" (all sides), "swapped_labels" (two labels), "not_rigid" (a marker that moves against
            its segment), "poor_fit" (the body does not fit the labels at all).
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
    if len(columns) < MIN_MARKERS or len(set(places.segment)) < MIN_SEGMENTS:
        reason = f"{len(columns)} markers on {len(set(places.segment))} segments have a known landmark"
        return LabelCheck((), (), np.nan, np.nan, f"{reason} (at least {MIN_MARKERS} on {MIN_SEGMENTS} are needed)")
    labels = tuple(marker.label for marker in (markers[c] for c in columns) if marker is not None)
    own = points[:, columns]
    frames = choose_upright_frames(own, FRAMES)
    if not len(frames):
        return LabelCheck((), (), np.nan, np.nan, "no frame has enough visible markers")
    prior = HeightPrior(height, 0.03) if np.isfinite(height) else HeightPrior()
    posing = pose_labeled(own[frames], places, prior)
    swapped = swap_place_sides(places)
    other = pose_labeled(own[frames], swapped, prior) if len(swapped.landmark) else posing
    findings = []
    if other.score[0] < SIDE_RATIO * posing.score[0]:
        evidence = (
            f"markers are {1e3 * posing.score[0]:.0f} mm from their places on a body as labeled, "
            f"{1e3 * other.score[0]:.0f} mm with left and right swapped"
        )
        action = "borelli clean --swap-sides, or check that no axis of the file is mirrored"
        findings.append(LabelFinding("left_right_labels", labels, evidence, action))
        places, posing = swapped, other
    findings += _swapped_labels(own[frames], labels, places, posing)
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
    names = ([getattr(one, key) for one in atlas] for key in ("name", "side", "kind", "body"))
    positions = np.array([one.position(model) for one in atlas]).reshape(-1, 3)
    sd = np.array([np.linalg.norm(one.sd) for one in atlas])
    return [i for i, _ in found], Places(*map(tuple, names), positions, sd, np.zeros(len(atlas)))  # type: ignore[arg-type]


def swap_place_sides(places: Places) -> Places:
    """Return the places of the same landmarks with left and right swapped."""
    other = {"left": "right", "right": "left", "middle": "middle"}
    names = zip(places.landmark, places.side, places.kind, strict=True)
    return labeled_places([MarkerLandmark("", name, other[side], kind) for name, side, kind in names])[1]


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
    positions = search.place_positions(posing.poses)[0]
    squared = mean_squared_distances(positions, np.where(seen[..., None], points, 0.0), seen, 1.0)
    pairs = []
    for i, k in combinations(range(len(labels)), 2):
        before, after = squared[i, i] + squared[k, k], squared[i, k] + squared[k, i]
        if before - after > MIN_GAIN**2 and after < MAX_RATIO * before and not _same_cluster(places, i, k):
            pairs.append((float(before - after), i, k, before, after))
    findings, used = [], set[int]()
    for _, i, k, before, after in sorted(pairs, reverse=True):
        if i in used or k in used:
            continue
        used |= {i, k}
        evidence = (
            f"{labels[i]} and {labels[k]} are {1e3 * np.sqrt(before / 2):.0f} mm from their places on the body, "
            f"{1e3 * np.sqrt(after / 2):.0f} mm if swapped"
        )
        near = places.side[i] == places.side[k] and {places.segment[i], places.segment[k]} <= set(UNCERTAIN_SEGMENTS)
        action = f'swap_markers(recording, "{labels[i]}", "{labels[k]}")'
        pair = (labels[i], labels[k])
        findings.append(LabelFinding("swapped_labels", pair, evidence, action, "warning" if near else "error"))
    return findings


def _same_cluster(places: Places, i: int, k: int) -> bool:
    loose = ("cluster", "wand")
    same_body = places.body[i] == places.body[k]
    return same_body and (places.landmark[i] == places.landmark[k] or {places.kind[i], places.kind[k]} <= set(loose))
