"""Sizes of the errors that Monte Carlo repeats draw, with their sources in the literature."""

from __future__ import annotations

from dataclasses import dataclass, fields

from borelli.errors import SettingsError

ASSUMED_MASS_SD = 0.2
"""Relative standard deviation of a body mass that is assumed: that of adults (Fryar et al. 2016)."""
MAX_ERROR_SIZE = 10.0


@dataclass(frozen=True)
class ErrorSizes:
    """Sizes of errors. Each is a standard deviation; 0 leaves its source out.

    Attributes:
        skin_motion: Rigid motion of the skin of each segment, as a multiple of the published amplitudes (`SKIN_MOTION`:
            Benoit et al. 2006, Barre et al. 2017).
        body_mass: Body mass, relative: a scale, clothes and shoes.
        segment_mass: Mass of each segment, relative, at the same total. Regressions miss some segments of a subject by
            more than 10 % (Rossi et al. 2013), and by up to 40 % (Durkin and Dowling 2003).
        center_of_mass: Center of mass of each segment along each axis, relative to its length: as far as tables differ
            (1 to 3 %: Winter 2009, de Leva 1996).
        gyration_radius: Radius of gyration of each segment about each axis, relative: as far as tables differ (2 to
            15 %: Winter 2009, de Leva 1996).
        plate_position: Position of each plate relative to the cameras, along each horizontal axis [m]: 2 to 3 mm for a
            calibrated plate (Cappello et al. 2011, Collins et al. 2009).
        plate_gain: Forces of each plate, relative (Collins et al. 2009, Cappello et al. 2011).
        center_of_pressure: Center of pressure in each sample, along each horizontal axis [m] (Cappello et al. 2011).
        cutoff: Natural logarithm of the cutoff of the low-pass filter: half of its range, evenly distributed. Residual
            analysis and practice place that of a walk between 4 and 9 Hz, a factor of 1.5 about 6 Hz (Winter 2009).
    """

    skin_motion: float = 1.0
    body_mass: float = 0.01
    segment_mass: float = 0.10
    center_of_mass: float = 0.02
    gyration_radius: float = 0.05
    plate_position: float = 0.003
    plate_gain: float = 0.01
    center_of_pressure: float = 0.001
    cutoff: float = 0.405

    def __post_init__(self) -> None:
        """Raise SettingsError for a size that is negative, not finite or absurd."""
        for one in fields(self):
            size = getattr(self, one.name)
            if not 0.0 <= size <= MAX_ERROR_SIZE:
                raise SettingsError(f"errors: {one.name} is {size}. Use 0 to {MAX_ERROR_SIZE:g}.")


NO_ERRORS = ErrorSizes(*[0.0] * len(fields(ErrorSizes)))
"""No source of error but marker noise and drawn models."""
