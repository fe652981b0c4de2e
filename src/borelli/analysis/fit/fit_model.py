"""Model fitting: segment lengths, joint centers and marker offsets of a subject, estimated from any trials.

One least-squares problem over some 31 frames estimates poses, joint centers and marker offsets together. Prior
knowledge (a body of this height, the marker set's offsets, symmetry) decides what the markers do not determine. The
uncertainty of each length and of each angle's zero is part of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.fit.apply_fit import fitted_model
from borelli.analysis.fit.frame_selection import (
    SET_MATCHED,
    TIED_WEIGHTS,
    UNTIED_WEIGHTS,
    choose_frames,
    choose_marker_set,
    rival_sets,
)
from borelli.analysis.fit.hip_regressions import HIP_REGRESSIONS
from borelli.analysis.fit.least_squares import FitSolution, marker_errors, rms, solve
from borelli.analysis.fit.parameters import FitParameters, make_parameters
from borelli.analysis.fit.segment_zeros import find_feet, pelvis_markers
from borelli.analysis.fit.uncertainty import fit_dataset, uncertainty_notes
from borelli.analysis.option_values import option_value
from borelli.errors import SettingsError, list_names
from borelli.files.argument_checks import check_arguments
from borelli.files.html_repr import Summary, summary_html, summary_repr
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.people.partial import fix_unmarked_parts
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

FRAMES = 31
"""Frames that are fitted: more change the result little."""
HELD_OUT = 30
RIVAL_FRAMES = 11
"""Frames to which marker sets are fitted for comparison."""
MAX_RIVAL_ERROR = 0.85
"""Ratio of marker errors below which another marker set replaces the best matching one."""
MIN_WIDTH, MAX_WIDTH = 0.03, 0.2
"""[m] Range of the widths of knees and ankles."""


@dataclass(frozen=True)
class Fit:
    """Model fitted to a subject.

    Attributes:
        model: Model with fitted joint centers, marker offsets and body sizes.
        data: By segment: `length`, its standard deviation `length_sd`, and `length_given` before the fit [m]. By
            coordinate: `zero_sd`, the standard deviation of the angle's zero, and `pose_sd`, that of its value in one
            frame [rad or m]. By joint and axis: `joint_center` on the parent body, and `joint_center_sd` relative to
            the measured markers [m]. By marker: `marker_rms` and `marker_rms_held_out` [m].
        train_rms: RMS marker error [m] in the fitted frames.
        held_out_rms: RMS marker error [m] in held-out frames; NaN without such.
        iterations: Steps of the least-squares solver.
        notes: Assumptions, and quantities that the recordings do not determine.
        parameters: Parameters that were estimated, with their prior.
        solution: Solution of the least-squares problem.
    """

    model: Model
    data: Dataset
    train_rms: float
    held_out_rms: float
    iterations: int
    notes: tuple[Note, ...] = ()
    parameters: FitParameters | None = field(default=None, repr=False)
    solution: FitSolution | None = field(default=None, repr=False)

    __repr__ = summary_repr
    _repr_html_ = summary_html

    def _summary(self) -> Summary:
        rows = [
            ("model", self.model.name),
            ("marker error", f"{1e3 * self.train_rms:.1f} mm RMS; held out: {1e3 * self.held_out_rms:.1f} mm"),
            ("segments", list_names([f"{name} {1e3 * length:.0f} mm" for name, length in self.lengths.items()])),
            ("iterations", self.iterations),
            ("notes", len(self.notes)),
        ]
        return Summary("Fit", rows)

    @property
    def lengths(self) -> dict[str, float]:
        """Length of each segment [m], by name."""
        return dict(zip(map(str, self.data["segment"].values), map(float, self.data["length"].values), strict=True))

    @check_arguments
    def draw(self, random: np.random.Generator) -> Model:
        """Draw a model from the posterior distribution of the parameters.

        Args:
            random: Random number generator.

        Returns:
            The model, with the mass of the fitted one.

        Raises:
            SettingsError: The fit was read from a file, which does not contain its solution.
        """
        if self.parameters is None or self.solution is None:
            raise SettingsError("This fit has no solution to draw models from. Run fit_model again.")
        root = np.linalg.cholesky(self.solution.covariance)
        p = self.solution.p + root @ random.standard_normal(len(self.solution.p))
        drawn = fitted_model(self.parameters, p)
        # the mass may have been weighed by plates after the fit
        return scale_mass(drawn, self.model.mass) if drawn.mass > 0.0 else drawn


def fit_model(
    model: Model,
    recordings: Recording | Sequence[Recording],
    *,
    static: Recording | None = None,
    functional: Recording | Sequence[Recording] = (),
    symmetric: bool = True,
    keep: Mapping[str, float | Sequence[float]] | None = None,
    hip_regression: str = "harrington",
    knee_width: float | None = None,
    ankle_width: float | None = None,
    frames: int = FRAMES,
    held_out: int = HELD_OUT,
) -> Fit:
    """Fit a model to recordings of a subject.

    Args:
        model: A human of the subject's mass and height, or any model. Without markers it gets the best matching set.
        recordings: One trial or several of the same subject with the same markers.
        static: Static calibration trial: the subject stands still. It determines the zero of the angles.
        functional: Functional trials, in which the hips move far in several directions: they determine the hip centers.
        symmetric: Whether left and right are alike to within 3 mm, where no landmarks determine each side.
        keep: Known values: lengths [m] by segment, marker offsets [m] on their bodies by marker.
        hip_regression: Regression of hip centers from the iliac spines: "harrington" or "bell".
        knee_width: Width of the knee between its epicondyles [m]. Default: from the recordings, else from height.
        ankle_width: Width of the ankle between its malleoli [m]. Default: from the recordings, else from height.
        frames: Number of fitted frames, in all.
        held_out: Number of held-out frames between them, which end the fit when they get worse; 0: none.

    Returns:
        The fitted model with its uncertainty.

    Raises:
        SettingsError: No marker set matches the labels, or an option is out of range.

    Examples:
        >>> recording = bo.clean(bo.synthetic_recording("walk").recording)
        >>> fit = bo.fit_model(bo.human(mass=68.0, height=1.72, sex="female"), recording)
        >>> len(fit.model.markers)
        41
    """
    ensure_compiled()
    trials = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    if not trials and static is not None:
        trials, static = (static,), static
    if not trials:
        raise SettingsError("fit_model: No recording is given. Pass at least one.")
    if frames < 1 or held_out < 0:
        raise SettingsError(f"fit_model: frames is {frames} and held_out {held_out}. Use at least 1 and 0.")
    functional = (functional,) if isinstance(functional, Recording) else tuple(functional)
    every = (*(() if static is None else (static,)), *trials, *functional)
    hip_regression = option_value("hip_regression", hip_regression, HIP_REGRESSIONS)
    marked, notes = choose_marker_set(model, every)
    marked, parts = fix_unmarked_parts(marked)
    if parts and any(note.code == SET_MATCHED for note in notes):
        marked, notes = _best_fitting_set(model, every)
    if parts:
        text = f"No markers are on {' and '.join(parts)}: assumed rigid with the rest of the body, in the rest pose."
        notes = (*notes, Note(text, "inferred", "put markers on all segments", code="unmarked_parts"))
    feet = find_feet(marked, trials, static)
    parameters = make_parameters(
        marked, symmetric, keep or {}, feet, pelvis_markers(marked), recordings=every,
        hip_regression=hip_regression, widths=_joint_widths(every, knee=knee_width, ankle=ankle_width),
    )  # fmt: skip
    groups, frame_notes = choose_frames(
        parameters.model, trials, static, frames, held_out, functional,
        weights=TIED_WEIGHTS if parameters.ties else UNTIED_WEIGHTS,
    )  # fmt: skip
    solution = solve(parameters, groups)
    train = [marker_errors(group) for group in solution.groups if group.fitted]
    test = [marker_errors(group) for group in solution.groups if not group.fitted]
    data = fit_dataset(parameters, solution, train, test)
    notes = (*notes, *frame_notes, *uncertainty_notes(parameters, solution, data, static is not None))
    fitted = fitted_model(parameters, solution.p)
    return Fit(fitted, data, rms(train), rms(test), solution.iterations, notes, parameters, solution)


def _joint_widths(recordings: Sequence[Recording], **stated: float | None) -> dict[str, float]:
    """Return the measured widths [m] of joints, by joint: as stated, or of the first recording that has them."""
    widths = {}
    for joint, width in stated.items():
        measured = (recording.subject.get(f"{joint}_width") for recording in recordings)
        found = width if width is not None else next((value for value in measured if value), None)
        if found is not None:
            if not (isinstance(found, int | float) and MIN_WIDTH < found < MAX_WIDTH):
                raise SettingsError(
                    f"{joint}_width: {found!r} m is out of range. Use {MIN_WIDTH:g} to {MAX_WIDTH:g} m (on the command "
                    f"line {1e3 * MIN_WIDTH:g} to {1e3 * MAX_WIDTH:g} mm)."
                )
            widths[joint] = float(found)
    return widths


def _best_fitting_set(model: Model, recordings: Sequence[Recording]) -> tuple[Model, tuple[Note, ...]]:
    """Return a partial body with the marker set that has most of the labels, or another that fits clearly better.

    A part of a set does not identify it by its labels alone: those of a leg may be on the skin or on wands.
    """

    def add(name: str) -> tuple[Model, tuple[Note, ...]]:
        marked, notes = choose_marker_set(model, recordings, name)
        return fix_unmarked_parts(marked)[0], notes

    def error(marked: Model) -> float:
        parameters = make_parameters(marked, True, {}, pelvis=pelvis_markers(marked))
        groups, _ = choose_frames(parameters.model, recordings[:1], None, RIVAL_FRAMES, 0, weights=TIED_WEIGHTS)
        return rms([marker_errors(group) for group in solve(parameters, groups).groups])

    first, *others = rival_sets(model, recordings)
    best = add(first)
    least = MAX_RIVAL_ERROR * error(best[0]) if others else 0.0
    for name in others:
        other = add(name)
        if (found := error(other[0])) < least:
            least, best = found, other
    return best
