"""Writes people/data/skeleton_muscles.toml from the published models: `python -m tests.people.skeleton_muscle_table`.

Points of the right side are offsets, x forward, y left, z up, in the zero pose of the source. The arm of the source has
a carrying angle; that of `full_skeleton` hangs straight. It is straightened by a rotation about the flexion axis of the
elbow (`ANGLE_OFFSET` is what that does to joint angles) and a shear along it, which leaves moment arms of the elbow as
they are.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from borelli.model.model import Frame, Muscle, PathPoint, PathWrap, WrapObject
from borelli.muscles.paths import muscle_paths
from borelli.numerics.quaternions import smallest_rotation
from borelli.people.full_skeleton import full_skeleton

from ..shared_data import SHARED_DATA
from .muscle_table import REFERENCE_HUMAN, TO_HUMAN, TRUNK, Source

TARGET = Path(__file__).parents[2] / "src/borelli/people/data/skeleton_muscles.toml"
ARM = "muscle_models/osim/PushUpToesOnGroundWithMuscles.osim"
ELBOW = "opensim/arm26/arm26.osim"
NECK = "muscle_models/osim/cyclistFullBodyMuscle_520.osim"
FINGERS = {"index": 2, "middle": 3, "ring": 4, "little": 5}
METACARPALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
DISTAL = 0.7
"""Fraction of the upper arm below which points belong to the elbow: they keep their distance from it with the scale of
the forearm, for the last stretch of triceps is too short to bear two scales."""
DOWN = np.array([0.0, 0.0, -1.0])

LEFT_OUT = {  # points of the file, by index, that were fitted to its one pose in place of wrap objects
    "DELT1": (2,), "DELT2": (1,), "DELT3": (2,), "SUPSP": (1, 2), "INFSP": (1,), "TMIN": (1,), "BIClong": (8, 9),
    "BICshort": (1, 5, 6), "BRA": (1, 2), "BRD": (1,), "CORB": (1,), "ECRL": (1,), "FCU": (1, 2), "PT": (2, 3),
}  # fmt: skip
LEFT_OUT |= {f"FD{kind}{finger}": (2,) for kind in "SP" for finger in "LRMI"}  # on the wrist's axis
PUT_IN = {  # index and point in their place
    "DELT1": (2, PathPoint("scapula_r", (0.0195622, -0.0065871, 0.0103977))),  # Seth et al. 2019
    "FCU": (1, PathPoint("pisiform_r", (0.0, 0.0, 0.0))),  # over which its tendon runs
    # estimate, on the front of the radius: without it the path is more than half around the bone in pronation
    "SUP": (2, PathPoint("radius_r", (0.0092, -0.0450, 0.0126))),
}
WRAPS = {  # muscle: wrap object, first and last point of the path between which it lies
    "DELT1": ("deltoid", 1, 2), "DELT2": ("deltoid", 0, 1), "DELT3": ("deltoid", 1, 2), "SUPSP": ("cuff", 0, 1),
    "INFSP": ("cuff", 0, 1), "TMIN": ("cuff", 0, 1), "TRIlong": ("elbow_back", 3, 4), "TRIlat": ("elbow_back", 3, 4),
    "TRImed": ("elbow_back", 3, 4), "BRA": ("elbow_front", 0, 1), "BRD": ("elbow_front", 0, 1),
    "ECRL": ("elbow_front", 0, 1), "BIClong": ("radius", 7, 8), "BICshort": ("radius", 3, 4), "SUP": ("radius", 2, 3),
    "SerratusAnterior_I": ("thorax_lower", 0, 1), "SerratusAnterior_M": ("thorax_upper", 0, 1),
}  # fmt: skip
AHEAD_OF_ELBOW = PathPoint("humerus_r", (0.05, -0.29, 0.0))
SIDE_POINT = {  # point on whose side a muscle passes the surface [m]
    "BRA": AHEAD_OF_ELBOW, "BRD": AHEAD_OF_ELBOW, "ECRL": AHEAD_OF_ELBOW,
    "BIClong": PathPoint("ulna_r", (0.0, -0.045, -0.05)), "BICshort": PathPoint("ulna_r", (0.0, -0.045, -0.05)),
    "SUP": PathPoint("ulna_r", (0.0, -0.05, 0.08)),
}  # fmt: skip
DELFT_WRAPS = {"deltoid": "deltoid", "cuff": "inf_sup_sub", "radius": "bic_radius_cyl"}
"""Wrap objects by their names in the table of the Delft model (Chadwick et al. 2014)."""
FROM_DELFT = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
"""Axes of the Delft model's arm in those of Holzbaur's: both have the points of the wrist muscles."""
THORAX = {"thorax_upper": "T1_T4", "thorax_lower": "T5_T8"}
"""Bodies with the ellipsoid of the source's thorax: each for the muscles that end on it."""
GIRDLE = {  # muscle of the shoulder girdle: body of its point on the thorax
    "TrapeziusScapula_M": "T1_T4", "TrapeziusScapula_S": "C6_C7", "TrapeziusScapula_I": "T5_T8",
    "TrapeziusClavicle_S": "C2_C3", "SerratusAnterior_I": "T5_T8", "SerratusAnterior_M": "T1_T4",
    "SerratusAnterior_S": "T1_T4", "Rhomboideus_S": "T1_T4", "Rhomboideus_I": "T1_T4", "LevatorScapulae": "C2_C3",
    "PectoralisMinor": "T1_T4",
}  # fmt: skip


def rows(name):
    lines = (SHARED_DATA / "muscle_tables" / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def path_points(name, table):
    return [
        PathPoint(p["body"], tuple(float(p[f"{axis}_m"]) for axis in "xyz")) for p in rows(table) if p["muscle"] == name
    ]


def arm_source():
    """Return the arm of Holzbaur et al. (2005), with wrap objects in place of points that were fitted to one pose.

    The muscles of the shoulder girdle of Seth et al. (2019) are added: thorax, scapula and clavicle have the same
    frames in both, and the muscles that both have begin within 10 mm of each other.
    """
    source = Source(ARM)
    muscles = []
    for row in rows("holzbaur_arm_muscles.csv"):
        name = row["muscle"]
        path = path_points(name, "holzbaur_arm_paths.csv")
        path = [point for i, point in enumerate(path) if i not in LEFT_OUT.get(name, ())]
        if name in PUT_IN:
            path.insert(*PUT_IN[name])
        wraps = (PathWrap(*WRAPS[name]),) if name in WRAPS else ()
        if name in SIDE_POINT:
            wraps = (replace(wraps[0], method="tendon", side_point=SIDE_POINT[name]),)
        muscles.append(muscle_of(row, path, wraps))
    for row in rows("seth_shoulder_muscles.csv"):
        if row["muscle"] in GIRDLE:
            path = path_points(row["muscle"], "seth_shoulder_paths.csv")
            path = [replace(p, body=p.body if p.body == "thorax" else f"{p.body}_r") for p in path]
            wraps = (PathWrap(*WRAPS[row["muscle"]]),) if row["muscle"] in WRAPS else ()
            muscles.append(muscle_of(row, path, wraps))
    joints = tuple(
        replace(joint, coordinates=tuple(replace(c, locked=False) for c in joint.coordinates))
        for joint in source.model.joints
    )
    source.model = replace(source.model, joints=joints, muscles=tuple(muscles), wrap_objects=arm_wraps())
    return source


def muscle_of(row, path, wraps):
    force, fiber, tendon, pennation = (float(value) for value in list(row.values())[1:])
    return Muscle(f"{row['muscle']}_r", tuple(path), force, fiber, tendon, pennation, wraps=wraps)


def arm_wraps():
    elbow = next(w for w in Source(ELBOW).model.wrap_objects if w.name == "TRI")
    wraps = [
        replace(elbow, name=name, body="humerus_r", side=side)
        for name, side in (("elbow_back", "-x"), ("elbow_front", "all"))
    ]
    for name, source in DELFT_WRAPS.items():
        wraps.append(replace(wrap_of("das3_arm_wraps.csv", source, FROM_DELFT), name=name))
    thorax = wrap_of("seth_shoulder_wraps.csv", "Thorax", np.eye(3))
    wraps += [replace(thorax, name=name) for name in THORAX]
    return tuple(wraps)


def wrap_of(table, name, axes):
    """Return a wrap object of a table, whose axes are those of the arm's source in the columns of a matrix."""
    row = next(r for r in rows(table) if r["wrap"] == name)
    turn = Rotation.from_euler("XYZ", [float(row[f"r{axis}"]) for axis in "xyz"]).as_matrix()
    quaternion = Rotation.from_matrix(axes @ turn).as_quat(scalar_first=True)
    position = axes @ [float(row[f"t{axis}"]) for axis in "xyz"]
    frame = Frame(tuple(position.tolist()), tuple(quaternion.tolist()))
    kind = row["kind"].removeprefix("Wrap").lower()
    size = [float(row[f"size{i}_m"]) for i in (1, 2, 3) if row[f"size{i}_m"]]
    if kind == "cylinder":
        size[1] /= 2.0  # to half its length
    return WrapObject(name, kind, row["body"], tuple(size), frame)


def straightening(to):
    """Return the matrix that puts a vector of a limb on the vertical: rotation about y, then a shear along y."""
    rotation = Rotation.from_rotvec([0.0, np.arctan2(to[0], -to[2]), 0.0]).as_matrix()
    turned = rotation @ to
    shear = np.eye(3)
    shear[1, 2] = -turned[1] / turned[2]
    return shear @ rotation, rotation


class ArmFrames:
    """Joint centers of the arm in the zero pose, and the map of its bodies to segments of `full_skeleton`."""

    def __init__(self, source):
        position, _ = source.pose()
        at = {name: position[i] for name, i in source.body.items()}
        self.shoulder, self.elbow, self.wrist = (at[f"{name}_r"] for name in ("humerus", "ulna", "lunate"))
        upper, self.upper_rotation = straightening(self.elbow - self.shoulder)
        fore, self.fore_rotation = straightening(self.wrist - self.elbow)
        knuckle = at["3proxph_r"] - self.wrist
        self.hand = smallest_rotation(knuckle, DOWN)
        self.lengths = {
            "shoulder_half_width": -self.shoulder[1],
            "upper_arm": -(upper @ (self.elbow - self.shoulder))[2],
            "forearm": -(fore @ (self.wrist - self.elbow))[2],
        }
        joint = source.joint("radioulnar")
        axis = TO_HUMAN @ np.array(joint.motion[0].axis)
        head = at["radius_r"] - self.elbow
        ulnar = head + axis * ((self.wrist - self.elbow)[2] - head[2]) / axis[2]
        self.radial_head, self.ulnar_head = (fore @ v / self.lengths["forearm"] for v in (head, ulnar))
        # what straight means, in angles of the source
        tilt = [np.degrees(np.arctan2(v[0], -v[2])) for v in (self.elbow - self.shoulder, self.wrist - self.elbow)]
        palmar = np.degrees(np.arctan2(knuckle[1], -knuckle[2]) - np.arctan2(*(self.wrist - self.elbow)[1:] * [1, -1]))
        self.angle_offset = {
            "shoulder_flexion": -tilt[0], "elbow_flexion": tilt[0] - tilt[1], "wrist_flexion": -float(palmar),
        }  # fmt: skip
        mid = self.shoulder * [1.0, 0.0, 1.0]
        self.segment = {"humerus_r": ("upper_arm", self.shoulder, upper), "thorax": ("chest", mid, np.eye(3))}
        self.segment |= {f"{name}_r": ("collar", self.shoulder, np.eye(3)) for name in ("scapula", "clavicle")}
        self.segment |= {f"{name}_r": (name, self.elbow, fore) for name in ("ulna", "radius")}
        for name in ("pisiform", "capitate"):
            self.segment[f"{name}_r"] = ("middle_metacarpal", self.wrist, self.hand)
        self.segment["trapezium_r"] = ("thumb_base", at["firstmc_r"], self.hand)
        self.joints = {}
        for finger, number in FINGERS.items():
            self.segment[f"{METACARPALS[number]}mc_r"] = (f"{finger}_metacarpal", self.wrist, self.hand)
            self._digit(at, finger, [f"{number}{part}_r" for part in ("proxph", "midph", "distph")],
                        ("proximal", "middle", "distal"))  # fmt: skip
            self.joints[f"{finger}_metacarpal"] = self.hand @ (at[f"{number}proxph_r"] - self.wrist)
        self._digit(at, "thumb", ["firstmc_r", "proximal_thumb_r", "distal_thumb_r"],
                    ("metacarpal", "proximal", "distal"))  # fmt: skip
        self.at = at
        self.rotation = dict(zip(source.body, source.pose()[1], strict=True))

    def _digit(self, at, finger, bodies, parts):
        for k, (body, part) in enumerate(zip(bodies, parts, strict=True)):
            self.segment[body] = (f"{finger}_{part}", at[body], self.hand)
            if k < 2:
                self.joints[f"{finger}_{part}"] = self.hand @ (at[bodies[k + 1]] - at[body])

    def point(self, point):
        """Return the segment and offset of a path point."""
        name, anchor, matrix = self.segment[point.body]
        world = self.at[point.body] + self.rotation[point.body] @ TO_HUMAN @ np.array(point.position)
        offset = matrix @ (world - anchor)
        if name == "upper_arm" and offset[2] < -DISTAL * self.lengths["upper_arm"]:
            return "elbow", offset - self.lengths["upper_arm"] * DOWN
        return name, offset


CHEST = {"PECM1": "T1_T4", "PECM2": "T1_T4", "PECM3": "T5_T8", "LAT1": "T5_T8", "LAT2": "T9_T12", "LAT3": "T9_T12"}
"""Bodies to which muscles on the thorax of the source belong: by ribs of the breastbone and by vertebra."""
ARM_POSES = (  # [deg], with the names of `full_skeleton`
    {}, {"elbow_flexion": 45}, {"elbow_flexion": 90}, {"elbow_flexion": 90, "elbow_pronation": 50},
    {"elbow_flexion": 60, "elbow_pronation": -50}, {"wrist_flexion": 40}, {"wrist_flexion": -40, "elbow_flexion": 30},
    {"shoulder_flexion": 45}, {"shoulder_rotation": 30, "shoulder_flexion": 20}, {"shoulder_rotation": -30},
)  # fmt: skip
ARM_NAMES = {"elbow_pronation": "pro_sup"}


def arm_rows(source, frames, poses):
    """Return coordinates of the source in poses [deg] of `full_skeleton`."""
    q = np.zeros((len(poses), len(source.column)))
    for row, pose in zip(q, poses, strict=True):
        for name in ("shoulder_flexion", "shoulder_rotation", "elbow_flexion", "elbow_pronation", "wrist_flexion"):
            angle = pose.get(name, 0.0) + frames.angle_offset.get(name, 0.0)
            row[source.column[f"{ARM_NAMES.get(name, name)}_r"]] = np.radians(angle)
    return q


def arm_muscles(source, frames):
    """Return name, parameters, path, wraps and lengths of the arm's muscles, and wrap objects."""
    lengths = muscle_paths(source.model, arm_rows(source, frames, ARM_POSES)).length.T
    muscles = []
    for muscle, length in zip(source.model.muscles, lengths, strict=True):
        name = muscle.name.removesuffix("_r")
        path = [frames.point(point) for point in muscle.path]
        path = [(f"chest_{(CHEST | GIRDLE)[name]}" if segment == "chest" else segment, at) for segment, at in path]
        wraps = [
            (w.wrap_object, w.first, w.last, *((frames.point(w.side_point),) if w.side_point else ()))
            for w in muscle.wraps
        ]
        muscles.append((name, muscle, muscle.max_isometric_force, path, wraps, length))
    wraps = {}
    for wrap in source.model.wrap_objects:
        segment, at = frames.point(PathPoint(wrap.body, wrap.frame.position))
        turn = TO_HUMAN @ Rotation.from_quat(wrap.frame.orientation, scalar_first=True).as_matrix()
        if segment == "chest":
            segment = f"chest_{THORAX[wrap.name]}"
        else:
            turn = (frames.fore_rotation if segment == "radius" else frames.upper_rotation) @ turn
        quaternion = Rotation.from_matrix(turn).as_quat(scalar_first=True)
        wraps[wrap.name] = (wrap.kind, segment, wrap.size, at, quaternion, wrap.side)
    return muscles, wraps


TRUNK_GROUPS = {  # muscle: fascicle whose line it has, beginnings of the names of fascicles whose strength it has
    "rectus_abdominis": ("rect_abd", ("rect_abd",)),
    "external_oblique_anterior": ("EO2", ("EO1", "EO2")),
    "external_oblique_middle": ("EO3", ("EO3", "EO4")),
    "external_oblique_lateral": ("EO6", ("EO5", "EO6")),
    "internal_oblique_anterior": ("IO2", ("IO1", "IO2")),
    "internal_oblique_middle": ("IO4", ("IO3", "IO4")),
    "internal_oblique_lateral": ("IO5", ("IO5", "IO6")),
    "quadratus_lumborum_iliolumbar": ("QL_post_I_3_L1", ("QL_post",)),
    "quadratus_lumborum_lumbocostal": ("QL_mid_L3_12_1", ("QL_mid",)),
    "quadratus_lumborum_iliocostal": ("QL_ant_I_3_12_1", ("QL_ant",)),
    "iliocostalis_lumbar": ("IL_L2", ("IL_L",)),
    "iliocostalis_lower": ("IL_R11", ("IL_R10", "IL_R11", "IL_R12")),
    "iliocostalis_upper": ("IL_R7", ("IL_R5", "IL_R6", "IL_R7", "IL_R8", "IL_R9")),
    "longissimus_lumbar": ("LTpL_L2", ("LTpL",)),
    "longissimus_lower": ("LTpT_R10", ("LTpT_T9", "LTpT_T10", "LTpT_T11", "LTpT_T12", "LTpT_R9", "LTpT_R1")),
    "longissimus_middle": ("LTpT_R8", ("LTpT_T6", "LTpT_T7", "LTpT_T8", "LTpT_R6", "LTpT_R7", "LTpT_R8")),
    "longissimus_upper": ("LTpT_T3", ("LTpT_T1_", "LTpT_T2", "LTpT_T3", "LTpT_T4", "LTpT_T5", "LTpT_R4", "LTpT_R5")),
    "multifidus_L1": ("MF_m1t_3", ("MF_m1",)),
    "multifidus_L2": ("MF_m2t_2", ("MF_m2",)),
    "multifidus_L3": ("MF_m3t_2", ("MF_m3",)),
    "multifidus_L4": ("MF_m4t_2", ("MF_m4",)),
    "multifidus_L5": ("MF_m5t_2", ("MF_m5",)),
}
RIB_CAGE = {"rectus": "T5_T8", "external_oblique_lateral": "T9_T12", "external": "T5_T8", "internal": "T9_T12"}
"""Bodies of the ribs on which abdominal muscles insert."""
DISCS = {  # joints of the trunk's source
    "L5": "L5_S1_IVDjnt", "L4": "L4_L5_IVDjnt", "L3": "L3_L4_IVDjnt", "L2": "L2_L3_IVD_jnt", "L1": "L1_L2_IVD_jnt",
    "T12": "L1_T12_IVD_jnt",
}  # fmt: skip
NECK_GROUPS = {
    "sternocleidomastoid": ("stern_mast", ("stern_mast", "cleid_mast", "cleid_occ")),
    "scalenes": ("scalenus_med", ("scalenus",)),
    "longus_colli": ("long_col_c1thx", ("long_col",)),
    "splenius_capitis": ("splen_cap_skl_T1", ("splen_cap",)),
    "splenius_cervicis": ("splen_cerv_c3_T3", ("splen_cerv",)),
    "semispinalis_capitis": ("semi_cap_sklthx", ("semi_cap",)),
    "semispinalis_cervicis": ("semi_cerv_c3thx", ("semi_cerv",)),
    "multifidus_cervicis": ("supmult-T1-C4", ("supmult", "deepmult", "multifidus_T4")),
}
NECK_BODIES = ((0.028, "C6_C7"), (0.066, "C4_C5"), (0.100, "C2_C3"), (0.118, "C1"), (np.inf, "head"))
"""Heights [m] over the source's joint between T1 and the neck below which a point of it belongs to a body: midway
between the points of longus colli, which has one on every vertebra."""
SKULL_BASE = np.array([0.020, 0.0, 0.115])
"""Joint of skull and atlas in the source's neck, which is one body [m]: estimate, above the points on the atlas."""


def group_force(names, group):
    """Return the summed strength [N] of the fascicles with these beginnings."""
    members = [m for name, m in names.items() if f"{name}_".startswith(group)]
    return sum(m.max_isometric_force for m in members)


def trunk_muscles(source):
    """Return rows of the trunk's muscles, and reference vectors between joint centers."""
    position, rotation = source.pose()
    hips = np.mean([source.center(f"hip_{side}", position, rotation) for side in "rl"], axis=0)
    disc = {name: source.center(joint, position, rotation) for name, joint in DISCS.items()}
    shoulder = source.center("acromial_r", position, rotation) * [1.0, 0.0, 1.0]
    order = ["L5", "L4", "L3", "L2", "L1", "T12"]
    vectors = {"sacrum": disc["L5"] - hips, "thorax": shoulder - disc["T12"]}
    vectors |= {low: disc[high] - disc[low] for low, high in pairwise(order)}
    anchors = {"sacrum": hips, "thorax": disc["T12"]} | {name: disc[name] for name in order[:-1]}
    levels = thorax_levels()
    names = {m.name.removesuffix("_r"): m for m in source.model.muscles if m.name.endswith("_r")}
    length = muscle_paths(source.model, np.zeros((1, len(source.column))))
    rows = []
    for name, (line, group) in TRUNK_GROUPS.items():
        path = []
        for point in names[line].path:
            b = source.body[point.body]
            at = position[b] + rotation[b] @ TO_HUMAN @ np.array(point.position)
            if point.body in ("pelvis", "sacrum"):
                segment = "sacrum"
            elif point.body == "torso":
                segment = "thorax"
            else:
                segment = "L3" if point.body == "Abdomen" else f"L{point.body[-1]}"
            offset = at - anchors[segment]
            if segment == "thorax":
                along = offset @ vectors["thorax"] / (vectors["thorax"] @ vectors["thorax"])
                ribs = next((body for key, body in RIB_CAGE.items() if name.startswith(key)), None)
                segment = f"thorax_{ribs or next(body for level, body in levels if along < level)}"
            path.append((segment, offset))
        own = length.length[0, [length.muscle.index(names[line].name)]]
        rows.append((name, names[line], group_force(names, group), path, (), own))
    return rows, vectors


def thorax_levels():
    """Return heights of the thorax, as fractions from T12 to the shoulders, below which points belong to a body."""
    model = full_skeleton(*REFERENCE_HUMAN)
    at = {joint.child: model.body(joint.child).frame.position[2] for joint in model.joints}
    low, high = at["T9_T12"], at["upper_arm_r"]
    return [((at[above] - low) / (high - low), body)
            for body, above in (("T9_T12", "T5_T8"), ("T5_T8", "T1_T4"))] + [(np.inf, "T1_T4")]  # fmt: skip


def neck_muscles(source):
    """Return rows of the neck's muscles."""
    position, rotation = source.pose()
    anchor = source.center("T1_head_neck", position, rotation)
    names = {m.name: m for m in source.model.muscles if not m.name.endswith("_L")}
    length = muscle_paths(source.model, np.zeros((1, len(source.column))), muscles=[n for n, _ in NECK_GROUPS.values()])
    rows = []
    for k, (name, (line, group)) in enumerate(NECK_GROUPS.items()):
        path = []
        for point in names[line].path:
            b = source.body[point.body]
            offset = position[b] + rotation[b] @ TO_HUMAN @ np.array(point.position) - anchor
            height = point.position[1]
            body = next(body for top, body in NECK_BODIES if height < top) if point.body == "head_neck" else "T1_T4"
            path.append((f"neck_{body}", offset))
        rows.append((name, names[line], group_force(names, group), path, (), length.length[0, [k]]))
    return rows


def text():
    source = arm_source()
    frames = ArmFrames(source)
    arms, wraps = arm_muscles(source, frames)
    trunk, vectors = trunk_muscles(Source(TRUNK))
    numbers = lambda values: ", ".join(f"{round(float(v), 5) + 0.0:.5f}" for v in values)  # noqa: E731
    lines = [HEADER]
    lines += [f"{name} = {value:.5f}" for name, value in frames.lengths.items()]
    lines += ["", "# vectors from a segment's joint center to the next", "[vector]"]
    vectors = vectors | frames.joints | {"neck": SKULL_BASE}
    lines += [f"{name} = [{numbers(v)}]" for name, v in vectors.items()]
    lines += ["", "# joint angles [deg] at which lengths of muscles are given; of trunk and neck at the first only"]
    poses = [f"    {{ {', '.join(f'{k} = {v}' for k, v in pose.items())} }}," for pose in ARM_POSES]
    lines += ["[reference]", "pose = [", *poses, "]", ""]
    for name, (kind, segment, size, at, turn, side) in wraps.items():
        lines.append(
            f'[wrap.{name}]\nkind = "{kind}"\nbody = "{segment}"\nsize = [{numbers(size)}]\nat = [{numbers(at)}]\n'
            f'orientation = [{numbers(turn)}]\nside = "{side}"\n'
        )
    for name, muscle, force, path, own, length in [*arms, *trunk, *neck_muscles(Source(NECK))]:
        lines.append(
            f'[[muscle]]\nname = "{name}"\nforce = {force:.1f}\nfiber = {muscle.optimal_fiber_length:.5f}\n'
            f"tendon = {muscle.tendon_slack_length:.5f}\npennation = {muscle.pennation_angle:.5f}"
        )
        lines.append("path = [" + ", ".join(f'["{s}", {numbers(at)}]' for s, at in path) + "]")
        lines.append(f"length = [{numbers(length)}]")
        for w, first, last, *side in own:
            beyond = "".join(f', ["{s}", {numbers(at)}]' for s, at in side)
            lines.append(f'wraps = [["{w}", {first}, {last}{beyond}]]')
        lines.append("")
    return "\n".join(lines)


HEADER = """\
# Muscles of the right side of `full_skeleton` other than those of the legs (`human_muscles.toml`), as they are in
# published models, written by tests/people/skeleton_muscle_table.py.
#
# Arm: Holzbaur, Murray and Delp 2005, Ann. Biomed. Eng. 33 (6), 829-840, numbers in PushUpToesOnGroundWithMuscles.osim
# of opensim-core (Apache 2.0). Points of that file which replace wrap objects in one pose are left out; cylinder of
# the elbow: arm26.osim of the same authors (CC BY 3.0); spheres of the humeral head and cylinder of the radius:
# Chadwick, Blana, Kirsch and van den Bogert 2014, IEEE Trans. Biomed. Eng. 61 (7), 1947-1956, das4_v4.osim (MIT).
# Shoulder girdle (Trapezius to PectoralisMinor), ellipsoid of the thorax, and the point of DELT1 at the acromion: Seth,
# Dong, Matias and Delp 2019, Front. Neurorobot. 13, 90, ThoracoscapularShoulderModel.osim of opensim-core (Apache 2.0).
# Trunk: Beaucage-Gauvreau et al. 2019, Comput. Methods Biomech. Biomed. Engin. 22 (5), 451-464, in the model of
# Pose2Sim with 318 muscles (BSD 3-clause). Neck: Vasavada, Li and Delp 1998, Spine 23 (4), 412-422, in
# cyclistFullBodyMuscle_520.osim (MIT). Each muscle of trunk and neck has the line of one fascicle and the strength of
# its group.
#
# Offsets [m] in the zero pose of the source, x forward, y left, z up, from the joint center of the segment towards the
# pelvis; radius and elbow (the lower end of the upper arm): from the elbow; collar: from the shoulder; chest: from the
# midpoint of the shoulders; thorax: from the disc below T12; sacrum: from the midpoint of the hips; neck: from the disc
# below C7; metacarpals of fingers: from the wrist; thumb_base: from the thumb's joint on the wrist. The arm is
# straightened. force [N], fiber and tendon [m]: maximum isometric force, optimal fiber length, tendon slack length;
# pennation [rad]; length [m] of the path at each pose; wraps: name, first and last point between which it lies, and the
# point on whose side the muscle passes.
"""

if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
