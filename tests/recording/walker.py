"""Synthetic walk of a person of rigid segments over two force plates."""

import numpy as np

from borelli.recording.recording import Recording, make_dataset

from ..shared_data import shared

RATE, ANALOG_RATE = 100.0, 1000.0
SPEED, STRIDE = 1.3, 1.0  # m/s, s
STANCE = 0.6  # part of the stride
STEP = SPEED * STRIDE  # distance between two footprints of one foot
WEIGHT = 700.0  # N

_TRUNK = {  # offset from the pelvis [m]: forward, left, up
    "LFHD": (0.10, 0.07, 0.72), "RFHD": (0.10, -0.07, 0.72), "LBHD": (-0.09, 0.07, 0.72), "RBHD": (-0.09, -0.07, 0.72),
    "C7": (-0.07, 0.0, 0.55), "CLAV": (0.07, 0.0, 0.48), "STRN": (0.10, 0.0, 0.35), "T10": (-0.10, 0.0, 0.30),
    "LSHO": (0.0, 0.20, 0.50), "RSHO": (0.0, -0.20, 0.50),
    "LASI": (0.09, 0.13, 0.04), "RASI": (0.09, -0.13, 0.04), "LPSI": (-0.09, 0.05, 0.05), "RPSI": (-0.09, -0.05, 0.05),
}  # fmt: skip
_LEG = {  # position along the leg from the hip to the ankle, and lateral offset [m]
    "THI": (0.5, 0.08), "KNE": (0.95, 0.06), "TIB": (1.4, 0.07), "ANK": (1.95, 0.05),
}  # fmt: skip
_FOOT = {"HEE": (-0.05, 0.0, 0.03), "TOE": (0.17, 0.0, 0.03)}


def walk(seconds=3.0, rate=RATE):
    """Positions [m] of Plug-in Gait markers of a walker along +x, z up; names and times."""
    time = np.arange(round(seconds * rate)) / rate
    pelvis = np.stack([SPEED * time, np.zeros_like(time), 0.95 + 0.02 * np.cos(4 * np.pi * time / STRIDE)], axis=1)
    names, paths = [], []
    for name, offset in _TRUNK.items():
        names.append(name)
        paths.append(pelvis + offset)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        foot, tilt = _foot(time, sign)
        hip = pelvis + np.array([0.0, 0.09 * sign, 0.0])
        ankle = foot + np.array([0.0, 0.0, 0.08])
        knee = (hip + ankle) / 2.0 + (0.06, 0.0, 0.0)
        for name, (along, out) in _LEG.items():
            upper, lower, part = (hip, knee, along) if along <= 1.0 else (knee, ankle, along - 1.0)
            names.append(side + name)
            paths.append(upper + part * (lower - upper) + (0.0, out * sign, 0.0))
        for name, (ahead, _, up) in _FOOT.items():
            names.append(side + name)
            turned = np.stack([ahead * np.cos(tilt), 0 * tilt, up + ahead * np.sin(tilt)], axis=1)
            paths.append(foot + turned)
    return np.stack(paths, axis=1), names, time


def footprints(sign):
    """Return times [s] and positions x [m] of the strikes of the left (1) or right (-1) foot."""
    steps = np.arange(-2, 8)
    start = (steps + (0.0 if sign > 0 else 0.5)) * STRIDE
    return start, SPEED * start + 0.3


def recording(seconds=3.0, *, plates=True, noise=0.0, seed=0, **attributes):
    """The walk as a recording, with plates under the steps at 1.0 s (left) and 1.5 s (right)."""
    points, names, time = walk(seconds)
    points = points + noise * np.random.default_rng(seed).normal(size=points.shape)
    variables, coordinates = {"marker_position": points}, {"marker": names, "time": time}
    if plates:
        force, place, corners = forces(seconds)
        variables |= {"plate_force": force, "plate_center_of_pressure": place, "plate_corners": corners}
        variables["plate_free_moment"] = np.zeros_like(force)
        coordinates["plate"] = ["plate 1", "plate 2"]
    about = {"file_units": "m", "file_up": "+Z", "file_forward": "+X"} | attributes
    data = make_dataset(variables, coordinates, rate=RATE, analog_rate=ANALOG_RATE if plates else None, **about)
    return Recording(data=data, name="walk", format="C3D")


def forces(seconds):
    """Return force, center of pressure and corners of two plates, one under a left and one under a right step."""
    clock = np.arange(round(seconds * ANALOG_RATE)) / ANALOG_RATE
    force, place = np.zeros((len(clock), 2, 3)), np.full((len(clock), 2, 3), np.nan)
    corners = np.zeros((2, 4, 3))
    for plate, sign in enumerate((1.0, -1.0)):
        start, at = (values[3] for values in footprints(sign))
        phase = (clock - start) / (STANCE * STRIDE)
        inside = (phase > 0.0) & (phase < 1.0)
        force[inside, plate, 2] = WEIGHT * np.sin(np.pi * phase[inside]) ** 0.5
        roll = at - 0.04 + 0.2 * phase[inside]
        place[inside, plate] = np.stack([roll, np.full_like(roll, 0.09 * sign), 0.0 * roll], axis=1)
        place[~(force[:, plate, 2] >= 20.0), plate] = np.nan
        middle = np.array([at + 0.05, 0.09 * sign, 0.0])
        corners[plate] = middle + np.array([[0.25, 0.2, 0], [-0.25, 0.2, 0], [-0.25, -0.2, 0], [0.25, -0.2, 0]])
    return force, place, corners


def _foot(time, sign):
    """Path of the foot [m] and its pitch [rad]."""
    start, places = footprints(sign)
    path, tilt = np.zeros((len(time), 3)), np.zeros(len(time))
    path[:, 1] = 0.09 * sign
    for when, place in zip(start, places, strict=True):
        phase = (time - when) / STRIDE
        stance = (phase >= 0.0) & (phase < STANCE)
        swing = (phase >= STANCE) & (phase < 1.0)
        part = (phase[swing] - STANCE) / (1.0 - STANCE)
        path[stance, 0] = place
        path[swing, 0] = place + STEP * (part - np.sin(2 * np.pi * part) / (2 * np.pi))
        path[swing, 2] = 0.1 * np.sin(np.pi * part) ** 2
        tilt[swing] = -0.5 * np.sin(np.pi * part) ** 2
    return path, tilt


def real(name):
    """Return the path of a recording that is not part of the repository; only tests marked `data` may ask for it."""
    return shared(name)


def with_markers(one, points):
    """A recording with other marker positions."""
    return one.with_data(one.data.assign(marker_position=one.data["marker_position"].copy(data=points)))
