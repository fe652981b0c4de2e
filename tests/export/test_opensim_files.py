"""Files for OpenSim: the model, coordinates, forces and loads of an analysis belong together."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from borelli.analysis.motion import make_motion
from borelli.analysis.opensim_setup import read_external_loads
from borelli.export.opensim_files import write_opensim_files
from borelli.export.opensim_names import OPPOSITE, TO_Y_UP, opensim_columns, opensim_model, opensim_name
from borelli.export.tables import coordinate_table, moment_table, write_table
from borelli.model.io import read_model, write_model
from borelli.model.kinematics import marker_positions, poses
from borelli.muscles.paths import muscle_paths
from borelli.people.full_skeleton import full_skeleton
from borelli.people.human import human
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze
from borelli.recording.io import read_recording

from ..shared_data import shared

REFEREE = Path(__file__).parent / "opensim_id_referee.py"
MAX_DIFFERENCE = 1.0
"""[N m] RMS over time of any moment."""
MAX_INNER_DIFFERENCE = 0.5
"""[N m or N] RMS over time of any generalized force, without the ends."""
ENDS = 8
"""Frames at each end where splines through the same samples differ by their end conditions."""


def random_motion(model, frames=20, size=0.3):
    rng = np.random.default_rng(4)
    q = np.array([c.default for c in model.coordinates]) + size * rng.uniform(
        -1.0, 1.0, (frames, len(model.coordinates))
    )
    return make_motion(model, q, np.arange(frames) / 100.0, 100.0)


def in_radians(model, values):
    return np.where(opensim_columns(model).is_angle, np.radians(values), values)


@pytest.mark.parametrize("make", [human, full_skeleton])
def test_written_model_has_the_poses_of_the_analyzed_one(make):
    """Its coordinates, read from the table, put every body and marker where it was, with y up."""
    model = make()
    motion = random_motion(model)
    written = opensim_model(model)
    _, names, values = coordinate_table(motion)
    assert names == [c.name for c in written.coordinates] and written.gravity == (0.0, -9.81, 0.0)
    position, _ = poses(written, in_radians(model, values))
    assert np.abs(position - motion.data["body_position"].values @ TO_Y_UP.T).max() < 1e-12
    assert np.abs(marker_positions(written, in_radians(model, values))
                  - marker_positions(model, motion.coordinates) @ TO_Y_UP.T).max(initial=0.0) < 1e-12  # fmt: skip
    limits = {c.name: (c.lower, c.upper) for c in written.coordinates}
    for c in model.coordinates[6:]:
        low, high = limits[opensim_name(c.name)]
        assert (low, high) == ((-c.upper, -c.lower) if c.name in OPPOSITE else (c.lower, c.upper))


def test_files_name_each_other(analyzed):
    folder = analyzed.folder
    loads = read_external_loads(folder / "external_loads.xml")
    assert (folder / loads.data_file).name == "ground_forces.mot"
    assert {force.name: force.body for force in loads.forces} == {"right": "foot_r", "left": "foot_l"}
    columns = (folder / "ground_forces.mot").read_text().splitlines()[6].split("\t")
    assert all(f"{p}x" in columns for force in loads.forces for p in (force.force, force.point, force.torque))
    model = read_model(folder / "model.osim")
    names = [str(name) for name in read_recording(folder / "coordinates.mot").data["coordinate"].values]
    assert sorted(names) == sorted(c.name for c in model.coordinates)
    assert model.mass == pytest.approx(analyzed.summary["mass_kg"])


def test_loads_of_an_analysis_without_forces_are_not_written(analyzed, tmp_path):
    torques = analyzed.energy.torques
    bare = type(torques)(torques.motion, torques.data.drop_vars(["ground_reaction_force"]), torques.settings)
    assert write_opensim_files(bare, tmp_path) == ()
    assert [path.name for path in tmp_path.iterdir()] == ["model.osim"]


def differences(analysis, python, folder, *, filtered):
    """Differences over time of OpenSim's generalized forces from those of the analysis, by name.

    `filtered`: OpenSim gets the filtered coordinates; else `coordinates.mot`, which it filters itself.
    """
    torques = analysis.energy.torques
    table, cutoff = analysis.folder / "coordinates.mot", torques.settings["cutoff_hz"]
    if filtered:
        data = torques.data
        motion = make_motion(
            torques.motion.model, data["coordinate_value"].values, data["time"].values, torques.motion.rate
        )
        table, cutoff = folder / "filtered.mot", -1.0
        time, names, values = coordinate_table(motion)
        write_table(table, "Coordinates", time, names, values, degrees=True)
    out = folder / "id.sto"
    command = [python, REFEREE, analysis.folder, table, str(cutoff), out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = out.read_text().splitlines()
    start = lines.index("endheader") + 1
    found = np.array([[float(word) for word in line.split()] for line in lines[start + 1 :]])
    columns = lines[start].split()
    _, names, own = moment_table(torques)
    assert set(names) == set(columns[1:])
    model = torques.motion.model
    coupled = {coupling.coordinate for coupling in model.couplings}  # whose forces borelli moves to their drivers
    result = {}
    for k, (name, coordinate) in enumerate(zip(names, opensim_columns(model).names, strict=True)):
        if coordinate not in coupled:
            result[name] = found[:, columns.index(name)] - own[:, k]
    return result


def check_differences(found):
    rms = {name: np.sqrt(np.mean(off**2)) for name, off in found.items() if name.endswith("_moment")}
    assert max(rms.values()) < MAX_DIFFERENCE, rms
    inner = {name: np.sqrt(np.mean(off[ENDS:-ENDS] ** 2)) for name, off in found.items()}
    assert max(inner.values()) < MAX_INNER_DIFFERENCE, inner


@pytest.mark.crosscheck
def test_opensim_computes_the_same_moments(analyzed, opensim_python, tmp_path):
    check_differences(differences(analyzed, opensim_python, tmp_path, filtered=True))


WALK = "opensim/subject01_walk/subject01_walk1"
RAJAGOPAL = "opensim/rajagopal2016/walk"
TRIALS = {
    "human": (f"{WALK}.trc", f"{WALK}_grf.mot", None),
    "gait2392": (f"{WALK}.trc", f"{WALK}_grf.mot", "opensim/gait2392/subject01_simbody.osim"),
    "gait10dof18musc": (f"{WALK}.trc", f"{WALK}_grf.mot", "opensim/gait10dof18musc/subject01.osim"),
    "rajagopal2016": (
        f"{RAJAGOPAL}/motion_capture_walk.trc", f"{RAJAGOPAL}/grf_walk.mot", "opensim/rajagopal2016/Rajagopal2016.osim",
    ),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.crosscheck
@pytest.mark.parametrize("trial", TRIALS)
def test_opensim_computes_the_same_moments_of_recordings(trial, opensim_python, tmp_path):
    markers, forces, model = TRIALS[trial]
    settings = AnalysisSettings(
        forces=shared(forces), model=None if model is None else shared(model), mass=72.6 if model is None else None,
        fit=trial in ("human", "rajagopal2016"),
    )  # fmt: skip
    (analysis,) = analyze([shared(markers)], tmp_path / "out", settings)
    check_differences(differences(analysis, opensim_python, tmp_path, filtered=True))


@pytest.mark.data
def test_signs_are_those_of_rajagopal():
    """A positive change of a coordinate rotates the distal body the same way in both models, palms forward."""
    reference, own = read_model(shared("opensim/rajagopal2016/Rajagopal2016.osim")), opensim_model(human())
    ends = {"hip": ("femur", "thigh"), "knee_angle": ("tibia", "shank"), "ankle": ("calcn", "foot"),
            "subtalar": ("calcn", "foot"), "mtp": ("toes", "toes"), "arm": ("humerus", "upper_arm"),
            "elbow": ("radius", "forearm"), "pro_sup": ("radius", "forearm"), "wrist": ("hand", "hand"),
            "pelvis": ("pelvis", "pelvis"), "lumbar": ("torso", "upper_torso")}  # fmt: skip
    compared = 0
    for name in {c.name for c in own.coordinates} & {c.name for c in reference.coordinates}:
        bodies = next(value for key, value in ends.items() if name.startswith(key))
        side = name[-2:] if name[-2:] in ("_r", "_l") else ""
        moves = [_rotation(m, name, f"{b}{side}") for m, b in ((reference, bodies[0]), (own, bodies[1]))]
        if np.linalg.norm(moves[0]) > 0.0:  # locked coordinates of the reference move, too
            assert moves[0] @ moves[1] > 0.5 * np.linalg.norm(moves[0]) * np.linalg.norm(moves[1]), name
            compared += 1
    assert compared > 30


def _rotation(model, name, body):
    """Rotation vector (translation, if there is none) of a body for a small change of a coordinate."""
    names = [c.name for c in model.coordinates]
    q = np.zeros((2, len(names)))
    if "upper_arm_r" in {b.name for b in model.bodies}:  # whose thumbs are forward at zero
        q[:, [names.index(f"pro_sup_{side}") for side in "rl"]] = -0.5 * np.pi
    q[1, names.index(name)] = 1e-3
    index = [b.name for b in model.bodies].index(body)
    position, rotation = poses(model, q)
    change = rotation[1, index] @ rotation[0, index].T
    vector = np.array([change[2, 1] - change[1, 2], change[0, 2] - change[2, 0], change[1, 0] - change[0, 1]]) / 2e-3
    return vector if np.linalg.norm(vector) > 1e-6 else (position[1, index] - position[0, index]) / 1e-3


@pytest.mark.parametrize("make", [human, full_skeleton])
def test_muscles_of_a_written_model_have_their_lengths(make, tmp_path):
    """Wraps, and points that move with a renamed coordinate, are those of the model."""
    model = make(muscles=True)
    write_model(opensim_model(model), tmp_path / "model.osim")
    again = read_model(tmp_path / "model.osim")
    names = [muscle.name for muscle in model.muscles]
    assert [muscle.name for muscle in again.muscles] == names
    rows = np.tile([c.default for c in model.coordinates], (3, 1))
    own = [c.name for c in model.coordinates]
    for name, angles in {"hip_flexion_r": (0.5, 1.0, -0.2), "knee_flexion_r": (0.0, 0.7, 1.5)}.items():
        rows[:, own.index(name)] = angles
    written = np.tile([c.default for c in again.coordinates], (3, 1))
    other = [c.name for c in again.coordinates]
    for name in ("hip_flexion_r", "knee_flexion_r"):
        written[:, other.index(opensim_name(name))] = rows[:, own.index(name)]
    held = [m.name for m in model.muscles if not any(wrap.side_point for wrap in m.wraps)]  # OpenSim has no side points
    lengths = [muscle_paths(m, q, muscles=held).length for m, q in ((again, written), (model, rows))]
    np.testing.assert_allclose(*lengths, atol=1e-6)
