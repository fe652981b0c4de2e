"""Every command that writes, with the files it reads and writes, and what must hold around a run of it."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

import borelli as bo
from borelli.export.uncertainty_files import UNCERTAINTY_FILES
from borelli.files.atomic import PREFIX
from borelli.pipeline.analyze import FIT_FILES, TRIAL_FILES
from borelli.recording.labels.interpret import interpret_labels
from borelli.recording.marker_map import write_marker_map
from borelli.scenes.scene_files import scene_to_text

from .seeds import AMC, ASF

TRIAL = [f"out/{name}" for name in TRIAL_FILES]
FIT = [f"out/{name}" for name in FIT_FILES]
SEVERAL = [f"out/{trial}/{name}" for trial in ("walk", "again") for name in TRIAL_FILES]
UNCERTAINTY = [f"out/{name}" for name in UNCERTAINTY_FILES]
REPORTS = ("report.html", "out.html")
"""Files that contain run times or the date, which differ from run to run."""
NAMED = "loads.xml walk.mot"
"""Inputs that no argument names: `id.xml` names the loads, and they name their table."""
LOADS = [(foot, f"ground_force_plate_{k}_", f"ground_torque_plate_{k}_") for k, foot in ((1, "foot_r"), (2, "foot_l"))]
"""Bodies, and the columns of the table that act on them."""
CHANGING = {"runtime_s": None, "reused_stages": None}


class Command(NamedTuple):
    """Arguments, the files among them that are read, and the files that are written."""

    arguments: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    other: str = ""
    """Option that makes a run with other settings."""


def command(arguments, inputs, outputs, other=""):
    return Command(arguments, tuple(inputs.split()), tuple(outputs), other)


def converted(source, suffix):
    return command(f"convert {source} out{suffix}", source, [f"out{suffix}"])


COMMANDS = {
    "analyze": command("analyze walk.c3d -o out", "walk.c3d", FIT + TRIAL, "--cutoff 8"),
    "analyze several": command("analyze walk.c3d again.c3d -o out", "walk.c3d again.c3d", FIT + SEVERAL, "--mass 80"),
    "analyze with files": command(
        "analyze walk.trc --forces walk.mot --model model.toml --static static.trc -o out",
        "walk.trc walk.mot model.toml static.trc", FIT + TRIAL, "--no-plates",
    ),
    "analyze without fit": command(
        "analyze walk.c3d --model model.toml --no-fit -o out", "walk.c3d model.toml", TRIAL, "--cutoff 9"
    ),
    "uncertainty": command(
        "analyze walk.c3d -o out --monte-carlo 3", "walk.c3d", FIT + TRIAL + UNCERTAINTY, "--marker-noise 2"
    ),
    "animate": command(
        "animate motion.nc -o out --no-video", "motion.nc",
        [f"out/{name}" for name in ("animation.nc", "summary.json", "deviation.png", "animation.png")],
        "--settling-time 0.2",
    ),
    "optimize": command(
        "optimize track torques.nc --no-muscles -o out", "torques.nc",
        [f"out/{name}" for name in ("solution.nc", "motion.nc", "summary.json", "solution.png")], "--tracking 100",
    ),
    "optimize with files": command(
        "optimize track walk.trc --model model.toml --external-loads loads.xml --forces walk.mot --no-muscles -o out",
        "walk.trc model.toml loads.xml walk.mot",
        [f"out/{name}" for name in ("solution.nc", "motion.nc", "summary.json", "solution.png")],
    ),
    "experiment": command(
        "experiment pd-convergence --quick -o out", "",
        [f"out/pd-convergence{ending}" for ending in (".csv", ".json", ".png", "-stills.png", ".gif")],
    ),
    "fit": command("fit walk.c3d -o out.toml", "walk.c3d", ["out.toml"], "--mass 80"),
    "ik": command("ik model.toml walk.c3d -o out.nc", "model.toml walk.c3d", ["out.nc"], "--end 0.5"),
    "id": command("id motion.nc -o out.nc", "motion.nc", ["out.nc"], "--cutoff 8"),
    "muscles": command("muscles strong.nc -o out.nc", "strong.nc", ["out.nc"], "--exponent 3"),
    "energy": command("energy torques.nc -o out.nc", "torques.nc", ["out.nc"]),
    "report": command("report energy.nc -o out.html", "energy.nc", ["out.html"]),
    "clean": command("clean walk.c3d out.c3d", "walk.c3d", ["out.c3d"], "--cutoff 8"),
    "info": command("info walk.c3d --plot out.png", "walk.c3d", ["out.png"]),
    **{f"convert to {suffix}": converted("walk.c3d", suffix) for suffix in (".c3d", ".trc", ".mot", ".csv", ".nc")},
    **{f"convert to {suffix}": converted("model.toml", suffix) for suffix in (".toml", ".osim", ".xml")},
    "markers": command(
        "markers walk.c3d --markers map.toml --write out.toml --picture out.png", "walk.c3d map.toml",
        ["out.toml", "out.png"],
    ),
    "fit with trials": command(
        "fit walk.c3d --model model.toml --static static.trc --functional again.c3d -o out.toml",
        "walk.c3d model.toml static.trc again.c3d", ["out.toml"],
    ),
    "analyze with setups": command(
        "analyze walk.trc --model model.toml --no-fit --ik-setup ik.xml --id-setup id.xml -o out",
        f"walk.trc model.toml ik.xml id.xml {NAMED}", TRIAL, "--cutoff 9",
    ),
    "analyze with scaling": command(
        "analyze walk.trc --scale-setup scale.xml --static static.trc --no-plates -o out",
        "walk.trc static.trc scale.xml model.osim", TRIAL,
    ),
    "id with loads": command(
        "id motion.nc --external-loads loads.xml --forces walk.mot -o out.nc", "motion.nc loads.xml walk.mot",
        ["out.nc"],
    ),
    "experiment with a recording": command(
        "experiment ground --quick --recording walk.c3d -o out", "walk.c3d",
        [f"out/ground{ending}" for ending in (".csv", ".json", ".png")],
    ),
    "convert with a skeleton": command("convert arm.amc out.nc --skeleton arm.asf", "arm.amc arm.asf", ["out.nc"]),
    "simulate": command(
        "simulate scene.toml --duration 0.1 --out out.nc --save out.toml --video out.gif --frames out",
        "scene.toml arm.toml",
        ["out.nc", "out.toml", "out.gif", "out/frame-0000.png", "out/frame-0001.png", "out/frame-0002.png"],
        "--step 0.001",
    ),
}  # fmt: skip


def make_inputs(folder):
    """Write the input files of all commands."""
    folder.mkdir()
    synthetic = bo.synthetic_recording("walk")
    walk = synthetic.recording
    short = bo.clean(walk, cutoff=None, start=1.0, end=1.8)
    for name in ("walk.c3d", "again.c3d", "walk.trc", "walk.mot"):
        bo.write_recording(short, folder / name)
    standing = bo.recording.crop(bo.synthetic_recording("jump").recording, end=0.2)
    bo.write_recording(standing, folder / "static.trc")
    bo.write_model(synthetic.model, folder / "model.toml")
    motion = bo.inverse_kinematics(synthetic.model, short)
    torques = bo.inverse_dynamics(motion)
    for name, stage in (("motion", motion), ("torques", torques), ("energy", bo.compute_energy(torques))):
        bo.write_stage(stage, folder / f"{name}.nc")
    muscled = bo.inverse_kinematics(bo.add_muscles(synthetic.model), short)
    bo.write_stage(bo.inverse_dynamics(muscled), folder / "strong.nc")
    scene = bo.read_scene("pendulum")
    bo.write_model(scene.model, folder / "arm.toml")
    text = scene_to_text(scene)
    (folder / "scene.toml").write_text(
        text[: text.index("[model]")].replace("\nname =", '\nmodel = "arm.toml"\nname =', 1)
    )
    assert bo.read_scene(folder / "scene.toml").model == scene.model
    write_marker_map(interpret_labels(short.markers).readings, folder / "map.toml")
    (folder / "arm.asf").write_bytes(ASF)
    (folder / "arm.amc").write_bytes(AMC)
    write_setups(synthetic.model, short, folder)
    return folder


def write_setups(model, recording, folder):
    """Write setups of OpenSim's tools: weights, a filter, loads under both feet, and scaling by one factor."""
    task = "<IKMarkerTask name='{}'><apply>true</apply><weight>1</weight></IKMarkerTask>"
    tasks = "".join(task.format(name) for name in recording.markers)
    tasks = f"<IKTaskSet><objects>{tasks}</objects></IKTaskSet>"
    load = "<ExternalForce name='{0}'><applied_to_body>{0}</applied_to_body>"
    load += "<force_expressed_in_body>ground</force_expressed_in_body><force_identifier>{1}v</force_identifier>"
    load += "<point_expressed_in_body>ground</point_expressed_in_body><point_identifier>{1}p</point_identifier>"
    load += "<torque_identifier>{2}</torque_identifier></ExternalForce>"
    loads = "".join(load.format(*one) for one in LOADS)
    bo.write_model(model, folder / "model.osim")
    setups = {
        "ik": f"<InverseKinematicsTool>{tasks}</InverseKinematicsTool>",
        "id": "<InverseDynamicsTool><external_loads_file>loads.xml</external_loads_file>"
        "<lowpass_cutoff_frequency_for_coordinates>6</lowpass_cutoff_frequency_for_coordinates></InverseDynamicsTool>",
        "loads": f"<ExternalLoads><objects>{loads}</objects><datafile>walk.mot</datafile></ExternalLoads>",
        "scale": "<ScaleTool><GenericModelMaker><model_file>model.osim</model_file></GenericModelMaker>"
        f"<ModelScaler/><MarkerPlacer>{tasks}</MarkerPlacer></ScaleTool>",
    }
    for name, content in setups.items():
        (folder / f"{name}.xml").write_text(f"<OpenSimDocument Version='40000'>{content}</OpenSimDocument>")


def tree(folder):
    """Return the SHA-256 of every file below a folder; of a link, where it leads."""
    hashes = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent) / name for name in names):
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            hashes[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return hashes


def leftovers(folder):
    """Return temporary files and locks."""
    return [str(path) for path in folder.rglob(f"{PREFIX}*")]


def copy_inputs(inputs, folder):
    shutil.copytree(inputs, folder)
    return folder


def assert_refused(code, err, *words):
    """Check exit code 1 and one sentence."""
    lines = err.strip().splitlines()
    assert code == 1 and len(lines) == 1 and lines[0].startswith("borelli: "), (code, err)
    for word in words:
        assert word in lines[0], (word, lines[0])


def assert_equal_results(outputs, folder, expected):
    """Check that the results in a folder are those of another: numbers of netCDF files, bytes of all others."""
    import h5py

    def values(path):
        found = {}
        with h5py.File(path, "r") as file:
            file.visititems(lambda name, item: found.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
        return found

    for name in outputs:
        path, other = folder / name, expected / name
        assert path.exists() == other.exists(), name
        if not path.exists() or path.name in REPORTS:
            continue
        if path.name == "summary.json":
            one, two = (json.loads(each.read_text()) for each in (path, other))
            assert {**one, **CHANGING} == {**two, **CHANGING}, name
        elif path.suffix == ".nc":
            one, two = values(path), values(other)
            assert set(one) == set(two), name
            for key in one:
                np.testing.assert_array_equal(one[key], two[key], err_msg=f"{name}: {key}")
        else:
            assert path.read_bytes() == other.read_bytes(), name
