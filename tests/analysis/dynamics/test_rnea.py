"""RNEA for all frames at once: agrees with the body-frame version, and power is the change of energy."""

from pathlib import Path

import numpy as np
import pytest

from borelli.analysis.dynamics import rnea
from borelli.model.io import read_model
from borelli.model.kinematics import generalized_forces, poses
from borelli.people.human import human

STORED = sorted((Path(__file__).parents[2] / "model" / "formats" / "osim").glob("*.osim"))
ROUND_OFF = 1e-10  # relative: both sum the same products in another order


def models():
    return [human(mass=70.0, height=1.75), *(read_model(path) for path in STORED)]


def motion(model, frames=7, seed=3):
    rng = np.random.default_rng(seed)
    shape = (frames, len(model.coordinates))
    return 0.3 * rng.normal(size=shape), rng.normal(size=shape), 3.0 * rng.normal(size=shape)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_forces_agree_with_generalized_forces(model):
    q, u, a = motion(model)
    kinematics = rnea.forward_kinematics(model, q, u, a)
    position, rotation = poses(model, q)
    assert np.allclose(kinematics.position.transpose(2, 0, 1), position, atol=1e-12)
    assert np.allclose(kinematics.rotation.transpose(3, 0, 1, 2), rotation, atol=1e-12)
    causes = np.stack([rnea.inertial_wrenches(kinematics), rnea.weight_wrenches(kinematics)])
    inertial, gravity = rnea.coordinate_forces(kinematics, rnea.subtree_wrenches(kinematics, causes))
    largest = np.abs(inertial).max() + 1.0
    assert np.abs(inertial - generalized_forces(model, q, u, a, gravity=False)).max() < ROUND_OFF * largest
    assert np.abs(inertial + gravity - generalized_forces(model, q, u, a)).max() < ROUND_OFF * largest


@pytest.mark.parametrize("model", models(), ids=lambda model: model.name)
def test_power_is_the_change_of_energy(model):
    q, u, a = motion(model)
    step = 1e-5

    def total(sign):
        h = sign * step
        kinematics = rnea.forward_kinematics(model, q + h * u + 0.5 * h * h * a, u + h * a, a)
        return sum(rnea.mechanical_energy(kinematics))

    change = (total(1) - total(-1)) / (2.0 * step)
    power = (generalized_forces(model, q, u, a) * u).sum(axis=1)
    # central differences of step 1e-5 leave 1e-10 of the third derivative and 1e-11 of the energy
    assert np.abs(change - power).max() < 1e-5 * (np.abs(power).max() + 1.0)


def test_point_velocity_agrees_with_finite_differences():
    model = human(mass=70.0, height=1.75)
    q, u, a = motion(model)
    h = 1e-6
    kinematics, later, earlier = (rnea.forward_kinematics(model, q + sign * h * u, u, a) for sign in (0.0, 1.0, -1.0))
    hand = [body.name for body in model.bodies].index("hand_r")
    local = np.array([0.02, -0.01, -0.1])

    def position(of):
        return (of.position[hand] + np.einsum("ijf,j->if", of.rotation[hand], local)).T

    velocity = (position(later) - position(earlier)) / (2.0 * h)
    assert np.abs(kinematics.point_velocity(hand, position(kinematics)) - velocity).max() < 1e-7


def test_joint_reaction_supports_the_subtree():
    """At rest the hip supports the weight of its leg, upward, with its moment about the hip."""
    model = human(mass=70.0, height=1.75)
    q = np.zeros((1, len(model.coordinates)))
    kinematics = rnea.forward_kinematics(model, q, q, q)
    force, moment = rnea.joint_reactions(
        kinematics, rnea.subtree_wrenches(kinematics, rnea.weight_wrenches(kinematics))
    )
    leg = [i for i, body in enumerate(model.bodies) if body.name in ("thigh_r", "shank_r", "foot_r", "toes_r")]
    link = next(i for i, one in enumerate(kinematics.links) if model.bodies[one.child].name == "thigh_r")
    weight = 9.81 * kinematics.masses[leg].sum()
    assert np.allclose(force[link, :, 0], (0.0, 0.0, weight))
    center = np.average(kinematics.center[leg][..., 0], axis=0, weights=kinematics.masses[leg])
    assert np.allclose(moment[link, :, 0], np.cross(center - kinematics.origin[link, :, 0], (0.0, 0.0, weight)))
