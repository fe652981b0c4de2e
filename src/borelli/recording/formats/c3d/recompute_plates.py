"""Plate loads recomputed from the channels of a C3D recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from borelli.numerics.vectors import Array
from borelli.recording.formats.c3d.force_plates import compute_loads, read_plates, unloaded_samples
from borelli.recording.formats.c3d.write_parameters import parameters_from_plain
from borelli.recording.recording import Recording
from borelli.recording.units_and_axes import Conversion


def plates_from_channels(recording: Recording, empty: npt.NDArray[np.bool_] | None = None) -> dict[str, Array] | None:
    """Return the variables of the plates computed from the channels; None if there are no such channels.

    The median over the samples in which a plate is `empty`, a mask (samples, plates), is subtracted from its channels;
    by default the mean over the frames stated by the file, if any.
    """
    data = recording.data
    if recording.format != "C3D" or "analog" not in data or "plate_force" not in data:
        return None
    parameters = parameters_from_plain(recording.metadata)
    values = data["analog"].values
    if parameters.number("ANALOG", "USED") != values.shape[1]:
        return None
    converted = Conversion.from_attributes(data.attrs)
    plates, _ = read_plates(parameters, converted, values.shape[1])
    if tuple(plate.name for plate in plates) != recording.plates:
        return None
    samples = max(1, round(recording.analog_rate / recording.rate)) if recording.rate > 0.0 else 1
    if empty is not None:
        values = values.astype(float)
        for plate, rows in zip(plates, empty.T, strict=True):
            # the positions of a plate of type 1 have no offset
            with_offset = plate.channels if plate.kind != 1 else plate.channels[[0, 1, 2, 5]]
            values[:, with_offset] -= np.median(values[np.ix_(rows, with_offset)], axis=0) if rows.any() else 0.0
    loads, _ = compute_loads(
        plates,
        values,
        [str(unit) for unit in data["channel_units"].values],
        length=converted.scale,
        empty=unloaded_samples(parameters, len(values) // samples, samples) if empty is None else None,
        exerted_on=parameters.text("FORCE_PLATFORM", "EXERTED_ON"),
    )
    return loads


def channels_match_plates(recording: Recording) -> bool:
    """Return whether the plate channels still give the plate loads of the recording."""
    loads = plates_from_channels(recording)
    return loads is not None and all(
        np.allclose(values, recording.data[name].values, rtol=1e-6, atol=1e-4, equal_nan=True)
        for name, values in loads.items()
        if name in recording.data
    )
