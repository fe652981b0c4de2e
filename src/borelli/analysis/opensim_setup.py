"""OpenSim's setup files of inverse kinematics, inverse dynamics and external loads.

Only the content of the file is returned; the files it names are not opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads, measured_loads
from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.html_repr import fields_repr
from borelli.files.xml import read_xml
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND
from borelli.recording.formats.grf_columns import ZERO_POINTS, find_plates
from borelli.recording.recording import Note, Recording

MAX_TASKS = 5000


@dataclass(frozen=True)
class CoordinateTask:
    """Spring of a coordinate to a value [rad or m] in inverse kinematics."""

    weight: float
    value: float | None
    """None: the default of the coordinate."""
    from_file: bool = False
    """Whether the value is that of the coordinates file at each time."""


@dataclass(frozen=True)
class InverseKinematicsSetup:
    """Content of an InverseKinematicsTool; tasks that are switched off are left out."""

    marker_weights: Mapping[str, float]
    coordinate_tasks: Mapping[str, CoordinateTask]
    time_range: tuple[float, float]
    accuracy: float
    model_file: str
    marker_file: str
    coordinate_file: str

    __repr__ = fields_repr


@dataclass(frozen=True)
class InverseDynamicsSetup:
    """Content of an InverseDynamicsTool."""

    time_range: tuple[float, float]
    cutoff: float | None
    """[Hz]; None: coordinates are not filtered."""
    model_file: str
    coordinates_file: str
    external_loads_file: str

    __repr__ = fields_repr


@dataclass(frozen=True)
class ExternalForce:
    """Columns of a table whose force acts on a body."""

    name: str
    body: str
    force: str
    """Prefix of the three force columns."""
    point: str
    torque: str


@dataclass(frozen=True)
class ExternalLoads:
    """Content of an ExternalLoads file; forces that are switched off are left out."""

    forces: tuple[ExternalForce, ...]
    data_file: str

    __repr__ = fields_repr


def read_ik_setup(path: str | os.PathLike[str]) -> InverseKinematicsSetup:
    """Read an OpenSim InverseKinematicsTool file.

    Args:
        path: Of the file.

    Returns:
        Its content.

    Raises:
        FileFormatError: The file is not an InverseKinematicsTool file, or a task has an invalid value.
    """
    tool = _tool(path, "InverseKinematicsTool")
    tasks = tool.listed("IKTaskSet")
    if len(tasks) > MAX_TASKS:
        raise FileFormatError(path, f"The file has {len(tasks)} tasks; at most {MAX_TASKS} are supported. Remove some.")
    weights: dict[str, float] = {}
    coordinates: dict[str, CoordinateTask] = {}
    for task in tasks:
        if not task.flag("apply", True):
            continue
        weight = task.number("weight", 1.0)
        if weight < 0.0:
            raise task.error(f"<weight> must not be negative (got {weight:g}). Correct it.")
        if task.kind == "IKMarkerTask":
            weights[task.name] = weight
        elif task.kind == "IKCoordinateTask":
            source = task.text("value_type") or "default_value"
            if source not in (known := ("default_value", "manual_value", "from_file")):
                raise task.error(unknown_name("<value_type>", source, known))
            value = task.number("value", 0.0) if source == "manual_value" else None
            coordinates[task.name] = CoordinateTask(weight, value, source == "from_file")
    return InverseKinematicsSetup(
        weights, coordinates, _time_range(tool), tool.number("accuracy", 1e-5), _file(tool, "model_file"),
        _file(tool, "marker_file"), _file(tool, "coordinate_file"),
    )  # fmt: skip


def read_id_setup(path: str | os.PathLike[str]) -> InverseDynamicsSetup:
    """Read an OpenSim InverseDynamicsTool file.

    Args:
        path: Of the file.

    Returns:
        Its content.

    Raises:
        FileFormatError: The file is not an InverseDynamicsTool file.
    """
    tool = _tool(path, "InverseDynamicsTool")
    cutoff = tool.number("lowpass_cutoff_frequency_for_coordinates", -1.0)
    return InverseDynamicsSetup(
        _time_range(tool), cutoff if cutoff > 0.0 else None, _file(tool, "model_file"),
        _file(tool, "coordinates_file"), _file(tool, "external_loads_file"),
    )  # fmt: skip


def read_external_loads(path: str | os.PathLike[str]) -> ExternalLoads:
    """Read an OpenSim ExternalLoads file.

    Args:
        path: Of the file.

    Returns:
        Its content.

    Raises:
        FileFormatError: The file is not an ExternalLoads file, or a force is not expressed in the ground.
    """
    loads = _tool(path, "ExternalLoads")
    forces = []
    for item in (loads.child("objects") or loads).children():
        if item.kind != "ExternalForce" or item.flag("isDisabled") or not item.flag("appliesForce", True):
            continue
        for tag in ("force_expressed_in_body", "point_expressed_in_body"):
            if (item.text(tag) or GROUND) != GROUND:
                raise item.error(f"<{tag}> is {item.text(tag)[:40]!r}; only ground is supported. Express it in ground.")
        body = item.text("applied_to_body")
        force = item.text("force_identifier")
        if not body or not force:
            raise item.error("<applied_to_body> or <force_identifier> is missing. Add both.")
        forces.append(
            ExternalForce(item.name or body, body, force, item.text("point_identifier"), item.text("torque_identifier"))
        )
        if len(forces) > MAX_TASKS:
            raise FileFormatError(path, f"The file has more than {MAX_TASKS} forces. Remove some.")
    return ExternalLoads(tuple(forces), _file(loads, "datafile"))


def loads_from_setup(
    setup: ExternalLoads, table: Recording, bodies: Mapping[str, str] | None = None, *, at_origin: bool | None = False
) -> Loads:
    """Return the loads that OpenSim would apply.

    Args:
        setup: External loads of a setup file.
        table: Recording read from the table of ground reaction forces.
        bodies: Bodies by force name, in place of the setup's.
        at_origin: Whether forces too small for a point of application act at the world origin. Some tables have zeros
            there, and OpenSim applies the force at that point, meters from the foot. None: as the table has it, with a
            note.

    Returns:
        The loads [N, m, N m].

    Raises:
        SettingsError: The setup has no force, or the table has no plate for one.
    """
    if not setup.forces:
        raise SettingsError("The external loads contain no force. Pass a setup with at least one.")
    changed = dict(bodies or {})
    names = [force.name for force in setup.forces]
    for name in changed:
        if name not in names:
            raise SettingsError(unknown_name("external force", name, names))
    chosen = []
    for one in setup.forces:
        plate = next(iter(find_plates([f"{one.force}{axis}" for axis in "xyz"])), one.force)
        if plate not in table.plates:
            raise SettingsError(
                f"External force {one.name!r}: The table has no columns {one.force}x, y, z (plates: "
                f"{', '.join(table.plates) or 'none'}). Pass the table that belongs to the setup."
            )
        chosen.append(table.plates.index(plate))
    data = table.data
    force, point, moment = (
        np.asarray(data[f"plate_{name}"].values[:, chosen], dtype=float)
        for name in ("force", "center_of_pressure", "free_moment")
    )
    zeros = any(note.code == ZERO_POINTS for note in table.notes)
    notes: tuple[Note, ...] = ()
    if at_origin is None:
        at_origin = zeros
        where = "at the world origin, as OpenSim does" if zeros else "at the nearest known point in time"
        text = f"External loads: forces without a point of application act {where}."
        notes = (Note(text, "inferred", "at_origin=", code=ZERO_POINTS),)
    if at_origin:
        point = np.nan_to_num(point)
    on = tuple(changed.get(one.name, one.body) for one in setup.forces)
    clock = np.asarray(data["analog_time"].values, dtype=float)
    return measured_loads(Loads(tuple(names), on, clock, force, point, moment, notes=notes))


def _tool(path: str | os.PathLike[str], kind: str) -> Item:
    root = read_xml(path)
    element = next((element for element in root.walk() if element.tag == kind), None)
    if element is None:
        got = root.children[0].tag if root.tag == "OpenSimDocument" and root.children else root.tag
        raise FileFormatError(path, f"The document contains <{got[:40]}> instead of <{kind}>. Pass another file.")
    return Item(element)


def _time_range(tool: Item) -> tuple[float, float]:
    """Return the first and last time [s]; unlimited if not stated."""
    # OpenSim itself writes -inf and inf for no limit
    words = tool.text("time_range").lower().split()
    if len(words) != 2 or any(word.lstrip("+-") in ("inf", "infinity") for word in words):
        return -inf, inf
    return tool.pair("time_range", (-inf, inf))


def _file(tool: Item, tag: str) -> str:
    name = tool.text(tag)
    return "" if name == "Unassigned" else name
