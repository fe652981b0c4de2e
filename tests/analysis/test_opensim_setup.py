"""OpenSim's setup files: content is read, invalid files are refused."""

import numpy as np
import pytest

from borelli.analysis.opensim_setup import (
    loads_from_setup,
    read_external_loads,
    read_id_setup,
    read_ik_setup,
)
from borelli.errors import FileFormatError, SettingsError
from borelli.recording.recording import Recording, make_dataset

from .opensim_trials import DATA, FILES, folder

IK = """<OpenSimDocument Version="30000"><InverseKinematicsTool name="x">
<IKTaskSet><objects>
<IKMarkerTask name="A"><apply>true</apply><weight>2.5</weight></IKMarkerTask>
<IKMarkerTask name="B"><apply>false</apply><weight>1</weight></IKMarkerTask>
<IKCoordinateTask name="q"><weight>1000</weight><value_type>default_value</value_type>
<value>3</value></IKCoordinateTask>
<IKCoordinateTask name="r"><weight>1</weight><value_type>manual_value</value_type><value>0.5</value></IKCoordinateTask>
</objects></IKTaskSet><time_range> 0.4 1.6</time_range><marker_file>walk.trc</marker_file>
<model_file>Unassigned</model_file></InverseKinematicsTool></OpenSimDocument>"""

LOADS = """<OpenSimDocument Version="30000"><ExternalLoads name="x"><objects>
<ExternalForce name="right"><applied_to_body> calcn_r </applied_to_body>
<force_identifier>ground_force_v</force_identifier>
<point_identifier>ground_force_p</point_identifier><torque_identifier>ground_torque_</torque_identifier></ExternalForce>
<ExternalForce name="off"><isDisabled>true</isDisabled><applied_to_body>a</applied_to_body></ExternalForce>
<ExternalForce name="left"><applied_to_body>calcn_l</applied_to_body>
<force_identifier>1_ground_force_v</force_identifier>
</ExternalForce></objects><datafile>grf.mot</datafile></ExternalLoads></OpenSimDocument>"""


def write(tmp_path, text):
    path = tmp_path / "setup.xml"
    path.write_text(text, encoding="utf-8")
    return path


def test_inverse_kinematics(tmp_path):
    setup = read_ik_setup(write(tmp_path, IK))
    assert setup.marker_weights == {"A": 2.5}
    assert (setup.coordinate_tasks["q"].weight, setup.coordinate_tasks["q"].value) == (1000.0, None)
    assert setup.coordinate_tasks["r"].value == 0.5
    assert (setup.time_range, setup.marker_file, setup.model_file) == ((0.4, 1.6), "walk.trc", "")


def test_external_loads(tmp_path):
    setup = read_external_loads(write(tmp_path, LOADS))
    assert [(force.name, force.body) for force in setup.forces] == [("right", "calcn_r"), ("left", "calcn_l")]
    force = np.arange(12.0).reshape(2, 2, 3)
    data = make_dataset(
        {"plate_force": force, "plate_center_of_pressure": force * np.nan, "plate_free_moment": 0.0 * force},
        {"plate": ["1", "ground_force"]}, analog_rate=10.0,
    )  # fmt: skip
    loads = loads_from_setup(setup, Recording(data), {"left": "talus_l"}, at_origin=True)
    assert loads.body == ("calcn_r", "talus_l")
    assert np.array_equal(loads.force, force[:, ::-1]) and not loads.point.any()
    with pytest.raises(SettingsError, match="plates: 1"):
        loads_from_setup(setup, Recording(data.isel(plate=[0])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<OpenSimDocument><ScaleTool/></OpenSimDocument>", "ScaleTool"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><OpenSimDocument/>', "entities"),
        (IK.replace("2.5", "-1"), "must not be negative"),
        (IK.replace("2.5", "nan"), "finite"),
        (IK.replace("manual_value", "inferred"), "value_type"),
        (IK.replace("true", "perhaps"), "true or false"),
    ],
)
def test_invalid_setups_are_refused(tmp_path, text, words):
    with pytest.raises(FileFormatError, match=words):
        read_ik_setup(write(tmp_path, text))


@pytest.mark.data
@pytest.mark.parametrize("name", list(FILES))
def test_stored_setups_are_read(name):
    setup = folder(name) / "setup"
    assert [force.body for force in read_external_loads(setup / FILES[name][2]).forces] == ["calcn_r", "calcn_l"]
    texts = {path: path.read_text(encoding="utf-8") for path in setup.glob("*.xml")}
    found = [path for path, text in texts.items() if "<InverseDynamicsTool" in text]
    assert [read_id_setup(path).cutoff for path in found] == [6.0]
    kinematics = [path for path, text in texts.items() if "<InverseKinematicsTool" in text]
    assert all(len(read_ik_setup(path).marker_weights) > 20 for path in kinematics) and kinematics


@pytest.mark.data
def test_gait2354_has_stiff_feet():
    folder("gait2354")
    setup = read_ik_setup(DATA / "gait2354" / "setup" / "subject01_Setup_IK.xml")
    assert {name: task.weight for name, task in setup.coordinate_tasks.items()} == {
        f"{joint}_angle_{side}": 1000.0 for joint in ("subtalar", "mtp") for side in "rl"
    }
