"""Gait profile score, variability and tables of a gait, against closed forms."""

import csv

import numpy as np
import pytest
import xarray as xr

from borelli.analysis.strides import PARAMETERS, Stride, stride_labels
from borelli.export.gait_curves import PERCENT, SIDES, Curve, Gait, curve_by_stride, gait_curves
from borelli.export.gait_profile import PELVIS, VARIABLES, curve_values, gait_profile, gait_values
from borelli.export.gait_tables import CYCLE_FILE, PARAMETER_FILE, STRIDE_CURVE_FILE
from borelli.normative.gait import SPEEDS, normative_curve

TIME = np.concatenate([PERCENT / 100.0, 1.01 + PERCENT / 100.0])
STRIDES = tuple(Stride(side, start, start + 1.0) for start in (0.0, 1.01) for side in SIDES)


def gait(shapes, speed="free", stance=60.0, relative=0.45):
    """Return a gait of two strides a side, with angles of each variable as `shapes(name, side, stride)` [deg]."""
    curves = tuple(
        Curve(name, name.replace("_", " ").capitalize(), "deg", "angle",
              *(np.concatenate([shapes(name, side, k) for k in (0, 1)]) for side in SIDES))
        for name in VARIABLES
    )  # fmt: skip
    columns = {
        name: ("stride", np.full(len(STRIDES), stance if name == "stance" else 1.0 + k), {"units": unit})
        for k, (name, unit) in enumerate(PARAMETERS.items())
    }
    parameters = xr.Dataset(columns, stride_labels(STRIDES))
    return Gait(TIME, curves, STRIDES, parameters, speed, relative, (True,) * len(STRIDES), 0.0, 0.0)


@pytest.mark.parametrize("offset", [0.0, 7.0])
@pytest.mark.parametrize("speed", SPEEDS)
def test_score_of_the_norm_is_zero_and_of_an_offset_norm_the_offset(speed, offset):
    profile = gait_profile(gait(lambda name, side, k: normative_curve(name, speed).mean + offset, speed))
    assert list(profile.titles) == list(VARIABLES)
    for name in VARIABLES:
        assert [profile.scores[name][side].mean for side in SIDES] == pytest.approx([offset] * 2, abs=1e-9)
    assert [profile.total[side].mean for side in (*SIDES, "both")] == pytest.approx([offset] * 3, abs=1e-9)


def test_score_is_the_root_mean_square_of_nine_and_of_both_sides_of_fifteen():
    offset = {(name, side): 1.0 + i + (4.0 if side == "left" else 0.0) for i, name in enumerate(VARIABLES)
              for side in SIDES}  # fmt: skip
    profile = gait_profile(gait(lambda name, side, k: normative_curve(name).mean + offset[name, side]))
    for side in SIDES:
        squares = [offset[name, side] ** 2 for name in VARIABLES]
        assert profile.total[side].mean == pytest.approx(np.sqrt(np.mean(squares)))
    fifteen = [offset[name, "left"] ** 2 for name in PELVIS]
    fifteen += [offset[name, side] ** 2 for name in VARIABLES if name not in PELVIS for side in SIDES]
    assert len(fifteen) == 15 and profile.total["both"].mean == pytest.approx(np.sqrt(np.mean(fifteen)))


def test_expected_score_is_that_of_a_person_one_standard_deviation_off():
    profile = gait_profile(gait(lambda name, side, k: normative_curve(name).mean - normative_curve(name).sd))
    for name in VARIABLES:
        assert profile.scores[name]["right"].mean == pytest.approx(profile.normative[name])
    assert profile.total["left"].mean == pytest.approx(profile.normative_total)
    assert 2.0 < profile.normative_total < 10.0  # standard deviations of the nine variables are 2 to 10 degrees


def test_scores_are_averaged_over_strides():
    profile = gait_profile(gait(lambda name, side, k: normative_curve(name).mean + (2.0 if k else -4.0)))
    assert profile.total["right"] == (pytest.approx(3.0), pytest.approx(np.sqrt(2.0)), 2)


def test_norms_of_walking_do_not_apply_to_running_or_to_a_part_of_the_variables():
    shapes = lambda name, side, k: normative_curve(name).mean  # noqa: E731
    run = gait(shapes, stance=35.0)
    assert run.running and gait_profile(run) is None and not gait(shapes).running
    assert gait(shapes, relative=1.3).running  # 4 m/s, with late toe-offs
    part = gait(shapes)
    part = part._replace(curves=part.curves[:-1])  # without foot progression
    assert gait_profile(part).total == {} and len(gait_profile(part).scores) == 8


def test_extremes_range_and_variability():
    wave = 30.0 * np.sin(2.0 * np.pi * PERCENT / 100.0)
    both = gait(lambda name, side, k: wave + 5.0 + 2.0 * k)
    values = curve_values(both, both.curves[0], "right")
    assert values.minimum == (pytest.approx(-24.0), pytest.approx(np.sqrt(2.0)), 2)
    assert values.maximum.mean == pytest.approx(36.0) and values.range == (pytest.approx(60.0), pytest.approx(0.0), 2)
    assert values.variability == pytest.approx(np.sqrt(2.0))  # of two values that differ by 2


def test_values_of_the_summary_have_names_with_units():
    values = gait_values(gait(lambda name, side, k: normative_curve(name).mean + 3.0))
    assert values["gait_profile_score_right_deg"] == pytest.approx(3.0)
    assert values["gait_variable_score_knee_flexion_left_deg_sd"] == pytest.approx(0.0, abs=1e-9)
    assert values["stance_percent"] == 60.0 and "speed_m_per_s" in values and "step_length_left_m_sd" in values
    assert values["knee_flexion_max_right_deg"] == pytest.approx(normative_curve("knee_flexion").mean.max() + 3.0)


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_tables_contain_the_curves_and_parameters(analyzed):
    found = gait_curves(analyzed.energy)
    knee = next(curve for curve in found.curves if curve.name == "knee_flexion")
    rows = curve_by_stride(found, knee, "right")
    cycles = read(analyzed.folder / CYCLE_FILE)
    assert [row["Gait cycle [%]"] for row in cycles] == [str(k) for k in range(101)]
    column = lambda title: [float(row[title]) for row in cycles]  # noqa: E731
    assert column("Right knee flexion mean [deg]") == pytest.approx(sum(rows) / len(rows), abs=1e-3)
    deviation = np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=0) / (len(rows) - 1))
    assert column("Right knee flexion SD [deg]") == pytest.approx(deviation, abs=1e-3)
    assert column("Normative knee flexion mean [deg]") == pytest.approx(normative_curve("knee_flexion").mean, abs=1e-3)
    strides = read(analyzed.folder / STRIDE_CURVE_FILE)
    assert len(strides) == 101 * len(found.strides)
    last = max(k for k, stride in enumerate(found.strides) if stride.side == "right")
    own = [row for row in strides if row["Stride"] == str(last + 1)]
    assert own[0]["Side"] == "right" and [float(row["Knee flexion [deg]"]) for row in own] == pytest.approx(
        rows[-1], abs=1e-3
    )
    parameters = read(analyzed.folder / PARAMETER_FILE)
    assert [row["Side"] for row in parameters] == [stride.side for stride in found.strides]
    speed = [float(row["Walking speed [m/s]"]) for row in parameters]
    assert speed == pytest.approx(found.parameters["speed"].values, abs=1e-4)
    assert analyzed.summary["gait"]["speed_m_per_s"] == pytest.approx(np.mean(speed), abs=1e-4)
