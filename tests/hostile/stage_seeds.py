"""Small files of an analysis: stages of two bodies with muscles and without, a fit, an uncertainty; of a simulation."""

import os
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import xarray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.energetics.energy import compute_energy
from borelli.analysis.fit.fit_model import Fit
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.motion import coordinate_labels, make_motion
from borelli.analysis.muscle_forces import muscle_forces
from borelli.export.stage_files import write_fit, write_stage
from borelli.export.stage_schema import SUFFIXES
from borelli.export.uncertainty_files import UNCERTAINTY_FILE, AnalysisUncertainty, write_uncertainty
from borelli.files.netcdf_writer import write_netcdf
from borelli.model.formats.native import model_from_text, model_to_text
from borelli.pipeline.uncertainty import outputs
from borelli.recording.recording import Note, Recording, make_dataset

FRAMES, RATE = 14, 100.0
MODEL = """
format = "borelli-model"
version = 2
name = "legs"

[[bodies]]
name = "pelvis"
mass = 10.0
inertia = [[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]

[[bodies]]
name = "foot_r"
mass = 1.0
inertia = [[0.01, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.01]]

[[joints]]
name = "root"
kind = "free"
parent = "ground"
child = "pelvis"
coordinates = [
    { name = "x", rotational = false }, { name = "y", rotational = false }, { name = "z", rotational = false },
    { name = "rx" }, { name = "ry" }, { name = "rz" },
]

[[joints]]
name = "hip_r"
kind = "hinge"
parent = "pelvis"
child = "foot_r"
parent_frame = { position = [0.0, 0.0, -0.5] }
axes = [[0.0, 1.0, 0.0]]
coordinates = [{ name = "hip_flexion_r", lower = -1.0, upper = 1.0 }]

[[markers]]
name = "RHEE"
body = "foot_r"
position = [0.0, 0.0, -0.1]
"""


MUSCLES = """
[[muscles]]
name = "flexor_r"
max_isometric_force = 3000.0
optimal_fiber_length = 0.3
tendon_slack_length = 0.1
path = [{ body = "pelvis", position = [0.05, 0.0, -0.1] }, { body = "foot_r", position = [0.05, 0.0, 0.0] }]

[[muscles]]
name = "extensor_r"
max_isometric_force = 3000.0
optimal_fiber_length = 0.3
tendon_slack_length = 0.1
path = [{ body = "pelvis", position = [-0.05, 0.0, -0.1] }, { body = "foot_r", position = [-0.05, 0.0, 0.0] }]
"""


@cache
def energy(muscles=False):
    """Return the energy of a short motion with a load on its foot; of its muscles too."""
    model = model_from_text(MODEL + MUSCLES if muscles else MODEL)
    time = np.arange(FRAMES) / RATE
    q = 0.1 * np.sin(np.outer(6.0 * time, np.arange(1, len(model.coordinates) + 1)))
    measured = np.zeros((FRAMES, 1, 3)) + 0.01 * q[:, None, :3]
    variables = {"marker_position": measured, "event_time": np.array([0.01, 0.05])}
    labels = {"marker": ["RHEE"], "event": [0, 1], "event_label": ["Foot Strike"] * 2, "event_context": ["Right"] * 2}
    recording = Recording(make_dataset(variables, labels, rate=RATE), "legs", None, "C3D", {"mass": 11.0})
    note = Note("The pelvis was assumed.", "inferred", "--mass", code="mass_assumed")
    motion = make_motion(
        model, q, time, RATE, markers=model.markers, measured=measured, recording=recording,
        settings={"method": "framewise"}, notes=(note,),
    )  # fmt: skip
    curves = differentiate(motion)
    force = np.tile([0.0, 0.0, 100.0], (FRAMES, 2, 1))
    loads = Loads(
        ("right", "left"), ("foot_r", "pelvis"), time, force, 0.0 * force, 0.0 * force, "predicted", (note,),
        (0.0, 0.0, 0.0), np.zeros((FRAMES, 2)),
    )  # fmt: skip
    settings = {"method": "newton_euler", "forces": "predicted", **curves.settings}
    torques = newton_euler_torques(motion, curves, loads, settings)
    sources = np.full((FRAMES, 2), "predicted")
    known = {"grf_known": ("time", np.ones(FRAMES, bool)), "grf_source": (("time", "foot"), sources)}
    torques = replace(torques, data=torques.data.assign(known))
    return compute_energy(muscle_forces(torques) if muscles else torques)


def write_files(folder):
    """Write a file of each kind."""
    result = energy()
    torques: Torques = result.torques
    model = torques.motion.model
    strong = energy(muscles=True)
    stages = {
        "motion": torques.motion, "torques": torques, "energy": result,
        "muscles": strong.muscles, "metabolic": strong,
    }  # fmt: skip
    for name, stage in stages.items():
        write_stage(stage, folder / f"{name}.nc", {"key": name, "runtime_s": {"ik": 0.1}})
    count = len(model.coordinates)
    data = xarray.Dataset(
        {
            **{name: ("segment", [0.5]) for name in ("length", "length_sd", "length_given")},
            **{name: (("joint", "axis"), np.full((1, 3), 0.01)) for name in ("joint_center", "joint_center_sd")},
            **{name: ("coordinate", np.full(count, 0.01)) for name in ("zero_sd", "pose_sd")},
            **{name: ("marker", [0.002]) for name in ("marker_rms", "marker_rms_held_out")},
        },
        {
            "segment": ["pelvis"],
            "joint": ["hip_r"],
            "axis": ["x", "y", "z"],
            **coordinate_labels(model),
            "marker": ["RHEE"],
        },
    )
    fit = Fit(model, data, 0.001, 0.002, 7, torques.motion.notes)
    write_fit(fit, folder / "fit.nc", {"key": "fit", "runtime_s": 1.5})
    groups = {
        group: data.assign({f"{name}_{suffix}": data[name] for name in data.data_vars for suffix in SUFFIXES})[
            [f"{name}_{suffix}" for name in data.data_vars for suffix in SUFFIXES]
        ]
        for group, data in outputs(result).items()
    }
    uncertainty = AnalysisUncertainty(groups, 3, {"RHEE": 0.001}, False, True, 0, torques.motion.notes)
    write_uncertainty(uncertainty, folder / UNCERTAINTY_FILE, {"key": "u", "energy": "energy", "runtime_s": 2.5})
    write_netcdf(folder / "result.nc", {"/": _simulated(model)})
    torques.motion.recording.to_netcdf(folder / "recording.nc")


def _simulated(model):
    """Return a dataset laid out as that of `simulate`."""
    time = np.arange(5) * 0.01
    by_time = {name: ("time", np.ones(5)) for name in ("kinetic_energy", "potential_energy", "joint_gap")}
    by_time |= {name: ("time", np.ones(5, int)) for name in ("solver_iterations", "solver_status")}
    force = {"ground_reaction_force": (("time", "body", "axis"), np.ones((5, len(model.bodies), 3)))}
    labels = {"time": time, "body": [body.name for body in model.bodies], "axis": list("xyz")}
    return xarray.Dataset(by_time | force, labels, {"model": model_to_text(model), "step_s": 0.01, "version": "0"})


@cache
def stage_files():
    """Return the content of each file by its name."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.nc"))}


def read_any(path):
    """Read a file of any kind and summarize it; the uncertainty must be that of `energy`."""
    from borelli.commands.detect_file import open_file
    from borelli.commands.file_summary import summarize_file
    from borelli.export.stage_files import open_stage_file
    from borelli.export.uncertainty_files import load_uncertainty

    if Path(path).name == UNCERTAINTY_FILE:
        return load_uncertainty(open_stage_file(path, ("uncertainty",)), energy())
    content = open_file(Path(path))
    summarize_file(content)
    return content.value


COMMANDS = {
    "motion.nc": ("info {}", "info --json {}", "id {} -o out.nc --force", "convert {} out.c3d --force", "doctor {}"),
    "torques.nc": ("info {}", "id {} -o out.nc --force", "energy {} -o out.nc --force", "energy --json {} --force"),
    "energy.nc": ("info {}", "energy {} -o out.nc --force", "report {} -o out.html --force"),
    "muscles.nc": ("info {}", "muscles {} -o out.nc --force", "energy {} -o out.nc --force"),
    "metabolic.nc": ("info {}", "energy {} -o out.nc --force", "report {} -o out.html --force"),
    "recording.nc": ("info {}", "convert {} out.trc --force", "convert {} out.nc --force", "doctor {}"),
}
"""Commands that read each file; others are read by `info`, or by `report` next to the file of the energy."""


def run_command(path):
    """Run one of the commands that read a file, chosen by its content; a failed command raises."""
    from typer.testing import CliRunner

    from borelli.cli import app

    lines = COMMANDS.get(path.name, ("info {}", "report energy.nc -o out.html --force"))
    content = path.read_bytes() if path.is_file() else b""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        if path.name not in COMMANDS:
            Path("energy.nc").write_bytes(stage_files()["energy.nc"])
        result = CliRunner().invoke(app, lines[sum(content[-20:]) % len(lines)].format(path.name).split())
        for name in ("fit.nc", UNCERTAINTY_FILE, "out.nc"):
            Path(name).unlink(missing_ok=True)
    finally:
        os.chdir(here)
    if result.exit_code and not isinstance(result.exception, SystemExit):  # `doctor` exits with 1 if it finds issues
        raise result.exception
    return result.output
