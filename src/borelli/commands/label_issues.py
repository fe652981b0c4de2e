"""Issues that geometry shows: labels that contradict the positions of markers, and points without a name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from borelli.errors import list_names

if TYPE_CHECKING:
    from borelli.recording.quality_checks import Issue
    from borelli.recording.recording import Recording

TEXTS = {
    "left_right_labels": "Left and right are swapped in the labels.",
    "swapped_labels": "Two labels are swapped.",
    "not_rigid": "A marker is not fixed to the segment of its label.",
    "labels_by_geometry": "Labels are read by geometry.",
    "objects": "Points are on an object.",
}
"""Findings of the check of labels, in words."""
UNCERTAIN = "Labels name no landmarks, and geometry does not show them with certainty."


def label_issues(recording: Recording, known: Sequence[Issue] = ()) -> list[Issue]:
    """Return the issues of labels that geometry shows, without those of markers that `known` issues name already.

    Labels are compared with a generic body in about half a second. Recordings whose labels name no landmarks are
    labeled by geometry, which takes ten to thirty seconds.
    """
    if "marker_position" not in recording.data:
        return []
    sides_known = any(issue.code == "left_right_labels" for issue in known)
    pairs = [set(issue.where.split(", ")) for issue in known if issue.code == "left_right_labels"]
    new = [
        issue
        for issue in _contradictions(recording)
        if not (issue.code == "left_right_labels" and sides_known) and set(issue.where.split(", ")) not in pairs
    ]
    return [*new, *_geometric_names(recording)]


def _contradictions(recording: Recording) -> Iterator[Issue]:
    from borelli.analysis.labeling.recording_labels import find_label_problems
    from borelli.recording.quality_checks import Issue

    for finding in find_label_problems(recording):
        text = TEXTS.get(finding.code, "A label contradicts geometry.")
        action = finding.action
        if finding.code == "swapped_labels":
            action = f"borelli clean {_file(recording)} OUT --swap {','.join(finding.labels)}, or {action}"
        where = list_names(finding.labels)
        yield Issue(finding.code, text, where, finding.evidence, action, finding.severity)


def _geometric_names(recording: Recording) -> Iterator[Issue]:
    """Yield what `analyze` finds by geometry for labels: notes, or the error with which it stops."""
    from borelli.analysis.labeling.recording_labels import label_notes
    from borelli.recording.quality_checks import Issue

    action = f"borelli markers {_file(recording)} --write map.toml, --markers map.toml"
    where = list_names(recording.markers)
    for note in label_notes(recording):
        failed = note.kind == "problem"
        text = UNCERTAIN if failed else TEXTS[note.code]
        evidence = note.text.removeprefix(f"{recording.name}: ")
        yield Issue(note.code, text, where, evidence, action, "error" if failed else "note")


def _file(recording: Recording) -> str:
    return shlex.quote(str(recording.path or "FILE"))
