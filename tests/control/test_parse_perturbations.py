"""Perturbations said in a line of text."""

from math import inf

import pytest

from borelli.control.parse_perturbations import EXAMPLES, parse_perturbation
from borelli.control.perturbations import CarriedLoad, MoveGround, Obstacle, Push, WeakenedJoint
from borelli.errors import SettingsError
from borelli.model.model import Frame, Shape
from borelli.people.human import human

MODEL = human()


@pytest.mark.parametrize(
    ("kind", "text", "meant"),
    [
        ("push", "pelvis 200N 0.1s left at 1.2s", Push("pelvis", (0.0, 200.0, 0.0), 1.2, 0.1)),
        ("push", "pelvis at 1.2 s back 0.2 kN 150 ms", Push("pelvis", (-200.0, 0.0, 0.0), 1.2, 0.15)),
        ("push", "hand_r 10,-20,5N on 0,0,-0.1", Push("hand_r", (10.0, -20.0, 5.0), 0.0, 0.1, (0.0, 0.0, -0.1))),
        ("push", "head 1e2N down", Push("head", (0.0, 0.0, -100.0))),
        ("carry", "hand_r 5kg", CarriedLoad("hand_r", 5.0)),
        ("carry", "hand_l 500 g hanging outside", CarriedLoad("hand_l", 0.5, None, True, True)),
        ("weaken", "knee_flexion_r 30% at 1s", WeakenedJoint("knee_flexion_r", 0.3, 1.0)),
        ("weaken", "ankle_l to 0 % at 1 s for 500 ms", WeakenedJoint("ankle_l", 0.0, 1.0, 1.5)),
        (
            "obstacle", "box 0.4x0.4x0.2m on 1,0,0.1 from 0.5s to 2s",
            Obstacle(Shape("box", (0.2, 0.2, 0.1)), Frame((1.0, 0.0, 0.1)), 0.5, 2.0),
        ),
        ("obstacle", "sphere 20cm on 1,0,1m", Obstacle(Shape("sphere", (0.1,)), Frame((1.0, 0.0, 1.0)), 0.0, inf)),
        ("move-ground", "0.2m left 0.4s at 1s", MoveGround((0.0, 0.2, 0.0), 1.0, 0.4)),
    ],
)  # fmt: skip
def test_texts_are_parsed(kind, text, meant):
    assert parse_perturbation(kind, text, MODEL) == meant


@pytest.mark.parametrize(
    ("kind", "text", "match"),
    [
        ("push", "", r"push '': The text is empty\. Begin with a body\. Example: 'pelvis 200N 0.1s left at 1.2s'"),
        ("push", "pelvs 200N left", r"[Uu]nknown body 'pelvs' \(did you mean 'pelvis'\?\).* pelvis, lower_torso"),
        ("push", "pelvis left", r"A force in N or kN is missing\. Example"),
        ("push", "pelvis 200N", "A direction is missing: forward, back, left, right, up, down"),
        ("push", "pelvis 200N sideways", "A direction is missing: .*, not 'sideways'"),
        ("push", "pelvis 200N left at noon", "After 'at' comes 'noon', not a time, such as at 1s"),
        ("push", "pelvis 200N left at", "After 'at' comes nothing, not a time"),
        ("push", "pelvis 200N left now", "'now' is not understood"),
        ("push", "pelvis 1,2N left", "A force is '1,2N', 2 numbers; it needs 3"),
        ("push", "pelvis 1,2,3N left", "three numbers and a direction"),
        ("push", "pelvis 200lb left", "A force in N or kN is missing"),
        ("push", "pelvis 200N 0s left", r"duration is 0 s\. Pass a positive"),
        ("carry", "hand_r 0kg", r"mass is 0 kg\. Pass a positive"),
        ("carry", "hand_r", r"A mass in kg or g is missing\. Example: 'hand_r 5kg'"),
        ("weaken", "knee 30%", r"[Uu]nknown coordinate or joint 'knee' \(did you mean 'knee_r'\?\)"),
        ("weaken", "knee_r 130%", r"The remaining fraction is 1.3\. Pass a number from 0 to 1"),
        ("obstacle", "cube 1m on 0,0,0", "[Uu]nknown shape 'cube'.* box, sphere"),
        ("obstacle", "box 1m on 0,0,0", "The size of a box is 3 positive lengths"),
        ("obstacle", "box 1x1x1m", "A position is missing: on X,Y,Z"),
        ("obstacle", "box 1x1x1m on 0,0,1 from 2s to 1s", r"starts at 2 s and ends at 1 s\. The end must be later"),
        ("move-ground", "left 1s", "A distance in m or cm or mm is missing"),
        ("shove", "pelvis", "[Uu]nknown kind of perturbation 'shove'.* push, carry"),
    ],
)  # fmt: skip
def test_texts_that_are_not_understood_raise(kind, text, match):
    with pytest.raises(SettingsError, match=match):
        parse_perturbation(kind, text, MODEL)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_examples_in_errors_are_right(kind):
    parse_perturbation(kind, EXAMPLES[kind], MODEL)
