"""Differentiation: coordinates of a motion, low-pass filtered, and their derivatives from splines through the frames.

| preset | low-pass filter | spline |
|---|---|---|
| `default` | Butterworth of order 2, run forward and backward (order 4 in all) | quintic |
| `strides` | the same; a walk is continued beyond its ends as in the stride before | quintic |
| `opensim` | Butterworth of order 3, run forward and backward | quintic |
| `none` | none | quintic |

The cutoff is that of each pass, as OpenSim and most laboratories state it: the gain there, after both, is 1/2.

The three angles of a free joint, and those of joints near gimbal lock, are treated as one rotation
(`joint_rotations`), so that the lab axes make no difference. `opensim` has no rotations: it does with every coordinate
what OpenSim's inverse dynamics does. The series is first extended at both ends by half its length, reflected in its end
points; the filter starts from its first samples as they are. The other presets extend it as described in
`numerics.series_extension`. `strides` is for forces predicted from the motion alone, which are no better than the
accelerations; with measured forces `default` stays near the results of OpenSim and others, whose motions have no
acceleration at their ends. All presets put the spline through the extended series, whose third and fourth derivatives
vanish at its far ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.kinematics.joint_rotations import (
    ThreeAxisJoint,
    angles_from_quaternions,
    find_rotation_joints,
    joint_quaternions,
)
from borelli.analysis.motion import Motion
from borelli.errors import SettingsError, unknown_name
from borelli.model.kinematics import coupled_motion
from borelli.model.model import Model
from borelli.numerics.filters import ORDER, cutoff_of_both_passes, lowpass, opensim_lowpass
from borelli.numerics.runs import find_runs
from borelli.numerics.series_extension import extend_series, reflect
from borelli.numerics.vectors import Array
from borelli.recording.cleaning.filtering import CUTOFF
from borelli.recording.recording import Note

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

Columns = NDArray[np.int64]

PRESETS = ("default", "strides", "opensim", "none")
LOW_PASSED = ("default", "strides")
MAX_BRIDGE = 0.1
"""[s] Longest run of frames without a pose inside a motion that cubics bridge, as `clean` bridges markers."""
MIN_SPLINE_FRAMES = 8
"""Frames that a quintic spline needs."""
EXTENSION_PERIODS = 6.0
"""Periods of the cutoff by which a series is extended at most, except for OpenSim: more than the filter's memory."""
STEP_TOLERANCE = 1e-3
"""Time steps that differ by more than this fraction are resampled to an even grid before filtering."""


@dataclass(frozen=True)
class Derivatives:
    """Coordinates and their time derivatives, in the order of the model's coordinates."""

    model: Model
    time: Array
    """(frames,) [s]."""
    coordinates: Array
    """(frames, coordinates) [rad or m], filtered."""
    speeds: Array
    """Their first time derivative."""
    accelerations: Array
    """Their second time derivative."""
    rate: float
    """Frames per second [Hz]."""
    settings: dict[str, Any]
    """Preset and cutoff."""
    notes: tuple[Note, ...]
    """Assumptions and changes."""
    curve: BSpline
    """Splines of the coordinates, then of the quaternions of `rotation_joints`."""
    rotation_joints: tuple[ThreeAxisJoint, ...]
    """Joints that are treated as rotations."""

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """Return coordinates, speeds and accelerations at other times [s] of the motion."""
        nearest = np.clip(np.searchsorted(self.time, time - 0.5 / self.rate), 0, len(self.time) - 1)
        return _evaluate(self.model, self.curve, self.rotation_joints, time, self.coordinates[nearest])


def differentiate(
    motion: Motion,
    *,
    filter: str = "default",
    cutoff: float | None = None,
    joints: tuple[ThreeAxisJoint, ...] | None = None,
) -> Derivatives:
    """Filter the coordinates of a motion with a preset and compute their speeds and accelerations.

    Frames without a pose at the ends are left out; inside they are bridged if they last no longer than `MAX_BRIDGE`.
    The default cutoff is 6 Hz. `joints` are treated as rotations; by default those that `find_rotation_joints` finds.
    """
    settings = filter_settings(filter, cutoff)
    cutoff = CUTOFF if cutoff is None else float(cutoff)
    time = np.asarray(motion.data["time"].values, dtype=float)
    q, start, end, notes = bridge_gaps(motion.coordinates, time, motion.rate)
    time, q = time[start:end], q[start:end]
    rate, even, resampled = motion.rate, time, q
    steps = np.diff(time)
    if not (steps > 0.0).all():
        raise SettingsError(
            "The times of the motion do not increase, so speeds are undefined. Repair the recording's time stamps "
            "(repair_time_stamps) or resample it."
        )
    if np.ptp(steps) > STEP_TOLERANCE * np.median(steps) and filter != "none":
        # a digital filter assumes even samples
        rate = (len(time) - 1) / (time[-1] - time[0])
        even = time[0] + np.arange(len(time)) / rate
        resampled = quintic_spline(time, q)(even)
        text = "Frames with uneven time steps were resampled to an even grid before the low-pass filter."
        notes.append(Note(text, "changed", code="uneven_time"))
    if filter != "none" and not 0.0 < cutoff < 0.5 * rate:
        raise SettingsError(
            f"cutoff: {cutoff:g} Hz is not between 0 and the Nyquist frequency of the motion ({0.5 * rate:g} Hz). "
            "Choose a lower cutoff."
        )
    if joints is None:
        joints = () if filter == "opensim" else find_rotation_joints(motion.model, q)
    series = np.hstack([resampled, *(joint_quaternions(joint, resampled) for joint in joints)])
    # the angles of rotation joints depend on the lab axes, their quaternions only as vectors do
    others = np.delete(np.arange(series.shape[1]), [column for joint in joints for column in joint.columns])
    curve = smooth_spline(series, even, rate, filter, cutoff, others if filter == "strides" else ())
    values = _evaluate(motion.model, curve, joints, time, q)
    return Derivatives(motion.model, time, *values, motion.rate, settings, tuple(notes), curve, joints)


def smooth_spline(
    series: Array, time: Array, rate: float, filter: str, cutoff: float, stride_columns: Sequence[int] | Columns = ()
) -> BSpline:
    """Return the splines of low-pass filtered series (frames, columns) at even times; but for strides it is linear.

    In `stride_columns` the preset "strides" looks for a stride. Other arguments as in `differentiate`.
    """
    pad = len(time) // 2
    if filter == "opensim":
        extended = opensim_lowpass(reflect(series, pad), rate, cutoff)
    else:
        pad = min(pad, int(np.ceil(EXTENSION_PERIODS * rate / cutoff)))
        try:
            extended = extend_series(
                series, pad, rate / cutoff, noisy=filter in LOW_PASSED, stride_columns=stride_columns
            )
        except np.linalg.LinAlgError:  # the equations are singular to rounding
            raise SettingsError(
                f"cutoff: A low-pass filter of {cutoff:g} Hz is not accurate at {rate:g} Hz. Resample the recording, "
                "such as with `borelli clean --rate 250`, or choose a higher cutoff."
            ) from None
    if filter in LOW_PASSED:
        extended = lowpass(extended, rate, cutoff_of_both_passes(cutoff, rate), ORDER)
    before, after = time[0] - (time[pad:0:-1] - time[0]), time[-1] + (time[-1] - time[-2 : -pad - 2 : -1])
    return quintic_spline(np.concatenate([before, time, after]), extended)


def filter_settings(filter: str, cutoff: float | None) -> dict[str, Any]:
    """Return preset and cutoff [Hz] as plain values; the default cutoff is 6 Hz, and a preset without filter has none.

    Raises:
        SettingsError: The preset is unknown.
    """
    if filter not in PRESETS:
        raise SettingsError(unknown_name("filter", filter, PRESETS))
    used = CUTOFF if cutoff is None else float(cutoff)
    return {"filter": filter, "cutoff_hz": None if filter == "none" else used}


def _evaluate(
    model: Model, curve: BSpline, joints: tuple[ThreeAxisJoint, ...], time: Array, near: Array
) -> tuple[Array, Array, Array]:
    """Return coordinates, speeds and accelerations of the splines; angles of rotation joints nearest to `near`."""
    values = [np.asarray(curve(time, n)) for n in range(3)]
    count = len(model.coordinates)
    q, u, a = (np.ascontiguousarray(value[:, :count]) for value in values)
    for i, joint in enumerate(joints):
        column = count + 4 * i
        p, p1, p2 = (value[:, column : column + 4] for value in values)
        c = list(joint.columns)
        q[:, c], u[:, c], a[:, c] = angles_from_quaternions(joint, p, p1, p2, near[:, c])
    return coupled_motion(model, q, u, a)


def quintic_spline(time: Array, values: Array) -> BSpline:
    """Return the quintic spline through all values; at the ends its third and fourth derivatives vanish."""
    from scipy.interpolate import make_interp_spline

    zero = np.zeros(values.shape[1:])
    ends = [(3, zero), (4, zero)]
    return make_interp_spline(time, values, k=5, bc_type=(ends, ends))


def bridge_gaps(coordinates: Array, time: Array, rate: float) -> tuple[Array, int, int, list[Note]]:
    """Return coordinates without gaps, the first and last (exclusive) frame with a pose, and notes."""
    posed = np.asarray(np.isfinite(coordinates).all(axis=1))
    count = int(posed.sum())
    if count < MIN_SPLINE_FRAMES:
        raise SettingsError(
            f"{count} of {len(posed)} frames have a pose, but speeds need at least {MIN_SPLINE_FRAMES}. Use a longer "
            "recording, or check with `borelli doctor` why markers are missing."
        )
    first, last = np.flatnonzero(posed)[[0, -1]]
    q, notes = np.array(coordinates), []
    lost = int(first + len(posed) - 1 - last)
    if lost:
        text = f"{lost} frames without a pose at the ends are left out of speeds and torques."
        notes.append(Note(text, "changed", code="ends_without_pose"))
    gaps = [(a, b) for a, b in find_runs(~posed) if first < a and b <= last]
    for a, b in gaps:
        if b - a > MAX_BRIDGE * rate:
            raise SettingsError(
                f"Frames {a} to {b - 1} ({(b - a) / rate:.2f} s) have no pose; gaps of {MAX_BRIDGE:g} s are bridged. "
                f"Analyze the parts before and after separately: --end {time[a - 1]:.2f} and --start {time[b]:.2f}."
            )
    if gaps:
        from scipy.interpolate import CubicSpline

        inside = ~posed
        inside[:first], inside[last + 1 :] = False, False
        q[inside] = CubicSpline(time[posed], coordinates[posed])(time[inside])
        text = f"{int(inside.sum())} frames without a pose are bridged by cubic splines."
        notes.append(Note(text, "changed", code="bridged_frames"))
    return q, int(first), int(last) + 1, notes
