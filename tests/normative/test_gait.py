"""Normative gait curves: the published tables at every speed, and the classes of speed."""

import csv

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.normative.gait import SPEEDS, normative_curve, relative_speed, speed_class

from ..shared_data import shared

COLUMNS = {
    "Pelvic Ant/Posterior Tilt": "pelvis_tilt", "Pelvic Up/Down Obliquity": "pelvis_obliquity",
    "Pelvic Int/External Rotation": "pelvis_rotation", "Hip Flex/Extension": "hip_flexion",
    "Hip Ad/Abduction": "hip_adduction", "Hip Int/External Rotation": "hip_rotation",
    "Knee Flex/Extension": "knee_flexion", "Foot Int/External Progression": "foot_progression",
}  # fmt: skip
ROUNDING = 0.006
"""The tables of the package have two decimals."""


@pytest.mark.data
def test_curves_are_those_of_the_table_at_every_speed():
    with shared("tables/schwartz2008_gait_curves.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == "Joint Rotations"]
    rows += [{**row, "variable": "ankle"} for row in rows if row["variable"] == "Ankle Dorsi/Plantarflexion"]
    names = COLUMNS | {"ankle": "ankle_dorsiflexion"}
    count = 0
    for row in rows:
        if row["variable"] in names:
            speed = {"VerySlow": "very slow", "VeryFast": "very fast"}.get(row["speed"], row["speed"].lower())
            curve = normative_curve(names[row["variable"]], speed)
            at = round(float(row["percent_gait_cycle"]))
            assert curve.mean[at] == pytest.approx(float(row["mean"]), abs=ROUNDING)
            assert curve.sd[at] == pytest.approx(float(row["sd"]), abs=ROUNDING)
            count += 1
    assert count == 9 * 5 * 51


def test_faster_walking_bends_hips_more():
    """Schwartz et al. (2008): the range of hip flexion grows with speed."""
    ranges = [np.ptp(normative_curve("hip_flexion", speed).mean) for speed in SPEEDS]
    assert ranges == sorted(ranges)


def test_classes_of_speed():
    # an adult with a leg of 0.9 m, for whom the unit of speed is 2.97 m/s
    assert relative_speed(1.37, 0.9) == pytest.approx(0.461, abs=1e-3)
    found = [speed_class(relative_speed(speed, 0.9)) for speed in (0.5, 0.9, 1.3, 1.7, 2.2)]
    assert found == list(SPEEDS)
    with pytest.raises(SettingsError, match="speed class"):
        normative_curve("knee_flexion", "brisk")
