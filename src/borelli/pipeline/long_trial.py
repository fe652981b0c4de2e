"""Analysis of a long trial in blocks of frames: memory grows with a block, not with the trial.

The recording is kept in a file. Poses are solved block by block, each from the last pose of the one before. All blocks
together decide what depends on the whole trial (`trial_decisions`); then torques and energy of each block are computed
by the functions of short trials and stored. Sums, such as work, are sums over blocks. One file, `energy.nc`, is made of
the blocks; its datasets are opened, not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from borelli.analysis.dynamics.external_loads import FEET, FOOT_VARIABLES, Loads
from borelli.analysis.dynamics.torques import Torques
from borelli.analysis.energetics.energy import Energy, Totals, energy_of_part, finish_energy
from borelli.analysis.ground.external_contact import CONTACT, contact_frames, contact_notes
from borelli.analysis.ground.off_plate_steps import SOURCE, coverage_notes
from borelli.analysis.ground.predict_grf import predict_grf
from borelli.analysis.inverse_dynamics import METHODS as ID_METHODS
from borelli.analysis.inverse_dynamics import torques_from_curves
from borelli.analysis.inverse_kinematics import METHODS as IK_METHODS
from borelli.analysis.kinematics.differentiation import bridge_gaps, differentiate
from borelli.analysis.kinematics.framewise_ik import (
    limit_notes,
    make_ik_problem,
    motion_from_coordinates,
    solve_framewise,
)
from borelli.analysis.motion import Motion, coordinate_labels
from borelli.analysis.strides import find_strides, stride_labels, with_gait_events
from borelli.export.stage_files import LONG_TRIAL, loads_dataset, read_stage, stage_attributes
from borelli.files.netcdf import open_netcdf
from borelli.files.netcdf_writer import netcdf_content, write_netcdf
from borelli.kernels.compile_cache import ensure_compiled
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.pipeline.analysis_settings import AnalysisSettings, missing_marker_notes
from borelli.pipeline.blocks import (
    BLOCK_FOLDER,
    BLOCK_FRAMES,
    Block,
    BlockFiles,
    analog_samples,
    append_files,
    load_part,
    make_block_folder,
    split_frames,
)
from borelli.pipeline.resume import StageCache
from borelli.pipeline.trial_decisions import TrialDecisions, decide
from borelli.recording.objects import OBJECT_VARIABLES
from borelli.recording.recording import Note, Recording

if TYPE_CHECKING:
    from xarray import Dataset

PREDICTED = "predicted_grf"
"""Dataset of the file with ground reaction forces that were predicted where plates measured them."""
KEPT_PREDICTED = (*FOOT_VARIABLES, "sole_position")
RECORDING_FILE = "recording.nc"


def is_long(recording: Recording, settings: AnalysisSettings) -> bool:
    """Return whether a trial is analyzed in blocks: it has many frames, and its methods work frame by frame."""
    framewise = (settings.ik_method, settings.id_method) == (IK_METHODS[0], ID_METHODS[0])
    recipe = (settings.reduce_residuals, settings.filter, settings.ik_setup, settings.external_loads)
    return recording.frames > LONG_TRIAL and framewise and not any(recipe)


def keep_in_file(recording: Recording, folder: Path) -> Recording:
    """Return the recording with its gait events, its datasets in a file of the folder, from which parts are read."""
    path = make_block_folder(folder) / RECORDING_FILE
    recording = with_gait_events(recording.with_data(recording.data.drop_dims("channel", errors="ignore")))
    write_netcdf(path, {"recording": recording.data}, overwrite=True)
    return replace(recording, data=open_netcdf(path).open("recording"))


def excerpt(recording: Recording) -> Recording:
    """Return the first frames of a long recording, as many as are analyzed in one piece; a short one as it is."""
    if recording.frames <= LONG_TRIAL:
        return recording
    return load_part(recording, [str(name) for name in recording.data.data_vars], 0, LONG_TRIAL)


def analyze_long_trial(
    trial: Recording,
    model: Model,
    notes: tuple[Note, ...],
    settings: AnalysisSettings,
    stages: StageCache,
    ends: dict[str, float],
    size: int | None = None,
) -> Energy:
    """Compute the energy of a trial of `keep_in_file`, and the stages before it, in blocks of about `size` frames.

    Finished blocks of an interrupted run are reused.
    """
    known = stages.load("energy", "energy.nc")
    if known is None:
        ensure_compiled()
        run = _Run(trial, model, notes, settings, stages, ends, size or BLOCK_FRAMES)
        run.write()
        known = read_stage(stages.folder / "energy.nc")
    return cast("Energy", known)


def read_predicted_grf(folder: Path) -> Dataset | None:
    """Return the ground reaction forces that were predicted where plates measured them; None without plates."""
    file = open_netcdf(folder / "energy.nc")
    return file.open(PREDICTED) if PREDICTED in file.groups else None


@dataclass(frozen=True)
class _Run:
    """One analysis of a long trial."""

    trial: Recording
    model: Model
    notes: tuple[Note, ...]
    settings: AnalysisSettings
    stages: StageCache
    ends: dict[str, float]
    size: int

    def files(self, stage: str) -> BlockFiles:
        """Return the block files of a stage."""
        return BlockFiles(self.stages.folder / BLOCK_FOLDER, stage, self.stages.keys[stage])

    def report(self, task: str, begin: str, end: str, blocks: Sequence[Block]) -> Callable[[Block], None]:
        """Return a callback that reports the progress of a task over blocks."""
        low, high = self.ends[begin], self.ends[end]

        def update(block: Block) -> None:
            done = low + (high - low) * block.number / len(blocks)
            self.stages.progress(f"{task}: block {block.number + 1} of {len(blocks)}", done)

        return update

    def write(self) -> None:
        """Compute all blocks and write `energy.nc`."""
        trial, model = self.trial, self.model
        time = np.asarray(trial.data["time"].values, dtype=float)
        posed = split_frames(len(time), trial.rate, self.size)
        with self.stages.timed("ik", "inverse kinematics", self.ends["fit"]):
            motion_files = self.files("ik")
            coordinates, motion = self._solve_poses(motion_files, posed)
        with self.stages.timed("id", "inverse dynamics", self.ends["ik"]):
            q, first, last, bridged = bridge_gaps(coordinates, time, trial.rate)
            part = _MovingPart(trial, model, q[first:last], time[first:last], first)
            blocks = split_frames(last - first, trial.rate, self.size)
            strides = find_strides(Motion(model, motion.data, trial), part.time)
            decisions = decide(
                trial, model, part.coordinates, part.time, strides, blocks, part.motion, self.settings,
                self.report("inverse dynamics, what the trial decides", "ik", "id", blocks),
            )  # fmt: skip
        with self.stages.timed("energy", "energetics", self.ends["id"]):
            files = self.files("energy")
            update = self.report("torques and energy", "id", "energy", blocks)
            for block in blocks:
                update(block)
                if files.read_content(block) is None:
                    files.write(block, *compute_block(part, block, decisions))
            energy = _join(motion, part, blocks, files, decisions, bridged)
        self._write_file(energy, motion_files, posed, files, blocks)  # with the run times of all stages

    def _solve_poses(self, files: BlockFiles, blocks: Sequence[Block]) -> tuple[Array, Motion]:
        """Return the coordinates (frames, coordinates) of all blocks, and the motion of the first with all notes."""
        update = self.report("inverse kinematics", "fit", "ik", blocks)
        parts: list[Array] = []
        notes: list[tuple[Block, Note]] = []
        before: Array | None = None
        orientation: Array | None = None
        head: Dataset | None = None
        for block in blocks:
            update(block)
            content = files.read_content(block)
            if content is None:
                motion = pose_block(self.trial, self.model, block, before, orientation)
                files.write(block, {"motion": motion.data}, {"notes": [vars(note) for note in motion.notes]})
                data, found = motion.data, motion.notes
            else:
                data, found = files.read(block, "motion"), tuple(Note(**note) for note in content["notes"])
            parts.append(np.asarray(data["coordinate_value"].values))
            notes += [(block, note) for note in found]
            posed = np.flatnonzero(np.isfinite(parts[-1]).all(axis=1))
            before = parts[-1][posed[-1]] if len(posed) else before
            orientation = data["body_orientation"].values[posed[-1]] if len(posed) else orientation
            head = data if head is None else head
        assert head is not None
        whole = Motion(self.model, head, self.trial, {"method": IK_METHODS[0]})
        return np.concatenate(parts), replace(
            whole, notes=(*self.notes, *block_notes(notes), *missing_marker_notes(whole))
        )

    def _write_file(
        self, energy: Energy, motions: BlockFiles, posed: Sequence[Block], files: BlockFiles, blocks: Sequence[Block]
    ) -> None:
        """Write `energy.nc`: the recording, then the blocks of each dataset one after the other."""
        import xarray

        folder = self.stages.folder
        present = open_netcdf(files.path(blocks[0])).groups
        parts = {"motion": [motions.path(block) for block in posed]}
        for group in ("energy", "torques", "loads", PREDICTED):
            if group in present:
                parts[group] = [files.path(block) for block in blocks]
        attrs = stage_attributes(energy, self.stages.provenance("energy"))
        sums = {"energy": energy.data.drop_dims("time"), "/": xarray.Dataset(attrs=attrs)}
        with netcdf_content(folder / "energy.nc", copy_of=folder / BLOCK_FOLDER / RECORDING_FILE) as file:
            append_files(file, parts, sums)


@dataclass(frozen=True)
class _MovingPart:
    """Frames of a trial from the first pose to the last, without gaps."""

    trial: Recording
    model: Model
    coordinates: Array
    time: Array
    offset: int
    """Number of frames of the trial before the first."""

    def motion(self, block: Block) -> Motion:
        """Return coordinates, plate loads and events of a block with its margins."""
        import xarray

        frames = slice(block.first, block.last)
        data = xarray.Dataset(
            {"coordinate_value": (("time", "coordinate"), self.coordinates[frames])},
            {"time": ("time", self.time[frames], {"units": "s"}), **coordinate_labels(self.model)},
            {"rate_hz": float(self.trial.rate)},
        )
        names = (*FOOT_VARIABLES, "plate_corners", "event_time")
        recording = load_part(self.trial, names, self.offset + block.first, self.offset + block.last)
        return Motion(self.model, data, recording, {"method": IK_METHODS[0]})


def pose_block(trial: Recording, model: Model, block: Block, before: Array | None, orientation: Array | None) -> Motion:
    """Return the motion of a block's own frames, which continues from the pose (coordinates,) before it.

    `orientation` (bodies, 4) are the quaternions of that pose, whose signs are kept.
    """
    recording = load_part(trial, ("marker_position", *OBJECT_VARIABLES), block.start, block.stop)
    problem = make_ik_problem(model, recording)
    q, notes = solve_framewise(problem, before)
    notes = (*notes, *limit_notes(problem, q, recording.data["time"].values, block.start))
    motion = motion_from_coordinates(problem, q, recording, IK_METHODS[0], notes)
    if orientation is not None:
        values = motion.data["body_orientation"].values
        posed = np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))
        if len(posed):
            same = (values[posed[0]] * orientation).sum(axis=-1)
            motion.data["body_orientation"].values *= np.where(same < 0.0, -1.0, 1.0)[None, :, None]
    return motion


def compute_block(
    part: _MovingPart, block: Block, decisions: TrialDecisions
) -> tuple[dict[str, Dataset], dict[str, Any]]:
    """Return the datasets of a block without its margins, and its totals and notes."""
    settings, motion = decisions.settings, part.motion(block)
    curves = differentiate(motion, filter=settings.filter, cutoff=settings.cutoff, joints=decisions.joints)
    torques = torques_from_curves(
        motion, curves, settings.forces, plate_cutoff=settings.plate_cutoff, coverage=decisions.coverage_of(block),
        ground=decisions.ground, contact=settings.contact,
    )  # fmt: skip
    after = replace(torques, data=torques.data.isel(time=slice(block.own.start, None)))
    end = part.time[block.stop] if block.stop < len(part.time) else np.inf
    strides = [one for one in decisions.strides if part.time[block.start] - 1e-6 <= one.start < end - 1e-6]
    energy, totals = energy_of_part(after, block.stop - block.start, decisions.belt, strides)
    groups = {"torques": torques.data.isel(time=block.own), "energy": energy}
    if torques.loads is not None:
        groups["loads"] = loads_dataset(_own_loads(part, block, torques.loads))
    if torques.on_plates and decisions.ground is not None:
        ends = differentiate(motion, filter="strides", cutoff=settings.cutoff, joints=decisions.joints)
        predicted = predict_grf(motion, ends, decisions.ground)
        groups[PREDICTED] = predicted[list(KEPT_PREDICTED)].isel(time=block.own)
    loads = () if torques.loads is None else torques.loads.notes
    content = {
        "totals": totals._asdict(), "settings": dict(torques.settings), "strides": len(strides),
        "notes": [vars(note) for note in loads],
    }  # fmt: skip
    return groups, content


def _own_loads(part: _MovingPart, block: Block, loads: Loads) -> Loads:
    """Return the loads of a block's own frames."""
    if loads.source == "predicted":
        return _cut(loads, block.own)
    start, stop = (part.offset + frame for frame in (block.start, block.stop))
    time = part.trial.data["time"].values
    own = analog_samples(part.trial, time[start], time[stop - 1], start == 0, stop == len(time))
    clock = part.trial.data["analog_time"].values
    low, high = np.searchsorted(loads.time, (clock[own.start] - 1e-9, clock[own.stop - 1] + 1e-9))
    return _cut(loads, slice(int(low), int(high)))


def _cut(loads: Loads, samples: slice) -> Loads:
    force, point, moment = (values[samples] for values in (loads.force, loads.point, loads.moment))
    computed = None if loads.computed is None else loads.computed[samples]
    return replace(loads, time=loads.time[samples], force=force, point=point, moment=moment, computed=computed)


def _join(
    motion: Motion,
    part: _MovingPart,
    blocks: Sequence[Block],
    files: BlockFiles,
    decisions: TrialDecisions,
    bridged: Sequence[Note],
) -> Energy:
    """Return the energy of all blocks, with sums and notes of the trial; over time it has the first block only."""
    contents = [files.read_content(block) or {} for block in blocks]
    parts = [_totals(content["totals"]) for content in contents]
    totals = parts[0]
    for one in parts[1:]:
        totals = totals.followed_by(one)
    first = contents[0]
    notes = [
        *bridged,
        *block_notes([(b, Note(**n)) for b, c in zip(blocks, contents, strict=True) for n in c["notes"]]),
    ]
    if decisions.coverage is not None:
        notes += _coverage_notes(part, blocks, files, decisions)
    settings = {**first["settings"], "forces": decisions.settings.forces}
    torques = Torques(motion, files.read(blocks[0], "torques"), settings, (*notes, *decisions.notes))
    data = files.read(blocks[0], "energy").drop_dims("stride", errors="ignore")
    names = ("positive_work", "negative_work", "torque_time_integral")
    units = {name: dict(data[name].attrs) for name in names}
    sums = zip(names, totals[:3], strict=True)
    data = data.assign({name: (("coordinate",), values, units[name]) for name, values in sums})
    if decisions.strides:
        with_strides = [block for block, content in zip(blocks, contents, strict=True) if content["strides"]]
        work = {
            f"stride_{name}": np.concatenate(
                [files.values(block, "energy", f"stride_{name}") for block in with_strides]
            )
            for name in names
        }
        by_stride = {key: (("stride", "coordinate"), values, units[key[7:]]) for key, values in work.items()}
        data = data.assign(by_stride).assign_coords(stride_labels(decisions.strides))
    return finish_energy(torques, data, totals, decisions.belt, inferred=True)


def _coverage_notes(
    part: _MovingPart, blocks: Sequence[Block], files: BlockFiles, decisions: TrialDecisions
) -> tuple[Note, ...]:
    """Return the notes on plates and predicted steps of the whole trial."""
    coverage, mass = decisions.coverage, part.model.mass
    assert coverage is not None
    if decisions.settings.forces != SOURCE:
        return coverage.notes(mass)
    contact = decisions.settings.contact
    loaded = "residual_force" if contact is None else "ground_reaction_force"
    source, known, force = (
        np.concatenate([files.values(block, "torques", name) for block in blocks])
        for name in ("grf_source", "grf_known", loaded)
    )
    off, known = source[:, : len(FEET)] == b"predicted", known == 1
    if contact is None:
        frames, deficit = contact_frames(part.time, known, off), force[:, 2]
    else:
        frames, deficit = source[:, -1] == CONTACT.encode(), force[:, -1, 2]
    return (
        *coverage_notes(coverage, mass, FEET, off, known, contact if frames.any() else None),
        *contact_notes(part.time, frames, deficit, mass, contact),
    )


def block_notes(notes: Sequence[tuple[Block, Note]]) -> tuple[Note, ...]:
    """Return the notes of blocks, one for each code: that of the first block, which names its frames."""
    result = []
    for code in dict.fromkeys(note.code for _, note in notes):
        own = [(block, note) for block, note in notes if note.code == code]
        block, note = own[0]
        more = f" So in {len(own) - 1} more of the trial's blocks of frames." if len(own) > 1 else ""
        text = f"Frames {block.start} to {block.stop - 1}: {note.text}{more}"
        # what every block states alike is stated of the trial
        same = len({other.text for _, other in own}) == 1 and len(own) > 1
        result.append(note if same else replace(note, text=text))
    return tuple(result)


def _totals(values: dict[str, Any]) -> Totals:
    arrays = {
        name: np.array(values[name], dtype=float) for name in ("positive", "negative", "integral", "displacement")
    }
    on_center = None if values["on_center"] is None else tuple(values["on_center"])
    return Totals(**{**values, **arrays, "on_center": on_center})
