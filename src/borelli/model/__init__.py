"""The body: what it is made of, whether it holds together, where it comes from."""

from borelli.model.compare import Parity, parity
from borelli.model.formats.asf import read_asf
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.formats.mjcf.writer import write_mjcf
from borelli.model.formats.native import (
    model_from_table,
    model_from_text,
    model_to_table,
    model_to_text,
)
from borelli.model.formats.osim.reader import read_osim
from borelli.model.formats.osim.writer import write_osim
from borelli.model.formats.pagoda import read_pagoda
from borelli.model.formats.qtvr import read_qtvr
from borelli.model.formats.urdf import read_urdf
from borelli.model.functions import (
    Function,
    constant,
    linear,
    natural_cubic_spline,
    piecewise_linear,
    polynomial,
    simm_spline,
)
from borelli.model.inertia import MassProperties, body_of_shapes, mass_of_body, mass_of_shapes, shape_mass
from borelli.model.io import read_model, write_model
from borelli.model.kinematics import (
    center_of_mass,
    coupled,
    coupled_forces,
    coupled_motion,
    evaluate,
    generalized_forces,
    marker_jacobians,
    marker_positions,
    point_positions,
    poses,
)
from borelli.model.marker_sets import extent, marker_sets, with_markers
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
    Span,
    Surface,
    Vector,
    WrapObject,
)
from borelli.model.people.full_skeleton import full_skeleton
from borelli.model.people.human import human
from borelli.model.resize import resize_body, scale_mass
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
    "Parity",
    "PathPoint",
    "Quaternion",
    "Shape",
    "Softness",
    "Span",
    "Surface",
    "Vector",
    "WrapObject",
    "body_of_shapes",
    "center_of_mass",
    "constant",
    "coupled",
    "coupled_forces",
    "coupled_motion",
    "evaluate",
    "extent",
    "full_skeleton",
    "generalized_forces",
    "human",
    "linear",
    "marker_jacobians",
    "marker_positions",
    "marker_sets",
    "mass_of_body",
    "mass_of_shapes",
    "model_from_table",
    "model_from_text",
    "model_to_table",
    "model_to_text",
    "natural_cubic_spline",
    "parity",
    "piecewise_linear",
    "point_positions",
    "polynomial",
    "poses",
    "read_asf",
    "read_mjcf",
    "read_model",
    "read_osim",
    "read_pagoda",
    "read_qtvr",
    "read_urdf",
    "resize_body",
    "scale_mass",
    "shape_mass",
    "simm_spline",
    "validate",
    "with_markers",
    "write_mjcf",
    "write_model",
    "write_osim",
]
