"""External contact: support of the body that no plate measures, such as a seat, a rail or a wall.

By Newton's law the surroundings must supply m (g + a) of the center of mass. Where plates record both feet and yet
supply much less, something else carries the rest. Its point and body are unknown, so it is reported and not invented.
If the user names the body, the wrench that closes the residual at the root is the estimate of its contact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from borelli.analysis.dynamics.external_loads import Loads
from borelli.analysis.dynamics.plate_coverage import MIN_DEFICIT_DURATION
from borelli.analysis.dynamics.rnea import BodyKinematics
from borelli.analysis.dynamics.torques import root_body
from borelli.analysis.motion import rotate, to_model_axes
from borelli.errors import SettingsError, unknown_name
from borelli.model.model import Model
from borelli.numerics.runs import find_runs
from borelli.numerics.vectors import Array
from borelli.recording.recording import Note

Mask = NDArray[np.bool_]

CONTACT = "contact"
"""Value of `grf_source` for the estimated force of an external contact."""
MAX_LISTED_SPANS = 4


def check_contact_body(model: Model, body: str | None) -> None:
    """Raise SettingsError if the model does not have the body that an external contact acts on."""
    names = [one.name for one in model.bodies]
    if body is not None and body not in names:
        raise SettingsError(f"contact: {unknown_name('body', body, names)}")


def contact_frames(time: Array, known: Mask, off: Mask) -> Mask:
    """Return the frames (frames,) in which feet are on plates or in the air, and something else supports the body.

    `known` (frames,): the ground reaction force suffices; `off` (frames, feet): a foot stands off the plates.
    """
    frames = ~known & ~off.any(axis=1)
    for start, stop in find_runs(frames):
        if time[stop - 1] - time[start] < MIN_DEFICIT_DURATION:
            frames[start:stop] = False
    return frames


def contact_notes(time: Array, frames: Mask, deficit: Array, mass: float, body: str | None) -> tuple[Note, ...]:
    """Return a note on external contact in some frames, with the vertical force (frames,) [N] that plates lack.

    `body` is the one on which it was estimated; None: it was not.
    """
    spans = find_runs(frames)
    if not spans:
        if body is None:
            return ()
        text = f"No external contact of {body} is estimated: the plates and the steps off them support the subject."
        return (Note(text, "inferred", code="external_contact"),)
    listed = [f"{time[a]:.2f} to {time[b - 1]:.2f} s" for a, b in spans[:MAX_LISTED_SPANS]]
    listed += [f"{len(spans) - MAX_LISTED_SPANS} more spans"] * (len(spans) > MAX_LISTED_SPANS)
    peak = float(deficit[frames].max())
    found = (
        f"Something other than the plates supports the subject with up to {peak:.0f} N ({peak / (9.81 * mass):.0%} of "
        f"body weight) while no foot is off the plates, from {', '.join(listed)}: a seat, a rail, a wall or a person."
    )
    if body is None:
        text = f"{found} Measured forces are kept; torques between the feet and that contact are not reliable there."
        return (Note(text, "problem", "--contact pelvis (the body that is supported)", code="external_contact"),)
    text = f"{found} It is estimated as a force on {body} that closes the residual."
    return (Note(text, "problem", f"grf_source is {CONTACT!r} there", code="external_contact"),)


def with_contact(
    loads: Loads, moved: BodyKinematics, time: Array, body: str, residual: tuple[Array, Array], weight: Array
) -> Loads:
    """Return the loads with the contact of a body as a further one, named after the body.

    Args:
        loads: Loads on the feet, which are not changed.
        moved: Motion at the frames.
        time: (frames,) [s].
        body: Body that is supported, at whose center of mass the force acts.
        residual: Force [N] and moment about the origin of the root body [N m], (frames, 3) each, lab axes.
        weight: (frames,) 1 where there is contact, falling to 0 outside.
    """
    names = [one.name for one in moved.model.bodies]
    axes = to_model_axes(moved.model)
    root, center = (
        rotate(np.ascontiguousarray(points.T), axes)
        for points in (moved.position[root_body(moved.model)], moved.center[names.index(body)])
    )
    force = weight[:, None] * residual[0]
    moment = weight[:, None] * residual[1] + np.cross(root - center, force)
    own = Loads((body,), (body,), time, force[:, None], center[:, None], moment[:, None]).at(loads.time)
    force, point, moment = (
        np.concatenate(parts, axis=1)
        for parts in ((loads.force, own.force), (loads.point, own.point), (loads.moment, own.moment))
    )
    measured = np.zeros(loads.force.shape[:2]) if loads.computed is None else loads.computed
    computed = np.concatenate([measured, np.ones((len(loads.time), 1))], axis=1)
    return replace(
        loads, name=(*loads.name, body), body=(*loads.body, body), force=force, point=point, moment=moment,
        computed=computed,
    )  # fmt: skip
