"""What was measured: recordings of markers, forces, channels and joint angles, read, cleaned and written."""

from borelli.numerics.filters import lowpass
from borelli.recording.clean import changes, clean
from borelli.recording.cleaning.filtering import crop, lowpass_filter, repair_time_stamps, resample
from borelli.recording.cleaning.gaps import Gap, fill_gaps, find_gaps, zeros_as_missing
from borelli.recording.cleaning.label_swaps import find_sides, find_swaps, repair_label_swaps, swap_markers, swap_sides
from borelli.recording.cleaning.spikes import find_spikes, remove_spikes
from borelli.recording.forces.assign_to_feet import (
    Contact,
    add_plates,
    assign_plates,
    plate_contacts,
    find_plate_swaps,
    swap_plates,
    threshold_plates,
    zero_plates,
)
from borelli.recording.forces.gait_events import add_events, gait_events
from borelli.recording.identify_marker_set import NameSet, MarkerSetMatch, identify_marker_set, load_name_sets, rank_marker_sets
from borelli.recording.io import read_recording, rename_markers, write_recording
from borelli.recording.quality_checks import Issue, check_recording
from borelli.recording.recording import LAYOUT, Event, Note, Recording, make_dataset
from borelli.recording.units_and_axes import Conversion, infer_conversion

__all__ = [
    "LAYOUT",
    "Contact",
    "Conversion",
    "Event",
    "Gap",
    "Issue",
    "NameSet",
    "Note",
    "MarkerSetMatch",
    "Recording",
    "add_events",
    "add_plates",
    "assign_plates",
    "changes",
    "check_recording",
    "clean",
    "plate_contacts",
    "infer_conversion",
    "crop",
    "fill_gaps",
    "find_plate_swaps",
    "find_gaps",
    "find_sides",
    "find_spikes",
    "find_swaps",
    "gait_events",
    "identify_marker_set",
    "load_name_sets",
    "lowpass",
    "lowpass_filter",
    "make_dataset",
    "read_recording",
    "rank_marker_sets",
    "remove_spikes",
    "rename_markers",
    "repair_label_swaps",
    "repair_time_stamps",
    "resample",
    "swap_markers",
    "swap_plates",
    "swap_sides",
    "threshold_plates",
    "write_recording",
    "zero_plates",
    "zeros_as_missing",
]
