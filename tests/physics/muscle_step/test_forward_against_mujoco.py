"""Forward simulation of a model with MuJoCo's muscles against MuJoCo."""

import numpy as np
import pytest

from borelli.model.io import read_model

from .muscled import STEPPINGS, run

mujoco = pytest.importorskip("mujoco")

pytestmark = pytest.mark.crosscheck

DURATION = 0.5
ARM = """
<mujoco model="arm">
  <compiler angle="radian"/>
  <option timestep="0.00005" integrator="RK4" gravity="0 0 -9.81"/>
  <worldbody>
    <site name="above" pos="0.02 0 0.12"/><site name="behind" pos="-0.05 0 0.1"/>
    <body name="upper" pos="0 0 0">
      <joint name="shoulder" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 -0.15" mass="2" diaginertia="0.015 0.015 0.003"/>
      <site name="upper_front" pos="0.03 0 -0.1"/><site name="upper_back" pos="-0.03 0 -0.12"/>
      <geom name="elbow_wrap" type="cylinder" size="0.03 0.05" pos="0 0 -0.3" zaxis="0 1 0" contype="0"
            conaffinity="0" mass="0"/>
      <body name="lower" pos="0 0 -0.3">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <inertial pos="0 0 -0.13" mass="1.2" diaginertia="0.008 0.008 0.001"/>
        <site name="lower_front" pos="0.02 0 -0.05"/><site name="lower_back" pos="-0.025 0 -0.04"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="flexor_t"><site site="above"/><site site="upper_front"/><site site="lower_front"/></spatial>
    <spatial name="extensor_t">
      <site site="behind"/><site site="upper_back"/><geom geom="elbow_wrap"/><site site="lower_back"/>
    </spatial>
  </tendon>
  <actuator>
    <muscle name="flexor" tendon="flexor_t" force="600" lengthrange="0.25 0.5" timeconst="0.01 0.04" tausmooth="0.2"/>
    <muscle name="extensor" tendon="extensor_t" force="500" lengthrange="0.25 0.55" timeconst="0.01 0.04"/>
  </actuator>
</mujoco>
"""


def control(t):
    return np.array([0.04 + 0.03 * np.sin(12.0 * t), 0.05 + 0.03 * np.cos(9.0 * t)])


@pytest.fixture(scope="module")
def reference():
    """Joint angles, activations and forces over time of MuJoCo, at a step of 0.05 ms."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    rows = []
    for k in range(round(DURATION / model.opt.timestep) + 1):
        data.ctrl[:] = control(data.time)
        mujoco.mj_forward(model, data)
        if k % 200 == 0:
            rows.append([*data.qpos, *data.act, *-data.actuator_force])
        mujoco.mj_step(model, data)
    return np.array(rows)


@pytest.mark.parametrize("stepping", STEPPINGS)
def test_arm_moves_as_in_mujoco(stepping, reference, tmp_path):
    """The error is of first order in the step, and small."""
    (tmp_path / "arm.xml").write_text(ARM)
    model = read_model(tmp_path / "arm.xml")
    excitations = {"flexor": lambda t: control(t)[0], "extensor": lambda t: control(t)[1]}
    worst = []
    for step in (1 / 1000, 1 / 4000):
        data = run(stepping, model, duration=DURATION, step=step, excitations=excitations)
        rows = np.arange(len(reference)) * round(0.01 / step)
        assert np.abs(data["muscle_activation"].values[rows] - reference[:, 2:4]).max() < 1e-3
        worst.append(np.abs(data["coordinate_value"].values[rows] - reference[:, :2]).max())
    assert np.ptp(reference[:, :2], axis=0).min() > 0.2  # [rad]
    assert worst[1] < 2e-3 and worst[0] > 3.0 * worst[1]
