"""Running simulations: read, set, copied and saved states, and contacts one by one."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from borelli.dynamics.contacts import contact_forces, last_contact_forces
from borelli.dynamics.running_simulation import (
    advance_simulation,
    restore_state,
    set_simulation_state,
    simulation_state,
    start_simulation,
    write_state,
)
from borelli.errors import FileFormatError, ModelError, SettingsError
from borelli.people.human import human
from borelli.physics.inputs import Drive
from borelli.physics.simulate import simulate
from borelli.scenes.gallery import gallery_scene


def falling_human():
    model = human()
    drives = [Drive(c.name, stiffness=100.0, damping=5.0) for c in model.coordinates[6:]]
    return start_simulation(model, drives=drives, coordinates={"knee_flexion_l": 0.4}, velocities={"root_x": 0.5})


def test_continued_simulation_has_the_same_bits():
    """Two halves are the whole, whether copied, saved or neither."""
    model, drives = human(), [Drive(c.name, stiffness=100.0, damping=5.0) for c in human().coordinates[6:]]
    whole = simulate(model, duration=0.2, drives=drives, initial_coordinates={"knee_flexion_l": 0.4},
                     initial_velocities={"root_x": 0.5})  # fmt: skip
    simulation = falling_human()
    first = advance_simulation(simulation, 0.1)
    twin = copy.copy(simulation)
    for one in (simulation, twin):
        second = advance_simulation(one, 0.1)
        np.testing.assert_array_equal(second["body_position"].values[-1], whole["body_position"].values[-1])
        np.testing.assert_allclose(second["time"].values, whole["time"].values[24:])
    np.testing.assert_array_equal(first["body_position"].values, whole["body_position"].values[:25])


def test_saved_state_continues_with_the_same_bits(tmp_path):
    simulation, other = falling_human(), falling_human()
    advance_simulation(simulation, 0.1)
    write_state(simulation, tmp_path / "half.npz")
    restore_state(other, tmp_path / "half.npz")
    ends = [advance_simulation(one, 0.05)["coordinate_value"].values[-1] for one in (simulation, other)]
    np.testing.assert_array_equal(*ends)
    with pytest.raises(SettingsError, match="exists"):
        write_state(simulation, tmp_path / "half.npz")


def test_files_that_are_no_state_are_refused(tmp_path):
    simulation = falling_human()
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(FileFormatError, match="not a state"):
            restore_state(simulation, tmp_path / name)
    stack = start_simulation(gallery_scene("stack").model)
    write_state(stack, tmp_path / "stack.npz")
    with pytest.raises(SettingsError, match="stack"):
        restore_state(simulation, tmp_path / "stack.npz")


def test_state_is_read_and_set():
    simulation = falling_human()
    advance_simulation(simulation, 0.05)
    before = simulation_state(simulation)
    set_simulation_state(simulation, coordinates={"elbow_flexion_r": 0.7}, velocities={"elbow_flexion_r": -1.0})
    after = simulation_state(simulation)
    for name in ("coordinate_value", "coordinate_velocity"):
        others = after["coordinate"].values != "elbow_flexion_r"
        # soft joints are closed exactly by coordinates
        np.testing.assert_allclose(after[name].values[others], before[name].values[others], atol=2e-3)
    assert float(after["coordinate_value"].sel(coordinate="elbow_flexion_r")) == pytest.approx(0.7)
    assert float(after["coordinate_velocity"].sel(coordinate="elbow_flexion_r")) == pytest.approx(-1.0)
    assert float(after["time"]) == pytest.approx(0.05)
    with pytest.raises(ModelError, match="elbow"):
        set_simulation_state(simulation, coordinates={"elbow": 1.0})


def test_set_state_keeps_bodies_without_joint():
    simulation = start_simulation(gallery_scene("stack").model)
    advance_simulation(simulation, 0.1)
    before = simulation_state(simulation)["body_position"].values
    name = simulation.compiled.model.bodies[0].name
    set_simulation_state(simulation, twists={name: (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)})
    after = simulation_state(simulation)
    np.testing.assert_array_equal(after["body_position"].values, before)
    assert float(after["body_com_velocity"].values[0, 0]) == 1.0


def test_contacts_support_the_stack():
    """Contacts of a box sum up to the weight above it; forces lie in the friction cone and push."""
    model = gallery_scene("stack").model
    simulation = start_simulation(model)
    advance_simulation(simulation, 1.0)
    contacts = last_contact_forces(simulation)
    on_ground = contacts.where(contacts["contact_other_body"] == "ground", drop=True)
    assert float(on_ground["contact_force"].sel(axis="z").sum()) == pytest.approx(model.mass * 9.81, rel=1e-6)
    along = (contacts["contact_force"] * contacts["contact_normal"]).sum("axis")
    assert float(along.min()) >= 0.0
    assert float(contacts["contact_depth"].max()) < 2e-3
    empty = contact_forces(replace(model, ground=(), bodies=model.bodies[:1]))
    assert empty.sizes["contact"] == 0
