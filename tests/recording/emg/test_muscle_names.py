"""Muscles and sides from channel names: abbreviations of laboratories, ambiguous letters, names of OpenSim models."""

import pytest

from borelli.recording.emg.muscle_names import matching_muscles, read_muscle_names


def labels(*names):
    return [found.label for found in read_muscle_names(names)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("L_SOL", "soleus_l"), ("Soleus", "soleus"), ("Voltage.GAS", "gastrocnemius"), ("RGMED", "gluteus_medius_r"),
        ("EMG Left Tib Ant", "tibialis_anterior_l"), ("TA_R", "tibialis_anterior_r"), ("RF", "rectus_femoris"),
        ("RRF", "rectus_femoris_r"), ("VL.l", "vastus_lateralis_l"), ("med_gas_r", "gastrocnemius_medialis_r"),
        ("glmax2_l", "gluteus_maximus_l"), ("bflh_r", "biceps_femoris_long_head_r"), ("rect_fem_r", "rectus_femoris_r"),
        ("vastus_medius", "vastus_medialis"), ("medial_hamstrings", "hamstrings_medial"),
    ],
)  # fmt: skip
def test_common_names(name, label):
    assert labels(name) == [label]


@pytest.mark.parametrize("name", ["EMG1", "EMG 16", "F1X", "Fz1", "Sync", "RLAT", "LGRF", "", "1", "é"])
def test_other_names_have_no_muscle(name):
    (found,) = read_muscle_names([name])
    assert found.muscle == "" and found.candidates == ()


@pytest.mark.parametrize("name", ["GM", "LHAMS", "LGAST", "BIC"])
def test_a_name_of_several_muscles_alone_is_not_decided(name):
    (found,) = read_muscle_names([name])
    assert found.muscle == "" and len(found.candidates) > 1


def test_other_names_decide_between_left_and_lateral():
    assert labels("LHAMS", "MHAMS") == ["hamstrings_lateral", "hamstrings_medial"]
    assert labels("LHAMS", "RHAMS") == ["hamstrings_l", "hamstrings_r"]
    assert labels("LHAMS", "RHAMS", "MHAMS")[0] == ""


def test_other_names_decide_between_arm_and_leg():
    assert labels("BIC", "TA", "SOL", "RF")[0] == "biceps_femoris"
    assert labels("BIC", "TRIC", "TRAP", "FCR")[0] == "biceps_brachii"
    assert labels("BIC", "TRIC", "TRAP", "SOL")[0] == ""


def test_model_muscles_of_a_channel():
    model = read_muscle_names(["vas_lat_r", "vas_med_r", "vas_med_l", "soleus_r", "glut_med1_r", "glut_med2_r"])
    right, group, both = read_muscle_names(["RGMED", "RVAS", "Soleus"])
    assert matching_muscles(right, model) == ["glut_med1_r", "glut_med2_r"]
    assert matching_muscles(group, model) == ["vas_lat_r", "vas_med_r"]
    assert matching_muscles(both, model) == ["soleus_r"]
