"""The body: what it is made of, whether it holds together, where it comes from."""

from borelli.model.functions import (
    Function,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
)
from borelli.model.human import human
from borelli.model.inertia import MassProperties, body_of_shapes, mass_of_body, mass_of_shapes, shape_mass
from borelli.model.markers import extent, marker_sets, with_markers
from borelli.model.model import (
    GROUND,
    JOINT_KINDS,
    SHAPE_KINDS,
    Body,
    Coordinate,
    Coupling,
    Frame,
    Joint,
    Marker,
    Model,
    MotionAxis,
    Muscle,
    PathPoint,
    Quaternion,
    Shape,
    Softness,
    Surface,
    Vector,
)
from borelli.model.native import (
    model_from_table,
    model_from_text,
    model_to_table,
    model_to_text,
    read_model,
    write_model,
)
from borelli.model.qtvr import read_qtvr
from borelli.model.resize import resize_body, scale_mass
from borelli.model.skeleton import read_pagoda
from borelli.model.validate import validate

__all__ = [
    "GROUND",
    "JOINT_KINDS",
    "SHAPE_KINDS",
    "Body",
    "Coordinate",
    "Coupling",
    "Frame",
    "Function",
    "Joint",
    "Marker",
    "MassProperties",
    "Model",
    "MotionAxis",
    "Muscle",
    "PathPoint",
    "Quaternion",
    "Shape",
    "Softness",
    "Surface",
    "Vector",
    "body_of_shapes",
    "constant",
    "extent",
    "human",
    "linear",
    "marker_sets",
    "mass_of_body",
    "mass_of_shapes",
    "model_from_table",
    "model_from_text",
    "model_to_table",
    "model_to_text",
    "natural_cubic_spline",
    "piecewise_linear",
    "polynomial",
    "read_model",
    "read_pagoda",
    "read_qtvr",
    "resize_body",
    "scale_mass",
    "shape_mass",
    "validate",
    "with_markers",
    "write_model",
]
