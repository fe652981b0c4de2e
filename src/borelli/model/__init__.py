"""Models: bodies, joints, markers and muscles; kinematics, validation, comparison, and files of all formats."""

from borelli.files.argument_checks import check_public_functions
from borelli.model.compare import ModelComparison, compare_models
from borelli.model.formats.asf import read_asf
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.formats.mjcf.writer import write_mjcf
from borelli.model.formats.native import model_from_table, model_from_text, model_to_table, model_to_text
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
from borelli.model.inertia import MassProperties, body_from_shapes, mass_of_body, mass_of_shapes, shape_mass
from borelli.model.io import read_model, write_model
from borelli.model.kinematics import (
    center_of_mass,
    coupled_coordinates,
    coupled_forces,
    coupled_motion,
    evaluate,
    generalized_forces,
    marker_jacobians,
    marker_positions,
    point_positions,
    poses,
)
from borelli.model.marker_sets import add_marker_set, extent, list_marker_sets
from borelli.model.model import (
    GROUND,
    JOINT_KINDS,
    SHAPE_KINDS,
    Body,
    Coordinate,
    CoordinateRange,
    Coupling,
    Frame,
    Joint,
    Ligament,
    Marker,
    Model,
    Muscle,
    PathPoint,
    PathWrap,
    Pulley,
    Quaternion,
    Shape,
    Softness,
    Surface,
    TransformAxis,
    Vector,
    WrapObject,
)
from borelli.model.resize import resize_body, scale_mass
from borelli.model.validate import validate

__all__ = [
    "GROUND",
    "JOINT_KINDS",
    "SHAPE_KINDS",
    "Body",
    "Coordinate",
    "CoordinateRange",
    "Coupling",
    "Frame",
    "Function",
    "Joint",
    "Ligament",
    "Marker",
    "MassProperties",
    "Model",
    "ModelComparison",
    "Muscle",
    "PathPoint",
    "PathWrap",
    "Pulley",
    "Quaternion",
    "Shape",
    "Softness",
    "Surface",
    "TransformAxis",
    "Vector",
    "WrapObject",
    "add_marker_set",
    "body_from_shapes",
    "center_of_mass",
    "compare_models",
    "constant",
    "coupled_coordinates",
    "coupled_forces",
    "coupled_motion",
    "evaluate",
    "extent",
    "generalized_forces",
    "linear",
    "list_marker_sets",
    "marker_jacobians",
    "marker_positions",
    "mass_of_body",
    "mass_of_shapes",
    "model_from_table",
    "model_from_text",
    "model_to_table",
    "model_to_text",
    "natural_cubic_spline",
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
    "write_mjcf",
    "write_model",
    "write_osim",
]

check_public_functions(__name__)
