"""Muscles of `full_skeleton`: those of their sources where the body is, mirrored, inside published ranges."""

from dataclasses import replace

import numpy as np
import pytest

from borelli.errors import ModelError
from borelli.model.io import read_model
from borelli.muscles.actuation import actuation_report
from borelli.muscles.paths import muscle_paths
from borelli.people.full_skeleton import full_skeleton
from borelli.people.human_muscles import add_muscles

from ..shared_data import shared
from . import muscle_table, skeleton_muscle_table

LEG_RANGES = {  # of random poses [deg]
    "hip_flexion": (-20, 90), "hip_adduction": (-30, 20), "hip_rotation": (-25, 25), "knee_flexion": (0, 100),
    "ankle_flexion": (-30, 20), "ankle_inversion": (-15, 15),
}  # fmt: skip
LEG_NAMES = {"knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle", "ankle_inversion": "subtalar_angle"}
ARM_RANGES = {
    "shoulder_flexion": (-30, 90), "shoulder_rotation": (-30, 30), "elbow_flexion": (0, 120),
    "elbow_pronation": (-50, 50), "wrist_flexion": (-40, 40),
}  # fmt: skip
MAX_RELATIVE_RMS = {
    "hip_flexion": 0.10, "hip_adduction": 0.10, "hip_rotation": 0.10, "knee_flexion": 0.15, "ankle_flexion": 0.10,
    "ankle_inversion": 0.20, "elbow_flexion": 0.10, "elbow_pronation": 0.20, "wrist_flexion": 0.10,
    "shoulder_flexion": 0.15, "shoulder_rotation": 0.15,
}  # fmt: skip
"""Difference of moment arms from the source per RMS arm: what different joint centers and axes leave."""
POSES = 40


@pytest.fixture(scope="module")
def body():
    return full_skeleton(*muscle_table.REFERENCE_HUMAN, muscles=True)


def unlocked(model):
    """Return the model with all coordinates free: arms of locked ones are zero."""
    joints = (replace(j, coordinates=tuple(replace(c, locked=False) for c in j.coordinates)) for j in model.joints)
    return replace(model, joints=tuple(joints))


def random_angles(ranges, count=POSES):
    """Return random poses [deg] by name without side."""
    generator = np.random.default_rng(0)
    values = {name: generator.uniform(*limits, count) for name, limits in ranges.items()}
    return [{name: float(v[k]) for name, v in values.items()} for k in range(count)]


def coordinate_rows(model, poses, rename=None):
    """Return coordinates of both sides in poses [deg]."""
    names = {c.name: i for i, c in enumerate(model.coordinates)}
    rows = np.tile([c.default for c in model.coordinates], (len(poses), 1))
    for row, pose in zip(rows, poses, strict=True):
        for name, angle in pose.items():
            for side in "rl":
                row[names[f"{(rename or {}).get(name, name)}_{side}"]] = np.radians(angle)
    return rows


def arms(model, rows, muscles, coordinate):
    """Return moment arms (poses, muscles) [m]; of a muscle that is divided, the mean over its parts."""
    paths = muscle_paths(model, rows)
    own = paths.moment_arm[:, :, paths.coordinate.index(coordinate)]
    parts = [
        [paths.muscle.index(name)] if name in paths.muscle
        else [paths.muscle.index(f"{name.removesuffix('_r')}_{toe}_r") for toe in (2, 3, 4, 5)]
        for name in muscles
    ]  # fmt: skip
    return np.stack([own[:, part].mean(axis=1) for part in parts], axis=1)


def legs(body):
    """Return own and the source's moment arms of the right leg, and muscles, by coordinate."""
    source = unlocked(read_model(shared(muscle_table.LEGS)))
    muscles = [m.name for m in source.muscles if m.name.endswith("_r")]
    poses = random_angles(LEG_RANGES)
    own, theirs = coordinate_rows(body, poses), coordinate_rows(source, poses, LEG_NAMES)
    return {
        name: (
            arms(body, own, muscles, f"{name}_r"),
            arms(source, theirs, muscles, f"{LEG_NAMES.get(name, name)}_r"),
            muscles,
        )
        for name in LEG_RANGES
    }


def upper_limbs(body):
    source = skeleton_muscle_table.arm_source()
    frames = skeleton_muscle_table.ArmFrames(source)
    muscles = [m.name for m in source.model.muscles]
    poses = random_angles(ARM_RANGES)
    own, theirs = coordinate_rows(body, poses), skeleton_muscle_table.arm_rows(source, frames, poses)
    rename = skeleton_muscle_table.ARM_NAMES
    return {
        name: (
            arms(body, own, muscles, f"{name}_r"),
            arms(source.model, theirs, muscles, f"{rename.get(name, name)}_r"),
            muscles,
        )
        for name in ARM_RANGES
    }


@pytest.mark.data
@pytest.mark.parametrize("limbs", [legs, upper_limbs])
def test_moment_arms_are_those_of_the_source(body, limbs):
    for name, (own, source, muscles) in limbs(body).items():
        crossing = np.abs(source).max(axis=0) > 1e-3
        difference = np.sqrt(((own - source)[:, crossing] ** 2).mean())
        rms = np.sqrt((source[:, crossing] ** 2).mean())
        flips = (own * source < 0.0) & (np.abs(own) > 5e-3) & (np.abs(source) > 5e-3)
        assert difference < MAX_RELATIVE_RMS[name] * rms, name
        assert not flips.any(), [muscles[m] for m in np.flatnonzero(flips.any(axis=0))]


@pytest.mark.data
def test_elbow_has_the_arms_of_the_model_with_wrap_objects(body):
    """arm26 (Holzbaur et al. 2005): brachialis wraps near extension, triceps in flexion."""
    source = read_model(shared(skeleton_muscle_table.ELBOW))
    muscles = ["TRIlong", "TRIlat", "TRImed", "BRA"]
    angles = np.arange(10, 125, 10)
    rows = np.zeros((len(angles), len(source.coordinates)))
    rows[:, [c.name for c in source.coordinates].index("r_elbow_flex")] = np.radians(angles)
    theirs = arms(source, rows, muscles, "r_elbow_flex")
    own = coordinate_rows(body, [{"elbow_flexion": float(a)} for a in angles])
    own = arms(body, own, [f"{name}_r" for name in muscles], "elbow_flexion_r")
    assert np.sqrt(((own - theirs) ** 2).mean()) < 0.10 * np.sqrt((theirs**2).mean())


@pytest.mark.data
def test_lumbar_arms_of_the_trunk_are_those_of_the_source(body):
    """Per disc, in the zero pose; muscles of the abdomen's own body, which the skeleton lacks, are left out."""
    source = unlocked(read_model(shared(muscle_table.TRUNK)))
    source = replace(source, couplings=())  # arms of single discs
    names = {c.name: i for i, c in enumerate(source.coordinates)}
    groups = {
        own: line
        for own, (line, _) in skeleton_muscle_table.TRUNK_GROUPS.items()
        if all(point.body != "Abdomen" for point in source.muscle(f"{line}_r").path)
    }
    assert len(groups) == 19
    rows = np.zeros((1, len(names)))
    theirs, own = [], []
    for disc, joint in (("L5_S1", "L5_S1"), ("L4_L5", "L4_L5"), ("L3_L4", "L3_L4"), ("L2_L3", "L2_L3"),
                        ("L1_L2", "L1_L2"), ("T12_L1", "L1_T12")):  # fmt: skip
        lines = [f"{line}_r" for line in groups.values()]
        theirs.append(-arms(source, rows, lines, f"{joint}_Flex_Ext")[0])  # theirs is positive in extension
        pose = [[c.default for c in body.coordinates]]
        own.append(arms(body, pose, [f"{name}_r" for name in groups], f"{disc}_flexion")[0])
    difference = np.array(own) - theirs
    # the curves of the two spines differ most at L5/S1
    assert np.sqrt((difference**2).mean()) < 0.15 * np.sqrt((np.array(theirs) ** 2).mean())
    assert np.abs(difference).max() < 0.015


@pytest.mark.data
def test_fibers_have_the_normalized_lengths_of_the_source(body):
    source = skeleton_muscle_table.arm_source()
    frames = skeleton_muscle_table.ArmFrames(source)
    muscles = [m.name for m in source.model.muscles]
    poses = random_angles(ARM_RANGES)

    def normalized(model, rows):
        own = [model.muscle(name) for name in muscles]
        slack, fiber = ([getattr(m, key) for m in own] for key in ("tendon_slack_length", "optimal_fiber_length"))
        return (muscle_paths(model, rows, muscles=muscles).length - slack) / fiber

    rows = skeleton_muscle_table.arm_rows(source, frames, poses)
    difference = normalized(body, coordinate_rows(body, poses)) - normalized(source.model, rows)
    assert np.abs(difference).max() < 0.10 and np.sqrt((difference**2).mean()) < 0.02


@pytest.mark.data
def test_table_is_what_the_sources_give():
    assert skeleton_muscle_table.TARGET.read_text(encoding="utf-8") == skeleton_muscle_table.text()


PUBLISHED_ARMS = {  # coordinate, sign, muscles, poses [deg], range of the group's mean arm [mm]
    "quadriceps": (
        "knee_flexion_r", -1, ("recfem", "vasint", "vaslat", "vasmed"), "knee_flexion", (20, 40, 60), (35, 55),
    ),
    "hamstrings": ("knee_flexion_r", 1, ("bflh", "semimem", "semiten"), "knee_flexion", (0, 30, 60, 90), (20, 55)),
    "Achilles": ("ankle_flexion_r", -1, ("soleus", "gasmed", "gaslat"), "ankle_flexion", (0,), (40, 60)),
    "tibialis anterior": ("ankle_flexion_r", 1, ("tibant",), "ankle_flexion", (-20, 0, 20), (30, 50)),
    "biceps": ("elbow_flexion_r", 1, ("BIClong", "BICshort"), "elbow_flexion", (80, 90, 100), (35, 50)),
    "triceps": ("elbow_flexion_r", -1, ("TRIlong", "TRIlat", "TRImed"), "elbow_flexion", (20, 50, 90, 120), (18, 28)),
    "gluteus maximus": ("hip_flexion_r", -1, ("glmax1", "glmax2", "glmax3"), "hip_flexion", (-10, 0, 30), (40, 80)),
    "erector spinae, L4/L5": (
        "L4_L5_flexion", -1, ("iliocostalis_lumbar", "iliocostalis_lower", "iliocostalis_upper", "longissimus_lumbar",
                              "longissimus_lower", "longissimus_middle"), "hip_flexion", (0,), (40, 75),
    ),
}  # fmt: skip
"""Wide, rounded ranges over subjects and methods, after measurements as those of Buford et al. 1997 (knee), Maganaris
2004 (ankle), Murray et al. 1995 (elbow), Nemeth and Ohlsen 1985 (hip), McGill and Norman 1987 (loins)."""


@pytest.mark.parametrize("group", PUBLISHED_ARMS)
def test_moment_arms_are_in_published_ranges(body, group):
    coordinate, sign, muscles, angle, poses, (low, high) = PUBLISHED_ARMS[group]
    rows = coordinate_rows(body, [{angle: pose} for pose in poses])
    mean = 1e3 * sign * arms(body, rows, [f"{name}_r" for name in muscles], coordinate).mean(axis=1)
    assert low <= mean.min() and mean.max() <= high, mean


def test_triceps_has_the_arms_that_images_show(body):
    """Sugisaki et al. 2010, J. Biomech. 43, 2844-2847, 18 subjects: 23.9 (SD 1.4) mm at 30 deg, 17.4 (1.3) at 110."""
    rows = coordinate_rows(body, [{"elbow_flexion": 30.0}, {"elbow_flexion": 110.0}])
    arm = -1e3 * arms(body, rows, ["TRIlong_r"], "elbow_flexion_r")[:, 0]
    assert arm == pytest.approx([23.9, 17.4], abs=2.0 * 1.3)


ACTIONS = {  # what anatomy says a muscle does, hanging arm or elbow at 90 degrees: coordinate and sign
    "BIClong": ("elbow_pronation_r", -1), "BICshort": ("elbow_pronation_r", -1), "SUP": ("elbow_pronation_r", -1),
    "PT": ("elbow_pronation_r", 1), "PQ": ("elbow_pronation_r", 1), "BRD": ("elbow_flexion_r", 1),
    "ECRL": ("elbow_flexion_r", 1), "BRA": ("elbow_flexion_r", 1), "DELT1": ("shoulder_flexion_r", 1),
    "DELT2": ("shoulder_adduction_r", -1), "DELT3": ("shoulder_flexion_r", -1), "SUPSP": ("shoulder_adduction_r", -1),
    "INFSP": ("shoulder_rotation_r", -1), "TMIN": ("shoulder_rotation_r", -1), "SUBSC": ("shoulder_rotation_r", 1),
    "TMAJ": ("shoulder_adduction_r", 1), "LAT2": ("shoulder_adduction_r", 1), "PECM2": ("shoulder_adduction_r", 1),
    "FCR": ("wrist_flexion_r", 1), "FCU": ("wrist_deviation_r", -1), "ECRB": ("wrist_flexion_r", -1),
    "ECU": ("wrist_deviation_r", -1), "APL": ("wrist_deviation_r", 1), "FPL": ("thumb_ip_flexion_r", 1),
    "EPL": ("thumb_ip_flexion_r", -1), "FDPM": ("middle_dip_flexion_r", 1), "FDSM": ("middle_pip_flexion_r", 1),
    "EDCM": ("middle_mcp_flexion_r", -1), "SerratusAnterior_M": ("clavicle_protraction_r", 1),
    "Rhomboideus_I": ("clavicle_protraction_r", -1), "TrapeziusScapula_M": ("clavicle_protraction_r", -1),
    "TrapeziusClavicle_S": ("clavicle_elevation_r", 1), "TrapeziusScapula_I": ("clavicle_elevation_r", -1),
    "PectoralisMinor": ("clavicle_elevation_r", -1), "rectus_abdominis": ("L3_L4_flexion", 1),
    "external_oblique_middle": ("T12_L1_rotation", 1), "internal_oblique_middle": ("L3_L4_rotation", -1),
    "multifidus_L3": ("L4_L5_flexion", -1), "sternocleidomastoid": ("C7_T1_flexion", 1),
    "semispinalis_capitis": ("C0_C1_flexion", -1), "splenius_capitis": ("C1_C2_rotation", -1),
    "longus_colli": ("C5_C6_flexion", 1), "scalenes": ("C7_T1_bending", -1), "fhl": ("toe_1_ip_extension_r", -1),
    "ehl": ("toe_1_extension_r", 1), "edl_4": ("toe_4_extension_r", 1), "fdl_5": ("toe_5_extension_r", -1),
}  # fmt: skip


def test_muscles_act_as_anatomy_says(body):
    paths = muscle_paths(body, coordinate_rows(body, [{}, {"elbow_flexion": 90.0}]))
    for name, (coordinate, sign) in ACTIONS.items():
        arm = paths.moment_arm[:, paths.muscle.index(f"{name}_r"), paths.coordinate.index(coordinate)]
        assert (sign * arm > 0.0).all(), (name, coordinate, 1e3 * arm)


def test_moment_arms_are_derivatives_of_lengths(body):
    """Virtual work, with every wrap object, over all coordinates in random poses."""
    limits = np.array([(max(c.lower, -1.0), min(c.upper, 1.0)) for c in body.coordinates])
    generator = np.random.default_rng(1)
    for row in generator.uniform(0.7 * limits[:, 0], 0.7 * limits[:, 1], (3, len(limits))):
        direction = generator.normal(size=len(row))
        direction /= np.linalg.norm(direction)
        step = 1e-5
        paths = muscle_paths(body, [row - step * direction, row, row + step * direction])
        slope = (paths.length[2] - paths.length[0]) / (2.0 * step)
        np.testing.assert_allclose(-paths.moment_arm[1] @ direction, slope, atol=1e-7)


def test_left_side_mirrors_the_right(body):
    paths = muscle_paths(body, coordinate_rows(body, random_angles(LEG_RANGES | ARM_RANGES, 10)))
    right, left = (np.array([name.endswith(side) for name in paths.muscle]) for side in ("_r", "_l"))
    assert [name[:-1] for name in np.array(paths.muscle)[right]] == [name[:-1] for name in np.array(paths.muscle)[left]]
    np.testing.assert_allclose(paths.length[:, right], paths.length[:, left], atol=1e-9)
    for name in LEG_RANGES | ARM_RANGES:
        own = [
            paths.moment_arm[:, side, paths.coordinate.index(f"{name}_{letter}")]
            for side, letter in ((right, "r"), (left, "l"))
        ]
        np.testing.assert_allclose(*own, atol=1e-7)


def test_there_are_more_muscles_than_in_the_paper(body):
    """Weinstein, Guendelman and Fedkiw 2008: 228 muscles, 118 degrees of freedom."""
    assert len(body.muscles) == 274 >= 228
    assert len(body.coordinates) == 6 + 118
    assert all(m.tendon_slack_length >= 0.0 and m.optimal_fiber_length > 0.01 for m in body.muscles)


def test_few_motions_lack_muscles(body):
    """The sources have no muscles of the jaw and none in the hand itself, which spread the fingers."""
    report = actuation_report(body)
    assert len(report.coordinate) == 118
    assert report.without_muscles == ("jaw_opening",)
    abduction = {f"{finger}_mcp_abduction_{side}" for finger in ("index", "middle", "ring", "little") for side in "rl"}
    assert set(report.one_sided) <= abduction | {"T4_T5_flexion", "C0_C1_flexion"}
    assert report.rank >= 112


@pytest.mark.parametrize(("mass", "height", "sex"), [(50.0, 1.55, "female"), (110.0, 2.0, "male")])
def test_muscles_scale_with_the_person(body, mass, height, sex):
    other = full_skeleton(mass, height, sex, muscles=True)
    # Handsfield et al. (2014): volume of a leg's muscles [cm^3]
    volume = (47.05 * mass * height + 1289.6) / (47.05 * body.mass * 1.70 + 1289.6)
    for own, reference in zip(other.muscles, body.muscles, strict=True):
        ratio = own.max_isometric_force * own.optimal_fiber_length
        ratio /= reference.max_isometric_force * reference.optimal_fiber_length
        assert ratio == pytest.approx(volume, rel=1e-9), own.name
        assert 0.85 * height / 1.70 < own.optimal_fiber_length / reference.optimal_fiber_length < 1.15 * height / 1.70


def test_add_muscles_knows_the_skeleton(body):
    plain = full_skeleton(*muscle_table.REFERENCE_HUMAN)
    assert add_muscles(plain, height=1.70) == body
    with pytest.raises(ModelError, match=r"wrist_l.*full_skeleton"):
        add_muscles(replace(plain, joints=tuple(j for j in plain.joints if j.name != "wrist_l")))
