"""Inverse dynamics: the joint torques of a motion, given or together with the ground reaction forces.

`newton_euler` applies Newton's and Euler's laws to splined coordinates, as OpenSim and gait laboratories do. `stepped`
computes the torques that reproduce the motion in borelli's own simulation. Each has a table of ground force sources.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

from borelli.analysis.dynamics.external_loads import Feet, Loads, plate_loads
from borelli.analysis.dynamics.plate_coverage import PlateCoverage
from borelli.analysis.dynamics.rnea import BodyKinematics, forward_kinematics
from borelli.analysis.dynamics.torques import Torques, newton_euler_torques
from borelli.analysis.ground.external_contact import check_contact_body
from borelli.analysis.ground.off_plate_steps import SOURCE, torques_with_predicted_steps
from borelli.analysis.ground.partial_body import leave_out_unknown
from borelli.analysis.ground.predict_grf import Ground, solve_ground_reaction
from borelli.analysis.kinematics.differentiation import LOW_PASSED, Derivatives, differentiate
from borelli.analysis.motion import Motion
from borelli.analysis.option_values import option_value
from borelli.analysis.residual_reduction.reduce import ReductionBounds, reduce_residuals, with_reduction
from borelli.analysis.stepped.stepped_torques import stepped_torques
from borelli.errors import ModelError, SettingsError, unknown_name
from borelli.kernels.compile_cache import ensure_compiled
from borelli.people.partial import is_partial
from borelli.recording.cleaning.task_cutoff import low_cutoff_notes, task_cutoff
from borelli.recording.recording import Note, Recording

Forces = str | Recording | Loads | None

AUTO = "auto"


def inverse_dynamics(
    motion: Motion,
    *,
    method: str = "newton_euler",
    forces: Forces = AUTO,
    filter: str = "default",
    cutoff: float | None = None,
    plate_cutoff: float | None = None,
    feet: Feet = None,
    residual: Any = None,
    contact: str | None = None,
    **options: Any,
) -> Torques:
    """Compute the joint torques of a motion.

    Args:
        motion: Motion of a model with masses.
        method: "newton_euler" or "stepped".
        forces: Ground reaction forces: "plates" (of the motion's recording), "predicted" (from the motion alone),
            "plates and predicted" (predicted for steps off the plates); for "stepped" also "contacts" (simulated with
            the motion; leg torques contain their chatter); a recording with plates; loads; or None for no ground
            reaction force. Default: the plates of the motion's recording, else predicted, else none; a note states
            which.
        filter: Low-pass filter preset of the coordinates: "default", "strides", "opensim" or "none".
        cutoff: Cutoff of that filter [Hz]. Default: by the recording's task (`task_cutoff`): 6 for walking, 10 or more
            for running and jumping; a note states it. "opensim": 6.
        plate_cutoff: Cutoff of the same filter on measured forces [Hz], as wrenches about a fixed point; 0: no filter.
            Default: `cutoff`, since another one makes artifacts at impacts; "opensim": no filter.
        feet: Bodies of the "right" and "left" foot, where their names do not identify them.
        residual: None: reported as it is; "reduce", or `ReductionBounds`: a plate offset, masses and kinematics are
            adjusted within bounds to lower it where plates record the full ground reaction force, see
            `reduce_residuals`. "stepped" has other values: see `stepped_torques`.
        contact: Body that something without a plate supports, such as a seat or a rail, for forces="plates and
            predicted". Where plates do not support the subject, a force on it that closes the residual is estimated.
        options: Further options of `stepped_torques`.

    Returns:
        Torques [N m or N], joint reactions [N, N m] and residual [N, N m] by frame.

    Raises:
        SettingsError: Unknown method, source, filter or option; or the requested forces are not available.
        ModelError: The model has no feet, or no mass.

    Examples:
        >>> walk = bo.synthetic_recording("walk")
        >>> torques = bo.inverse_dynamics(bo.inverse_kinematics(walk.model, walk.recording))
        >>> torques.data.attrs["grf_source"]
        'plates'
    """
    ensure_compiled()
    name = option_value("inverse dynamics method", method, METHODS)
    if name != METHODS[0] and is_partial(motion.model):
        raise SettingsError(
            f'method "{name}" simulates the whole body, but parts of it have no markers. Use "{METHODS[0]}".'
        )

    def run(source: Forces) -> Torques:
        return _SOLVERS[name](
            motion, source, filter=filter, cutoff=cutoff, plate_cutoff=plate_cutoff, feet=feet, residual=residual,
            contact=contact, **options,
        )  # fmt: skip

    cutoff, filtering = _choose_cutoff(motion, forces, filter, cutoff)
    check_contact_body(motion.model, contact)
    if contact is not None and forces != SOURCE:
        raise SettingsError(
            f"contact: The support of {contact!r} cannot be separated from that of the feet without plates. Use a "
            f'recording with force plates and forces="{SOURCE}".'
        )
    if isinstance(forces, str):
        if forces == AUTO:
            torques = _choose_forces(motion, run)
            return replace(torques, notes=(*torques.notes, *filtering))
        if forces not in SOURCES[name]:
            raise SettingsError(unknown_name(f'source of ground reaction forces for method "{name}"', forces,
                                             SOURCES[name]))  # fmt: skip
    torques = run(forces)
    return replace(torques, notes=(*torques.notes, *filtering))


def _choose_cutoff(
    motion: Motion, forces: Forces, filter: str, cutoff: float | None
) -> tuple[float | None, tuple[Note, ...]]:
    """Return the cutoff [Hz], by the task if it is None, and a note on it; None: there is no filter, or OpenSim's."""
    if filter not in LOW_PASSED:
        return cutoff, ()
    recording = forces if isinstance(forces, Recording) else motion.recording
    chosen, note = task_cutoff(recording)
    return (chosen, (note,)) if cutoff is None else (cutoff, low_cutoff_notes(cutoff, chosen, note))


def _choose_forces(motion: Motion, run: Callable[[Forces], Torques]) -> Torques:
    """Return the torques with the first source of ground reaction forces that is available, and a note about it."""
    plates = motion.recording is not None and any(
        name in motion.recording.data for name in ("plate_force", "ground_reaction_force")
    )
    reason = "" if plates else "the motion has no recording with force plates"
    for source in ("plates", "predicted") if plates else ("predicted",):
        try:
            torques = run(source)
        except (ModelError, SettingsError) as error:
            reason = str(error).rstrip(".")
            continue
        how = "measured by force plates" if source == "plates" else f"predicted from the motion ({reason})"
        note = Note(f"Ground reaction forces: {how}.", "inferred", "forces=", code="grf_source")
        return replace(torques, notes=(*torques.notes, note))
    note = Note(
        f"No ground reaction force was used ({reason}): the residual contains it, and leg torques are not valid.",
        "problem", "forces=", code="grf_source",
    )  # fmt: skip
    torques = run(None)
    return replace(torques, notes=(*torques.notes, note))


def _newton_euler(
    motion: Motion,
    forces: Forces,
    *,
    filter: str,
    cutoff: float | None,
    plate_cutoff: float | None,
    feet: Feet,
    residual: Any,
    contact: str | None,
    **options: Any,
) -> Torques:
    if options:
        own = signature(_newton_euler).parameters
        known = [name for name in signature(stepped_torques).parameters if name not in own]
        taken = [name for name, one in own.items() if one.kind is one.KEYWORD_ONLY]
        wrong = unknown_name('option of method "newton_euler"', next(iter(options)), taken)
        raise SettingsError(f'{wrong}. Options of "stepped": {", ".join(known)}.')
    curves = differentiate(motion, filter=filter, cutoff=cutoff)
    return torques_from_curves(
        motion, curves, forces, plate_cutoff=plate_cutoff, feet=feet, residual=residual, contact=contact
    )


def torques_from_curves(
    motion: Motion,
    curves: Derivatives,
    forces: Forces,
    *,
    plate_cutoff: float | None = None,
    feet: Feet = None,
    residual: Any = None,
    coverage: PlateCoverage | None = None,
    ground: Ground | None = None,
    contact: str | None = None,
    plate_offset: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Torques:
    """Compute the torques of "newton_euler" from the derivatives of a motion.

    `coverage` of the motion's frames, and `ground`, are those of the trial that the motion is a part of; by default
    they are found from the motion. `plate_offset` [m] is added to measured points. Other arguments:
    `inverse_dynamics`.
    """
    partial = is_partial(motion.model)
    if partial and ((isinstance(forces, str) and forces != "plates") or residual is not None):
        raise ModelError(
            f"Model {motion.model.name!r}: Parts of the body have no markers, so that neither ground reaction forces "
            "nor residuals follow from its motion. Use force plates, and put markers on the whole body."
        )
    kinematics = forward_kinematics(motion.model, curves.coordinates, curves.speeds, curves.accelerations)
    fills = forces == SOURCE
    loads = _loads(motion, curves, kinematics, "plates" if fills else forces, feet, ground)
    settings = {"method": "newton_euler", **curves.settings, "plate_cutoff_hz": None}
    if loads is not None:
        loads = loads.matched(curves.settings, plate_cutoff).moved(plate_offset)
        settings["plate_cutoff_hz"] = loads.cutoff
    settings |= {} if contact is None else {"contact": contact}
    if residual is not None:
        bounds = _reduction_bounds(residual)
        others: dict[str, Any] = {"plate_cutoff": plate_cutoff, "feet": feet, "contact": contact}
        before = torques_from_curves(motion, curves, forces, **others)
        found = reduce_residuals(motion, curves, loads, bounds)
        moved = differentiate(found.motion, filter=curves.settings["filter"], cutoff=curves.settings["cutoff_hz"])
        after = torques_from_curves(found.motion, moved, forces, **others, plate_offset=found.plate_offset)
        return with_reduction(before, after, found)
    if fills and loads is not None:
        return torques_with_predicted_steps(
            motion, curves, kinematics, loads, settings, feet, coverage=coverage, ground=ground, contact=contact
        )
    torques = newton_euler_torques(motion, curves, loads, settings, kinematics, coverage)
    return leave_out_unknown(torques, kinematics) if partial else torques


def _reduction_bounds(residual: Any) -> ReductionBounds:
    if isinstance(residual, ReductionBounds):
        return residual
    if residual == "reduce":
        return ReductionBounds()
    raise SettingsError(unknown_name("residual option", str(residual), ("reduce",)))


def _loads(
    motion: Motion,
    curves: Derivatives,
    kinematics: BodyKinematics,
    forces: Forces,
    feet: Feet,
    ground: Ground | None,
) -> Loads | None:
    """Return the loads that `forces` names, with predicted ones from the kinematics."""
    if forces is None or isinstance(forces, Loads):
        return forces
    if forces == "predicted":
        return solve_ground_reaction(kinematics, curves, ground=ground).loads(motion.model, feet)
    recording = forces if isinstance(forces, Recording) else motion.recording
    if recording is None:
        raise SettingsError(
            "The motion has no recording, so it has no force plates. Pass a recording or loads as forces."
        )
    return plate_loads(motion.model, recording, feet)


def _stepped(
    motion: Motion,
    forces: Forces,
    *,
    plate_cutoff: float | None,
    feet: Feet,
    contact: str | None,
    **options: Any,
) -> Torques:
    if not isinstance(forces, str) or forces not in ("predicted", SOURCE):
        return stepped_torques(motion, forces=forces, feet=feet, plate_cutoff=plate_cutoff, **options)
    # the forces are found once from the splined motion; a simulated contact would add chatter to the leg torques
    filtering = {name: options[name] for name in ("filter", "cutoff")}
    framewise = inverse_dynamics(
        motion, forces=forces, feet=feet, contact=contact, plate_cutoff=plate_cutoff, **filtering
    )
    torques = stepped_torques(motion, forces=framewise.loads, feet=feet, **options)
    notes = tuple(dict.fromkeys((*torques.notes, *framewise.notes)))
    if forces == "predicted":
        return replace(torques, notes=notes)
    names = [name for name in ("grf_complete", "grf_known", "grf_source") if name in framewise.data]
    time = torques.data["time"]
    at = framewise.data[names].sel(time=time.values, method="nearest").assign_coords(time=time)
    if "foot" in at.dims:
        at = at.sel(foot=torques.data["foot"].values)  # without an external contact
    data = torques.data.assign({name: at[name] for name in names})
    data.attrs["plate_mass_kg"] = framewise.data.attrs["plate_mass_kg"]
    return replace(torques, data=data, notes=notes)


_SOLVERS: dict[str, Callable[..., Torques]] = {"newton_euler": _newton_euler, "stepped": _stepped}
METHODS = tuple(_SOLVERS)
SOURCES = {
    "newton_euler": ("plates", "predicted", SOURCE),
    "stepped": ("plates", "predicted", SOURCE, "contacts"),
}
"""Sources of ground reaction forces by method."""
