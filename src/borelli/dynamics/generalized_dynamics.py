"""Mass matrix, bias forces, Jacobians, accelerations and linearization of a model, with names, units and frames.

    M(q) u' + b(q, u) = Q

with M the mass matrix, b the bias forces (Coriolis and centrifugal less gravity and loads) and Q the generalized forces
on the coordinates. `ModelDynamics` has the same as arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from borelli.dynamics.model_dynamics import ModelDynamics
from borelli.errors import ModelError, unknown_name
from borelli.kernels.array_checks import as_floats, as_number
from borelli.model.model import Model, Vector
from borelli.model.model_cache import cached_per_model
from borelli.physics.force_elements.elements import ForceElement
from borelli.physics.force_elements.evaluate import element_wrenches
from borelli.physics.inputs import AppliedForce

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]
Values = Mapping[str, float] | Sequence[float] | Floats | None
"""Numbers by coordinate: by name (others have their default), or one for each coordinate in the order of the model."""

DIFFERENCE_STEP = 1e-3
"""Step of central differences of fourth order [rad or m]: the errors of truncation and rounding are both near 1e-12."""
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
"""Points and weights of the first derivative, fourth order."""
FRAME = "joint; free coordinates"


@cached_per_model
def model_dynamics(model: Model) -> ModelDynamics:
    """Return the array form of a model's dynamics."""
    return ModelDynamics(model)


def mass_matrix(model: Model, coordinates: Values = None) -> xarray.DataArray:
    """Return the mass matrix of a pose.

    Rows and columns are the free coordinates: neither locked nor coupled to others, whose inertia includes that of the
    coordinates coupled to them.

    Args:
        model: A tree model.
        coordinates: Pose [rad or m]: numbers by name, others at their defaults, or one for each coordinate.

    Returns:
        (coordinate, with_coordinate) [kg m^2 for two angles, kg m for an angle and a displacement, kg for two
        displacements].

    Raises:
        ModelError: The model has closed loops or bodies without a joint, or a coordinate is unknown.

    Examples:
        >>> pendulum = bo.gallery_scene("pendulum").model
        >>> matrix = bo.dynamics.mass_matrix(pendulum, {"pivot": 0.6})
        >>> bool(matrix.sel(coordinate="pivot", with_coordinate="pivot") > 0.0)
        True
    """
    import xarray

    one = model_dynamics(model)
    q, zero = _values(model, coordinates, "coordinates"), np.zeros((1, len(one.free)))
    matrix = one.evaluate(q[None], zero, zero).mass[0]
    return xarray.DataArray(
        matrix, dims=("coordinate", "with_coordinate"), name="mass_matrix",
        coords={"coordinate": list(one.variables), "with_coordinate": list(one.variables)},
        attrs={"units": _units(model, one, "kg m^2", "kg", "kg m"), "frame": FRAME},
    )  # fmt: skip


def bias_forces(
    model: Model,
    coordinates: Values = None,
    velocities: Values = None,
    *,
    loads: Sequence[AppliedForce] = (),
    elements: Sequence[ForceElement] = (),
) -> xarray.DataArray:
    """Return the generalized forces that keep all accelerations zero: Coriolis and centrifugal less gravity and loads.

    At rest without loads they are those that support the weight.

    Args:
        model: A tree model.
        coordinates: Pose [rad or m].
        velocities: Velocities of the coordinates [rad/s or m/s]; default 0. Coupled ones are computed.
        loads: Forces on bodies; their times are not considered.
        elements: Springs, bushings and other force elements.

    Returns:
        (coordinate) [N m or N], of the free coordinates.
    """
    import xarray

    one = model_dynamics(model)
    q, u = _state(model, one, coordinates, velocities)
    force = one.required_forces(q, u, np.zeros_like(u), _loads(one, q, u, loads, elements))[0]
    return xarray.DataArray(
        force, dims=("coordinate",), name="bias_force", coords={"coordinate": list(one.variables)},
        attrs={"units": _units(model, one, "N m", "N", ""), "frame": FRAME},
    )  # fmt: skip


def body_jacobian(
    model: Model, body: str, coordinates: Values = None, *, point: Vector = (0.0, 0.0, 0.0)
) -> xarray.Dataset:
    """Return the Jacobian of a point of a body: its velocity per unit rate of each free coordinate.

    Args:
        model: A tree model.
        body: Name of the body.
        coordinates: Pose [rad or m].
        point: Point in the body frame [m]. Default: the origin of the body frame.

    Returns:
        Dataset with `velocity_jacobian` and `angular_velocity_jacobian` (axis, coordinate), world axes of the model.
    """
    import xarray

    one = model_dynamics(model)
    q = _values(model, coordinates, "coordinates")
    jacobian = one.jacobians(q[None], [body], [point])[0, 0]
    dims = ("axis", "coordinate")
    return xarray.Dataset(
        {
            "velocity_jacobian": (
                dims, jacobian[:3], {"units": _units(model, one, "m/rad", "1", ""), "frame": "world; of the point"},
            ),
            "angular_velocity_jacobian": (
                dims, jacobian[3:], {"units": _units(model, one, "1", "rad/m", ""), "frame": "world"},
            ),
        },
        coords={"axis": ["x", "y", "z"], "coordinate": list(one.variables)},
        attrs={"model_name": model.name, "body": body},
    )  # fmt: skip


def forward_dynamics(
    model: Model,
    coordinates: Values = None,
    velocities: Values = None,
    *,
    forces: Values = None,
    loads: Sequence[AppliedForce] = (),
    elements: Sequence[ForceElement] = (),
) -> xarray.Dataset:
    """Return the accelerations that forces cause in a state.

    Acting are gravity, the generalized `forces`, `loads` on bodies and force elements. Contacts, joint limits, drives
    and muscles do not act: `simulate` has them, and their forces may be passed here.

    Args:
        model: A tree model, also with a free root, custom joints and couplings.
        coordinates: Pose [rad or m]: numbers by name, others at their defaults, or one for each coordinate.
        velocities: Velocities of the coordinates [rad/s or m/s]; default 0. Coupled ones are computed.
        forces: Generalized forces on the coordinates they name [N m or N]; default 0.
        loads: Forces on bodies; their times are not considered.
        elements: Springs, bushings and other force elements.

    Returns:
        Dataset with `coordinate_value`, `coordinate_velocity`, `coordinate_acceleration`, `generalized_force`
        (coordinate), all coordinates of the model, and `body_com_acceleration`, `body_angular_acceleration`
        (body, axis), world axes.

    Raises:
        ModelError: The model has closed loops or bodies without a joint, or a coordinate is unknown.
        SettingsError: A value is not finite, or a force acts on a locked coordinate.
        DivergedError: The mass matrix is singular.

    Examples:
        >>> pendulum = bo.gallery_scene("pendulum").model
        >>> result = bo.forward_dynamics(pendulum, {"pivot": 0.6})
        >>> result["coordinate_acceleration"].attrs["units"]
        'rad/s^2'
    """
    one = model_dynamics(model)
    q, u = _state(model, one, coordinates, velocities)
    given = _values(model, forces, "forces", zero=True)[None]
    load = _loads(one, q, u, loads, elements)
    change = one.accelerations(q, u, given, load)
    found = one.evaluate(q, u, change, load)
    speed, acceleration = one.all_coordinates(found.slope, u, change)
    return _labeled(model, q[0], speed[0], acceleration[0], given[0], found.motion[0])


def linearize(
    model: Model,
    coordinates: Values = None,
    velocities: Values = None,
    *,
    forces: Values = None,
    loads: Sequence[AppliedForce] = (),
    elements: Sequence[ForceElement] = (),
) -> xarray.Dataset:
    """Return the linear system x' = A dx + B dQ of small deviations from a state.

    x are the free coordinates and then their velocities, Q the generalized forces on the free coordinates. The
    derivatives of inverse dynamics by x are central differences of fourth order (relative error about 1e-10); B and
    the rest are exact.

    Args:
        model: A tree model.
        coordinates: As of `forward_dynamics`.
        velocities: As of `forward_dynamics`.
        forces: As of `forward_dynamics`.
        loads: As of `forward_dynamics`.
        elements: As of `forward_dynamics`.

    Returns:
        Dataset with `state_matrix` A (state, by_state), `input_matrix` B (state, coordinate) and `state_rate` x' in the
        state itself (state); SI units. Names of states are those of the coordinates, with " velocity" for the latter
        half.
    """
    import xarray

    one = model_dynamics(model)
    q, u = _state(model, one, coordinates, velocities)
    given = _values(model, forces, "forces", zero=True)[None]
    change = one.accelerations(q, u, given, _loads(one, q, u, loads, elements))
    n, step = len(one.free), DIFFERENCE_STEP
    points = np.array([k * step for k, _ in STENCIL])
    values, rates = (np.repeat(array, 2 * n * len(points), axis=0) for array in (q, u))
    row = np.arange(2 * n * len(points)).reshape(2 * n, len(points))
    for i in range(n):
        values[row[i], one.free[i]] += points
        rates[row[n + i], i] += points
    moved = one.evaluate(
        values, rates, np.repeat(change, len(values), axis=0), _loads(one, values, rates, loads, elements)
    )
    lack = one.variable_forces(np.repeat(given, len(values), axis=0), moved.slope) - moved.force
    weights = np.array([weight / step for _, weight in STENCIL])
    by_state = np.einsum("ikj,k->ji", lack.reshape(2 * n, len(points), n), weights)
    mass = one.evaluate(q, u, change).mass
    blocks = one.solve(mass, np.concatenate([by_state, np.eye(n)], axis=1)[None])[0]
    matrix = np.concatenate([np.concatenate([np.zeros((n, n)), np.eye(n)], axis=1), blocks[:, : 2 * n]])
    names = [*one.variables, *(f"{name} velocity" for name in one.variables)]
    return xarray.Dataset(
        {
            "state_matrix": (("state", "by_state"), matrix, {"units": "SI", "frame": FRAME}),
            "input_matrix": (
                ("state", "coordinate"), np.concatenate([np.zeros((n, n)), blocks[:, 2 * n :]]),
                {"units": "SI", "frame": FRAME},
            ),
            "state_rate": (("state",), np.concatenate([u[0], change[0]]), {"units": "SI", "frame": FRAME}),
        },
        coords={"state": names, "by_state": names, "coordinate": list(one.variables)},
        attrs={"model_name": model.name},
    )  # fmt: skip


def _values(model: Model, given: Values, what: str, *, zero: bool = False) -> Floats:
    """Return one number for each coordinate; others have their defaults, or zero."""
    result = np.array([0.0 if zero else c.default for c in model.coordinates], float)
    if given is None:
        return result
    if not isinstance(given, Mapping):
        return as_floats(what, given, (len(result),)).copy()
    index = {c.name: i for i, c in enumerate(model.coordinates)}
    for name, number in given.items():
        if name not in index:
            raise ModelError(f"{what}: {unknown_name('coordinate', name, index)}")
        result[index[name]] = as_number(f"{what}: {name!r}", number)
    return result


def _state(model: Model, one: ModelDynamics, coordinates: Values, velocities: Values) -> tuple[Floats, Floats]:
    """Return coordinates (1, coordinates) and rates of variables (1, variables)."""
    q = _values(model, coordinates, "coordinates")[None]
    return q, _values(model, velocities, "velocities", zero=True)[None, one.free]


def _loads(
    one: ModelDynamics, q: Floats, u: Floats, loads: Sequence[AppliedForce], elements: Sequence[ForceElement]
) -> Floats | None:
    """Return the moments about the world origin and forces (states, bodies, 6) of loads and elements."""
    if not loads and not elements:
        return None
    model, result = one.model, np.zeros((len(q), len(one.model.bodies), 6))
    motion = one.evaluate(q, u, np.zeros_like(u)).motion[..., :6]
    centers = [body.center_of_mass for body in model.bodies]
    for state in range(len(q)):
        origin, rotation = one.poses(q[state])
        center = origin + np.einsum("bij,bj->bi", rotation, centers)
        wrench = element_wrenches(model, elements, center, rotation, motion[state]) if elements else 0.0 * motion[state]
        for load in loads:
            b = one.body_index.get(load.body)
            if b is None:
                raise ModelError(f"loads: {unknown_name('body', load.body, one.body_index)}")
            force, torque = as_floats("load: force", load.force, (3,)), as_floats("load: torque", load.torque, (3,))
            arm = np.zeros(3) if load.point is None else origin[b] + rotation[b] @ np.array(load.point) - center[b]
            wrench[b] += [*force, *(torque + np.cross(arm, force))]
        result[state, :, 3:] = wrench[:, :3]
        result[state, :, :3] = wrench[:, 3:] + np.cross(center, wrench[:, :3])
    return result


def _units(model: Model, one: ModelDynamics, rotational: str, translational: str, mixed: str) -> str:
    """Return the unit of values by free coordinate, or by pairs of them; all units that occur."""
    kinds = {bool(model.coordinates[i].rotational) for i in one.free}
    if kinds == {True}:
        return rotational
    if kinds == {False}:
        return translational
    return " or ".join(filter(None, (rotational, mixed, translational)))


def _labeled(
    model: Model, q: Floats, speed: Floats, acceleration: Floats, force: Floats, motion: Floats
) -> xarray.Dataset:
    import xarray

    kinds = ["rad" if c.rotational else "m" for c in model.coordinates]

    def unit(rotational: str, translational: str) -> str:
        return " or ".join(dict.fromkeys(rotational if kind == "rad" else translational for kind in kinds))

    by, of_body = ("coordinate",), ("body", "axis")
    variables: dict[str, Any] = {
        "coordinate_value": (by, q, unit("rad", "m"), "joint"),
        "coordinate_velocity": (by, speed, unit("rad/s", "m/s"), "joint"),
        "coordinate_acceleration": (by, acceleration, unit("rad/s^2", "m/s^2"), "joint"),
        "generalized_force": (by, force, unit("N m", "N"), "joint; on the child"),
        "body_com_acceleration": (of_body, motion[:, 6:9], "m/s^2", "world; of the center of mass"),
        "body_angular_acceleration": (of_body, motion[:, 9:], "rad/s^2", "world"),
    }
    return xarray.Dataset(
        {
            name: (dims, data, {"units": units, "frame": frame})
            for name, (dims, data, units, frame) in variables.items()
        },
        coords={
            "coordinate": [c.name for c in model.coordinates],
            "coordinate_units": ("coordinate", kinds),
            "body": [body.name for body in model.bodies],
            "axis": ["x", "y", "z"],
        },
        attrs={"model_name": model.name},
    )
