"""Human movement as physics: bodies, joints, contacts and drives, solved together and exactly.

    import borelli as bo

    result = bo.simulate(bo.human(mass=72.6, height=1.78), duration=1.0)
    bo.picture(result, "human.png")

Names load when they are first used, so that `import borelli` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name: the module it lives in
_HOMES = {
    "Body": "borelli.model.model",
    "BorelliError": "borelli.errors",
    "Coordinate": "borelli.model.model",
    "Coupling": "borelli.model.model",
    "DivergedError": "borelli.errors",
    "Drive": "borelli.physics.control",
    "FileFormatError": "borelli.errors",
    "Force": "borelli.physics.control",
    "Frame": "borelli.model.model",
    "Function": "borelli.model.functions",
    "Joint": "borelli.model.model",
    "Marker": "borelli.model.model",
    "Model": "borelli.model.model",
    "ModelError": "borelli.errors",
    "MotionAxis": "borelli.model.model",
    "Muscle": "borelli.model.model",
    "PathPoint": "borelli.model.model",
    "Scene": "borelli.scenes.scene",
    "Settings": "borelli.physics.control",
    "SettingsError": "borelli.errors",
    "Shape": "borelli.model.model",
    "Softness": "borelli.model.model",
    "Surface": "borelli.model.model",
    "body_of_shapes": "borelli.model.inertia",
    "gallery_scene": "borelli.scenes.gallery",
    "human": "borelli.model.human",
    "marker_sets": "borelli.model.markers",
    "picture": "borelli.view.picture",
    "plot": "borelli.view.plots",
    "read_model": "borelli.model.native",
    "read_pagoda": "borelli.model.skeleton",
    "read_qtvr": "borelli.model.qtvr",
    "read_scene": "borelli.scenes.files",
    "resize_body": "borelli.model.resize",
    "run_scene": "borelli.scenes.scene",
    "scale_mass": "borelli.model.resize",
    "show": "borelli.view.workbench",
    "simulate": "borelli.physics.simulate",
    "strobe": "borelli.view.picture",
    "validate": "borelli.model.validate",
    "video": "borelli.view.video",
    "with_markers": "borelli.model.markers",
    "write_frames": "borelli.view.video",
    "write_model": "borelli.model.native",
    "write_scene": "borelli.scenes.files",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """The public name, its module loaded now."""
    if name not in _HOMES:
        raise AttributeError(f"module 'borelli' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    return list(__all__)
