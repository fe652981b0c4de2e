"""Coordinates, speeds and accelerations of a motion: low-passed, then splines through the frames.

| preset | low-pass | spline |
|---|---|---|
| `default` | Butterworth of order 2, run forward and backward (order 4 in all) | quintic |
| `strides` | the same; who walks goes on beyond the ends as a stride before | quintic |
| `opensim` | Butterworth of order 3, run forward and backward | quintic |
| `none` | none | quintic |

The cutoff is that of each pass, as OpenSim and most laboratories state it: the gain there, after both, is 1/2.

The three angles of a free joint, and those of joints that come near gimbal lock, are treated as one rotation
(`turns.py`), so that the lab's axes make no difference. `opensim` knows no rotations: it is what OpenSim's inverse
dynamics does with every coordinate, to the last detail that shows: the series is first continued at both ends by half
its length, reflected in its end points; the filter starts from its first samples as they are. The others continue it
as `ends.py` tells. `strides` is for forces that are found from the motion alone, which are no better than accelerations
are; with measured forces `default` stays near what OpenSim and others find, whose motions have no acceleration at their
ends. All take the spline through the continued series, whose third and fourth derivatives vanish at its
far ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.joint_rotations import ThreeAxisJoint, angles_from_quaternions, find_rotation_joints, joint_quaternions
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import coupled_motion
from borelli.model.model import Model
from borelli.numerics.filters import ORDER, lowpass, opensim_lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.series_extension import extend_series, reflect
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

Array = NDArray[np.float64]

PRESETS = ("default", "strides", "opensim", "none")
LOW_PASSED = ("default", "strides")
BRIDGE = 0.1
"""Longest run of frames without a pose [s] inside a motion that cubics bridge: what `clean` bridges in markers."""
FEWEST = 8
"""Frames a spline of degree five can be asked about."""
AHEAD = 6.0
"""Periods of the cutoff by which a series is continued at most, but for OpenSim: more than the filter remembers."""
UNEVEN = 1e-3
"""Time steps that differ by more than this share are put on an even grid before filtering."""


@dataclass(frozen=True)
class Derivatives:
    """How coordinates change, in the order of the model's coordinates.

    Attributes:
        model: Whose coordinates they are.
        time: (frames,) [s]
        coordinates: (frames, coordinates) [rad or m], filtered.
        speeds: Their first derivative in time.
        accelerations: Their second.
        first: Frame of the motion that is the first of these.
        rate: [Hz]
        settings: Preset and cutoff.
        notes: What was decided.
        curve: The splines of the coordinates, then of the quaternions of `turns`.
        turns: The joints that are treated as rotations.
    """

    model: Model
    time: Array
    coordinates: Array
    speeds: Array
    accelerations: Array
    first: int
    rate: float
    settings: dict[str, Any]
    notes: tuple[Note, ...]
    curve: BSpline
    turns: tuple[ThreeAxisJoint, ...]

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """Coordinates, speeds and accelerations at other times [s] of the motion."""
        nearest = np.clip(np.searchsorted(self.time, time - 0.5 / self.rate), 0, len(self.time) - 1)
        return _evaluated(self.model, self.curve, self.turns, time, self.coordinates[nearest])


def differentiate(motion: Motion, *, filter: str = "default", cutoff: float | None = None) -> Derivatives:
    """Coordinates, speeds and accelerations of a motion.

    Frames without a pose at its ends are left out; inside they are bridged where they last no longer than `BRIDGE`.

    Args:
        motion: The motion.
        filter: "default", "strides", "opensim" or "none".
        cutoff: Of the low-pass [Hz]; 6 by default: see `borelli.recording.cleaning.filtering.CUTOFF`.

    Raises:
        SettingsError: unknown preset, a cutoff not below half the rate, or too few frames with a pose.
    """
    if filter not in PRESETS:
        raise SettingsError(unknown_name("filter", filter, PRESETS))
    cutoff = CUTOFF if cutoff is None else float(cutoff)
    time = np.asarray(motion.data["time"].values, dtype=float)
    q, start, stop, notes = _whole(motion.coordinates, time, motion.rate)
    time, q = time[start:stop], q[start:stop]
    rate, even, resampled = motion.rate, time, q
    steps = np.diff(time)
    if not (steps > 0.0).all():
        raise SettingsError("times do not advance, so there are no speeds: restore or resample the recording's times")
    if np.ptp(steps) > UNEVEN * np.median(steps) and filter != "none":
        # a filter counts samples: they must be even
        rate = (len(time) - 1) / (time[-1] - time[0])
        even = time[0] + np.arange(len(time)) / rate
        resampled = quintic_spline(time, q)(even)
        notes.append(Note("frames with uneven time steps were put on an even grid before the low-pass", "changed"))
    if filter != "none" and not 0.0 < cutoff < 0.5 * rate:
        raise SettingsError(f"the cutoff must lie between 0 and half the rate ({0.5 * rate:g} Hz), got {cutoff:g} Hz")
    turns = () if filter == "opensim" else find_rotation_joints(motion.model, q)
    pad, series = len(even) // 2, np.hstack([resampled, *(joint_quaternions(turn, resampled) for turn in turns)])
    if filter == "opensim":
        longer = opensim_lowpass(reflect(series, pad), rate, cutoff)
    else:
        pad = min(pad, int(np.ceil(AHEAD * rate / cutoff)))
        # the angles of turns depend on how the lab is turned, their quaternions only as vectors do
        telling = np.delete(np.arange(series.shape[1]), [column for turn in turns for column in turn.columns])
        longer = extend_series(
            series,
            pad,
            rate / cutoff,
            noisy=filter in LOW_PASSED,
            stride_columns=telling if filter == "strides" else (),
        )
    if filter in LOW_PASSED:
        longer = lowpass(longer, rate, _over_both(cutoff, rate), ORDER)
    before, after = even[0] - (even[pad:0:-1] - even[0]), even[-1] + (even[-1] - even[-2 : -pad - 2 : -1])
    curve = quintic_spline(np.concatenate([before, even, after]), longer)
    settings = {"filter": filter, "cutoff_hz": None if filter == "none" else cutoff}
    moved = _evaluated(motion.model, curve, turns, time, q)
    return Derivatives(motion.model, time, *moved, start, motion.rate, settings, tuple(notes), curve, turns)


def _evaluated(
    model: Model, curve: BSpline, turns: tuple[ThreeAxisJoint, ...], time: Array, near: Array
) -> tuple[Array, Array, Array]:
    """Coordinates, speeds and accelerations from the splines; angles of turns are nearest to those of `near`."""
    values = [np.asarray(curve(time, n)) for n in range(3)]
    count = len(model.coordinates)
    q, u, a = (np.ascontiguousarray(value[:, :count]) for value in values)
    for i, turn in enumerate(turns):
        column = count + 4 * i
        p, p1, p2 = (value[:, column : column + 4] for value in values)
        c = list(turn.columns)
        q[:, c], u[:, c], a[:, c] = angles_from_quaternions(turn, p, p1, p2, near[:, c])
    return coupled_motion(model, q, u, a)


def _over_both(cutoff: float, rate: float) -> float:
    """The frequency [Hz] of gain sqrt(1/2) over both passes, if each has the cutoff: what `lowpass` is told."""
    single = ORDER // 2
    return float(rate / np.pi * np.arctan(np.tan(np.pi * cutoff / rate) * (np.sqrt(2.0) - 1.0) ** (0.5 / single)))


def quintic_spline(time: Array, values: Array) -> BSpline:
    """Quintics through all values; at the ends third and fourth derivative vanish."""
    from scipy.interpolate import make_interp_spline

    zero = np.zeros(values.shape[1:])
    ends = [(3, zero), (4, zero)]
    return make_interp_spline(time, values, k=5, bc_type=(ends, ends))


def _whole(coordinates: Array, time: Array, rate: float) -> tuple[Array, int, int, list[Note]]:
    """The coordinates without holes between the first and the last frame that have a pose, and where those are."""
    posed = np.asarray(np.isfinite(coordinates).all(axis=1))
    count = int(posed.sum())
    if count < FEWEST:
        raise SettingsError(
            f"{count} of {len(posed)} frames have a pose, but speeds need at least {FEWEST}: take a longer part, or "
            "see with `borelli doctor` why markers are missing"
        )
    first, last = np.flatnonzero(posed)[[0, -1]]
    q, notes = np.array(coordinates), []
    lost = int(first + len(posed) - 1 - last)
    if lost:
        notes.append(Note(f"{lost} frames without a pose at the ends are left out of speeds and torques", "changed"))
    holes = [(a, b) for a, b in find_runs(~posed) if first < a and b <= last]
    for a, b in holes:
        if b - a > BRIDGE * rate:
            raise SettingsError(
                f"frames {a} to {b - 1} ({(b - a) / rate:.2f} s) have no pose, longer than the {BRIDGE:g} s that are "
                f"bridged: analyse the parts before and after by themselves, up to {time[a - 1]:.2f} s (--stop) and "
                f"from {time[b]:.2f} s (--start)"
            )
    if holes:
        from scipy.interpolate import CubicSpline

        inside = ~posed
        inside[:first], inside[last + 1 :] = False, False
        q[inside] = CubicSpline(time[posed], coordinates[posed])(time[inside])
        notes.append(Note(f"{int(inside.sum())} frames without a pose are bridged by cubics", "changed"))
    return q, int(first), int(last) + 1, notes
