"""What was measured: recordings of markers, forces, channels and joint angles, read, cleaned and written."""

from borelli.recording.clean import changes, clean
from borelli.recording.cleaning.filtering import crop, lowpass, resample, restore_times, smooth
from borelli.recording.cleaning.gaps import Gap, fill_gaps, find_gaps, zeros_as_missing
from borelli.recording.cleaning.label_swaps import exchange, exchange_sides, find_sides, find_swaps, undo_swaps
from borelli.recording.cleaning.spikes import find_spikes, remove_spikes
from borelli.recording.forces.assign_to_feet import (
    Contact,
    add_plates,
    assign_plates,
    contacts,
    exchange_plates,
    find_exchanges,
    threshold_plates,
    zero_plates,
)
from borelli.recording.forces.gait_events import add_events, gait_events
from borelli.recording.identify_marker_set import NameSet, Recognition, known_sets, recognise, recognitions
from borelli.recording.io import read_recording, renamed, write_recording
from borelli.recording.quality_checks import Fault, find_faults
from borelli.recording.recording import LAYOUT, Event, Note, Recording, make_dataset
from borelli.recording.units_and_axes import Conversion, conversion

__all__ = [
    "LAYOUT",
    "Contact",
    "Conversion",
    "Event",
    "Fault",
    "Gap",
    "NameSet",
    "Note",
    "Recognition",
    "Recording",
    "add_events",
    "add_plates",
    "assign_plates",
    "changes",
    "clean",
    "contacts",
    "conversion",
    "crop",
    "exchange",
    "exchange_plates",
    "exchange_sides",
    "fill_gaps",
    "find_exchanges",
    "find_faults",
    "find_gaps",
    "find_sides",
    "find_spikes",
    "find_swaps",
    "gait_events",
    "known_sets",
    "lowpass",
    "make_dataset",
    "read_recording",
    "recognise",
    "recognitions",
    "remove_spikes",
    "renamed",
    "resample",
    "restore_times",
    "smooth",
    "threshold_plates",
    "undo_swaps",
    "write_recording",
    "zero_plates",
    "zeros_as_missing",
]
