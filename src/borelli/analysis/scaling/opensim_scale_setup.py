"""OpenSim's scale setup and marker set files.

Only the content of the file is returned; the files it names are not opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from borelli.analysis.scaling.scale_model import Measurement
from borelli.errors import FileFormatError
from borelli.files.html_repr import fields_repr
from borelli.files.xml import read_xml
from borelli.model.formats.osim.properties import Item
from borelli.model.model import Marker, Model, Vector
from borelli.model.validate import validate


@dataclass(frozen=True)
class ScaleSetup:
    """Content of a ScaleTool; measurements and scales that are switched off are left out.

    Attributes:
        measurements: Marker pairs and the bodies that they scale.
        factors: Manual scale factors along x, y, z by body, which replace measured ones if `manual_last`.
        manual_last: Whether manual factors come after measured ones.
        mass: Of the subject [kg]; None if not stated.
        keep_mass_fractions: Whether each body keeps its fraction of the mass.
        time: First and last time [s] of the static trial for measurements.
        placement_time: First and last time [s] of the static trial for marker placement.
        marker_weights: Weights of the markers in marker placement.
        coordinate_weights: Weights of the coordinates in marker placement.
        coordinate_values: Values of these [rad or m], if not their defaults.
        marker_file: Name of the static trial.
        marker_set_file: Name of the file with the model's markers.
        model_file: Name of the unscaled model.
    """

    measurements: tuple[Measurement, ...]
    factors: Mapping[str, Vector]
    manual_last: bool
    mass: float | None
    keep_mass_fractions: bool
    time: tuple[float, float]
    placement_time: tuple[float, float]
    marker_weights: Mapping[str, float]
    coordinate_weights: Mapping[str, float]
    coordinate_values: Mapping[str, float]
    marker_file: str
    marker_set_file: str
    model_file: str

    __repr__ = fields_repr


def read_scale_setup(path: str | os.PathLike[str]) -> ScaleSetup:
    """Read an OpenSim ScaleTool file.

    Args:
        path: Of the file.

    Returns:
        Its content.

    Raises:
        FileFormatError: The file is not a ScaleTool file.
    """
    tool = _find(path, "ScaleTool")
    scaler, maker, placer = (tool.child(tag) for tag in ("ModelScaler", "GenericModelMaker", "MarkerPlacer"))
    if scaler is None:
        raise FileFormatError(path, "The ScaleTool has no <ModelScaler>. Add one.")
    measurements = [_measurement(item) for item in scaler.listed("MeasurementSet") if item.flag("apply", True)]
    scales = [item for item in scaler.listed("ScaleSet") if item.flag("apply", True)]
    order = scaler.text("scaling_order").split()
    mass = tool.number("mass", -1.0)
    weights: dict[str, dict[str, float]] = {"IKMarkerTask": {}, "IKCoordinateTask": {}}
    values: dict[str, float] = {}
    for task in placer.listed("IKTaskSet") if placer is not None else ():
        if task.kind in weights and task.flag("apply", True):
            weights[task.kind][task.name] = task.number("weight", 1.0)
            if task.kind == "IKCoordinateTask" and task.text("value_type") == "manual_value":
                values[task.name] = task.number("value", 0.0)
    whole = (-inf, inf)
    return ScaleSetup(
        tuple(measurements) if "measurements" in order or not order else (),
        {item.text("segment"): item.vector("scales", (1.0, 1.0, 1.0)) for item in scales}
        if "manualScale" in order or not order
        else {},
        order[-1:] != ["measurements"],
        mass if mass > 0.0 else None,
        scaler.flag("preserve_mass_distribution"),
        scaler.pair("time_range", whole),
        placer.pair("time_range", whole) if placer is not None else whole,
        weights["IKMarkerTask"],
        weights["IKCoordinateTask"],
        values,
        scaler.text("marker_file"),
        maker.text("marker_set_file") if maker is not None else "",
        maker.text("model_file") if maker is not None else "",
    )


def with_opensim_markers(model: Model, path: str | os.PathLike[str]) -> tuple[Model, tuple[str, ...]]:
    """Return the model with the markers of an OpenSim marker set file, and the markers that placement does not move."""
    marker_set = _find(path, "MarkerSet")
    inner = marker_set.child("objects") or marker_set
    markers, fixed = [], []
    for item in inner.children():
        if item.kind != "Marker":
            continue
        # /bodyset/torso since OpenSim 4, plain torso before
        body = (item.text("body") or item.text("socket_parent_frame")).rpartition("/")[2]
        markers.append(Marker(item.name, body, item.vector("location")))
        if item.flag("fixed"):
            fixed.append(item.name)
    if not markers:
        raise FileFormatError(path, "The marker set has no markers. Add at least one <Marker>.")
    return validate(replace(model, markers=tuple(markers)), sound_masses=False), tuple(fixed)


def _measurement(item: Item) -> Measurement:
    pairs = []
    for pair in item.listed("MarkerPairSet"):
        names = pair.text("markers").split()
        if len(names) != 2:
            raise pair.error(f"<markers> must name two markers (got {' '.join(names)[:60]!r}). Correct the pair.")
        pairs.append((names[0], names[1]))
    bodies = {body.name: "".join(body.text("axes").lower().split()) for body in item.listed("BodyScaleSet")}
    return Measurement(tuple(pairs), bodies, item.name)


def _find(path: str | os.PathLike[str], kind: str) -> Item:
    root = read_xml(path)
    element = next((element for element in root.walk() if element.tag == kind), None)
    if element is None:
        raise FileFormatError(path, f"The document <{root.tag[:40]}> contains no <{kind}>. Pass another file.")
    return Item(element)
