"""The whole pipeline in a lab that is turned, shifted or mirrored, with plates and a static trial: the same results."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.pipeline.analyze import analyze
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording

from ..shared_data import shared
from .shared_trials import OVERGROUND, PIG, SUBJECT01, WALK, settings_of

TRIALS = (
    f"{SUBJECT01}_walk1.trc", f"{WALK}/motion_capture_walk.trc", OVERGROUND, f"{PIG}_Motion-FlatFoot-Full.c3d",
)  # fmt: skip
"""With plates, and a static trial but for one."""
ANGLES = (20.0, 50.0, 90.0, 130.0, 170.0, 180.0, 230.0, 270.0, 310.0)
"""[degrees] about the vertical."""
MIRROR = np.array([1.0, -1.0, 1.0])
POINTS = ("marker_position", "plate_center_of_pressure", "plate_corners")
AXIAL = "plate_free_moment"
MAX_ANGLE, MAX_DIFFERENCE = 1e-5, 1e-6
"""[deg], [N m/kg, N/kg, W/kg, J/kg, m] of difference: rounding, as solvers pass it on."""


def moved(recording, turn, shift, sign=None):
    """Return a recording in a lab turned by `turn` (3, 3) and shifted [m]; mirrored first, with names, by `sign`."""
    data = recording.data.drop_dims(["channel", "quantity", "event"], errors="ignore").copy(deep=True)
    for name in (*POINTS, "plate_force", AXIAL):
        if name in data:
            values = data[name].values
            if sign is not None:
                values = values * (-sign if name == AXIAL else sign)
            data[name].values[...] = values @ turn.T + (shift if name in POINTS else 0.0)
    if sign is not None:
        for names in ("marker", "plate"):
            if names in data.dims:
                data = data.assign_coords({names: [other_side(str(name)) for name in data[names].values]})
        if "plate_corners" in data:  # their order turns the other way round
            data["plate_corners"].values[...] = data["plate_corners"].values[:, ::-1]
    return replace(recording, data=data, metadata={}, path=None)


def other_side(label):
    """Return a label of the other side: R.ASIS and L.ASIS, RKNE and LKNE."""
    swap = {"R": "L", "L": "R", "r": "l", "l": "r"}
    return swap[label[0]] + label[1:] if label[0] in swap else label


def with_twins(recording):
    """Return the recording without markers that only one side has."""
    return recording.select_markers([name for name in recording.markers if other_side(name) in recording.markers])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a function that analyzes a trial in a moved lab, once."""
    known = {}

    def analyzed(name, angle=0.0, shift=0.0, sign=None):
        key = name, angle, shift, sign is not None
        if key not in known:
            folder, settings = tmp_path_factory.mktemp("lab"), settings_of(name)
            turn, displacement = by_angle(angle, shift)
            trial = read_recording(shared(name))
            if settings.forces is not None:
                trial = add_plates(trial, read_recording(settings.forces))
            files = {"trial.nc": trial}
            if settings.static is not None:
                files["static.nc"] = read_recording(settings.static)
            for file, one in files.items():
                moved(with_twins(one), turn, displacement, sign).to_netcdf(folder / file)
            static = folder / "static.nc" if settings.static is not None else None
            still = replace(settings, static=static, forces=None)
            (known[key],) = analyze([folder / "trial.nc"], folder / "out", still)
        return known[key]

    return analyzed


def differences(one, two, turn, shift, sign=None):
    """Return the largest differences of the results of a lab and of a moved one, by what they are of."""
    names = [str(n) for n in one.energy.torques.data["coordinate"].values if not str(n).startswith("root_")]
    twins, signs, feet = names, np.ones(len(names)), ["right", "left"]
    if sign is not None:
        swap = {"_r": "_l", "_l": "_r"}
        twins, feet = [n[:-2] + swap[n[-2:]] if n[-2:] in swap else n for n in names], feet[::-1]
        signs = np.array([1.0 if n[-2:] in swap or n.endswith("flexion") else -1.0 for n in names])
    by_name, other_name = {"coordinate": names}, {"coordinate": twins}
    by_foot, other_foot = {"foot": ["right", "left"]}, {"foot": feet}
    mass = one.energy.torques.motion.model.mass

    def largest(results, variable, here, there, scale, change=lambda values: values):
        first, second = (
            scale * result.data[variable].sel(known).values
            for result, known in zip(results, (here, there), strict=True)
        )
        assert first.shape == second.shape
        first = change(first)
        assert np.array_equal(np.isnan(first), np.isnan(second))
        return np.nanmax(np.abs(first - second), initial=0.0)

    def vectors(moved_by, sign=sign):
        return lambda values: (values if sign is None else values * sign) @ turn.T + moved_by

    torques = one.energy.torques, two.energy.torques
    motions, energies = tuple(t.motion for t in torques), (one.energy, two.energy)
    none, axial = np.zeros(3), None if sign is None else -sign
    found = {
        "angle": largest(motions, "coordinate_value", by_name, other_name, 180.0 / np.pi, lambda v: signs * v),
        "moment": largest(torques, "torque", by_name, other_name, 1.0 / mass, lambda v: signs * v),
        "power": largest(energies, "joint_power", by_name, other_name, 1.0 / mass),
        "force": largest(torques, "ground_reaction_force", by_foot, other_foot, 1.0 / mass, vectors(none)),
        "residual force": largest(torques, "residual_force", {}, {}, 1.0 / mass, vectors(none)),
        "residual moment": largest(torques, "residual_moment", {}, {}, 1.0 / mass, vectors(none, axial)),
        "free moment": largest(torques, "free_moment", by_foot, other_foot, 1.0 / mass, vectors(none, axial)),
        "pressure": largest(torques, "center_of_pressure", by_foot, other_foot, 1.0, vectors(shift)),
        "power of the center of mass": largest(energies, "center_of_mass_power", by_foot, other_foot, 1.0 / mass),
    }
    for name in ("positive_work", "negative_work"):
        found[name] = largest(energies, name, by_name, other_name, 1.0 / mass)
    for name in ("kinetic_energy", "potential_energy", "total_joint_power", "ground_power", "residual_power"):
        found[name] = largest(energies, name, {}, {}, 1.0 / mass)
    return found


def numbers(value, path=()):
    """Return the numbers of a summary by their path, without the time that stages took."""
    if isinstance(value, dict):
        return {k: v for key, one in value.items() if key != "runtime_s" for k, v in numbers(one, (*path, key)).items()}
    return {path: value} if isinstance(value, int | float) else {}


def same_summary(one, two):
    known, moved_lab = numbers(one.summary), numbers(two.summary)
    assert len(known) > 100
    assert moved_lab == pytest.approx(known, rel=1e-6, abs=1e-6)


def judge(found):
    print({name: float(f"{value:.1e}") for name, value in found.items()})
    assert found.pop("angle") < MAX_ANGLE
    assert max(found.values()) < MAX_DIFFERENCE, found


def by_angle(angle, shift=0.0):
    """Return the arguments of `moved` for a turn [degrees] about the vertical and a shift [m]."""
    return Rotation.from_euler("z", angle, degrees=True).as_matrix(), shift * np.array([1.0, -2.0, 0.0])


@pytest.mark.data
@pytest.mark.parametrize(("angle", "shift"), [(50.0, 3.0), (230.0, 0.0)])
def test_a_turned_and_shifted_lab_gives_the_same_results(results, angle, shift):
    one, two = results(TRIALS[0]), results(TRIALS[0], angle, shift)
    judge(differences(one, two, *by_angle(angle, shift)))
    same_summary(one, two)


@pytest.mark.data
def test_a_mirrored_person_gives_mirrored_results(results):
    judge(differences(results(TRIALS[0]), results(TRIALS[0], sign=MIRROR), *by_angle(0.0), MIRROR))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", TRIALS)
def test_any_turn_gives_the_same_results(results, name, angle):
    one, two = results(name), results(name, angle, 1.0)
    judge(differences(one, two, *by_angle(angle, 1.0)))
    same_summary(one, two)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS[1:])
def test_mirrored_people_give_mirrored_results(results, name):
    judge(differences(results(name), results(name, sign=MIRROR), *by_angle(0.0), MIRROR))
