"""Springs, bushings, tables, schedules and sensors in scene files."""

from __future__ import annotations

import numpy as np
import pytest

from borelli.errors import BorelliError
from borelli.scenes.scene import run_scene
from borelli.scenes.scene_files import scene_from_text, scene_to_text

TEXT = """
format = "borelli-scene"
version = 1
name = "elements"
step = 0.001
duration = 0.3

[[drives]]
coordinate = "angle"
stiffness = 5.0
damping = 1.0

[[drive_schedules]]
coordinate = "angle"
time = [0.0, 0.2]
target = [0.0, 0.5]
stiffness = [5.0, 20.0]

[[springs]]
name = "rope"
body = "block"
to = "ground"
to_point = [0.0, 0.0, 1.0]
force_length = [[0.8, 0.0], [1.0, 20.0], [1.2, 80.0]]
damping = 0.5
slack = true

[[bushings]]
name = "disc"
body = "ground"
to = "block"
frame = { position = [0.1, 0.0, 0.0] }
stiffness = [50.0, 50.0, 50.0]
rotational_stiffness = [1.0, 1.0, 1.0]

[[force_tables]]
body = "block"
time = [0.0, 0.1, 0.2]
force = [[0.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 0.0]]

[[imus]]
name = "imu"
body = "block"
frame = { position = [0.05, 0.0, 0.0] }

[[force_plates]]
name = "floor"

[[contact_sensors]]
name = "touch"
body = "arm"

[model]
format = "borelli-model"
version = 2
name = "pair"

[[model.bodies]]
name = "block"
mass = 2.0
inertia = [[0.02, 0.0, 0.0], [0.0, 0.03, 0.0], [0.0, 0.0, 0.04]]

[[model.bodies]]
name = "arm"
mass = 1.0
inertia = [[0.02, 0.0, 0.0], [0.0, 0.03, 0.0], [0.0, 0.0, 0.04]]

[[model.joints]]
name = "hinge"
kind = "hinge"
parent = "ground"
child = "arm"
axes = [[0.0, 0.0, 1.0]]
coordinates = [{ name = "angle" }]
"""


def test_scene_with_every_element_runs_and_is_restored():
    scene = scene_from_text(TEXT)
    again = scene_from_text(scene_to_text(scene))
    assert again == scene
    results = [run_scene(one) for one in (scene, again)]
    for name in ("spring_tension", "bushing_force", "elastic_energy", "imu_specific_force", "force_plate_force",
                 "contact_sensor_state", "coordinate_value"):  # fmt: skip
        np.testing.assert_array_equal(results[0][name].values, results[1][name].values)
    assert results[0]["coordinate_value"].values[-1, 0] > 0.1  # the schedule moved the arm
    assert results[0]["body_com_velocity"].sel(body="block", axis="y").values.max() > 0.05  # the table pushed the block


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('to = "ground"', 'to = "grond"', "grond"),
        ("time = [0.0, 0.2]", "time = [0.2, 0.0]", "ascending"),
        ("damping = 0.5", "damping = 1e6", "too large for the step"),
        ('body = "arm"', 'body = "leg"', "leg"),
        ("slack = true", "slack = 1", "slack"),
    ],
)
def test_errors_name_the_scene_and_the_part(old, new, text):
    with pytest.raises(BorelliError, match=text):
        scene_from_text(TEXT.replace(old, new))
