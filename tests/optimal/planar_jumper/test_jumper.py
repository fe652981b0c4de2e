"""Jumper: dynamics against Lagrange's equations, numbers against their file, statics and impacts by laws."""

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.model.io import read_model
from borelli.model.kinematics import center_of_mass
from borelli.muscles.paths import muscle_paths
from borelli.optimal.planar_jumper.jumper_model import JOINTS, jumper_model, jumper_paths, jumper_table
from borelli.optimal.planar_jumper.jumper_systems import (
    MAX_SPEED,
    SQUAT,
    TORQUE_LIMITS,
    jumper_system,
    standing_height,
    static_start,
    torque_velocity_limits,
)
from borelli.optimal.planar_jumper.torque_jump import impact_momentum
from borelli.optimal.system import names_of
from tests.shared_data import shared

from .lagrangian_twin import lagrangian_twin

FILE = "opensim/gait10dof18musc/subject01_metabolics.osim"
MUSCLES = {
    "SOL": "soleus_r", "GAS": "gastroc_r", "TA": "tib_ant_r", "VAS": "vasti_r", "RF": "rect_fem_r",
    "HAMS": "hamstrings_r", "GMAX": "glut_max_r",
}  # fmt: skip


def random_pose(rng):
    return np.array([0.1, 0.2, -0.3, 0.2, -1.0, 1.0]) + 0.3 * rng.standard_normal(6)


def outputs(system, x, u, xdot):
    values = system.outputs(0.0, x, [], u, [], xdot)
    return {name: float(value) for name, value in zip(system.output_names, values, strict=True)}


def test_dynamics_are_those_of_lagrange():
    # without torques, residual rows are M a + bias minus joint limits and damping; both vanish from differences in a
    system, twin, rng = jumper_system("air"), lagrangian_twin(), np.random.default_rng(1)
    for _ in range(5):
        q, v, a = random_pose(rng), rng.standard_normal(6), rng.standard_normal(6)
        mass, _, _ = twin(q, v)
        x = np.concatenate([q, v])
        rows = [
            np.array(system.residual(0, x, np.concatenate([v, b]), [], np.zeros(3), [])).ravel() for b in (a, 0 * a)
        ]
        np.testing.assert_allclose((rows[0] - rows[1])[6:], np.array(mass @ a).ravel(), rtol=0, atol=1e-10)


def test_bias_is_that_of_lagrange():
    # root rows have no torques, limits or damping
    system, twin, rng = jumper_system("air"), lagrangian_twin(), np.random.default_rng(2)
    q, v = random_pose(rng), 3.0 * rng.standard_normal(6)
    _, bias, center = twin(q, v)
    x = np.concatenate([q, v])
    rest = np.concatenate([v, np.zeros(6)])
    rows = np.array(system.residual(0, x, rest, [], np.zeros(3), [])).ravel()[6:9]
    np.testing.assert_allclose(rows, np.array(bias).ravel()[:3], rtol=0, atol=1e-9)
    found = outputs(system, x, np.zeros(3), rest)
    np.testing.assert_allclose(
        [found["center_of_mass_x"], found["center_of_mass_y"]], np.array(center).ravel(), atol=1e-12
    )


@pytest.mark.parametrize(("coordinate", "direction"), [("hip_flexion", 1), ("knee_angle", -1), ("ankle_angle", 1)])
def test_flexion_has_opensims_sign(coordinate, direction):
    """Flexing hip or ankle moves the body forward over the toe, flexing the knee backward."""
    model = jumper_model(muscles=False)
    q = np.zeros((2, 6))
    q[1, [c.name for c in model.coordinates].index(coordinate)] = direction * 0.5
    moved = center_of_mass(model, q)
    assert np.sign(moved[1, 0] - moved[0, 0]) == (-1 if coordinate == "knee_angle" else 1)


def test_static_squat_does_not_move():
    system = jumper_system("toe", muscles=True, soft_heel=True)
    start = static_start(system)
    x = [start[name] for name in names_of(system.states)]
    xdot, _ = system.explicit(0.0, x, np.full(8, 0.1), [])  # excitations affect activations only
    rates = dict(zip(names_of(system.states), np.array(xdot).ravel(), strict=True))
    still = [value for name, value in rates.items() if not name.endswith("_activation")]
    np.testing.assert_allclose(still, 0.0, atol=1e-4)  # 1/s, of stiff tendons
    assert start["knee_angle"] == SQUAT["knee_angle"]


def test_pose_out_of_strength_is_refused():
    with pytest.raises(SettingsError, match="cannot hold the pose"):
        # the trunk is in front of the toe, where no push on the heel can hold it
        static_start(jumper_system("toe", soft_heel=True), {"ankle_angle": 0.55, "knee_angle": 0.0, "hip_flexion": 1.9})


def test_ground_carries_the_weight_on_heel_and_toe():
    """At rest, force and moment of the ground are the weight and its moment about the toe."""
    system = jumper_system("heel")
    start = static_start(system)
    x = np.array([start[name] for name in names_of(system.states)])
    found = outputs(system, x, np.zeros(3), np.zeros(6))
    weight = sum(jumper_table()[name]["mass"] for name in ("foot", "shank", "thigh", "hat")) * jumper_table()["gravity"]
    # reactions of held coordinates do not depend on torques of free ones
    assert found["toe_y_reaction"] == pytest.approx(weight, rel=1e-9)
    assert found["toe_x_reaction"] == pytest.approx(0.0, abs=1e-9)
    # the center of mass is behind the toe, so the ground holds the heel up with a negative moment
    assert found["center_of_mass_x"] < 0.0
    assert found["foot_pitch_reaction"] == pytest.approx(weight * found["center_of_mass_x"], rel=1e-9)


def test_torque_velocity_law_ends_at_maximum_speed():
    found = {}
    for limit in torque_velocity_limits():
        for name, bounds in TORQUE_LIMITS.items():
            if limit.name.startswith(name):
                upper = "upper" in limit.name
                isometric = {f"{name}_torque": bounds[upper], f"{name}_speed": 0.0}
                fast = {f"{name}_torque": 0.0, f"{name}_speed": MAX_SPEED if upper else -MAX_SPEED}
                found[limit.name] = limit.expression(isometric), limit.expression(fast), limit.upper
    assert len(found) == 6
    assert set(found.values()) == {(1.0, 1.0, 1.0)}


def test_impact_conserves_angular_momentum_about_the_toe_and_loses_energy():
    momentum, twin = impact_momentum(), lagrangian_twin()
    q = np.array([0.3, 0.0, -0.2, 0.3, -0.8, 0.9])
    before = np.array([0.4, -2.5, 0.5, 1.0, -1.0, 0.5])
    mass = np.array(twin(q, np.zeros(6))[0])
    # M (v+ - v-) = (L, 0) with the toe at rest afterwards
    after = np.zeros(6)
    after[2:] = np.linalg.solve(mass[2:, 2:], (mass @ before)[2:])
    change = np.array(momentum(q, after - before)).ravel()
    np.testing.assert_allclose(change[2:], 0.0, atol=1e-10)
    assert change[1] > 0.0
    # the row of the foot's pitch is the angular momentum about the toe
    np.testing.assert_allclose((mass @ after)[2], (mass @ before)[2], rtol=1e-12)
    assert after @ mass @ after < before @ mass @ before


@pytest.mark.data
def test_numbers_are_those_of_the_file():
    table, model = jumper_table(), read_model(shared(FILE))
    assert model.gravity[1] == -table["gravity"]
    for name, bodies in {"shank": ["tibia_r"], "thigh": ["femur_r"], "foot": ["talus_r", "calcn_r", "toes_r"]}.items():
        assert table[name]["mass"] == pytest.approx(2 * sum(model.body(b).mass for b in bodies), rel=1e-7)
    assert table["hat"]["mass"] == pytest.approx(model.body("pelvis").mass + model.body("torso").mass, rel=1e-7)
    # standing: the centers of mass agree, but for the knee, whose center moves in the file
    rows = np.zeros((1, len(model.coordinates)))
    file_center = center_of_mass(model, rows)[0]
    ankle_height = 0.0687857  # of the ankle over the toe contact in the table
    ankle = np.array([model.joint("hip_r").parent_frame.position[1] - 0.45410134 - 0.425065])
    assert standing_height() == pytest.approx(file_center[1] - ankle[0] + ankle_height, abs=3e-3)


@pytest.mark.data
def test_polynomial_lengths_keep_their_stated_errors():
    model = read_model(shared(FILE))
    names = [c.name for c in model.coordinates]
    rng = np.random.default_rng(7)  # not the poses of the fit
    rows = np.zeros((300, len(names)))
    own = np.zeros((300, 6))
    for k, name in enumerate(JOINTS):
        low, high = np.radians(jumper_table()["ranges"][name])
        own[:, 3 + k] = rows[:, names.index(f"{name}_r")] = rng.uniform(low, high, 300)
    paths = jumper_paths()
    found, files = paths.evaluate(own), muscle_paths(model, rows, muscles=list(MUSCLES.values()))
    for m, (name, muscle) in enumerate(MUSCLES.items()):
        path = next(p for p in paths.path if p.muscle == name)
        column = [p.muscle for p in paths.path].index(name)
        error = np.abs(found.length[:, column] - files.length[:, m])
        assert error.max() <= 1.2 * path.max_length_error + 1e-6, name  # other poses than the stated ones
        for k, joint in enumerate(JOINTS):
            arm = files.moment_arm[:, m, names.index(f"{joint}_r")]
            rms = np.sqrt(np.mean((found.moment_arm[:, column, 3 + k] - arm) ** 2))
            assert rms <= 2.0 * path.rms_arm_error + 1e-5, (name, muscle, joint)
