"""MuJoCo as the referee of MJCF files whose meshes and scenes are not at hand.

Includes are put in place here a second time, without our reader, and what needs a mesh is taken out.
"""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.kinematics import marker_positions, poses

POSITION_TOLERANCE = 1e-9
"""[m]; both sides round at 1e-15 in chains of a hundred bodies."""
FREE, BALL = 0, 1
NEEDLESS = ("asset", "contact", "sensor", "keyframe", "visual", "custom")


def engine():
    """MuJoCo, or the test is skipped."""
    return pytest.importorskip("mujoco")


def read_both(path):
    """An MJCF file as we read it and as MuJoCo does."""
    return read_mjcf(path), engine().MjModel.from_xml_path(str(path))


def random_rows(model, count=5, seed=0):
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (count, len(model.coordinates)))


def agrees(ours, theirs, rows) -> None:
    """Assert that poses of bodies and sites agree with MuJoCo."""
    mujoco = engine()
    data = mujoco.MjData(theirs)
    bodies = {body.name: i for i, body in enumerate(ours.bodies)}
    sites = {marker.name: i for i, marker in enumerate(ours.markers)}
    position, rotation = poses(ours, rows)
    marks = marker_positions(ours, rows)
    compared = 0
    for f, row in enumerate(rows):
        set_coordinates(ours, theirs, data, row)
        mujoco.mj_kinematics(theirs, data)
        for b in range(1, theirs.nbody):
            if (name := theirs.body(b).name) in bodies:
                assert position[f, bodies[name]] == pytest.approx(data.xpos[b], abs=POSITION_TOLERANCE), name
                turn = data.xmat[b].reshape(3, 3)
                assert rotation[f, bodies[name]] == pytest.approx(turn, abs=POSITION_TOLERANCE), name
                compared += 1
        for s in range(theirs.nsite):
            if (name := theirs.site(s).name) in sites:
                assert marks[f, sites[name]] == pytest.approx(data.site_xpos[s], abs=POSITION_TOLERANCE), name
    assert compared > 0


def same_masses(ours, theirs) -> None:
    """Bodies have MuJoCo's masses, centres of mass and inertias."""
    for b in range(1, theirs.nbody):
        body = ours.body(theirs.body(b).name)
        assert body.mass == pytest.approx(theirs.body_mass[b], rel=1e-9, abs=1e-15)
        if body.mass > 0.0:
            turn = np.zeros(9)
            engine().mju_quat2Mat(turn, theirs.body_iquat[b])
            turn = turn.reshape(3, 3)
            inertia = turn @ np.diag(theirs.body_inertia[b]) @ turn.T
            assert body.center_of_mass == pytest.approx(theirs.body_ipos[b], abs=1e-12)
            assert np.array(body.inertia) == pytest.approx(inertia, rel=1e-9, abs=1e-12)


def compiled(path, **compiler):
    """MuJoCo's model of an MJCF file without meshes."""
    path = Path(path)
    root = _parsed(path)
    _expand(root, path.parent, path.parent)
    for section in list(root):
        if section.tag in NEEDLESS:
            root.remove(section)
    for parent in list(root.iter()):
        for child in list(parent):
            child.attrib.pop("material", None)
            in_tree = parent.tag in ("body", "worldbody", "frame")
            needs_mesh = child.get("mesh") or child.get("type") in ("mesh", "hfield")
            if child.tag in ("camera", "light") or (child.tag == "geom" and in_tree and needs_mesh):
                parent.remove(child)
    if compiler:
        ElementTree.SubElement(root, "compiler", compiler)
    return engine().MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))


def _parsed(path):
    return ElementTree.fromstring(path.read_text().replace('"type=', '" type='))


def _expand(element, folder, main):
    for index, child in reversed(list(enumerate(element))):
        if child.tag != "include":
            _expand(child, folder, main)
            continue
        element.remove(child)
        for base in (main, folder):
            inner_path = base / child.get("file")
            if inner_path.is_file():
                inner = _parsed(inner_path)
                _expand(inner, inner_path.parent, main)
                for k, part in enumerate(inner):
                    element.insert(index + k, part)
                break


def names_of_joint(theirs, number):
    """Name of a MuJoCo joint in the model."""
    joint = theirs.joint(number)
    kind = ("free", "ball", "slide", "hinge")[joint.type[0]]
    return joint.name or f"{theirs.body(joint.bodyid[0]).name}_{kind}"


def cardan(angles):
    """Rx Ry Rz as a quaternion."""
    q = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in enumerate(angles):
        part = np.zeros(4)
        part[0], part[axis + 1] = np.cos(angle / 2), np.sin(angle / 2)
        out = np.zeros(4)
        engine().mju_mulQuat(out, q, part)
        q = out
    return q


def set_coordinates(ours, theirs, data, row):
    """Set MuJoCo's joints to the model's coordinates."""
    values = {c.name: x for c, x in zip(ours.coordinates, row, strict=True)}
    for number in range(theirs.njnt):
        name, start = names_of_joint(theirs, number), theirs.jnt_qposadr[number]
        if theirs.jnt_type[number] == BALL:
            data.qpos[start : start + 4] = cardan([values[f"{name}_{letter}"] for letter in "xyz"])
        elif theirs.jnt_type[number] == FREE and f"{name}_tx" in values:
            turn = np.zeros(4)
            angles = [values[f"{name}_{s}"] for s in ("rx", "ry", "rz")]
            engine().mju_mulQuat(turn, cardan(angles), theirs.qpos0[start + 3 : start + 7])
            data.qpos[start : start + 7] = [*(values[f"{name}_{s}"] for s in ("tx", "ty", "tz")), *turn]
        elif theirs.jnt_type[number] not in (FREE, BALL) and name in values:
            data.qpos[start] = values[name]
