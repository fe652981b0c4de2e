"""Recordings of markers, forces, analog channels and joint angles: reading, cleaning, checking and writing."""

from borelli.files.argument_checks import check_public_functions
from borelli.numerics.filters import lowpass
from borelli.recording.clean import changes, clean
from borelli.recording.cleaning.filtering import crop, lowpass_filter, repair_time_stamps, resample
from borelli.recording.cleaning.gaps import Gap, fill_gaps, find_gaps, zeros_as_missing
from borelli.recording.cleaning.label_swaps import find_sides, find_swaps, repair_label_swaps, swap_markers, swap_sides
from borelli.recording.cleaning.spikes import find_spikes, remove_spikes
from borelli.recording.emg.agreement import EmgAgreement, emg_agreement
from borelli.recording.emg.envelopes import emg_envelopes
from borelli.recording.emg.muscle_names import MuscleName, matching_muscles, read_muscle_names
from borelli.recording.emg.processing import EmgSettings
from borelli.recording.forces.assign_to_feet import (
    Contact,
    add_plates,
    assign_plates,
    find_plate_swaps,
    plate_contacts,
    swap_plates,
    threshold_plates,
    zero_plates,
)
from borelli.recording.forces.gait_events import add_events, gait_events
from borelli.recording.identify_marker_set import (
    MarkerSetMatch,
    NameSet,
    identify_marker_set,
    rank_marker_sets,
    read_name_sets,
)
from borelli.recording.io import read_recording, rename_markers, write_recording
from borelli.recording.labels.interpret import LabelReading, LabelReadings, interpret_labels
from borelli.recording.live import FileSource, LiveFrame, LiveSource
from borelli.recording.marker_map import apply_marker_map, map_from_convention, read_marker_map, write_marker_map
from borelli.recording.quality_checks import Issue, check_recording
from borelli.recording.recording import LAYOUT, Event, Note, Recording, make_dataset
from borelli.recording.units_and_axes import Conversion, infer_conversion

__all__ = [
    "LAYOUT",
    "Contact",
    "Conversion",
    "EmgAgreement",
    "EmgSettings",
    "Event",
    "FileSource",
    "Gap",
    "Issue",
    "LabelReading",
    "LabelReadings",
    "LiveFrame",
    "LiveSource",
    "MarkerSetMatch",
    "MuscleName",
    "NameSet",
    "Note",
    "Recording",
    "add_events",
    "add_plates",
    "apply_marker_map",
    "assign_plates",
    "changes",
    "check_recording",
    "clean",
    "crop",
    "emg_agreement",
    "emg_envelopes",
    "fill_gaps",
    "find_gaps",
    "find_plate_swaps",
    "find_sides",
    "find_spikes",
    "find_swaps",
    "gait_events",
    "identify_marker_set",
    "infer_conversion",
    "interpret_labels",
    "lowpass",
    "lowpass_filter",
    "make_dataset",
    "map_from_convention",
    "matching_muscles",
    "plate_contacts",
    "rank_marker_sets",
    "read_marker_map",
    "read_muscle_names",
    "read_name_sets",
    "read_recording",
    "remove_spikes",
    "rename_markers",
    "repair_label_swaps",
    "repair_time_stamps",
    "resample",
    "swap_markers",
    "swap_plates",
    "swap_sides",
    "threshold_plates",
    "write_marker_map",
    "write_recording",
    "zero_plates",
    "zeros_as_missing",
]

check_public_functions(__name__)
