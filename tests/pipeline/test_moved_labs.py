"""The whole pipeline in a lab that is turned, shifted or mirrored, with plates and a static trial: the same results."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from borelli.pipeline.analyze import analyze
from borelli.recording.forces.assign_to_feet import add_plates
from borelli.recording.io import read_recording

from ..shared_data import shared
from .shared_trials import PIG, SUBJECT01, WALK, settings_of

TRIALS = (f"{SUBJECT01}_walk1.trc", f"{WALK}/motion_capture_walk.trc", f"{PIG}_Motion-FlatFoot-Full.c3d")
ANGLES = (20.0, 50.0, 90.0, 130.0, 170.0, 180.0, 230.0, 270.0, 310.0)
"""[degrees] about the vertical."""
MIRROR = np.array([1.0, -1.0, 1.0])
POINTS = ("marker_position", "plate_center_of_pressure", "plate_corners")
AXIAL = "plate_free_moment"
MAX_ANGLE, MAX_MOMENT = 1e-5, 1e-6
"""[deg], [N m/kg, N/kg] of difference: rounding, as solvers pass it on."""


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
            turn = Rotation.from_euler("z", angle, degrees=True).as_matrix()
            trial = read_recording(shared(name))
            if settings.forces is not None:
                trial = add_plates(trial, read_recording(settings.forces))
            for file, one in (("trial.nc", trial), ("static.nc", read_recording(settings.static))):
                moved(with_twins(one), turn, shift * np.array([1.0, -2.0, 0.0]), sign).to_netcdf(folder / file)
            still = replace(settings, static=folder / "static.nc", forces=None)
            (known[key],) = analyze([folder / "trial.nc"], folder / "out", still)
        return known[key]

    return analyzed


def differences(one, two, mirrored=False):
    """Return the largest differences of joint angles [deg], moments [N m/kg] and vertical forces [N/kg]."""
    names = [str(n) for n in one.energy.torques.data["coordinate"].values if not str(n).startswith("root_")]
    twins, signs = names, np.ones(len(names))
    feet = others = ["right", "left"]
    if mirrored:
        swap = {"_r": "_l", "_l": "_r"}
        twins = [n[:-2] + swap[n[-2:]] if n[-2:] in swap else n for n in names]
        signs = np.array([1.0 if n[-2:] in swap or n.endswith("flexion") else -1.0 for n in names])
        others = feet[::-1]
    mass = one.energy.torques.motion.model.mass
    result = []
    for variable, scale in (("coordinate_value", 180.0 / np.pi), ("torque", 1.0 / mass)):
        pair = [
            (e.energy.torques.motion if variable == "coordinate_value" else e.energy.torques).data[variable]
            .sel(coordinate=which).values for e, which in ((one, names), (two, twins))
        ]  # fmt: skip
        assert np.array_equal(*map(np.isnan, pair))
        result.append(scale * np.nanmax(np.abs(pair[0] - signs * pair[1])))
    force = [
        e.energy.torques.data["ground_reaction_force"].sel(foot=which, axis="z").values
        for e, which in ((one, feet), (two, others))
    ]
    return *result, np.nanmax(np.abs(force[0] - force[1])) / mass


def judge(found):
    angle, moment, force = found
    print(f"angles {angle:.1e} deg, moments {moment:.1e} N m/kg, vertical forces {force:.1e} N/kg")
    assert angle < MAX_ANGLE
    assert max(moment, force) < MAX_MOMENT


@pytest.mark.data
def test_a_turned_and_shifted_lab_gives_the_same_results(results):
    judge(differences(results(TRIALS[0]), results(TRIALS[0], 50.0, 3.0)))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", TRIALS)
def test_any_turn_gives_the_same_results(results, name, angle):
    judge(differences(results(name), results(name, angle, 1.0)))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
def test_mirrored_people_give_mirrored_results(results, name):
    judge(differences(results(name), results(name, sign=MIRROR), mirrored=True))
