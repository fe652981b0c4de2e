"""Writes people/data/human_muscles.toml from the published models: `python -m tests.people.muscle_table`.

Points and wrap objects of the right side are stated as offsets from the proximal joint center of their segment, x
forward, y left, z up, in the zero pose of the source. The knee of the source rolls; that of `human` is a hinge, so the
tibia is placed where it is on average over flexion, about the best fixed center (least squares).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from borelli.model.io import read_model
from borelli.model.kinematics import coupled_coordinates, poses
from borelli.model.transforms import orientation_matrix
from borelli.muscles.paths import muscle_paths
from borelli.people.human import human

from ..shared_data import SHARED_DATA

TARGET = Path(__file__).parents[2] / "src/borelli/people/data/human_muscles.toml"
LEGS = "opensim/rajagopal2016/Rajagopal2016.osim"
TRUNK = "muscle_models/osim/Pose2Sim_muscles_flex_318.osim"
TO_HUMAN = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
"""OpenSim's x forward, y up, z right to x forward, y left, z up."""
KNEE_FLEXION = np.radians(np.arange(0, 101, 5))
"""Flexion over which the knee is fitted [rad]: 0 to 100 degrees, a walk and a squat."""
PATELLA_FLEXION = np.radians(np.arange(-10, 131, 10))
SEGMENTS = {
    "pelvis": "pelvis",
    "femur_r": "thigh",
    "tibia_r": "shank",
    "talus_r": "foot",
    "calcn_r": "foot",
    "toes_r": "toes",
}
REFERENCE_HUMAN = (75.34, 1.70)
"""Mass [kg] and height [m] of the person of the leg model (Rajagopal et al. 2016)."""
TRUNK_GROUPS = {  # muscle: fascicle whose line it has, fascicles whose strength it has
    "rectus_abdominis": ("rect_abd", ("rect_abd",)),
    "external_oblique_anterior": ("EO3", ("EO1", "EO2", "EO3", "EO4")),
    "external_oblique_lateral": ("EO6", ("EO5", "EO6")),
    "internal_oblique_anterior": ("IO2", ("IO1", "IO2", "IO3")),
    "internal_oblique_lateral": ("IO5", ("IO4", "IO5", "IO6")),
    "quadratus_lumborum_lumbar": ("QL_post_I_3_L1", ("QL_post_",)),
    "quadratus_lumborum_costal": ("QL_ant_I_3_T12", ("QL_ant_",)),
    "iliocostalis_lower": ("IL_R11", ("IL_R10", "IL_R11", "IL_R12")),
    "iliocostalis_upper": ("IL_R7", ("IL_R5", "IL_R6", "IL_R7", "IL_R8", "IL_R9")),
    "longissimus_lower": (
        "LTpT_R10",
        ("LTpT_T9", "LTpT_T10", "LTpT_T11", "LTpT_T12", "LTpT_R9", "LTpT_R10", "LTpT_R11", "LTpT_R12"),
    ),
    "longissimus_upper": ("LTpT_R8", ("LTpT_T6", "LTpT_T7", "LTpT_T8", "LTpT_R6", "LTpT_R7", "LTpT_R8")),
    "erector_spinae_lumbar": ("IL_L1", ("IL_L", "LTpL_")),
    "multifidus": ("MF_m1t_3", ("MF_",)),
}
ON_RIB_CAGE = ("rectus", "external", "internal")
"""Muscles that insert on the rib cage, which moves with the thorax, also below its joint."""
MAX_TRUNK_POINTS = 3
"""Points of a line over the trunk: first, last, and the one in the middle."""


class Source:
    """A model of OpenSim in the axes of `human`."""

    def __init__(self, name):
        self.model = read_model(SHARED_DATA / name)
        self.body = {body.name: i for i, body in enumerate(self.model.bodies)}
        self.column = {c.name: i for i, c in enumerate(self.model.coordinates)}

    def pose(self, **values):
        """Return positions (bodies, 3) and rotations (bodies, 3, 3), in the axes of `human`."""
        q = np.zeros((1, len(self.column)))
        for name, value in values.items():
            q[0, self.column[name]] = value
        position, rotation = poses(self.model, coupled_coordinates(self.model, q))
        return position[0] @ TO_HUMAN.T, TO_HUMAN @ rotation[0] @ TO_HUMAN.T

    def joint(self, name):
        return next(joint for joint in self.model.joints if joint.name == name)

    def center(self, name, position, rotation):
        """Return the position of a joint's frame in its parent."""
        joint = self.joint(name)
        b = self.body[joint.parent]
        return position[b] + rotation[b] @ TO_HUMAN @ np.array(joint.parent_frame.position)


def leg_frames(source):
    """Return origin and rotation of the leg's bodies as seen from the segments of `human`, and reference lengths."""
    position, rotation = source.pose()
    hips = [source.center(f"hip_{side}", position, rotation) for side in "rl"]
    femur, tibia = source.body["femur_r"], source.body["tibia_r"]
    knee, tibia_in_shank = hinge_knee(source, femur, tibia)
    frames = {"pelvis": (position[source.body["pelvis"]] - np.mean(hips, axis=0), rotation[source.body["pelvis"]])}
    frames["femur_r"] = (np.zeros(3), np.eye(3))
    frames["tibia_r"] = tibia_in_shank
    ankle = source.center("ankle_r", position, rotation)
    to_tibia = rotation[tibia].T
    for name in ("talus_r", "calcn_r", "toes_r"):
        b = source.body[name]
        frames[name] = (to_tibia @ (position[b] - ankle), to_tibia @ rotation[b])
    toe = to_tibia @ (source.center("mtp_r", position, rotation) - ankle)
    frames["toes_r"] = (frames["toes_r"][0] - toe, frames["toes_r"][1])
    ankle_in_shank = tibia_in_shank[0] + tibia_in_shank[1] @ to_tibia @ (ankle - position[tibia])
    lengths = {
        "hip_half_width": abs(hips[0][1] - hips[1][1]) / 2.0, "knee": knee, "ankle": ankle_in_shank, "toe": toe,
    }  # fmt: skip
    return frames, lengths


def hinge_knee(source, femur, tibia):
    """Return the fixed knee center in the femur, and origin and rotation of the tibia in the shank of a hinge there."""
    rows, right, turned = [], [], []
    for angle in KNEE_FLEXION:
        position, rotation = source.pose(knee_angle_r=angle)
        relative = rotation[femur].T @ (position[tibia] - position[femur])
        hinge = Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix()
        rows.append(np.hstack([np.eye(3), hinge]))
        right.append(relative)
        turned.append(hinge.T @ rotation[femur].T @ rotation[tibia])
    # where along the axis the center is makes no difference: it is put where the joint of the source is
    system, values = np.vstack(rows), np.concatenate(right)
    lateral = (TO_HUMAN @ np.array(source.joint("walker_knee_r").parent_frame.position))[1]
    system, values = np.vstack([system, [0, 1, 0, 0, 0, 0]]), np.append(values, lateral)
    solution = np.linalg.lstsq(system, values, rcond=None)[0]
    u, _, v = np.linalg.svd(np.mean(turned, axis=0))
    return solution[:3], (solution[3:], u @ v)


def patella_table(source):
    """Return rows of flexion [rad], x, z [m] and rotation about y [rad] of the patella in the femur."""
    rows = []
    femur, patella = source.body["femur_r"], source.body["patella_r"]
    for angle in PATELLA_FLEXION:
        position, rotation = source.pose(knee_angle_r=angle)
        offset = rotation[femur].T @ (position[patella] - position[femur])
        relative = rotation[femur].T @ rotation[patella]
        rows.append([angle, *offset, *Rotation.from_matrix(relative).as_rotvec()])
    return rows


def leg_muscles(source, frames):
    muscles, wraps = [], {}
    for muscle in source.model.muscles:
        if not muscle.name.endswith("_r"):
            continue
        path = []
        for point in muscle.path:
            local = TO_HUMAN @ np.array(point.position)
            if point.body == "patella_r":
                path.append(("patella", local))
            else:
                origin, rotation = frames[point.body]
                path.append((SEGMENTS[point.body], origin + rotation @ local))
        for wrap in muscle.wraps:
            found = next(w for w in source.model.wrap_objects if w.name == wrap.wrap_object)
            origin, rotation = frames[found.body]
            turn = rotation @ TO_HUMAN @ orientation_matrix(found.frame.orientation)
            wraps[found.name.removesuffix("_r")] = (
                SEGMENTS[found.body], found.size, origin + rotation @ TO_HUMAN @ np.array(found.frame.position),
                Rotation.from_matrix(turn).as_quat(scalar_first=True), found.side,
            )  # fmt: skip
        muscles.append((muscle, muscle.name.removesuffix("_r"), muscle.max_isometric_force, path))
    return muscles, wraps


def trunk_muscles(source):
    reference = human(*REFERENCE_HUMAN)
    base = {body.name: np.array(body.frame.position) for body in reference.bodies}
    heights = {name: base[name][2] - base["pelvis"][2] for name in ("lower_torso", "upper_torso")}
    position, rotation = source.pose()
    hips = np.mean([source.center(f"hip_{side}", position, rotation) for side in "rl"], axis=0)
    spine = np.array([position[source.body[f"lumbar{i}"]] - hips for i in (5, 4, 3, 2, 1)])
    spine = np.vstack([spine, position[source.body["torso"]] - hips])
    names = {m.name.removesuffix("_r"): m for m in source.model.muscles if m.name.endswith("_r")}
    muscles = []
    for name, (line, group) in TRUNK_GROUPS.items():
        members = [
            m
            for key, m in names.items()
            if any(
                key == g or (g.endswith("_") and key.startswith(g)) or (g == "IL_L" and key.startswith("IL_L"))
                for g in group
            )
        ]
        chosen = names[line]
        points = list(chosen.path)
        if len(points) > MAX_TRUNK_POINTS:
            points = [points[0], points[len(points) // 2], points[-1]]
        path = []
        for point in points:
            b = source.body[point.body]
            at = position[b] + rotation[b] @ TO_HUMAN @ np.array(point.position) - hips
            at[0] -= np.interp(at[2], spine[:, 2], spine[:, 0])  # from the discs; joints of `human` are on one line
            segment = "pelvis"
            if point.body not in ("pelvis", "sacrum"):
                on_ribs = point.body == "torso" and name.startswith(ON_RIB_CAGE)
                segment = "upper_torso" if on_ribs or at[2] > heights["upper_torso"] else "lower_torso"
                at[2] -= heights[segment]
            path.append((segment, at))
        force = sum(m.max_isometric_force for m in members)
        muscles.append((chosen, name, force, path))
    return muscles


POSES = (  # [deg], with the names of `human`; the first is the zero pose, the only one for the trunk
    {}, {"hip_flexion": 60, "knee_flexion": 60}, {"hip_flexion": -20, "knee_flexion": 20, "ankle_flexion": 10},
    {"hip_flexion": 30, "ankle_flexion": -20}, {"hip_flexion": 90, "knee_flexion": 100, "ankle_flexion": 10},
    {"hip_adduction": 20}, {"hip_adduction": -30}, {"hip_rotation": 30}, {"hip_rotation": -30},
    {"hip_flexion": 20, "knee_flexion": 60, "ankle_flexion": -20},
)  # fmt: skip
SOURCE_NAMES = {"knee_flexion": "knee_angle", "ankle_flexion": "ankle_angle"}


def path_lengths(source, names, poses):
    """Return path lengths (poses, muscles) [m] of the source."""
    rows = np.zeros((len(poses), len(source.column)))
    for row, pose in zip(rows, poses, strict=True):
        for name, degrees in pose.items():
            row[source.column[f"{SOURCE_NAMES.get(name, name)}_r"]] = np.radians(degrees)
    return muscle_paths(source.model, rows, muscles=names).length


def text():
    legs, trunk = Source(LEGS), Source(TRUNK)
    frames, lengths = leg_frames(legs)
    muscles, wraps = leg_muscles(legs, frames)
    numbers = lambda values: "[" + ", ".join(f"{float(v) + 0.0:.5f}" for v in values) + "]"  # noqa: E731
    lines = [HEADER, f"mass = {REFERENCE_HUMAN[0]}", f"height = {REFERENCE_HUMAN[1]}"]
    lines += [f"hip_half_width = {lengths['hip_half_width']:.5f}"]
    lines += [f"{name} = {numbers(lengths[name])}" for name in ("knee", "ankle", "toe")]
    reference = human(*REFERENCE_HUMAN)
    for name, joint in (("lower_torso", "lumbar"), ("upper_torso", "thoracic")):
        lines.append(f"{name} = {reference.joint(joint).parent_frame.position[2]:.5f}")
    lines += ["", "# flexion [rad], position [m] and rotation vector [rad] of the patella in the thigh", "patella = ["]
    lines += [f"    {numbers(row)}," for row in patella_table(legs)] + ["]", ""]
    lines += ["# joint angles [deg] at which lengths of muscles are given; of the trunk at the first only"]
    lines += [
        "pose = [",
        *(f"    {{ {', '.join(f'{k} = {v}' for k, v in pose.items())} }}," for pose in POSES),
        "]",
        "",
    ]
    for name, (segment, size, at, turn, side) in sorted(wraps.items()):
        lines.append(
            f'[wrap.{name}]\nbody = "{segment}"\nsize = {numbers(size)}\nat = {numbers(at)}\n'
            f'orientation = {numbers(turn)}\nside = "{side}"\n'
        )
    on_trunk = trunk_muscles(trunk)
    lengths = [*path_lengths(legs, [m.name for m, *_ in muscles], POSES).T]
    lengths += [*path_lengths(trunk, [m.name for m, *_ in on_trunk], POSES[:1]).T]
    for (muscle, name, force, path), length in zip([*muscles, *on_trunk], lengths, strict=True):
        own = [
            (w.wrap_object.removesuffix("_r"), w.first, w.last)
            for w in muscle.wraps
            if w.wrap_object.removesuffix("_r") in wraps
        ]
        lines.append(
            f'[[muscle]]\nname = "{name}"\nforce = {force:.1f}\nfiber = {muscle.optimal_fiber_length:.5f}\n'
            f"tendon = {muscle.tendon_slack_length:.5f}\npennation = {muscle.pennation_angle:.5f}"
        )
        lines.append(
            "path = [" + ", ".join(f'["{s}", {", ".join(f"{v + 0.0:.5f}" for v in at)}]' for s, at in path) + "]"
        )
        lines.append(f"length = {numbers(length)}")
        if own:
            lines.append("wraps = [" + ", ".join(f'["{w}", {a}, {b}]' for w, a, b in own) + "]")
        lines.append("")
    return "\n".join(lines)


HEADER = """\
# Muscles of the right side of `human`, as they are in two published models, written by tests/people/muscle_table.py.
#
# Legs: Rajagopal, Dembia, DeMers, Delp, Hicks and Delp 2016, IEEE Trans. Biomed. Eng. 63 (10), 2068-2079, model
# Rajagopal2016.osim (MIT license). Trunk: Beaucage-Gauvreau et al. 2019, Comput. Methods Biomech. Biomed. Engin.
# 22 (5), 451-464, in the model of Pose2Sim with 318 muscles (BSD 3-clause license): each muscle has the line of one
# fascicle and the strength of its group.
#
# Offsets [m] from the proximal joint center of the segment (pelvis: midpoint of the hips), x forward, y left, z up, in
# the zero pose; the shank is that of a hinge at the fixed center that fits the rolling knee best. `knee`, `ankle`,
# `toe`: the next joint center; `lower_torso`, `upper_torso`: length of the segment. force [N], fiber and tendon [m]:
# maximum isometric force, optimal fiber length, tendon slack length; pennation [rad]; length [m] of the path at each
# pose.
"""

if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
