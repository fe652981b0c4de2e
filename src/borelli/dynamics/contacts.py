"""Contacts of a state, one by one: bodies, point, normal, depth and force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from borelli.dynamics.running_simulation import start_simulation
from borelli.model.model import GROUND, Model
from borelli.physics.inputs import Drive
from borelli.physics.rows.contact_rows import CONTACTS_NOW
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.solver.factor_arrays import IMPULSE
from borelli.physics.solver_settings import SolverSettings

if TYPE_CHECKING:
    import xarray


def contact_forces(
    model: Model,
    coordinates: Mapping[str, float] | None = None,
    velocities: Mapping[str, float] | None = None,
    *,
    step: float = 1 / 240,
    drives: Sequence[Drive] = (),
    settings: SolverSettings | None = None,
) -> xarray.Dataset:
    """Return the contacts of a state with the mean forces of a step from there.

    Contacts are rows of a step: their forces depend on the velocities at its end, and so on its length.

    Args:
        model: Model with shapes that touch.
        coordinates: Pose [rad or m]; others at their defaults.
        velocities: Velocities of coordinates [rad/s or m/s]; default 0.
        step: Time step [s].
        drives: Joint drives.
        settings: Settings of the solver.

    Returns:
        Dataset by `contact`: `contact_body` and `contact_other_body` (names), `contact_point` [m], `contact_normal`,
        `contact_depth` [m] (negative: a gap) and `contact_force` [N] on the body, world axes.

    Examples:
        >>> box = bo.gallery_scene("stack").model
        >>> contacts = bo.dynamics.contact_forces(box)
        >>> bool(((contacts["contact_force"] * contacts["contact_normal"]).sum("axis") >= 0.0).all())
        True
    """
    simulation = start_simulation(
        model, coordinates=coordinates, velocities=velocities, step=step, drives=drives, settings=settings
    )
    simulation.advance(1, make_record(simulation.compiled, 1))
    return last_contact_forces(simulation)


def last_contact_forces(simulation: Simulation) -> xarray.Dataset:
    """Return the contacts of the last step of a simulation by soft steps, as `contact_forces`.

    Args:
        simulation: Simulation of soft steps that was advanced.
    """
    import xarray

    work, tables = simulation.work, simulation.tables
    first, each = int(tables.contacts.first_row[0]), int(tables.contacts.rows_each[0])
    count = int(work.contact_arrays.count[CONTACTS_NOW]) if simulation.index else 0
    names = [*(body.name for body in simulation.compiled.model.bodies), GROUND]
    pair = work.contacts.pair[:count]
    sides = [
        [names[int(b)] for b in tables.shapes.body[shape[pair]]]
        for shape in (tables.shapes.pair_a, tables.shapes.pair_b)
    ]
    force = np.zeros((count, 3))
    solved = np.where(work.contact_arrays.contact_body[:count, 0] >= 0, 0, 1)
    for row in range(3):
        rows = first + each * np.arange(count) + row
        entry = work.rows.first[rows] + solved
        sign = np.where(solved == 0, 1.0, -1.0)
        force += (sign * work.factor.value[rows, IMPULSE])[:, None] * work.rows.jacobian[entry, :3]
    force /= simulation.compiled.step
    by, found = ("contact", "axis"), work.contacts
    return xarray.Dataset(
        {
            "contact_body": (("contact",), sides[0]),
            "contact_other_body": (("contact",), sides[1]),
            "contact_point": (by, found.point[:count].copy(), {"units": "m", "frame": "world"}),
            "contact_normal": (
                by,
                found.normal[:count].copy(),
                {"units": "1", "frame": "world; toward the body"},
            ),
            "contact_depth": (
                ("contact",),
                found.depth[:count].copy(),
                {"units": "m", "frame": "negative: a gap"},
            ),
            "contact_force": (by, force, {"units": "N", "frame": "world; on the body, mean of the step"}),
        },
        coords={"axis": ["x", "y", "z"]},
        attrs={"model_name": simulation.compiled.model.name, "step_s": simulation.compiled.step},
    )
