"""Muscle results by group and side: activations, forces and joint contact forces over time."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.muscle_forces import MuscleForces
from borelli.export.clinical_names import split_side
from borelli.export.gait_curves import SIDES, Curve

Array = NDArray[np.float64]

GROUPS = {
    "soleus": "sol",
    "gastrocnemius": "(med|lat|medial|lateral)?gas",
    "tibialis anterior": "tib(ialis)?ant",
    "tibialis posterior": "tib(ialis)?post",
    "peroneals": "per(oneus)?(brev|long|tert)|fibularis",
    "vasti": "vas",
    "rectus femoris": "rec(t|tus)?fem",
    "hamstrings": "ham|semi(mem|ten)|b(i)?f(em)?lh|bicepsfemorislong",
    "gluteus maximus": "glu?t?(eus)?max",
    "gluteus medius": "glu?t?(eus)?med",
    "iliopsoas": "iliopsoas|iliacus|psoas",
    "adductors": "add(uctor)?(brev|long|mag)",
}
"""Groups of leg muscles, and how the names of their muscles begin in common models, in lower case and without "_":
those of Delp et al. (1990), Rajagopal et al. (2016) and their descendants."""
MIN_GROUPS = 3
"""Groups of both sides that a model must have; the largest muscles of other models are shown, each by itself."""
CONTACT_JOINTS = {"hip": ("hip",), "knee": ("knee", "walker_knee"), "ankle": ("ankle",)}
"""Joints whose contact forces are shown, with their names in common models."""


class MuscleGroup(NamedTuple):
    """Muscles of a group by side, as columns of the dataset."""

    title: str
    columns: dict[str, list[int]]


def muscle_groups(muscles: MuscleForces) -> tuple[MuscleGroup, ...]:
    """Return the groups of leg muscles; of models with other names, the muscles with the largest peak forces."""
    names = [str(name) for name in muscles.data["muscle"].values]
    sides = [split_side(name) for name in names]
    groups = []
    for title, pattern in GROUPS.items():
        own = {side: [k for k, (stem, s) in enumerate(sides) if s == side and _begins(pattern, stem)] for side in SIDES}
        groups.append(MuscleGroup(title, {side: columns for side, columns in own.items() if columns}))
    groups = [group for group in groups if group.columns]
    return tuple(groups) if len(groups) >= MIN_GROUPS else _largest(muscles, sides)


def _begins(pattern: str, stem: str) -> bool:
    return re.match(pattern, stem.lower().replace("_", "")) is not None


def _largest(muscles: MuscleForces, sides: list[tuple[str, str]]) -> tuple[MuscleGroup, ...]:
    """Return the muscles with the largest peak forces, both sides of a muscle together; one without side is "right"."""
    force = np.nan_to_num(muscles.data["muscle_force"].values[known_frames(muscles)])
    peaks = force.max(axis=0, initial=0.0)
    by_stem: dict[str, dict[str, list[int]]] = {}
    for k in np.argsort(-peaks, kind="stable"):
        stem, side = sides[k]
        by_stem.setdefault(stem, {}).setdefault(side or SIDES[0], []).append(int(k))
    return tuple(MuscleGroup(stem.replace("_", " "), own) for stem, own in list(by_stem.items())[: len(GROUPS)])


def known_frames(muscles: MuscleForces) -> NDArray[np.bool_]:
    """Return the frames with known ground reaction force, where muscle forces are evaluated; all if there are none."""
    known = np.asarray(muscles.torques.grf_known, bool)
    return known if known.any() else np.ones(len(known), bool)


def activation_curves(muscles: MuscleForces) -> tuple[Curve, ...]:
    """Return the activation of each group: the mean of its muscles, weighted by maximum isometric force."""
    strength = np.array([muscle.max_isometric_force for muscle in muscles.torques.motion.model.muscles])
    values = muscles.data["muscle_activation"].values
    return tuple(
        _curve(group, "activation", "0 to 1", {
            side: np.average(values[:, own], axis=1, weights=strength[own]) for side, own in group.columns.items()
        })
        for group in muscle_groups(muscles)
    )  # fmt: skip


def emg_curves(muscles: MuscleForces) -> dict[str, Curve]:
    """Return the EMG envelope of each group that has one, by the title of its curve: the mean of its muscles."""
    if "emg_envelope" not in muscles.data:
        return {}
    values = muscles.data["emg_envelope"].values
    recorded = np.isfinite(values).any(axis=0)
    curves = []
    for group in muscle_groups(muscles):
        own = {side: [k for k in columns if recorded[k]] for side, columns in group.columns.items()}
        sides = {side: values[:, columns].mean(axis=1) for side, columns in own.items() if columns}
        if sides:
            curves.append(_curve(group, "emg", "0 to 1", sides))
    return {curve.title: curve for curve in curves}


def force_curves(muscles: MuscleForces) -> tuple[Curve, ...]:
    """Return the force of each group [N]: the sum of its muscles, along their tendons."""
    values = muscles.data["muscle_force"].values
    return tuple(
        _curve(group, "force", "N", {side: values[:, own].sum(axis=1) for side, own in group.columns.items()})
        for group in muscle_groups(muscles)
    )


def contact_curves(muscles: MuscleForces) -> tuple[Curve, ...]:
    """Return the magnitude of the contact forces of hip, knee and ankle [body weights]."""
    joints = [str(name) for name in muscles.data["joint"].values]
    force = np.linalg.norm(muscles.data["joint_contact_force"].values, axis=2) / body_weight(muscles)
    curves = []
    for name, stems in CONTACT_JOINTS.items():
        both = {}
        for side in SIDES:
            found = [f"{stem}_{end}" for stem in stems for end in (side[0], side) if f"{stem}_{end}" in joints]
            if found:
                both[side] = force[:, joints.index(found[0])]
        if both:
            title = f"{name.capitalize()} contact force"
            curves.append(Curve(f"{name}_contact_force", title, "BW", "contact", *map(both.get, SIDES)))
    return tuple(curves)


def body_weight(muscles: MuscleForces) -> float:
    """Return the weight of the body [N]."""
    model = muscles.torques.motion.model
    return model.mass * float(np.linalg.norm(model.gravity))


def _curve(group: MuscleGroup, kind: str, unit: str, sides: dict[str, Array]) -> Curve:
    title = group.title[:1].upper() + group.title[1:]
    return Curve(f"{group.title.replace(' ', '_')}_{kind}", title, unit, kind, *map(sides.get, SIDES))
