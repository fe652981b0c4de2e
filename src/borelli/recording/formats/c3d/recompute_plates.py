"""Plates measured again from the channels that a recording of a C3D file still holds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from borelli.recording.formats.c3d.force_plates import baseline, measure, read_plates
from borelli.recording.formats.c3d.write_parameters import stored
from borelli.recording.recording import Recording
from borelli.recording.units_and_axes import Conversion

Array = npt.NDArray[np.float64]


def plates_from_channels(recording: Recording, empty: npt.NDArray[np.bool_] | None = None) -> dict[str, Array] | None:
    """The plates' variables as the recording's channels give them; None where it has no such channels.

    Args:
        recording: Of a C3D file.
        empty: Samples in which each plate carries nothing, shape (samples, plates), whose median is taken off its
            channels; by default the mean over the frames that the file itself names, if it does.
    """
    data = recording.data
    if recording.format != "C3D" or "analog" not in data or "plate_force" not in data:
        return None
    parameters = stored(recording.metadata)
    values = data["analog"].values
    if parameters.number("ANALOG", "USED") != values.shape[1]:
        return None
    turned = Conversion.of_file(data.attrs)
    plates, _ = read_plates(parameters, turned, values.shape[1])
    if tuple(plate.name for plate in plates) != recording.plates:
        return None
    samples = max(1, round(recording.analog_rate / recording.rate)) if recording.rate > 0.0 else 1
    if empty is not None:
        values = values.astype(float)
        for plate, rows in zip(plates, empty.T, strict=True):
            # a plate of type 1 tells places instead of moments, which have no offset
            shifted = plate.channels if plate.kind != 1 else plate.channels[[0, 1, 2, 5]]
            values[:, shifted] -= np.median(values[np.ix_(rows, shifted)], axis=0) if rows.any() else 0.0
    found, _ = measure(
        plates,
        values,
        [str(unit) for unit in data["channel_units"].values],
        length=turned.scale,
        empty=baseline(parameters, len(values) // samples, samples) if empty is None else None,
        exerted_on=parameters.text("FORCE_PLATFORM", "EXERTED_ON"),
    )
    return found


def channels_still_tell(recording: Recording) -> bool:
    """Whether the plate channels, measured again, give the plates of the recording."""
    found = plates_from_channels(recording)
    return found is not None and all(
        np.allclose(values, recording.data[name].values, rtol=1e-6, atol=1e-4, equal_nan=True)
        for name, values in found.items()
        if name in recording.data
    )
