"""Ligaments: forces, files of all formats, losses, OpenSim as referee."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError, SettingsError
from borelli.model.functions import constant, piecewise_linear, simm_spline
from borelli.model.io import read_model, write_model
from borelli.model.model import GROUND, Body, Coordinate, Joint, Ligament, Model, PathPoint
from borelli.model.validate import validate
from borelli.muscles.ligaments import ligament_force

from .muscle_cases import ask_opensim

SPLINE = simm_spline([0.9, 1.0, 1.05, 1.1, 1.2, 1.4], [0.0, 0.0, 0.1, 0.4, 1.0, 2.5])
LINE = piecewise_linear([1.0, 1.1, 1.3], [0.0, 0.5, 2.0])


def slider():
    """Return a body on a slider along x, tied to the ground by two ligaments."""
    body = Body("block", 1.0, inertia=((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))
    joint = Joint(
        "rail", "slider", GROUND, "block", axes=((1.0, 0.0, 0.0),), coordinates=(Coordinate("x", rotational=False),)
    )
    path = PathPoint(GROUND, (0.0, 0.0, 0.0), "a"), PathPoint("block", (0.0, 0.0, 0.0), "b")
    bent = PathPoint(GROUND, (0.0, 0.0, 0.0), "a"), PathPoint(GROUND, (0.0, 0.1, 0.0), "m"), path[1]
    ligaments = Ligament("cruciate", path, 0.2, 800.0, SPLINE), Ligament("collateral", bent, 0.3, 500.0, LINE)
    return Model("tied", (body,), (joint,), ligaments=ligaments)


def test_force_follows_the_function():
    model = slider()
    ratio = np.array([0.5, 0.99, 1.0, 1.03, 1.15, 1.5])
    force = ligament_force(model, np.column_stack([0.2 * ratio, 0.3 * ratio]))
    for i, r in enumerate(ratio):
        expected = [800.0 * SPLINE(r), 500.0 * LINE(r)] if r > 1.0 else [0.0, 0.0]
        np.testing.assert_allclose(force[i], expected, atol=1e-9)
    assert np.isnan(ligament_force(model, [[np.nan, 0.3]])[0, 0])
    with pytest.raises(SettingsError, match=r"\(frames, 2\)"):
        ligament_force(model, [[0.2]])


@pytest.mark.parametrize("suffix", (".toml", ".osim"))
def test_files_keep_ligaments(suffix, tmp_path):
    path = tmp_path / f"tied{suffix}"
    write_model(slider(), path)
    back = read_model(path)
    assert [ligament.name for ligament in back.ligaments] == ["cruciate", "collateral"]
    for found, given in zip(back.ligaments, slider().ligaments, strict=True):
        assert (found.resting_length, found.force_scale) == (given.resting_length, given.force_scale)
        assert [point.position for point in found.path] == [point.position for point in given.path]
        for x in np.linspace(0.8, 1.5, 20):
            assert found.force_length(x) == pytest.approx(given.force_length(x), abs=1e-12)


def test_mjcf_reports_ligaments_as_lost(tmp_path):
    notes = write_model(slider(), tmp_path / "tied.xml")
    assert any("ligaments (2)" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "text"),
    [({"resting_length": 0.0}, "resting_length"), ({"force_scale": -1.0}, "force_scale"), ({"path": ()}, "path")],
)
def test_bad_ligaments_are_named(change, text):
    model = slider()
    bad = replace(model, ligaments=(replace(model.ligaments[0], **change),))
    with pytest.raises(ModelError, match=rf"'cruciate'.*{text}"):
        validate(bad)
    with pytest.raises(ModelError, match="is nan"):
        validate(replace(model, ligaments=(replace(model.ligaments[0], force_length=constant(float("nan"))),)))


OSIM = """<OpenSimDocument Version="40000"><Model name="m"><Ground name="ground"/><BodySet><objects>
<Body name="b"><mass>1</mass><inertia>1 1 1 0 0 0</inertia></Body></objects></BodySet><JointSet><objects>
<FreeJoint name="j"><socket_parent_frame>/ground</socket_parent_frame>
<socket_child_frame>/bodyset/b</socket_child_frame></FreeJoint></objects></JointSet><ForceSet><objects>{}</objects></ForceSet></Model></OpenSimDocument>"""
POINTS = """<GeometryPath><PathPointSet><objects>
<PathPoint name="p"><socket_parent_frame>/ground</socket_parent_frame><location>0 0 0</location></PathPoint>
<PathPoint name="q"><socket_parent_frame>/bodyset/b</socket_parent_frame><location>0 0.1 0</location></PathPoint>
</objects></PathPointSet></GeometryPath>"""


def read_text(tmp_path, *forces):
    path = tmp_path / "m.osim"
    path.write_text(OSIM.format("".join(forces)))
    return read_model(path)


def test_old_wrapped_and_default_functions(tmp_path):
    function = "<PiecewiseLinearFunction><x>1 2</x><y>0 3</y></PiecewiseLinearFunction>"
    wrapped = f"<force_length_curve>{function}</force_length_curve>"
    own = "<resting_length>0.1</resting_length><pcsa_force>50</pcsa_force>"
    model = read_text(
        tmp_path,
        f'<Ligament name="a">{POINTS}{own}{wrapped}</Ligament>',
        f'<Ligament name="b">{POINTS}{own}</Ligament>',
    )
    assert model.ligament("a").force_length(1.5) == pytest.approx(1.5)
    assert model.ligament("b").force_length(1.2) == pytest.approx(0.12)
    assert not any("Ligament" in note for note in model.notes)


def test_blankevoort_is_quadratic_then_linear(tmp_path):
    own = "<linear_stiffness>1000</linear_stiffness><slack_length>0.1</slack_length>"
    model = read_text(tmp_path, f'<Blankevoort1991Ligament name="acl">{POINTS}{own}</Blankevoort1991Ligament>')
    strain = np.array([-0.1, 0.0, 0.03, 0.06, 0.1])
    expected = np.where(strain > 0.06, 1000.0 * (strain - 0.03), 1000.0 * np.maximum(strain, 0.0) ** 2 / 0.12)
    np.testing.assert_allclose(ligament_force(model, 0.1 * (1.0 + strain[:, None]))[:, 0], expected, atol=1e-9)
    assert any("acl" in note and "damping" in note for note in model.notes)


def test_unusable_ligaments_are_noted(tmp_path):
    model = read_text(tmp_path, f'<Ligament name="loose">{POINTS}</Ligament>', '<Ligament name="bare"></Ligament>')
    assert not model.ligaments
    assert any("loose" in note for note in model.notes) and any("bare" in note for note in model.notes)


@pytest.mark.crosscheck
def test_tension_of_opensim(opensim_python, tmp_path):
    path = tmp_path / "tied.osim"
    write_model(slider(), path)
    values = [0.1, 0.19, 0.205, 0.23, 0.27, 0.35]
    answer = np.array(
        ask_opensim(opensim_python, tmp_path, ligaments={"model": str(path), "values": values})["ligaments"]
    )
    force = ligament_force(slider(), answer[:, :, 0])
    assert (force > 0.0).sum() >= 6
    np.testing.assert_allclose(force, answer[:, :, 1], rtol=1e-9, atol=1e-9)
