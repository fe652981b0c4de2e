"""The full skeleton: counts, masses, symmetry, stance, and signs of angles."""

from collections import Counter
from itertools import product
from math import pi, radians

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from borelli.errors import SettingsError
from borelli.model import Frame, extent, mass_of_body, read_model, read_osim, validate, write_model, write_osim
from borelli.model.formats.mjcf.reader import read_mjcf
from borelli.model.formats.mjcf.writer import write_mjcf
from borelli.model.inertia import MassProperties
from borelli.model.kinematics import poses
from borelli.model.transforms import compose
from borelli.model.validate import inertia_problem
from borelli.people.anthropometry import Proportions, table
from borelli.people.full_skeleton import full_skeleton
from borelli.people.full_skeleton_spine import NAMES, spine_of
from borelli.people.human import human

from ..model.mujoco_referee import agrees, engine, random_rows, same_masses
from .test_human import MIRROR, center_of_mass, other_side, pose

FORWARD, LEFT, UP = np.eye(3)
SEXES = ("male", "female")
FINGERS = ("index", "middle", "ring", "little")


@pytest.fixture(scope="module")
def model():
    return full_skeleton()


def whole(model, start: str) -> MassProperties:
    """Mass properties of a subtree, rigidly joined in the standing pose."""
    names = {start}
    for joint in model.joints:
        if joint.parent in names:
            names.add(joint.child)
    parts = [mass_of_body(b).transformed(b.frame) for b in model.bodies if b.name in names]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def test_counts_are_those_of_the_paper(model) -> None:
    """Weinstein, Guendelman and Fedkiw 2008: 74 joints, 118 degrees of freedom."""
    kinds = Counter(joint.kind for joint in model.joints)
    assert kinds == {"free": 1, "ball": 15, "universal": 14, "hinge": 45}
    assert len(model.bodies) == 75
    assert len(model.coordinates) == 6 + 118
    assert not model.self_collision


def test_hands_have_five_fingers_and_feet_five_toes(model) -> None:
    names = {body.name for body in model.bodies}
    for side in "rl":
        phalanges = {f"{finger}_{part}_{side}" for finger, part in product(FINGERS, ("proximal", "middle", "distal"))}
        thumb = {f"thumb_{part}_{side}" for part in ("metacarpal", "proximal", "distal")}
        assert phalanges | thumb < names
        assert {f"toe_{k}_{side}" for k in range(1, 6)} < names
    vertebrae = [shape for body in model.bodies for shape in body.shapes if shape.kind == "cylinder"]
    assert len(vertebrae) == 24


@settings(max_examples=20, deadline=None)
@given(st.floats(1.0, 500.0), st.floats(0.3, 3.0), st.sampled_from(SEXES))
def test_any_subject_is_sound_and_has_the_requested_mass(mass: float, height: float, sex: str) -> None:
    subject = validate(full_skeleton(mass, height, sex))
    assert subject.mass == pytest.approx(mass, rel=1e-13)


@pytest.mark.parametrize("sex", SEXES)
def test_every_inertia_is_physical(sex: str) -> None:
    for body in full_skeleton(sex=sex).bodies:
        assert not inertia_problem(np.array(body.inertia)), body.name
        assert body.mass > 1e-3


@pytest.mark.parametrize("sex", SEXES)
def test_center_of_mass_agrees_with_measurements(sex: str) -> None:
    """Standing center of mass at 0.56 of stature (0.55 to 0.57 in the literature), over the feet, at the midline."""
    x, y, z = center_of_mass(full_skeleton(70.0, 1.70, sex)) / 1.70
    assert z == pytest.approx(0.56, abs=0.01)
    assert abs(x) < 0.01
    assert abs(y) < 1e-15


@pytest.mark.parametrize("sex", SEXES)
def test_segments_of_the_tables_are_kept(sex: str) -> None:
    """Mass fractions of de Leva 1996 for segments divided here; center of mass and moments of a hand."""
    subject = full_skeleton(100.0, 1.8, sex)
    mass = {body.name: body.mass for body in subject.bodies}
    leva = Proportions(100.0, 1.8, sex)
    share = {name: leva.segments[name]["mass"] * leva.mass_scale for name in leva.segments if name != "stature"}
    assert whole(subject, "C6_C7").mass == pytest.approx(share["head"])
    assert whole(subject, "hand_r").mass == pytest.approx(share["hand"])
    assert whole(subject, "talus_l").mass == pytest.approx(share["foot"])
    assert mass["ulna_r"] + mass["radius_r"] == pytest.approx(share["forearm"])
    levels = ("L5", "L4", "L3", "L2", "L1", "T9_T12", "T5_T8", "T1_T4", "collar_r", "collar_l")
    assert sum(mass[name] for name in levels) == pytest.approx(share["upper_trunk"] + share["middle_trunk"])
    # the foot is cut up without moving any of its matter
    foot = whole(subject, "talus_r")
    radii = np.array(leva.segments["foot"]["gyration"]) * leva.segments["foot"]["length"] * leva.length_scale
    assert foot.inertia == pytest.approx(foot.mass * np.diag(radii**2), abs=1e-12)


def test_mass_distribution_of_the_trunk_agrees_with_scans(model) -> None:
    """Pearsall, Reid and Livingston 1996: thorax 18.5 and loins 12.2 % of body mass, from 1.1 % at T1 to 2.6 % at L5.

    They call them upper and middle trunk, whose centers lie at T7 to T8 and at L3 to L4.
    """
    level = {vertebra["name"]: vertebra.get("mass") for vertebra in table("full_skeleton")["vertebra"]}
    assert min(filter(None, level.values())) == level["T1"] == pytest.approx(1.1, abs=0.05)
    assert max(filter(None, level.values())) == level["L5"] == pytest.approx(2.6, abs=0.05)
    mass = {body.name: body.mass for body in model.bodies}
    loins = sum(mass[f"L{k}"] for k in range(1, 6))
    thorax = sum(mass[name] for name in ("T9_T12", "T5_T8", "T1_T4", "collar_r", "collar_l"))
    assert loins / thorax == pytest.approx(12.2 / 18.5, rel=0.01)
    # and the trunk's center of mass, all from the sacrum up without head and arms: about 2 cm ahead of L1 to L2
    names = {"pelvis", *(f"L{k}" for k in range(1, 6)), "T9_T12", "T5_T8", "T1_T4", "collar_r", "collar_l"}
    parts = [(b.mass, np.array(b.frame.position) + b.center_of_mass) for b in model.bodies if b.name in names]
    center = sum(m * place for m, place in parts) / sum(m for m, _ in parts)
    spine = spine_of(Proportions(75.0, 1.75, "male"))
    assert spine["L3"].disc[2] < center[2] < spine["T11"].disc[2]
    assert center[0] - spine["L1"].disc[0] == pytest.approx(0.02, abs=0.01)


def test_center_of_mass_of_the_hand_agrees_with_measurements(model) -> None:
    """de Leva 1996: a man's hand has its center of mass at 0.3624 of the way from the wrist to the third fingertip."""
    wrist = model.body("hand_r").frame.position[2]
    assert (wrist - whole(model, "hand_r").center[2]) / (0.108 * 1.75) == pytest.approx(0.3624, abs=0.04)


@pytest.mark.parametrize("sex", SEXES)
def test_stands_on_the_ground_at_full_height(sex: str) -> None:
    subject = full_skeleton(80.0, 1.9, sex)
    bottoms, tops = {}, {}
    for body in subject.bodies:
        middle, half = extent(body)
        bottoms[body.name] = (body.frame.position[2] + middle - half)[2]
        tops[body.name] = (body.frame.position[2] + middle + half)[2]
    assert min(bottoms.values()) == pytest.approx(0.0, abs=1e-12)
    for part in ("foot_r", "toe_1_distal_r", "toe_2_l", "toe_3_r", "toe_4_l", "toe_5_r"):
        assert bottoms[part] == pytest.approx(0.0, abs=1e-12), part
    assert max(tops.values()) == tops["head"] == pytest.approx(1.9)


def test_extents_agree_with_the_human(model) -> None:
    """The same person: joints of the limbs, fingertips and toe tips are where `human` has them."""
    other = human()
    for name, twin in (("upper_arm", "upper_arm"), ("ulna", "forearm"), ("hand", "hand"), ("shank", "shank")):
        ours, theirs = model.body(f"{name}_r").frame.position, other.body(f"{twin}_r").frame.position
        assert ours == pytest.approx(theirs, abs=1e-12), name
    for ours, theirs, axis, end in (("middle_distal_r", "hand_r", 2, -1.0), ("toe_1_distal_r", "toes_r", 0, 1.0)):
        reach = []
        for body in (model.body(ours), other.body(theirs)):
            middle, half = extent(body)
            reach.append(body.frame.position[axis] + middle[axis] + end * half[axis])
        assert reach[0] == pytest.approx(reach[1], abs=1e-12), ours


def test_index_finger_and_thumb_can_meet(model) -> None:
    """Within the joint limits the two tips can meet; the pinch was found by a search over their angles."""
    pinch = {
        "index_mcp_flexion_r": 0.98, "index_mcp_abduction_r": 0.22, "index_pip_flexion_r": 0.99,
        "index_dip_flexion_r": 0.80, "thumb_cmc_flexion_r": 0.16, "thumb_cmc_abduction_r": 0.19,
        "thumb_mcp_flexion_r": 0.43, "thumb_ip_flexion_r": 0.67,
    }  # fmt: skip
    stops = {c.name: (c.lower, c.upper) for c in model.coordinates}
    assert all(stops[name][0] <= angle <= stops[name][1] for name, angle in pinch.items())
    frames = pose(model, **pinch)
    ends = []
    for name in ("thumb_distal_r", "index_distal_r"):
        tip = Frame(tuple(2.0 * np.array(model.body(name).center_of_mass)))
        ends.append(np.array(compose(frames[name], tip).position))
    assert np.linalg.norm(ends[0] - ends[1]) < 0.001


def test_left_mirrors_right(model) -> None:
    for body in model.bodies:
        twin = model.body(other_side(body.name))
        assert twin.mass == body.mass
        assert np.array(twin.center_of_mass) == pytest.approx(MIRROR * body.center_of_mass, abs=1e-14)
        assert np.array(twin.inertia) == pytest.approx(np.outer(MIRROR, MIRROR) * body.inertia, abs=1e-14)
        assert np.array(twin.frame.position) == pytest.approx(MIRROR * body.frame.position, abs=1e-15)
    for joint in model.joints:
        twin_joint = model.joint(other_side(joint.name))
        if twin_joint is joint:
            continue
        # a rotation is mirrored by mirroring its axis and reversing its sign
        assert np.array(twin_joint.axes) == pytest.approx(-MIRROR * np.array(joint.axes), abs=1e-15)
        assert [(c.lower, c.upper) for c in twin_joint.coordinates] == [(c.lower, c.upper) for c in joint.coordinates]


def test_reference_frames_are_the_pose_at_default_coordinates(model) -> None:
    frames = pose(model)
    for body in model.bodies:
        assert frames[body.name].position == pytest.approx(body.frame.position, abs=1e-12)
        assert frames[body.name].orientation == pytest.approx(body.frame.orientation, abs=1e-12)


# angle, body whose point is watched, the point [m], where it goes; for the right side where there are two
MOTIONS = [
    ("L5_S1_flexion", "head", (0, 0, 0), FORWARD),
    ("T8_T9_bending", "head", (0, 0, 0), LEFT),
    ("C7_T1_rotation", "head", (0.1, 0, 0), LEFT),
    ("C1_C2_rotation", "head", (0.1, 0, 0), LEFT),
    ("C0_C1_flexion", "head", (0, 0, 0.1), FORWARD),
    ("jaw_opening", "jaw", (0.1, 0, 0), -UP),
    ("clavicle_elevation_r", "upper_arm_r", (0, 0, 0), UP),
    ("elbow_pronation_r", "hand_r", (0.1, 0, 0), LEFT),
    ("index_mcp_flexion_r", "index_distal_r", (0, 0, 0), LEFT),
    ("index_mcp_abduction_r", "index_distal_r", (0, 0, 0), FORWARD),
    ("middle_mcp_abduction_r", "middle_distal_r", (0, 0, 0), FORWARD),
    ("little_mcp_abduction_r", "little_distal_r", (0, 0, 0), -FORWARD),
    ("ring_pip_flexion_r", "ring_distal_r", (0, 0, 0), LEFT),
    ("little_dip_flexion_r", "little_distal_r", (0, 0, -0.01), LEFT),
    ("toe_1_extension_r", "toe_1_distal_r", (0, 0, 0), UP),
    ("toe_1_ip_extension_r", "toe_1_distal_r", (0.01, 0, 0), UP),
    ("toe_5_extension_r", "toe_5_r", (0.01, 0, 0), UP),
]


def moved(model, angle: str, body: str, point) -> np.ndarray:
    """Where a point of a body goes when an angle grows."""
    spot = Frame(tuple(float(v) for v in point))
    before = np.array(compose(pose(model)[body], spot).position)
    return np.array(compose(pose(model, **{angle: 0.1})[body], spot).position) - before


@pytest.mark.parametrize(("angle", "body", "point", "way"), MOTIONS, ids=[m[0] for m in MOTIONS])
def test_signs_of_angles_match_their_names(model, angle: str, body: str, point, way) -> None:
    sides = [(angle, body, point, way)]
    if angle.endswith("_r"):
        sides.append((other_side(angle), other_side(body), MIRROR * point, MIRROR * way))
    for name, carrier, local, expected in sides:
        went = moved(model, name, carrier, local)
        assert went @ expected > 0.9 * np.linalg.norm(went) > 0.0, name


@pytest.mark.parametrize("side", ["r", "l"])
def test_forearm_rotates_about_the_heads_of_radius_and_ulna(model, side: str) -> None:
    """Holzbaur et al. 2005: the axis begins about 20 mm lateral of the elbow and ends behind the wrist, at the ulna."""
    outward = LEFT if side == "l" else -LEFT
    elbow, wrist = (np.array(model.body(f"{name}_{side}").frame.position) for name in ("ulna", "hand"))
    head = np.array(model.body(f"radius_{side}").frame.position)
    assert (head - elbow) @ outward == pytest.approx(0.020, abs=0.003)
    axis = np.array(model.joint(f"radioulnar_{side}").axes[0])
    ulnar = head + axis * (wrist - head)[2] / axis[2]
    assert (ulnar - wrist) @ -FORWARD == pytest.approx(0.014, abs=0.002)
    # points of the axis stay, the thumb's side goes around them
    for point in (head, ulnar):
        assert moved(model, f"elbow_pronation_{side}", f"radius_{side}", point - head) == pytest.approx(0.0, abs=1e-12)
    assert moved(model, f"elbow_pronation_{side}", f"radius_{side}", wrist - head) @ -outward > 0.001


@pytest.mark.parametrize("side", ["r", "l"])
def test_signs_of_oblique_joints_match_their_names(model, side: str) -> None:
    inward = LEFT if side == "r" else -LEFT
    assert moved(model, f"ankle_flexion_{side}", f"toe_2_{side}", (0, 0, 0)) @ UP > 0.005
    # the inner edge of the sole rises
    assert moved(model, f"ankle_inversion_{side}", f"foot_{side}", 0.1 * inward) @ UP > 0.005
    # a thumb bends across the palm, and leaves its plane towards the palm's side
    tip = 2.0 * np.array(model.body(f"thumb_distal_{side}").center_of_mass)
    assert moved(model, f"thumb_cmc_flexion_{side}", f"thumb_distal_{side}", tip) @ -FORWARD > 0.005
    assert moved(model, f"thumb_cmc_abduction_{side}", f"thumb_distal_{side}", tip) @ inward > 0.005


def test_range_of_the_spine_agrees_with_the_human(model) -> None:
    """Kapandji's regions, the same as in `human`: the joints that make one add up to it."""
    stops = {c.name: (c.lower, c.upper) for c in model.coordinates}
    other = {c.name: (c.lower, c.upper) for c in human().coordinates}
    regions = {
        "sacral": ("L5_S1", "L4_L5", "L3_L4", "L2_L3", "L1_L2"),
        "lumbar": ("T12_L1", "T8_T9", "T4_T5"),
        "neck": ("C7_T1", "C5_C6", "C3_C4"),
    }
    for region, joints in regions.items():
        for turn in ("flexion", "bending", "rotation"):
            total = np.sum([stops[f"{joint}_{turn}"] for joint in joints], axis=0)
            assert total == pytest.approx(other[f"{region}_{turn}"]), (region, turn)


def test_spine_has_the_curves_of_a_standing_person() -> None:
    """Lordosis 60 deg, from plate to plate: Vialle et al. 2005; between the middles of L5 and L1 it is less.

    Kyphosis of the thorax, 43 deg in men: Lang-Tapia et al. 2011, J. Appl. Biomech. 27, 143-150. The neck stands over
    the pelvis.
    """
    spine = spine_of(Proportions(75.0, 1.75, "male"))
    slope = {v.name: np.degrees(v.slope) for v in spine.vertebrae}
    assert 40.0 < slope["L5"] - slope["L1"] < 60.0
    assert slope["T1"] - slope["T12"] == pytest.approx(43.0, abs=6.0)
    assert abs(spine["C7"].disc[0] - spine.sacrum[0]) < 0.05  # the plumb line from C7, +- 5 cm
    heights = [v.disc[2] for v in spine.vertebrae]
    assert heights == sorted(heights) and len(heights) == len(NAMES) == 24


def test_regions_of_the_spine_are_as_long_as_a_mans() -> None:
    """Gray 1918, Anatomy of the Human Body: cervical part 12.5 cm, thoracic 28, lumbar 18."""
    spine = spine_of(Proportions(75.0, 1.75, "male"))
    lengths = dict.fromkeys("CTL", 0.0)
    for v in spine.vertebrae:
        lengths[v.name[0]] += np.linalg.norm(v.top - v.bottom) + 2.0 * np.linalg.norm(v.bottom - v.disc)
    assert lengths == pytest.approx({"C": 0.125, "T": 0.28, "L": 0.18}, rel=0.1)


def test_every_angle_has_limits_around_its_default(model) -> None:
    for coordinate in model.coordinates[6:]:
        assert -pi <= coordinate.lower <= 0.0 <= coordinate.upper <= pi, coordinate.name
        assert coordinate.upper > coordinate.lower
    for joint in model.joints:
        if joint.kind == "ball":
            middle = joint.coordinates[1]
            assert max(-middle.lower, middle.upper) <= radians(86), joint.name


def test_files_restore_the_model(model, tmp_path) -> None:
    write_model(model, tmp_path / "skeleton.toml")
    assert read_model(tmp_path / "skeleton.toml") == model
    write_osim(model, tmp_path / "skeleton.osim")
    back = read_osim(tmp_path / "skeleton.osim")
    assert [(b.name, b.mass) for b in back.bodies] == [(b.name, pytest.approx(b.mass)) for b in model.bodies]
    rows = random_rows(model, count=2)
    order = [[c.name for c in model.coordinates].index(c.name) for c in back.coordinates]
    position, rotation = poses(model, rows)
    again, turned = poses(back, rows[:, order])
    assert again == pytest.approx(position, abs=1e-9)
    assert turned == pytest.approx(rotation, abs=1e-9)


@pytest.mark.crosscheck
def test_mjcf_restores_the_model(model, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert write_mjcf(model, tmp_path / "skeleton.xml") == ()
    theirs = engine().MjModel.from_xml_path(str(tmp_path / "skeleton.xml"))
    agrees(model, theirs, random_rows(model, count=2))
    same_masses(model, theirs)
    back = read_mjcf(tmp_path / "skeleton.xml")
    assert {j.child: j.kind for j in back.joints} == {j.child: j.kind for j in model.joints}


def test_bad_settings_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"height is 175 m. It must be from 0\.3 to 3 m"):
        full_skeleton(height=175)
    with pytest.raises(SettingsError, match=r"Unknown sex 'mal'.*did you mean 'male'"):
        full_skeleton(sex="mal")
