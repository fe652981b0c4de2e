"""Interpretation of all labels of a file together: each convention votes by how many of them it explains.

Labels alone are ambiguous: `FM1` is a metatarsal or a marker on the femur, `RKnee` a joint center or a marker on skin.
A convention that explains most labels of a file decides; where none does, words and codes known from all conventions
give a reading with a low certainty.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

from borelli.files.html_repr import fields_repr, fields_summary, summary_html, summary_repr
from borelli.recording.labels.conventions import (
    LEFT,
    MIDDLE,
    RIGHT,
    Convention,
    Meaning,
    load_conventions,
    midline_landmarks,
    read_own_label,
    usual_kind,
)
from borelli.recording.labels.spelling import SideSplit, clean_labels, normalize, split_sides
from borelli.recording.labels.words import CODES, QUALIFIED, qualify, read_words

MAX_LABELS = 10_000
"""Labels that are interpreted; the largest recordings have some hundreds."""
MIN_SURE = 0.9
"""Least certainty of a reading that is called sure."""
GRAMMAR_WEIGHT = 0.15
"""Weight of a reading from words and codes in the vote; a convention that explains all labels has 1."""
MAX_CONTEST = 0.5
"""Certainty of the next reading, as a fraction of the best, from which neither is used without further evidence."""
MIN_CERTAINTY = 0.5
"""Certainty of an undisputed reading with no weight of a convention."""
MIN_KEYPOINT_FRACTION = 0.3
"""Least fraction of labels that a convention of joints explains in a file of joints."""
OTHER_KIND_WEIGHT = 0.3
"""Factor of the votes of conventions of joints in a file of markers on skin, and the reverse."""
FULL_WEIGHT = 0.75
"""Weight of a reading from which its certainty is its fraction of the votes; a smaller weight caps it."""
MIN_AXES = 12
"""Least number of Plug-in Gait axes that are recognized as such: the same codes are markers elsewhere."""
SIDE_SCORES = {"word": 0.85, "first": 0.6, "last": 0.45, "second": 0.4, "none": 0.55}
"""Scores of the ways to state a side."""
TWIN_SCORE = 0.15
"""Added to a side whose other side is in the file, else subtracted."""
MIDLINE_PENALTY = 0.3
"""Subtracted for a side of a midline landmark, and for a missing side of another."""
NEIGHBORS = frozenset(
    frozenset(pair.split("-"))
    for pair in [
        "head-torso",
        "torso-pelvis",
        "torso-upper_arm",
        "upper_arm-forearm",
        "forearm-hand",
        "pelvis-thigh",
        "thigh-shank",
        "shank-foot",
    ]
)
"""Pairs of segments that share a joint, whose markers are near each other."""
LIMBS = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
MAX_UNSIDED = 0.8
"""Largest certainty of a reading on a limb whose side is not stated."""
ONE_SIDED = frozenset(("back_offset", "scapula"))
"""Landmarks that are marked on one side only: their side needs no counterpart."""

_UNNAMED = re.compile(
    r"[*#]?\d*|[ux]\d+|(?:pt|point|mkr|marker|uname\*?|unlabell?ed|unnamed|unknown|unidentified|trajectory|traj|noname|"
    r"new|none|nan|blank|ghost)[ _*-]*\d*",
    re.IGNORECASE,
)
_QUANTITY = re.compile(r"angle|moment|power|force|grf|centreofmass|centerofmass|velocity|accel|cop$")
_PROJECTED = re.compile(
    r"^v?[_. ]?mid(?:[_. ]|[rl]?(?:asis?|psis?|hips?|knees?|ankles?|elbows?|pelvis|shoulders?|epi|mal|[hka]jc)\b)|"
    r"proj(?:ection)?$|ground$|floor$|mean$",
    re.IGNORECASE,
)
_AXIS = re.compile(r"[lr]?(?:pel|trx|hed|fe|ti|fo|to|hu|ra|hn|cl)[oalp]")


@dataclass(frozen=True)
class LabelReading:
    """Meaning of one label.

    Attributes:
        label: Label in the file.
        landmark: Landmark; "" if the label means none.
        side: "left", "right" or "middle".
        segment: Segment of the landmark; "" if the label means none.
        kind: "landmark", "cluster", "wand", "virtual center", "joint keypoint", "unnamed", "quantity", "axis",
            "unused" (the user states that it means no landmark) or "unknown".
        certainty: Certainty, 0 to 1; sure from `MIN_SURE`.
        evidence: Conventions and words that support it.
        stem: The label without its side, for comparison with the label of the other side.
        others: Readings on other segments or sides, the likeliest first, with their certainties.
    """

    label: str
    landmark: str = ""
    side: str = MIDDLE
    segment: str = ""
    kind: str = "unknown"
    certainty: float = 0.0
    evidence: str = ""
    stem: str = ""
    others: tuple[tuple[Meaning, float], ...] = ()

    __repr__ = fields_repr

    @property
    def contested(self) -> bool:
        """Whether a reading on the other side, or on a segment that is not next to this one, is nearly as likely."""
        return any(
            certainty > MAX_CONTEST * self.certainty
            and (other.side != self.side or frozenset((other.segment, self.segment)) not in NEIGHBORS)
            for other, certainty in self.others
        )

    @property
    def sure(self) -> bool:
        """Whether the certainty suffices without further evidence."""
        return self.certainty >= MIN_SURE


@dataclass(frozen=True)
class LabelReadings:
    """Meanings of all labels of a file.

    Attributes:
        readings: One reading for each label.
        conventions: Conventions that explain labels, with the fraction that each explains, the largest first.
        keypoints: Whether the labels are those of joints, not of markers on skin.
        duplicates: Groups of labels that mean the same landmark on the same side.
    """

    readings: tuple[LabelReading, ...]
    conventions: tuple[tuple[str, float], ...]
    keypoints: bool
    duplicates: tuple[tuple[str, ...], ...]

    __repr__ = summary_repr
    _repr_html_ = summary_html
    _summary = fields_summary

    @property
    def known(self) -> tuple[LabelReading, ...]:
        """Readings that name a landmark."""
        return tuple(reading for reading in self.readings if reading.landmark)


def interpret_labels(
    labels: Sequence[str],
    descriptions: Sequence[str] | None = None,
    *,
    conventions: tuple[Convention, ...] | None = None,
) -> LabelReadings:
    """Return the meanings of all labels of a file.

    Args:
        labels: Labels of a recording.
        descriptions: Text for each label, read where the label itself is unknown.
        conventions: Conventions that vote. Default: all of the package.

    Examples:
        >>> from borelli.recording.labels.interpret import interpret_labels
        >>> reading = interpret_labels(["r knee", "l knee", "r mall", "l mall"]).readings[0]
        >>> reading.landmark, reading.side
        ('knee_lateral', 'right')
    """
    texts = None if descriptions is None else tuple(map(str, descriptions))
    names = tuple(map(str, labels[:MAX_LABELS]))
    return _interpret(names, texts, conventions or load_conventions(), _STATED.get())


Stated = tuple[tuple[str, Meaning | None], ...]
_STATED: ContextVar[Stated] = ContextVar("stated", default=())


@contextmanager
def stated_meanings(meanings: Mapping[str, Meaning | None]) -> Iterator[None]:
    """Let the user's meanings of labels replace what is read from them; None: the label means no landmark."""
    token = _STATED.set(tuple(meanings.items()))
    try:
        yield
    finally:
        _STATED.reset(token)


@lru_cache(maxsize=64)
def _interpret(
    labels: tuple[str, ...], descriptions: tuple[str, ...] | None, conventions: tuple[Convention, ...], stated: Stated
) -> LabelReadings:
    cleaned = clean_labels(labels)
    kinds = _set_aside(labels, cleaned)
    specified = {label: meaning for label in labels if (meaning := read_own_label(label))} | dict(stated)
    named = [i for i, kind in enumerate(kinds) if not kind and labels[i] not in specified]
    vote = _Vote([cleaned[i] for i in named], conventions)
    readings = [LabelReading(label, kind=kind or "unknown") for label, kind in zip(labels, kinds, strict=True)]
    for i in named:
        readings[i] = vote.read(labels[i], cleaned[i])
        if not readings[i].landmark and descriptions is not None and i < len(descriptions) and descriptions[i].strip():
            readings[i] = vote.read(labels[i], descriptions[i])
    for i, label in enumerate(labels):
        if label in specified:
            readings[i] = _specified(label, cleaned[i], specified[label])
    groups: dict[tuple[str, str], list[str]] = {}
    for reading in readings:
        if reading.kind in ("landmark", "joint keypoint"):
            groups.setdefault((reading.landmark, reading.side), []).append(reading.label)
    duplicates = tuple(tuple(group) for group in groups.values() if len(group) > 1)
    return LabelReadings(tuple(readings), vote.explained, vote.keypoints, duplicates)


def _specified(label: str, cleaned: str, meaning: Meaning | None) -> LabelReading:
    """Return the reading that the user states."""
    if meaning is None:
        return LabelReading(label, kind="unused", certainty=1.0, evidence="as specified")
    stem = next((s.stem for s in split_sides(cleaned) if s.side == meaning.side), normalize(cleaned))
    return LabelReading(label, *meaning[:2], meaning.segment, meaning.kind, 1.0, "as specified", stem)


def _set_aside(labels: Sequence[str], cleaned: Sequence[str]) -> list[str]:
    """Return the kinds of labels that name no landmark, "" for the others."""
    joined = [normalize(label) for label in cleaned]
    axes = [bool(_AXIS.fullmatch(name)) for name in joined]
    kinds = []
    for label, text, name, axis in zip(labels, cleaned, joined, axes, strict=True):
        if not name or _UNNAMED.fullmatch(text) or _UNNAMED.fullmatch(label.strip()):
            kinds.append("unnamed")
        elif _QUANTITY.search(name):
            kinds.append("quantity")
        elif axis and sum(axes) >= MIN_AXES:
            kinds.append("axis")
        else:
            # `RLFCv` next to `RLFC` was computed from it
            copied = text.endswith("v") and text[:-1] in cleaned
            kinds.append("virtual center" if copied or _PROJECTED.search(text) else "")
    return kinds


class _Vote:
    """Vote of conventions on the labels of a file."""

    def __init__(self, labels: Sequence[str], conventions: tuple[Convention, ...]) -> None:
        self.codes = _codes(conventions)
        self.present = frozenset(normalize(label) for label in labels)
        sides = Counter(split.side for label in labels for split in split_sides(label)[:1])
        self.one_sided = not any(s.twin in self.present for label in labels for s in split_sides(label)) and (
            max(sides[LEFT], sides[RIGHT]) >= 0.5 * len(labels)
        )
        meanings = [
            (one, {label: m for label in labels if (m := _lookup(one, label, self.present))}) for one in conventions
        ]
        count = max(1, len(labels))
        voting = [(one, len(found) / count, found) for one, found in meanings if found]
        voting.sort(key=lambda row: -row[1])
        self.voting = voting
        self.explained = tuple((one.name, fraction) for one, fraction, _ in voting)
        best = {kind: max((f for one, f, _ in voting if one.has_keypoints == kind), default=0.0) for kind in (0, 1)}
        self.keypoints = best[True] > max(best[False], MIN_KEYPOINT_FRACTION)

    def read(self, label: str, cleaned: str) -> LabelReading:
        """Return the reading of a label with the most votes."""
        weights: dict[Meaning, float] = defaultdict(float)
        supporters: dict[Meaning, list[str]] = defaultdict(list)
        for one, fraction, found in self.voting:
            if cleaned in found:
                weight = 1.0 if one.has_keypoints == self.keypoints else OTHER_KIND_WEIGHT
                weights[found[cleaned]] += weight * fraction**2
                supporters[found[cleaned]].append(one.name)
        guesses = self._guess(cleaned)
        for meaning, weight in guesses.items():
            weights[meaning] += weight
        if not weights:
            return LabelReading(label)
        groups: dict[tuple[str, str], float] = defaultdict(float)
        for meaning, weight in weights.items():
            groups[meaning.segment, meaning.side] += weight
        total = sum(groups.values())
        ranked = sorted(groups, key=lambda group: (-groups[group], group))

        def certainty(group: tuple[str, str]) -> float:
            cap = MIN_CERTAINTY + (1.0 - MIN_CERTAINTY) * min(1.0, groups[group] / FULL_WEIGHT)
            if group[0] in LIMBS and group[1] == MIDDLE:
                cap = min(cap, MAX_UNSIDED)
            return min(groups[group] / total, cap)

        def best(group: tuple[str, str]) -> Meaning:
            own = [m for m in weights if (m.segment, m.side) == group]
            return max(own, key=lambda m: (self._fits(m) * weights[m], weights[m], m))

        winner = best(ranked[0])
        stem = next((s.stem for s in split_sides(cleaned) if s.side == winner.side), normalize(cleaned))
        names = supporters[winner] or [name for m, own in supporters.items() if m[:2] == winner[:2] for name in own]
        evidence = ", ".join(names[:3]) if names else "words and codes"
        others = tuple((best(group), certainty(group)) for group in ranked[1:4])
        return LabelReading(
            label,
            winner.landmark,
            winner.side,
            winner.segment,
            winner.kind,
            certainty(ranked[0]),
            evidence,
            stem,
            others,
        )

    def _fits(self, meaning: Meaning) -> bool:
        """Return whether a meaning is of the file's kind: joint centers, or markers on skin."""
        return self.keypoints == (meaning.kind in ("joint keypoint", "virtual center"))

    def _guess(self, cleaned: str) -> Mapping[Meaning, float]:
        """Return readings from codes of all conventions and from words, with weights that add to the grammar's."""
        scored: dict[Meaning, float] = {}
        splits = split_sides(cleaned)
        paired = any(split.twin in self.present for split in splits)
        for split in splits:
            if paired and split.side == MIDDLE:
                continue  # `LK` next to `RK` is not a lateral knee without a side
            for landmark, kind, quality in self._landmarks(split):
                score = self._side_score(split, landmark) * quality
                meaning = Meaning(landmark, split.side, kind)
                scored[meaning] = max(scored.get(meaning, 0.0), score)
        best = max(scored.values(), default=0.0)
        if best <= 0.0:
            return {}
        close = {meaning: score**4 for meaning, score in scored.items() if score > 0.6 * best}
        total = sum(close.values())
        return {meaning: GRAMMAR_WEIGHT * score / total for meaning, score in close.items()}

    def _landmarks(self, split: SideSplit) -> list[tuple[str, str, float]]:
        """Return landmark, kind and quality of the readings of a stem: by code, by code without digits, by words."""
        plain = split.stem.rstrip("0123456789")
        known = self._by_code(split.stem, 1.0) or self._by_code(plain, 0.9)
        if known:
            return known
        landmark = read_words(split.words, self.keypoints)
        if landmark:
            return [(landmark, self._usual_kind(landmark), 0.8)]
        base, qualifier = qualify(plain, self.codes)
        return self._by_code(base, 0.7, qualifier)

    def _by_code(self, stem: str, quality: float, qualifier: str = "") -> list[tuple[str, str, float]]:
        found: Mapping[tuple[str, str], int] = self.codes.get(stem, {})
        most = max(found.values(), default=1)
        return [(QUALIFIED.get((name, qualifier), name), kind, quality * n / most) for (name, kind), n in found.items()]

    def _usual_kind(self, landmark: str) -> str:
        kind = usual_kind(landmark)
        return "joint keypoint" if self.keypoints and kind != "cluster" else kind

    def _side_score(self, split: SideSplit, landmark: str) -> float:
        score = SIDE_SCORES[split.position]
        midline = landmark in midline_landmarks()
        if split.side == MIDDLE:
            return score - (0.0 if midline else MIDLINE_PENALTY)
        if split.twin in self.present:
            score += TWIN_SCORE
        elif not self.one_sided and landmark not in ONE_SIDED:
            score -= TWIN_SCORE
        return score - (MIDLINE_PENALTY if midline else 0.0)


def _lookup(convention: Convention, label: str, present: frozenset[str]) -> Meaning | None:
    """Return what a label means in a convention: as it is spelled there, else with the same side and stem.

    A letter is a side only if the label of the other side is present.
    """
    exact = convention.exact.get(normalize(label))
    if exact is not None:
        return exact
    splits = (s for s in split_sides(label) if s.position in ("word", "none") or s.twin in present)
    return next((convention.stems[s.side, s.stem] for s in splits if (s.side, s.stem) in convention.stems), None)


@lru_cache(maxsize=128)
def _codes(conventions: tuple[Convention, ...]) -> Mapping[str, Counter[tuple[str, str]]]:
    """Return how many conventions give each stem each landmark and kind; a usual abbreviation counts as two."""
    codes: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for stem, landmark in CODES.items():
        codes[stem][landmark, usual_kind(landmark)] += 2
    for one in conventions:
        own = set()
        for (_, stem), meaning in one.stems.items():
            numbered = meaning.kind in ("cluster", "wand")
            own.add((stem.rstrip("0123456789") if numbered else stem, meaning.landmark, meaning.kind))
        for stem, landmark, kind in own:
            codes[stem][landmark, kind] += 1
    return codes
