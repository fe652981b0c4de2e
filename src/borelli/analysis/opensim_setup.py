"""OpenSim's setup files: what inverse kinematics and inverse dynamics were told, for running the same here.

Only what is said in the file is given; the files it names are not opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from borelli.analysis.dynamics.external_loads import Loads, measured_loads
from borelli.errors import FileFormatError, SettingsError, unknown_name
from borelli.files.xml import read_xml
from borelli.model.formats.osim.properties import Item
from borelli.model.model import GROUND
from borelli.recording.formats.grf_columns import find_plates
from borelli.recording.recording import Recording

MOST_TASKS = 5000


@dataclass(frozen=True)
class CoordinateTask:
    """That a coordinate is drawn to a value [rad or m] in inverse kinematics."""

    weight: float
    value: float | None
    """None: the coordinate's default."""
    from_file: bool = False
    """Whether the value is that of the coordinates file at each time."""


@dataclass(frozen=True)
class InverseKinematicsSetup:
    """An InverseKinematicsTool; tasks that are switched off are left out."""

    marker_weights: Mapping[str, float]
    coordinate_tasks: Mapping[str, CoordinateTask]
    time_range: tuple[float, float]
    accuracy: float
    model_file: str
    marker_file: str
    coordinate_file: str


@dataclass(frozen=True)
class InverseDynamicsSetup:
    """An InverseDynamicsTool."""

    time_range: tuple[float, float]
    cutoff: float | None
    """[Hz]; None: coordinates are not filtered."""
    model_file: str
    coordinates_file: str
    external_loads_file: str


@dataclass(frozen=True)
class ExternalForce:
    """Which columns of a table push which body."""

    name: str
    body: str
    force: str
    """What the names of the three force columns begin with."""
    point: str
    torque: str


@dataclass(frozen=True)
class ExternalLoads:
    """An ExternalLoads file; forces that are switched off are left out."""

    forces: tuple[ExternalForce, ...]
    data_file: str


def read_ik_setup(path: str | os.PathLike[str]) -> InverseKinematicsSetup:
    """What an InverseKinematicsTool file says."""
    tool = _tool(path, "InverseKinematicsTool")
    tasks = [task for task_set in tool.listed("IKTaskSet") for task in (task_set,)]
    if len(tasks) > MOST_TASKS:
        raise FileFormatError(path, f"it has {len(tasks)} tasks, but at most {MOST_TASKS} are read")
    weights: dict[str, float] = {}
    coordinates: dict[str, CoordinateTask] = {}
    for task in tasks:
        if not task.flag("apply", True):
            continue
        weight = task.number("weight", 1.0)
        if weight < 0.0:
            raise task.error(f"<weight> must not be negative, got {weight:g}")
        if task.kind == "IKMarkerTask":
            weights[task.name] = weight
        elif task.kind == "IKCoordinateTask":
            source = task.text("value_type") or "default_value"
            if source not in ("default_value", "manual_value", "from_file"):
                raise task.error(
                    f"<value_type> must be default_value, manual_value or from_file, got {source[:40]!r}"
                )
            value = task.number("value", 0.0) if source == "manual_value" else None
            coordinates[task.name] = CoordinateTask(weight, value, source == "from_file")
    return InverseKinematicsSetup(
        weights, coordinates, _time_range(tool), tool.number("accuracy", 1e-5), _file(tool, "model_file"),
        _file(tool, "marker_file"), _file(tool, "coordinate_file"),
    )  # fmt: skip


def read_id_setup(path: str | os.PathLike[str]) -> InverseDynamicsSetup:
    """What an InverseDynamicsTool file says."""
    tool = _tool(path, "InverseDynamicsTool")
    cutoff = tool.number("lowpass_cutoff_frequency_for_coordinates", -1.0)
    return InverseDynamicsSetup(
        _time_range(tool), cutoff if cutoff > 0.0 else None, _file(tool, "model_file"),
        _file(tool, "coordinates_file"), _file(tool, "external_loads_file"),
    )  # fmt: skip


def read_external_loads(path: str | os.PathLike[str]) -> ExternalLoads:
    """What an ExternalLoads file says.

    Raises:
        FileFormatError: forces or points are not expressed in the ground.
    """
    loads = _tool(path, "ExternalLoads")
    holder = loads.child("objects") or loads
    found = []
    for item in holder.children():
        if item.kind != "ExternalForce" or item.flag("isDisabled") or not item.flag("appliesForce", True):
            continue
        for tag in ("force_expressed_in_body", "point_expressed_in_body"):
            if (item.text(tag) or GROUND) != GROUND:
                raise item.error(f"<{tag}> is {item.text(tag)[:40]!r}; only what is expressed in ground is read")
        body = item.text("applied_to_body")
        force = item.text("force_identifier")
        if not body or not force:
            raise item.error("says no <applied_to_body> or no <force_identifier>")
        found.append(
            ExternalForce(item.name or body, body, force, item.text("point_identifier"), item.text("torque_identifier"))
        )
        if len(found) > MOST_TASKS:
            raise FileFormatError(path, f"it has more than {MOST_TASKS} forces, which are not read")
    return ExternalLoads(tuple(found), _file(loads, "datafile"))


def loads_from_setup(
    setup: ExternalLoads, table: Recording, bodies: Mapping[str, str] | None = None, *, at_origin: bool = False
) -> Loads:
    """The loads that OpenSim would apply.

    Args:
        setup: Which plates push which bodies.
        table: The recording read from the table of ground forces.
        bodies: Bodies by the names of the forces, in place of the setup's.
        at_origin: Whether forces too small for a point of application act at the world's origin. Some tables have
            zeros there, and OpenSim applies what force there is at that place, metres from the foot.

    Raises:
        SettingsError: the table has no plate for a force of the setup.
    """
    if not setup.forces:
        raise SettingsError("the external loads name no force")
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
                f"external force {one.name!r} wants columns {one.force}x ..., but the table has plates "
                f"{', '.join(table.plates) or 'none'}"
            )
        chosen.append(table.plates.index(plate))
    data = table.data
    force, point, moment = (
        np.asarray(data[f"plate_{name}"].values[:, chosen], dtype=float)
        for name in ("force", "center_of_pressure", "free_moment")
    )
    if at_origin:
        point = np.nan_to_num(point)
    on = tuple(changed.get(one.name, one.body) for one in setup.forces)
    clock = np.asarray(data["analog_time"].values, dtype=float)
    return measured_loads(tuple(names), on, clock, force, point, moment)


def _tool(path: str | os.PathLike[str], kind: str) -> Item:
    root = read_xml(path)
    found = next((element for element in root.walk() if element.tag == kind), None)
    if found is None:
        got = root.children[0].tag if root.tag == "OpenSimDocument" and root.children else root.tag
        raise FileFormatError(path, f"the document holds <{got[:40]}> instead of <{kind}>")
    return Item(found)


def _time_range(tool: Item) -> tuple[float, float]:
    """From and to [s]; everything where the file does not say."""
    # OpenSim itself writes -inf and inf for no limit
    words = tool.text("time_range").lower().split()
    if len(words) != 2 or any(word.lstrip("+-") in ("inf", "infinity") for word in words):
        return -inf, inf
    return tool.pair("time_range", (-inf, inf))


def _file(tool: Item, tag: str) -> str:
    name = tool.text(tag)
    return "" if name == "Unassigned" else name
