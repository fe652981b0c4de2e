"""Decisions that all frames of a trial make together, for the blocks of a long one.

Derivatives of all blocks give the vertical force that the body needs in every frame, which together with the plates
determines where these record all of it. Soles, the height of the ground and the speed of a belt are found from frames
spread evenly over the trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads, plate_loads
from borelli.analysis.dynamics.plate_coverage import PlateCoverage, supplied_force, weigh_coverage
from borelli.analysis.dynamics.rnea import BodyKinematics, forward_kinematics
from borelli.analysis.dynamics.torques import root_body
from borelli.analysis.energetics.energy_balance import belt_velocity
from borelli.analysis.ground.off_plate_steps import SOURCE
from borelli.analysis.ground.predict_grf import Ground, find_ground
from borelli.analysis.kinematics.differentiation import differentiate
from borelli.analysis.kinematics.joint_rotations import ThreeAxisJoint, find_rotation_joints
from borelli.analysis.motion import Motion, to_model_axes
from borelli.analysis.strides import Stride
from borelli.errors import BorelliError
from borelli.model.model import Model
from borelli.numerics.vectors import Array
from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.blocks import Block
from borelli.pipeline.stages import StageSettings, choose_settings, without_prediction
from borelli.recording.recording import Note, Recording

SAMPLED_FRAMES = 10_000
"""Frames, at most, from which soles, ground and belt are found."""


@dataclass(frozen=True)
class TrialDecisions:
    """What all frames of a trial determine together.

    Attributes:
        settings: Source of ground reaction forces and filters.
        joints: Joints that are treated as rotations.
        coverage: Frames in which plates record the full ground reaction force; None without plates.
        ground: Soles and ground; None: forces are not predicted.
        belt: (3,) velocity of a treadmill belt [m/s].
        strides: Whole strides.
        notes: Assumptions and problems.
    """

    settings: StageSettings
    joints: tuple[ThreeAxisJoint, ...]
    coverage: PlateCoverage | None
    ground: Ground | None
    belt: Array
    strides: tuple[Stride, ...]
    notes: tuple[Note, ...]

    def coverage_of(self, block: Block) -> PlateCoverage | None:
        """Return the plate coverage of the frames of a block with its margins."""
        if self.coverage is None:
            return None
        return replace(self.coverage, grf_complete=self.coverage.grf_complete[block.first : block.last])


class _Samples(NamedTuple):
    """Values of one block: forces at its frames, and motion and loads at sampled frames."""

    needed: Array
    supplied: Array
    recorded: NDArray[np.bool_]
    motion: Array
    """(3, frames, coordinates) values, speeds and accelerations."""
    loads: Loads | None


def decide(
    recording: Recording,
    model: Model,
    coordinates: Array,
    time: Array,
    strides: tuple[Stride, ...],
    blocks: Sequence[Block],
    get_motion: Callable[[Block], Motion],
    settings: AnalysisSettings,
    progress: Callable[[Block], None],
) -> TrialDecisions:
    """Decide for a trial of these coordinates (frames, coordinates), whose gaps are bridged; `time` (frames,) [s]."""
    chosen, notes = choose_settings(recording, settings)
    joints = find_rotation_joints(model, coordinates)
    every = -(-len(time) // SAMPLED_FRAMES)
    samples = []
    for block in blocks:
        progress(block)
        samples.append(_sample(get_motion(block), block, chosen, joints, every))
    needed, supplied, recorded = (np.concatenate([one[i] for one in samples]) for i in range(3))
    moved = forward_kinematics(model, *np.concatenate([one.motion for one in samples], axis=1))
    coverage = None
    if chosen.forces == SOURCE:
        coverage = weigh_coverage(model, strides, time, needed, supplied, recorded.astype(bool))
        if coverage.grf_complete.all():
            chosen = replace(chosen, forces="plates")
    ground = None
    try:
        ground = find_ground(moved)
    except BorelliError as error:
        if chosen.forces != "plates":
            chosen, note = without_prediction(chosen, error)
            notes = (note, *notes)
    belt = _belt(moved, ground, chosen, [one.loads for one in samples])
    return TrialDecisions(chosen, joints, coverage, ground, belt, strides, notes)


def _sample(
    motion: Motion, block: Block, settings: StageSettings, joints: tuple[ThreeAxisJoint, ...], every: int
) -> _Samples:
    curves = differentiate(motion, filter=settings.filter, cutoff=settings.cutoff, joints=joints)
    moved = forward_kinematics(motion.model, curves.coordinates, curves.speeds, curves.accelerations)
    root, up = root_body(motion.model), to_model_axes(motion.model)[:, 2]
    needed = np.zeros(len(curves.time))
    if root >= 0:
        needed = up @ moved.required_wrench.sum(axis=0)[root, 3:]
    chosen = slice(block.own.start + (-block.start) % every, block.own.stop, every)
    values = np.stack([part[chosen] for part in (curves.coordinates, curves.speeds, curves.accelerations)])
    if settings.forces != SOURCE or motion.recording is None:
        return _Samples(needed[block.own], np.zeros(0), np.zeros(0, bool), values, None)
    loads = plate_loads(motion.model, motion.recording).matched(curves.settings, settings.plate_cutoff)
    supplied, recorded = supplied_force(loads, curves.time, curves.settings["cutoff_hz"])
    if root < 0:
        needed = loads.at(curves.time).force[..., 2].sum(axis=1)
    own = block.own
    return _Samples(needed[own], supplied[own], recorded[own], values, loads.at(curves.time[chosen]))


def _belt(
    moved: BodyKinematics, ground: Ground | None, settings: StageSettings, loads: Sequence[Loads | None]
) -> Array:
    """Return the velocity (3,) of the belt [m/s]: that of the soles' contacts, or else of loaded plates."""
    if settings.forces is None:
        return np.zeros(3)
    if ground is not None and settings.forces != "plates":
        return ground.velocity
    known = [one for one in loads if one is not None]
    time, force, point, moment = (
        np.concatenate([getattr(one, name) for one in known]) for name in ("time", "force", "point", "moment")
    )
    return belt_velocity(moved, replace(known[0], time=time, force=force, point=point, moment=moment))
