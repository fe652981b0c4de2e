"""Odd but readable recordings: valid files of every format whose content no laboratory meant to record.

A trial is a short synthetic walk over plates; oddities change its markers, times, names and plates. Files are written
by hand, since writers of borelli would refuse or repair some of them.
"""

import random
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from borelli.recording.io import write_recording
from borelli.recording.recording import Recording, make_dataset

from ..recording.c3d_files import c3d_bytes

FORMATS = ("c3d", "trc", "csv", "mot", "sto", "bvh", "nc")
FRAMES = 40
ANALOG_PER_FRAME = 2
MAX_INTEGER = 65_535


@dataclass(frozen=True)
class Trial:
    """Markers (frames, markers, 3) [m], z up, and forces, points (samples, plates, 3) and corners of plates."""

    points: np.ndarray
    names: tuple
    time: np.ndarray
    force: np.ndarray
    cop: np.ndarray
    corners: np.ndarray

    @property
    def rate(self):
        """Frames per second, from the median interval."""
        step = np.median(np.diff(self.time)) if len(self.time) > 1 else 0.01
        return 1.0 / step if step > 0.0 else 100.0


@cache
def walk():
    """The trial that oddities change: the double support and a step of the synthetic walk."""
    from borelli.synthetic.recordings import synthetic_recording

    data = synthetic_recording("walk").recording.data
    first, per = 100, 4 // ANALOG_PER_FRAME
    analog = slice(4 * first, 4 * (first + FRAMES), per)
    plates = [3, 4, 5]
    return Trial(
        data["marker_position"].values[first : first + FRAMES],
        tuple(data["marker"].values.tolist()),
        np.arange(FRAMES) / 100.0,
        data["plate_force"].values[analog, plates],
        data["plate_center_of_pressure"].values[analog, plates],
        data["plate_corners"].values[plates],
    )


def _cut(trial, frames):
    return replace(
        trial, points=trial.points[:frames], time=trial.time[:frames],
        force=trial.force[: ANALOG_PER_FRAME * frames], cop=trial.cop[: ANALOG_PER_FRAME * frames],
    )  # fmt: skip


def _some(trial, count):
    return replace(trial, points=trial.points[:, :count], names=trial.names[:count])


def _scaled(factor):
    return lambda t, r: replace(t, points=t.points * factor, cop=t.cop * factor, corners=t.corners * factor)


def _points(change):
    return lambda t, r: replace(t, points=change(t.points.copy(), np.random.default_rng(r.randrange(2**32))))


def _times(change):
    return lambda t, r: replace(t, time=change(t.time.copy()))


def _names(change):
    return lambda t, r: replace(t, names=tuple(change(i, name) for i, name in enumerate(t.names)))


def _plates(force=lambda f: f, cop=lambda p: p, corners=lambda c: c):
    return lambda t, r: replace(
        t, force=force(t.force.copy()), cop=cop(t.cop.copy()), corners=corners(t.corners.copy())
    )


def _holes(fraction):
    def change(points, rng):
        points[rng.random(points.shape[:2]) < fraction] = np.nan
        return points

    return change


def _spikes(points, rng):
    points[rng.random(points.shape[:2]) < 0.05] *= 1e4
    return points


def _many(trial, _):
    copies = 500 // max(1, len(trial.names)) + 1
    points = np.concatenate([trial.points + 0.01 * k for k in range(copies)], axis=1)
    return replace(trial, points=points, names=tuple(f"{name}{k}" for k in range(copies) for name in trial.names))


def _jump(time):
    time[len(time) // 2 :] += 5.0
    return time


def _duplicate(time):
    time[1::2] = time[: 2 * (len(time) // 2) : 2]
    return time


FLIP_X, FLIP_Z = np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, -1.0])
ODDITIES = {
    "plain": lambda t, r: t,
    "units x 1000": _scaled(1e3),
    "units / 1000": _scaled(1e-3),
    "huge coordinates": _scaled(1e30),
    "tiny coordinates": _scaled(1e-30),
    "one marker": lambda t, r: _some(t, 1),
    "two markers": lambda t, r: _some(t, 2),
    "three markers": lambda t, r: _some(t, 3),
    "no markers": lambda t, r: _some(t, 0),
    "500 markers": _many,
    "one point": _points(lambda p, g: np.broadcast_to(p[:, :1], p.shape).copy()),
    "one line": _points(lambda p, g: p * (1.0, 0.0, 0.0)),
    "one plane": _points(lambda p, g: p * (1.0, 0.0, 1.0)),
    "still": _points(lambda p, g: np.broadcast_to(p[:1], p.shape).copy()),
    "zeros": _points(lambda p, g: 0.0 * p),
    "constant": _points(lambda p, g: 0.0 * p + 1.0),
    "noise": _points(lambda p, g: g.normal(size=p.shape)),
    "spikes": _points(_spikes),
    "some gaps": _points(_holes(0.2)),
    "gaps everywhere": _points(_holes(0.7)),
    "almost nothing": _points(_holes(0.98)),
    "all missing": _points(lambda p, g: np.full_like(p, np.nan)),
    "mirrored": _points(lambda p, g: p * FLIP_X),
    "upside down": _points(lambda p, g: p * FLIP_Z),
    "lying": _points(lambda p, g: p[..., [2, 1, 0]] * FLIP_X),
    "far away": _points(lambda p, g: p + 1e5),
    "one frame": lambda t, r: _cut(t, 1),
    "two frames": lambda t, r: _cut(t, 2),
    "three frames": lambda t, r: _cut(t, 3),
    "ten frames": lambda t, r: _cut(t, 10),
    "10 kHz": _times(lambda t: t / 100.0),
    "1 Hz": _times(lambda t: 100.0 * t),
    "a frame per 1000 s": _times(lambda t: 1e5 * t),
    "negative times": _times(lambda t: t - 100.0),
    "late times": _times(lambda t: t + 1e6),
    "backward times": _times(lambda t: t[::-1].copy()),
    "duplicate times": _times(_duplicate),
    "equal times": _times(lambda t: 0.0 * t),
    "time jump": _times(_jump),
    "uneven times": _times(lambda t: t**1.3),
    "empty names": _names(lambda i, name: ""),
    "identical names": _names(lambda i, name: "M"),
    "long names": _names(lambda i, name: name * 60),
    "unicode names": _names(lambda i, name: f"{name} Ω é 腕 ½ ‮"),
    "numbered names": _names(lambda i, name: str(i)),
    "quoted names": _names(lambda i, name: f"\"{name}', [red]{{0}}%s"),
    "unknown names": _names(lambda i, name: f"marker {i}"),
    "swapped sides": _names(lambda i, name: {"R": "L", "L": "R"}.get(name[:1], name[:1]) + name[1:]),
    "no plates": lambda t, r: replace(t, force=t.force[:, :0], cop=t.cop[:, :0], corners=t.corners[:0]),
    "missing plates": _plates(lambda f: f * np.nan, lambda p: p * np.nan),
    "zero plates": _plates(lambda f: 0.0 * f),
    "plates of no size": _plates(corners=lambda c: 0.0 * c),
    "plates without corners": _plates(corners=lambda c: c * np.nan),
    "huge plate forces": _plates(lambda f: 1e12 * f),
    "plates upside down": _plates(lambda f: -f),
    "plates far away": _plates(cop=lambda p: p + 1e4),
    "plate offset": _plates(lambda f: f + 300.0),
    "constant plates": _plates(lambda f: 0.0 * f + 700.0),
}
CORE = tuple(ODDITIES)


def odd_trial(number):
    """The trial of that number, its format and the names of its oddities: first one by one, then in combination."""
    rng = random.Random(f"odd {number}")
    if number < len(CORE) * len(FORMATS):
        chosen, form = [CORE[number // len(FORMATS)]], FORMATS[number % len(FORMATS)]
    else:
        chosen, form = rng.sample(CORE, rng.choice((2, 2, 3, 4))), rng.choice(FORMATS)
    trial = walk()
    for name in chosen:
        with np.errstate(all="ignore"):
            trial = ODDITIES[name](trial, rng)
    return trial, form, chosen


def write_odd(number, folder):
    """Write the file of that number into the folder; return its path and its description."""
    trial, form, chosen = odd_trial(number)
    path = folder / f"odd.{form}"
    if form == "nc":
        _write_nc(trial, path)
    else:
        path.write_bytes(WRITERS[form](trial))
    return path, f"{form}: {', '.join(chosen)}"


def _number(value):
    return "" if not np.isfinite(value) else f"{value:.9g}"


def _clean_name(name):
    return name.replace("\t", " ").replace("\n", " ")


def trc_bytes(trial):
    """Text of a TRC file [mm], y up."""
    frames, count = trial.points.shape[:2]
    names = "\t\t\t".join(_clean_name(name) for name in trial.names)
    lines = [
        "PathFileType\t4\t(X/Y/Z)\todd.trc",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{trial.rate:.9g}\t{trial.rate:.9g}\t{frames}\t{count}\tmm\t{trial.rate:.9g}\t1\t{frames}",
        f"Frame#\tTime\t{names}",
        "\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(1, count + 1)),
        "",
    ]
    turned = 1e3 * np.stack([trial.points[..., 0], trial.points[..., 2], -trial.points[..., 1]], axis=-1)
    for i, row in enumerate(turned):
        lines.append("\t".join([str(i + 1), f"{trial.time[i]:.9g}", *map(_number, row.ravel())]))
    return "\n".join(lines).encode()


def csv_bytes(trial):
    """Text of a plain table [m], z up."""
    quoted = ['"' + name.replace('"', '""') + "_{}" + '"' for name in trial.names]
    names = [name.replace("{}", axis) for name in quoted for axis in "xyz"]
    lines = [",".join(["time", *names])]
    for now, row in zip(trial.time, trial.points, strict=True):
        lines.append(",".join([f"{now:.9g}", *map(_number, row.ravel())]))
    return "\n".join(lines).encode()


def mot_bytes(trial):
    """Text of ground reaction forces of OpenSim, y up."""
    names, columns = ["time"], [np.arange(len(trial.force)) / (ANALOG_PER_FRAME * trial.rate) + trial.time[0]]
    for k in range(trial.force.shape[1]):
        for prefix, values in (("force_v", trial.force), ("force_p", trial.cop), ("torque_", 0.0 * trial.force)):
            for axis, column, sign in (("x", 0, 1.0), ("y", 2, 1.0), ("z", 1, -1.0)):
                names.append(f"{k + 1}_ground_{prefix}{axis}")
                columns.append(sign * values[:, k, column])
    return _table("forces", names, np.stack(columns, axis=1))


def sto_bytes(trial):
    """Text of a table of coordinates [deg], which the heights of markers stand for."""
    names = ["time", *(_clean_name(name).replace(" ", "_") for name in trial.names)]
    return _table("Coordinates", names, np.column_stack([trial.time, 57.3 * trial.points[..., 2]]))


def _table(title, names, values):
    head = [title, "version=1", f"nRows={len(values)}", f"nColumns={len(names)}", "inDegrees=yes", "endheader"]
    rows = ["\t".join(_number(value) or "NaN" for value in row) for row in values]
    return "\n".join([*head, "\t".join(names), *rows, ""]).encode()


LIMBS = (  # joint, parent, offset from the parent [m], y up
    ("Hips", "", (0.0, 0.0, 0.0)), ("Spine", "Hips", (0.0, 0.3, 0.0)), ("Head", "Spine", (0.0, 0.3, 0.0)),
    ("LeftUpLeg", "Hips", (0.1, 0.0, 0.0)), ("LeftLeg", "LeftUpLeg", (0.0, -0.42, 0.0)),
    ("LeftFoot", "LeftLeg", (0.0, -0.42, 0.0)), ("RightUpLeg", "Hips", (-0.1, 0.0, 0.0)),
    ("RightLeg", "RightUpLeg", (0.0, -0.42, 0.0)), ("RightFoot", "RightLeg", (0.0, -0.42, 0.0)),
    ("LeftArm", "Spine", (0.2, 0.2, 0.0)), ("LeftForeArm", "LeftArm", (0.28, 0.0, 0.0)),
    ("RightArm", "Spine", (-0.2, 0.2, 0.0)), ("RightForeArm", "RightArm", (-0.28, 0.0, 0.0)),
)  # fmt: skip


def bvh_bytes(trial):
    """Text of a skeleton, whose size and motion follow the markers' size, gaps and names."""
    count = len(trial.names)
    limbs = LIMBS[: max(1, count)]
    lengths = np.abs(trial.points[np.isfinite(trial.points)])
    size = float(lengths.max()) / 2.0 if len(lengths) else 0.0
    odd_names = count and trial.names[0] != walk().names[0]
    shown = {name: _clean_name(trial.names[i]) if odd_names else name for i, (name, _, _) in enumerate(limbs)}
    lines = ["HIERARCHY"]

    def add(name, depth):
        offset = next(offset for one, _, offset in limbs if one == name)
        pad = "  " * depth
        lines.append(f"{pad}{'JOINT' if depth else 'ROOT'} {shown[name]}")
        lines.extend([f"{pad}{{", f"{pad}  OFFSET {' '.join(f'{size * x:.9g}' for x in offset)}"])
        moving = "Xposition Yposition Zposition " if not depth else ""
        lines.append(f"{pad}  CHANNELS {6 if moving else 3} {moving}Zrotation Xrotation Yrotation")
        for child, parent, _ in limbs:
            if parent == name:
                add(child, depth + 1)
        lines.append(f"{pad}}}")

    add("Hips", 0)
    frames = len(trial.points)
    step = float(np.median(np.diff(trial.time))) if frames > 1 else 0.01
    lines += ["MOTION", f"Frames: {frames}", f"Frame Time: {step:.9g}"]
    root = trial.points[:, 0] if count else np.zeros((frames, 3))
    for i in range(frames):
        angles = 20.0 * np.sin(0.1 * i + np.arange(3 * len(limbs)))
        row = [root[i, 0], root[i, 2], -root[i, 1], *angles]
        lines.append(" ".join(_number(value) or "nan" for value in row))
    return "\n".join([*lines, ""]).encode()


def c3d_file_bytes(trial):
    """A C3D file [mm], with plates of type 1 (force, point of application, moment)."""
    count, plates = len(trial.names), trial.force.shape[1]
    frames, rate = len(trial.points), min(trial.rate, 3e4)
    groups = {"POINT": {"LABELS": None, "RATE": float(rate)}}
    if any(trial.names):
        # a dimension is at most 255: further labels are in LABELS2, LABELS3
        for k, start in enumerate(range(0, count, 255)):
            labels = [_fit(name) for name in trial.names[start : start + 255]]
            groups["POINT"][f"LABELS{k + 1 if k else ''}"] = labels
    analog = None
    if plates:
        channels = []
        for k in range(plates):
            # forces on the plate, as it measures them; its origin is the center of its corners
            center = trial.corners[k].mean(axis=0)
            channels += [-trial.force[:, k], 1e3 * (trial.cop[:, k] - center)[:, :2], np.zeros((len(trial.force), 1))]
        analog = np.concatenate(channels, axis=1).reshape(frames, ANALOG_PER_FRAME, 6 * plates)
        number = 6 * plates
        groups["ANALOG"] = {
            "LABELS": [f"{q}{k + 1}" for k in range(plates) for q in ("Fx", "Fy", "Fz", "Px", "Py", "Mz")],
            "SCALE": np.ones(number), "GEN_SCALE": 1.0, "OFFSET": np.zeros(number, int),
            "UNITS": [u for _ in range(plates) for u in ("N", "N", "N", "mm", "mm", "Nmm")],
        }  # fmt: skip
        groups["FORCE_PLATFORM"] = {
            "USED": plates, "TYPE": np.ones(plates, int), "ZERO": np.zeros(2, int),
            "CORNERS": 1e3 * trial.corners, "ORIGIN": np.zeros((plates, 3)),
            "CHANNEL": np.arange(1, number + 1).reshape(plates, 6),
        }  # fmt: skip
    first = min(max(1, round(trial.time[0] * rate) + 1), MAX_INTEGER - frames)
    with np.errstate(all="ignore"):
        single = np.clip(1e3 * trial.points, -3e38, 3e38).astype(np.float32)
        analog = None if analog is None else np.clip(analog, -3e38, 3e38)
    return c3d_bytes(single.reshape(frames, count, 3), groups, rate=rate, first=first, analog=analog)


def _fit(name):
    """Return at most 127 bytes of a name, so that 255 fit into a dimension of a parameter; ASCII, as C3D demands."""
    return name.encode("ascii", "replace").decode()[:127]


def _write_nc(trial, path):
    """Write the recording as borelli does, with names that a dataset can have."""
    known = {"marker_position": trial.points} if len(trial.names) else {}
    plates = trial.force.shape[1]
    if plates:
        known |= {"plate_force": trial.force, "plate_center_of_pressure": trial.cop, "plate_corners": trial.corners}
    rate = trial.rate
    labels = {"time": trial.time, "marker": list(trial.names), "plate": [f"plate {k + 1}" for k in range(plates)]}
    labels["analog_time"] = np.arange(len(trial.force)) / (ANALOG_PER_FRAME * rate) + trial.time[0]
    write_recording(Recording(make_dataset(known, labels, rate=rate, analog_rate=ANALOG_PER_FRAME * rate), "odd"), path)


WRITERS = {
    "c3d": c3d_file_bytes, "trc": trc_bytes, "csv": csv_bytes, "mot": mot_bytes, "sto": sto_bytes, "bvh": bvh_bytes,
}  # fmt: skip
