"""Fit: a model made the size of a subject, and its markers put where the subject wore them, from any trials.

One least squares over some 31 frames finds poses, joint places and attachments together; what is known beforehand (a
body of this height, the marker set's places, two like sides) decides where the markers do not. How well each length
and each angle's zero is known afterwards is part of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.fit.apply_fit import fitted_model
from borelli.analysis.fit.frame_selection import choose_frames, dress
from borelli.analysis.fit.least_squares import Solution, marker_errors, rms, solve
from borelli.analysis.fit.parameters import Unknowns, make_unknowns
from borelli.analysis.fit.uncertainty import doubts, tell
from borelli.errors import SettingsError
from borelli.model.model import Model
from borelli.model.resize import scale_mass
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

FRAMES = 31
"""Frames that are fitted: more change the result little (spec mocap, 1)."""
HELD_OUT = 30


@dataclass(frozen=True)
class Fit:
    """A model fitted to a subject.

    Attributes:
        model: The model with its new joint places, attachments and body sizes.
        data: By segment: `length`, its standard deviation `length_sd`, and `length_given` before the fit [m]. By
            coordinate: `zero_sd`, how well the zero of an angle is known, and `pose_sd`, how well a frame's value is
            [rad or m]. By marker: `marker_rms` and `marker_rms_held_out` [m].
        train_rms: Root mean square marker distance [m] in the frames that were fitted.
        held_out_rms: The same in the frames that were not; not a number without such.
        iterations: Steps of the least squares.
        notes: What was decided, and what the recordings cannot tell.
        unknowns: What was found, and what was known of it beforehand.
        solution: Where the least squares came to.
    """

    model: Model
    data: Dataset
    train_rms: float
    held_out_rms: float
    iterations: int
    notes: tuple[Note, ...] = ()
    unknowns: Unknowns | None = field(default=None, repr=False)
    solution: Solution | None = field(default=None, repr=False)

    @property
    def lengths(self) -> dict[str, float]:
        """Length of each segment [m], by name."""
        return dict(zip(map(str, self.data["segment"].values), map(float, self.data["length"].values), strict=True))

    def draw(self, random: np.random.Generator) -> Model:
        """One of the models that the recordings allow, drawn by how well places are known: to see what that leaves."""
        if self.unknowns is None or self.solution is None:
            raise SettingsError("this fit was made without its solution, so there is nothing to draw from")
        root = np.linalg.cholesky(self.solution.derivatives.covariance)
        p = self.solution.p + root @ random.standard_normal(len(self.solution.p))
        drawn = fitted_model(self.unknowns, p)
        # places are drawn; the mass is that of the model, which may have been weighed after the fit
        return scale_mass(drawn, self.model.mass) if drawn.mass > 0.0 else drawn


def fit_model(
    model: Model,
    recordings: Recording | Sequence[Recording],
    *,
    static: Recording | None = None,
    symmetric: bool = True,
    keep: Mapping[str, float | Sequence[float]] | None = None,
    frames: int = FRAMES,
    held_out: int = HELD_OUT,
) -> Fit:
    """The model fitted to what the recordings show.

    Args:
        model: A human of the subject's mass and height, or any model; without markers it is given the set that fits.
        recordings: One trial or several of the same subject wearing the same markers.
        static: A trial in which the subject stands still; it tells the zero of the angles.
        symmetric: Whether left and right are alike to within 3 mm.
        keep: What is known: lengths [m] by the name of a segment, places [m] on their bodies by the name of a marker.
        frames: How many frames are fitted, in all.
        held_out: How many frames between them judge the fit, which ends when those grow worse; 0: none.

    Raises:
        SettingsError: no marker set fits the labels, or a setting is out of range.
    """
    trials = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    if not trials and static is not None:
        trials, static = (static,), static
    if not trials:
        raise SettingsError("fit_model needs at least one recording")
    if frames < 1 or held_out < 0:
        raise SettingsError(f"frames is {frames}, held_out {held_out}, but must be at least 1 and 0")
    dressed, notes = dress(model, trials if static is None else (*trials, static))
    unknowns = make_unknowns(dressed, symmetric, keep or {})
    choice = choose_frames(unknowns.model, trials, static, frames, held_out)
    solution = solve(unknowns, choice.groups)
    train = [marker_errors(group) for group in solution.groups if group.fitted]
    judged = [marker_errors(group) for group in solution.groups if not group.fitted]
    data = tell(unknowns, solution, train, judged)
    found = (*notes, *choice.notes, *doubts(unknowns, solution, data, static is not None))
    model = fitted_model(unknowns, solution.p)
    return Fit(model, data, rms(train), rms(judged), solution.iterations, found, unknowns, solution)
