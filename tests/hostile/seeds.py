"""Small valid files of every format, synthetic and cut from real ones, as a start for mutations.

A seed is the name of the file to read and the files of its folder: names and bytes. The name "." is the folder itself.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from borelli.model import model_to_text
from borelli.model.formats.mjcf.writer import mjcf_text
from borelli.people.human import human
from borelli.recording.io import write_recording
from borelli.recording.recording import Recording, make_dataset

from ..recording import c3d_files
from ..shared_data import SHARED_DATA as DATA

OSIM = Path(__file__).parents[1] / "model" / "formats" / "osim"


NEXUS = b"""Trajectories
100
,,Bob:LASI,,,Bob:RHEE,,
Frame,Sub Frame,X,Y,Z,X,Y,Z
,,mm,mm,mm,mm,mm,mm
7,0,1,2,900,4,5,60
8,0,,,,4.5,5.5,60.5

Devices
200
,,Plate - Force,Plate - Force,EMG
Frame,Sub Frame,Fx,Fz,1
,,N,N,V
7,0,1,700,0.1
7,1,2,701,0.2

Model Outputs
100
,,Bob:LKneeAngles,,,Bob:PEL,,
Frame,Sub Frame,X,Y,Z,RX,RY
,,deg,deg,deg,deg,deg
7,0,10,11,12,1,2
8,0,20,21,22,3,4

Events
100
Subject,Context,Name,Time (s),Description
Bob,Left,Foot Strike,0.01,
"""
QUALISYS = b"""NO_OF_FRAMES\t2
NO_OF_CAMERAS\t8
NO_OF_MARKERS\t2
FREQUENCY\t100
DESCRIPTION\t--
EVENT\tjump\t2\t0.01
DATA_INCLUDED\t3D
MARKER_NAMES\tLASI\tRHEE
1\t2\t900\t4\t5\t60
\t\t\t4.5\t5.5\t60.5
"""
MOTIVE = b"""Format Version,1.23,Take Name,walk,Capture Frame Rate,100.000000,Length Units,Meters

,,Rigid Body,Marker,Marker,Marker,Marker,Marker,Marker
,Name,box,LASI,LASI,LASI,RHEE,RHEE,RHEE
,ID,1,2,2,2,3,3,3
,,Position,Position,Position,Position,Position,Position,Position
Frame,Time (Seconds),X,X,Y,Z,X,Y,Z
0,0.000000,9,0.001,0.900,-0.002,0.004,0.060,-0.005
1,0.010000,9,,,,0.0045,0.0605,-0.0055
"""
BVH = b"""HIERARCHY
ROOT base
{
  OFFSET 1 2 3
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT elbow
  {
    OFFSET 0 1 0
    CHANNELS 1 Zrotation
    End Site
    {
      OFFSET 0 2 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.0083333
0 0 0 0 0 0 90
5 6 7 90 0 0 -90
"""
ASF = b""":version 1.10
:name arm
:units
  mass 1.0
  length 1.0
  angle deg
:root
  order TX TY TZ RX RY RZ
  axis XYZ
  position 0 0 0
  orientation 0 0 0
:bonedata
  begin
    id 1
    name upper
    direction 0 1 0
    length 2
    axis 0 0 90 XYZ
    dof rx ry rz
    limits (-180 180)
           (-90 90)
           (-90 90)
  end
  begin
    id 2
    name lower
    direction 1 0 0
    length 1
    axis 0 0 0 XYZ
    dof rz
    limits (-10 170)
  end
:hierarchy
  begin
    root upper
    upper lower
  end
"""
AMC = b"""#!OML:ASF C:\\lab\\arm.ASF
:FULLY-SPECIFIED
:DEGREES
1
root 1 2 3 0 0 0
upper 0 0 0
lower 0
2
root 0 0 0 90 0 90
upper 90 0 0
lower 90
"""
MJCF = b"""<mujoco model="s"><compiler angle="radian" boundmass="0.1"/><include file="part.xml"/>
<default><geom size="0.1"/><default class="k"><joint axis="1 0 0" range="-1 1"/></default></default>
<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody><geom type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1" childclass="k"><freejoint name="f"/><geom type="capsule" fromto="0 0 0 0 0 1"/>
<body name="b" quat="1 0 1 0"><inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0.1 0 0"/><joint name="j" ref="0.1"/>
<joint name="k" axis="0 1 0" pos="0 0 1"/><geom type="mesh" mesh="m" mass="1"/><site name="s" pos="1 2 3"/>
<site name="r" pos="0 0 3"/><geom name="w" type="cylinder" size="0.1 0.2" euler="0.1 0.2 0.3"/></body></body>
</worldbody><equality><joint joint1="j" joint2="k" polycoef="0 1 0 0 0"/></equality>
<tendon><spatial name="t"><site site="s"/><geom geom="w" sidesite="r"/><site site="r"/></spatial></tendon>
<actuator><muscle name="u" tendon="t" lengthrange="0.1 0.2" force="10"/><general name="g" tendon="t"/></actuator>
<keyframe><key qpos="0 0 0 1 0 0 0 0 0"/></keyframe></mujoco>"""
PART = b'<mujocoinclude><default><default class="extra"><site size="0.01"/></default></default></mujocoinclude>'
URDF = b"""<?xml version="1.0"?>
<robot name="gripper">
  <link name="base"><inertial><mass value="2"/><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.015" ixy="0.001" ixz="0" iyz="0.002"/></inertial>
    <collision><origin xyz="0 0 0.1"/><geometry><box size="0.2 0.3 0.4"/></geometry></collision>
    <collision><geometry><mesh filename="x.stl"/></geometry></collision></link>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
  <link name="slide"><inertial><mass value="0.5"/><origin xyz="0.1 0 0"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="finger"/><link name="tip"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0.1 0.3" rpy="0.3 -0.2 0.9"/>
    <axis xyz="0 1 1"/><limit lower="-1" upper="2" effort="1" velocity="1"/></joint>
  <joint name="reach" type="prismatic"><parent link="arm"/><child link="slide"/>
    <origin xyz="0 0 0.4"/><axis xyz="0 0 1"/><limit lower="0.1" upper="0.5" effort="1" velocity="1"/></joint>
  <joint name="grip" type="continuous"><parent link="slide"/><child link="finger"/><origin rpy="1 0 0" xyz="0.1 0 0"/>
    <axis xyz="1 0 0"/><mimic joint="shoulder" multiplier="-2" offset="0.5"/></joint>
  <joint name="end" type="planar"><parent link="finger"/><child link="tip"/><origin xyz="0 0 0.1"/></joint>
</robot>
"""
PAGODA = b"""# a body
chest box 0.4 0.2 0.6 position 0 0 1
arm cap 0.3 0.05* density 900
hand box 0.1 0.05 0.2
ball chest(1 0 1) <- arm(0 0 1) stops -90~90 -10~10 -5~5 axes <1 0 0> <0 1 0> <0 0 1>
uni arm(0 0 -1) <- hand(0 0 1) stops -90~90 -10~10
"""
TOML = b"""format = "borelli-model"
version = 2
name = "two"
gravity = [0.0, 0.0, -9.81]

[[bodies]]
name = "upper"
shapes = [{ kind = "box", size = [0.1, 0.1, 0.3] }, { kind = "sphere", size = [0.1] }]

[[bodies]]
name = "lower"
mass = 1.0
center_of_mass = [0.0, 0.0, 0.1]
inertia = [[0.01, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.01]]

[[joints]]
name = "elbow"
kind = "hinge"
parent = "upper"
child = "lower"
axes = [[1.0, 0.0, 0.0]]
coordinates = [{ name = "flexion", lower = -1.0, upper = 1.0 }]

[[markers]]
name = "tip"
body = "lower"
position = [0.0, 0.0, 0.1]
"""


def one(name, content):
    """A seed of a single file."""
    return name, {name: content}


@cache
def made():
    """A recording with markers, plates, channels and events, all of it small."""
    rng = np.random.default_rng(3)
    frames, samples = 4, 8
    corners = np.array([[0.25, 0.25, 0], [0.25, -0.25, 0], [-0.25, -0.25, 0], [-0.25, 0.25, 0]])
    force = rng.uniform((-50, -50, 150), (50, 50, 900), (samples, 2, 3))
    variables = {
        "marker_position": rng.uniform(0.1, 1.8, (frames, 5, 3)),
        "plate_force": force,
        "plate_center_of_pressure": rng.uniform(-0.2, 0.2, (samples, 2, 3)) * (1, 1, 0),
        "plate_free_moment": rng.uniform(-5, 5, (samples, 2, 3)) * (0, 0, 1),
        "plate_corners": np.stack([corners, corners + np.array([1, 0, 0])]),
        "analog": rng.normal(size=(samples, 3)),
        "event_time": np.array([0.01, 0.02]),
        "coordinate_value": rng.normal(size=(frames, 2)),
    }
    coordinates = {
        "marker": ["LASI", "RASI", "LHEE", "RHEE", "*5"],
        "plate": ["plate 1", "plate 2"],
        "channel": ["EMG1", "Fx", "b"],
        "channel_units": ["V", "N", ""],
        "channel_kind": ["emg", "plate", "other"],
        "event": [0, 1],
        "event_label": ["Foot Strike", "Foot Off"],
        "event_context": ["Left", "General"],
        "coordinate": ["pelvis_tx", "knee_angle_r"],
        "coordinate_units": ["m", "rad"],
    }
    data = make_dataset(variables, coordinates, rate=100.0, analog_rate=200.0, file_units="mm", file_up="+Z")
    return Recording(data, "made", None, "C3D", {"name": "Anna", "mass": 61.0})


def written(name, *without):
    """The made recording as a file of this name, some variables left out."""
    recording = made()
    dropped = [v for v in recording.data.data_vars if str(v).startswith(without)] if without else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        data = recording.data.drop_vars(dropped)
        unused = set(data.dims) - {name for variable in data.data_vars.values() for name in variable.dims}
        write_recording(recording.with_data(data.drop_dims(unused - {"time"})), path)
        return one(name, path.read_bytes())


def real(relative, change=lambda content: content):
    """A file of the data as a list of one seed, cut by `change`; empty where the data are not there."""
    path = DATA / relative
    return [one(path.name, change(path.read_bytes()))] if path.exists() else []


def head(lines):
    """The first lines of a text."""
    return lambda text: b"\n".join(text.split(b"\n")[:lines]) + b"\n"


def after(mark, lines):
    """A text up to the line with this mark, and some lines more."""

    def change(text):
        every = text.split(b"\n")
        at = next(i for i, line in enumerate(every) if mark in line.lower())
        return b"\n".join(every[: at + 1 + lines]) + b"\n"

    return change


def few_frames(text):
    """A BVH of two frames."""
    return re.sub(rb"Frames:\s*\d+", b"Frames: 2", after(b"frame time", 2)(text))


def few_muscles(text):
    """An OpenSim model with its first two muscles and without most of its pictures."""
    text = re.sub(rb"<(VisibleObject|Appearance|attached_geometry)\b.*?</\1>", b"", text, flags=re.DOTALL)
    muscles = re.compile(rb"<(\w+Muscle)\s+name=.*?</\1>", re.DOTALL)
    kept = iter(range(2))
    return muscles.sub(lambda found: found[0] if next(kept, None) is not None else b"", text)


def short_c3d(content, frames=3):
    """Return a C3D file with only its first frames, and header and POINT:FRAMES changed accordingly."""
    start = 512 * (content[0] - 1)
    order = "big" if content[start + 3] == 86 else "little"
    points, analog, first, _, _ = (int.from_bytes(content[i : i + 2], order) for i in range(2, 12, 2))
    data = 512 * (int.from_bytes(content[16:18], order) - 1)
    real_numbers = content[12 if order == "big" else 15 if content[start + 3] == 84 else 13] & 0x80
    length = data + frames * (4 * points + analog) * (4 if real_numbers else 2)
    short = bytearray(content[: length + -length % 512])
    short[8:10] = (first + frames - 1).to_bytes(2, order)
    for name, value in ((b"FRAMES", frames), (b"ACTUAL_END_FIELD", first + frames - 1)):
        for found in re.finditer(re.escape(name), bytes(short[:data])):
            at = found.end() + 4 + short[found.end() + 3]
            if short[found.end() + 2] == 2:
                short[at : at + 2] = value.to_bytes(2, order)
    return bytes(short)


def _c3d():
    rng = np.random.default_rng(5)
    markers = rng.uniform(100, 1800, (3, 4, 3))
    markers[1, 2] = np.nan
    labels = {"LABELS": ["A:LASI", "A:RASI", "A:LHEE", "*4"], "DESCRIPTIONS": ["left front", "right front", "heel", ""]}
    groups = {
        "POINT": labels | {"X_SCREEN": "+X", "Y_SCREEN": "+Z"},
        "ANALOG": {
            "LABELS": [f"F{i}" for i in range(6)], "SCALE": np.full(6, 0.5), "GEN_SCALE": 1.0,
            "OFFSET": np.zeros(6, int), "UNITS": ["N"] * 6,
        },
        "FORCE_PLATFORM": {
            "USED": 1, "TYPE": np.array([2]), "CHANNEL": np.arange(1, 7).reshape(1, 6), "ZERO": np.array([1, 0]),
            "CORNERS": np.array([[[0.0, 0, 0], [500, 0, 0], [500, 500, 0], [0, 500, 0]]]),
            "ORIGIN": np.array([[0.0, 0, -40]]), "CAL_MATRIX": np.eye(6)[None],
        },
        "EVENT": {
            "USED": 2, "TIMES": np.array([[0.0, 0.01], [0.0, 0.02]]), "LABELS": ["Foot Strike", "Foot Off"],
            "CONTEXTS": ["Left", "Right"], "SUBJECTS": ["A", "A"],
        },
        "SUBJECTS": {"USED": 1, "NAMES": ["A"]},
    }  # fmt: skip
    analog = rng.integers(0, 999, (3, 2, 6)).astype(float)
    made_here = [
        one("x.c3d", c3d_files.c3d_bytes(markers, groups, processor=processor, real=kind, analog=analog))
        for processor, kind in (("Intel", True), ("Intel", False), ("DEC", True), ("SGI", True), ("SGI", False))
    ]
    folder = "c3d/format_variants"
    names = (
        f"{folder}/sample02/DEC_INT.C3D", f"{folder}/sample02/sgi_real.c3d", f"{folder}/sample02/pc_int.c3d",
        f"{folder}/sample10_plate_type2_vs_4/TYPE-4.C3D", f"{folder}/sample15_plate_type3/FP1.C3D", "hdm/data.c3d",
        "c3d/motionanalysis_gait/Gait.c3d",
    )  # fmt: skip
    return [
        *made_here,
        written("w.c3d", "coordinate_value"),
        *(seed for name in names for seed in real(name, short_c3d)),
    ]


def _trc():
    return [
        written("w.trc"),
        *real("opensim/arm26/arm26_elbow_flex.trc", head(12)),
        *real("c3d/motionanalysis_gait/reference/Gait.trc", head(10)),
        *real("opensim/rajagopal2016/walk/motion_capture_walk.trc", head(11)),
        *real("opensim/opencap_subject4/walking1.trc", head(11)),
    ]


def _table():
    names = (
        "opensim/subject01_walk/subject01_walk1_grf.mot", "opensim/gait2354/reference/subject01_static_output.mot",
        "c3d/opensim_walking2/reference/std_walking2_grfs.sto", "opensim/arm26/reference/CMC_states.sto",
        "opensim/jumper/OptimalJump_IntialStates.sto", "opensim/opencap_subject4/reference/DJ1_ik.mot",
    )  # fmt: skip
    simm = b"name walk.mot\ndatacolumns 3\ndatarows 2\notherdata 1\nrange 0 0.1\nendheader\n"
    rows = b"time\tpelvis_tx\tknee_angle_r\n0\t0.5\t90\n0.1\t0.6\t180\n"
    return [
        written("w.mot", "analog", "coordinate_value"),
        written("w.sto", "plate", "analog"),
        one("simm.mot", simm + rows),
        *(seed for name in names for seed in real(name, after(b"endheader", 8))),
    ]


def _csv():
    return [
        written("w.csv"),
        written("w2.csv", "plate", "analog"),
        one("plain.csv", b"time,a.x,a.y,a.z,b\n0,1,2,3,4\n0.01,1,2,3,4\n0.02,1,2,,4\n"),
        *real("tables/winter_table_A1_markers.csv", head(10)),
        *real("opensim/opencap_subject4/reference/DJ1_ik_per_marker_error_report.csv", head(6)),
    ]


def _export():
    exports = {"nexus.csv": NEXUS, "qtm.tsv": QUALISYS, "motive.csv": MOTIVE}
    return [*(one(*pair) for pair in exports.items()), *real("c3d/pycgm_movement/Movement_trial.csv", head(12))]


def _bvh():
    names = ("bvh/sinusoidal.bvh", "bvh/walk01.bvh", "cmu/bvh_hahne2010/09_06.bvh")
    return [one("x.bvh", BVH), *(seed for name in names for seed in real(name, few_frames))]


def _amc():
    seeds = [("x.amc", {"x.amc": AMC, "x.asf": ASF})]
    for _, files in real("cmu/asfamc/09_06.amc", head(33 + 60)):
        skeleton = (DATA / "cmu/asfamc/09.asf").read_bytes()
        seeds.append(("09_06.amc", {"09_06.amc": files["09_06.amc"], "09.asf": skeleton}))
    return seeds


def _osim():
    small = (path.name for path in sorted(OSIM.glob("*.osim")))
    return [
        *(one(name, (OSIM / name).read_bytes()) for name in small),
        *real("opensim/other_models/double_pendulum.osim"),
        *real("opensim/arm26/arm26.osim", few_muscles),
        *real("opensim/other_models/Tug_of_War_Millard.osim"),
    ]


def _mjcf():
    folder = "muscle_models/mjcf/myo_sim"
    return [
        ("x.xml", {"x.xml": MJCF, "part.xml": PART}),
        one("man.xml", mjcf_text(human())[0].encode()),
        *real(f"{folder}/finger/finger_v0.xml"),
        *real(f"{folder}/basic/myomuscle.xml"),
        *real(f"{folder}/elbow/assets/myoelbow_1dof6muscles_body.xml", _whole),
    ]


def _whole(part):
    """A whole model made of a part: its bodies stand in the world."""
    part = re.sub(rb"<\?.*?\?>|<!--.*?-->", b"", part, flags=re.DOTALL)
    inside = re.sub(rb"</?mujocoinclude[^>]*>", b"", part)
    return b'<mujoco><worldbody><body name="whole">' + inside + b"</body></worldbody></mujoco>"


def _qtvr():
    names = ("dimMap.txt", "anchorMap.txt", "markMap.txt", "posMap.txt")
    if all((DATA / "hdm" / name).exists() for name in names):
        return [(".", {name: (DATA / "hdm" / name).read_bytes() for name in names})]
    joints = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (2, 7), (7, 8), (8, 9), (9, 10), (2, 11), (11, 12),
              (12, 13), (13, 14), (14, 15), (15, 16), (12, 17), (17, 18), (18, 19), (19, 20))  # fmt: skip
    anchors = b"".join(b"%d %d 0 0 -1\n%d %d 0 0 1\n" % (a, j, b, j) for j, (a, b) in enumerate(joints))
    contents = (b"1 0.2 0.2 0.3 1 0 0 0\n" * 21, anchors, b"0\n12\n-1\n", b"0 0 0.1\n0 0.1 0\n0 0 0\n")
    return [(".", dict(zip(names, contents, strict=True)))]


def _scene():
    from borelli.scenes.gallery import double_pendulum, pendulum
    from borelli.scenes.scene_files import scene_to_text

    made_here = [one(f"{f.__name__}.toml", scene_to_text(f()).encode()) for f in (pendulum, double_pendulum)]
    short = b'format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "human"\nstep = 0.001\nduration = 0.1\n'
    return [
        *made_here,
        one("man.toml", short + b"[human]\nmass = 70.0\nheight = 1.7\n[twists]\npelvis = [0, 0, 0, 0, 0, 0]\n"),
    ]


def _native():
    return [one("two.toml", TOML), one("man.toml", model_to_text(human()).encode())]


def _stages():
    from .stage_seeds import stage_files

    return [one(name, content) for name, content in stage_files().items()]


_SEEDS = {
    "C3D": _c3d, "TRC": _trc, "MOT/STO": _table, "CSV": _csv, "exports": _export, "BVH": _bvh, "AMC": _amc,
    "stages": _stages,
    "netCDF": lambda: [written("w.nc"), written("w2.nc", "plate", "analog", "event")],
    "ASF": lambda: [one("x.asf", ASF), *real("cmu/asfamc/09.asf"), *real("hdm/135.asf")],
    "OpenSim": _osim, "MJCF": _mjcf, "URDF": lambda: [one("x.urdf", URDF)], "native": _native, "scene": _scene,
    "pagoda": lambda: [one("x.txt", PAGODA), *real("hdm/cooper-skeleton.txt")], "QtVR": _qtvr,
}  # fmt: skip
FORMATS = tuple(_SEEDS)
RECORDINGS = ("C3D", "TRC", "MOT/STO", "CSV", "exports", "BVH", "AMC", "netCDF")


@cache
def seeds(kind):
    """The seeds of a format."""
    return _SEEDS[kind]()
