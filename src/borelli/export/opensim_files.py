"""Files with which OpenSim repeats the inverse dynamics of an analysis: the model, and the loads on it.

They go with `coordinates.mot` and `ground_forces.mot`: same names, signs and axes.
"""

from __future__ import annotations

from pathlib import Path

from borelli.analysis.dynamics.external_loads import foot_bodies
from borelli.analysis.dynamics.torques import Torques
from borelli.errors import ModelError
from borelli.export.opensim_names import opensim_model
from borelli.export.tables import foot_prefixes
from borelli.files.atomic import write_atomic
from borelli.files.xml import Element, format_xml, make_element
from borelli.model.formats.osim.write_elements import legal_names, properties
from borelli.model.formats.osim.writer import VERSION, osim_text
from borelli.model.model import GROUND, Model

MODEL_FILE, LOADS_FILE = "model.osim", "external_loads.xml"
OPENSIM_FILES = (MODEL_FILE, LOADS_FILE)
"""Files that `write_opensim_files` writes."""


def write_opensim_files(torques: Torques, folder: Path) -> tuple[str, ...]:
    """Write `model.osim`, and `external_loads.xml` where ground reaction forces are known.

    Returns:
        A sentence for each file that cannot be written.
    """
    model = opensim_model(torques.motion.model)
    try:
        text, _ = osim_text(model)
    except ModelError as error:
        return (f"{MODEL_FILE} is not written: {error}",)
    write_atomic(text, folder / MODEL_FILE)
    if "ground_reaction_force" in torques.data:
        write_atomic(_loads_text(model, _loaded_bodies(torques)), folder / LOADS_FILE)
    return ()


def _loaded_bodies(torques: Torques) -> dict[str, str]:
    """Return the body that the load of each foot acts on."""
    feet = [str(foot) for foot in torques.data["foot"].values]
    if torques.loads is not None:
        return dict(zip(torques.loads.name, torques.loads.body, strict=True))
    known = foot_bodies(torques.motion.model)
    return {foot: known[foot] for foot in feet}


def _loads_text(model: Model, bodies: dict[str, str]) -> str:
    names = legal_names(model, {})
    loads = make_element(
        "ExternalLoads",
        make_element("objects", *(_force(foot, names.of("body", body)) for foot, body in bodies.items())),
        make_element("groups"),
        *properties(datafile="ground_forces.mot"),
        name="ground_reaction",
    )  # fmt: skip
    document = make_element("OpenSimDocument", loads)
    document.attributes["Version"] = VERSION
    return format_xml(document)


def _force(foot: str, body: str) -> Element:
    force, point, torque = foot_prefixes(foot)
    own = properties(
        applied_to_body=body, force_expressed_in_body=GROUND, point_expressed_in_body=GROUND, force_identifier=force,
        point_identifier=point, torque_identifier=torque,
    )  # fmt: skip
    return make_element("ExternalForce", *own, name=foot)
