"""Plots of results: one table says what is plotted of each class."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from borelli.dynamics.running_simulation import simulation_state
from borelli.errors import SettingsError
from borelli.files.atomic import check_output
from borelli.view.optimal_plots import solution_figure, tracking_figure, what_if_figure
from borelli.view.plot_style import BLUE, GRID, INK, LINES, ORANGE, draw_columns, plot_name, save_figure, style_axes
from borelli.view.recording_plots import recording_figure
from borelli.view.results import dataset_model, handler, sampled_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

    from borelli.analysis.fit.fit_model import Fit
    from borelli.control.targets import Targets
    from borelli.model.model import Model
    from borelli.muscles.paths import MusclePaths

MIN_TRANSLATION = 1e-3
"""Range of a translational coordinate that is plotted [m]."""


class Panel(NamedTuple):
    """One panel of a plot against time."""

    variable: str
    """Variable that the dataset must have."""
    label: str
    """Label of the vertical axis."""
    draw: Callable[[Axes, Dataset, int], None]
    """Draws a dataset, with at most so many lines."""
    has_content: Callable[[Dataset], bool] = lambda data: True
    """Returns false if the variable is there but has nothing to draw."""


def plot(
    result: Any, path: str | PathLike[str] | None = None, *, coordinates: int = 6, overwrite: bool = False
) -> Figure:
    """Plot a result: of most kinds, its main quantities against time.

    Args:
        result: A recording, model, scene, fit, motion, torques, muscle forces, muscle paths, energy, analysis,
            targets, animation, simulation, a result of optimal control, or a dataset of `simulate`, `simulation_state`,
            `track_targets` or `run_scene`.
        path: Image file to write. Default: none.
        coordinates: Number of coordinates, or muscles, in a panel: those with the largest range.
        overwrite: Replace an existing file.

    Returns:
        The matplotlib figure.

    Raises:
        SettingsError: The result cannot be plotted, or contains nothing to plot; or the file exists.

    Examples:
        >>> figure = bo.plot(bo.synthetic_recording("walk").recording, "walk.png")
    """
    if path is not None:
        check_output(path, overwrite=overwrite)
    figure = handler(PLOTS, result, "plotted")(result, coordinates)
    if path is not None:
        save_figure(figure, path, overwrite=overwrite)
    return figure


def _time_figure(panels: Iterable[tuple[Panel, Dataset]], lines: int, label: str = "time [s]") -> Figure:
    """Return a figure with one row for each panel whose variable is in its dataset, all against time."""
    from matplotlib.figure import Figure

    present = [(panel, data) for panel, data in panels if panel.variable in data and panel.has_content(data)]
    if not present:
        raise SettingsError("The dataset contains nothing to plot. Use a result of borelli.")
    figure = Figure(figsize=(9.0, 0.5 + 2.0 * len(present)), layout="constrained")
    axes = figure.subplots(len(present), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (panel, data) in zip(axes, present, strict=True):
        panel.draw(ax, data, lines)
        ax.set_ylabel(panel.label)
        ax.tick_params(colors=INK)
        ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        ax.margins(x=0)
    style_axes(axes)
    axes[-1].set_xlabel(label)
    return figure


def _of_unit(data: Dataset, name: str, unit: str) -> DataArray:
    """Return the columns of a variable whose coordinates have a unit."""
    return data[name].isel(coordinate=np.flatnonzero(data["coordinate_units"].values == unit))


def _angles(axes: Axes, data: Dataset, count: int) -> None:
    angles = _of_unit(data, "coordinate_value", "rad")
    draw_columns(axes, angles, count, np.degrees(angles.values))


def _moving(data: Dataset) -> DataArray:
    """Return the translational coordinates that move."""
    values = _of_unit(data, "coordinate_value", "m")
    moving = np.ptp(np.nan_to_num(values.values), axis=0) > MIN_TRANSLATION
    return values.isel(coordinate=np.flatnonzero(moving))


def _power_balance(axes: Axes, data: Dataset, count: int) -> None:
    labels = {"total_joint_power": "joints", "ground_power": "ground", "residual_power": "residual"}
    for k, (name, label) in enumerate(labels.items()):
        axes.plot(data["time"].values, data[name].values, color=LINES[k], label=label)


def _marker_error(axes: Axes, data: Dataset, count: int) -> None:
    error = 1e3 * data["marker_error"].values
    seen = np.isfinite(error).any(axis=1)
    rms, largest = (np.full(len(error), np.nan) for _ in range(2))
    rms[seen] = np.sqrt(np.nanmean(error[seen] ** 2, axis=1))
    largest[seen] = np.nanmax(error[seen], axis=1)
    axes.plot(data["time"].values, largest, color=GRID, label="largest")
    axes.plot(data["time"].values, rms, color=INK, label="RMS")
    axes.set_ylim(bottom=0.0)


def _foot_forces(axes: Axes, data: Dataset, count: int) -> None:
    for foot, color in zip(data["foot"].values, (ORANGE, BLUE), strict=False):
        force = data["ground_reaction_force"].sel(foot=foot).values
        axes.plot(data["time"].values, force[:, 2], color=color, label=f"{foot}, vertical")
        axes.plot(data["time"].values, np.hypot(force[:, 0], force[:, 1]), color=color, lw=0.8, ls="--",
                  label=f"{foot}, horizontal")  # fmt: skip


def _residuals(axes: Axes, data: Dataset, count: int) -> None:
    for k, (name, label) in enumerate({"residual_force": "force [N]", "residual_moment": "moment [N m]"}.items()):
        axes.plot(data["time"].values, np.linalg.norm(data[name].values, axis=1), color=LINES[k], label=label)
    axes.set_ylim(bottom=0.0)


def _energies(axes: Axes, data: Dataset, count: int) -> None:
    time, kinetic, potential = (data[name].values for name in ("time", "kinetic_energy", "potential_energy"))
    potential = potential - np.nanmin(potential)  # its zero is arbitrary
    axes.plot(time, kinetic, color=LINES[0], label="kinetic")
    axes.plot(time, potential, color=LINES[1], label="potential")
    axes.plot(time, kinetic + potential, color=INK, label="sum")


def _ground_force(axes: Axes, data: Dataset, count: int) -> None:
    total = data["ground_reaction_force"].values.sum(axis=1)
    for k, name in enumerate("xyz"):
        axes.plot(data["time"].values, total[:, k], color=LINES[k], label=name)
    model = dataset_model(data)
    axes.axhline(model.mass * float(np.linalg.norm(model.gravity)), color=INK, linestyle=":", label="weight")
    # an impact is a spike of one step: clip it, so that the rest stays visible
    top = float(np.percentile(np.abs(total), 99)) * 1.4 + 1e-9
    if top < np.abs(total).max():
        axes.set_ylim(-0.35 * top, top)


def _coordinate_error(axes: Axes, data: Dataset, count: int) -> None:
    """Draw the angles with the largest difference from their targets."""
    target = _of_unit(data, "coordinate_target", "rad")
    error = np.degrees(_of_unit(data, "coordinate_value", "rad").values - target.values)
    draw_columns(axes, target, count, error - 360.0 * np.round(error / 360.0))


def _body_tracking_error(axes: Axes, data: Dataset, count: int) -> None:
    axes.plot(data["time"].values, 1e3 * data["body_tracking_error"].values, color=INK, label="bodies, RMS")
    axes.set_ylim(bottom=0.0)


def _root_wrench(axes: Axes, data: Dataset, count: int) -> None:
    """Draw the size of the external force and moment on the root, and of the ground reaction force."""
    time = data["time"].values[1:]
    force, moment = data["root_residual_force"].values[1:], data["root_residual_moment"].values[1:]
    percent = data.attrs.get("root_support_percent")
    carried = "" if percent is None else f"; the root carries {percent:.0f} % of the weight"
    axes.plot(time, force, color=LINES[0], label=f"force [N]{carried}")
    axes.plot(time, moment, color=LINES[1], label="moment [N m]")
    ground = np.linalg.norm(data["ground_reaction_force"].values.sum(axis=1), axis=1)[1:]
    if ground.any():
        axes.plot(time, ground, color=LINES[2], label="ground reaction [N]", linewidth=0.8)
        top = max(1.1 * data.attrs["body_weight_n"], 1.2 * float(np.percentile(ground, 98)))
        axes.set_ylim(0.0, max(top, 1.1 * float(max(force.max(), moment.max()))))


def _metabolic_power(axes: Axes, data: Dataset, count: int) -> None:
    axes.plot(data["time"].values, data["metabolic_power"].values, color=INK, label="whole body")
    axes.set_ylim(bottom=0.0)


def _columns_panel(variable: str, label: str) -> Panel:
    """Return a panel of the columns of a variable with the largest range."""
    return Panel(variable, label, lambda axes, data, count: draw_columns(axes, data[variable], count))


COORDINATES = (
    Panel("coordinate_value", "angle [deg]", _angles, lambda data: _of_unit(data, "coordinate_value", "rad").size > 0),
    Panel(
        "coordinate_value", "translation [m]", lambda axes, data, count: draw_columns(axes, _moving(data), count),
        lambda data: _moving(data).size > 0,
    ),
)  # fmt: skip
TARGETS = Panel(
    "coordinate_target", "angle error [deg]", _coordinate_error,
    lambda data: bool(np.isfinite(_of_unit(data, "coordinate_target", "rad").values).any()),
)  # fmt: skip
TARGET_VALUES = (
    COORDINATES[0],
    Panel(
        "coordinate_value", "translation [m]",
        lambda axes, data, count: draw_columns(axes, _of_unit(data, "coordinate_value", "m"), count),
        lambda data: _of_unit(data, "coordinate_value", "m").size > 0,
    ),
)  # fmt: skip
PATHS = (
    _columns_panel("muscle_length", "muscle length [m]"),
    _columns_panel("muscle_velocity", "lengthening\nspeed [m/s]"),
    _columns_panel("arm", "moment arm\n[m, or 1]"),
)
ENERGIES = Panel("kinetic_energy", "energy [J]", _energies)
MOTION = (*COORDINATES, Panel("marker_error", "marker error [mm]", _marker_error))
TORQUES = (
    Panel(
        "torque", "joint torque [N m]",
        lambda axes, data, count: draw_columns(axes, _of_unit(data, "torque", "rad"), count),
    ),
    Panel("ground_reaction_force", "ground reaction\nforce [N]", _foot_forces),
    Panel("residual_force", "residual", _residuals),
)  # fmt: skip
ENERGY = (
    _columns_panel("joint_power", "joint power [W]"),
    Panel("total_joint_power", "power [W]", _power_balance),
    ENERGIES,
)  # fmt: skip
ACTIVATION = _columns_panel("muscle_activation", "activation [0 to 1]")
MUSCLES = (
    ACTIVATION,
    _columns_panel("muscle_force", "muscle force [N]"),
    Panel("metabolic_power", "metabolic\npower [W]", _metabolic_power),
)  # fmt: skip
GROUND_FORCE = Panel("ground_reaction_force", "ground reaction\nforce [N]", _ground_force)
SIMULATION = (ENERGIES, GROUND_FORCE, *COORDINATES, TARGETS)
ANIMATION = (
    Panel("body_tracking_error", "tracking error [mm]", _body_tracking_error),
    TARGETS,
    Panel("root_residual_force", "root residual", _root_wrench),
)


def _simulation_figure(data: Dataset, lines: int) -> Figure:
    """Return the plot of a simulation, or of an animation: gray while perturbed, dotted where it has recovered."""
    if "time" not in data.dims:
        return _state_figure(data)
    if "body_tracking_error" not in data:
        return _time_figure([(panel, data) for panel in SIMULATION], lines)
    figure = _time_figure([(panel, data) for panel in ANIMATION], lines)
    end, recovered = data["time"].values[-1], data.attrs["recovered_at_s"]
    for ax in figure.axes:
        for start, stop in json.loads(data.attrs["disturbed"]):
            ax.axvspan(start, min(stop, end), color=GRID, zorder=0)
        if np.isfinite(recovered):
            ax.axvline(recovered, color=INK, linestyle=":", linewidth=1.0)
            if ax is figure.axes[0]:
                ax.text(recovered, 0.95, " recovered", transform=ax.get_xaxis_transform(), fontsize=8, color=INK)
    return figure


def _state_figure(data: Dataset) -> Figure:
    """Return bars of the coordinates and velocities of a simulation at one time."""
    from matplotlib.figure import Figure

    parts = [("rad", "deg", "angle", 180.0 / np.pi), ("m", "m", "translation", 1.0)]
    shown = [
        (*part, rows) for part in parts if (rows := np.flatnonzero(data["coordinate_units"].values == part[0])).size
    ]
    if not shown:
        raise SettingsError("The state has no coordinates to plot. Use picture().")
    counts = [len(rows) for *_, rows in shown]
    figure = Figure(figsize=(9.0, 1.0 + sum(0.8 + 0.14 * count for count in counts)), layout="constrained")
    grid = figure.subplots(len(shown), 2, squeeze=False, height_ratios=[count + 4 for count in counts])
    for axes, (_, unit, kind, factor, rows) in zip(grid, shown, strict=True):
        names = [plot_name(str(name)) for name in data["coordinate"].values[rows]]
        _bars(axes[0], names, factor * data["coordinate_value"].values[rows], f"{kind} [{unit}]")
        _bars(axes[1], names, factor * data["coordinate_velocity"].values[rows], f"velocity [{unit}/s]")
        axes[1].tick_params(labelleft=False)
    figure.suptitle(f"{plot_name(dataset_model(data).name)} at {float(data['time']):.3g} s", fontsize=9, color=INK)
    return figure


def _targets_figure(targets: Targets, lines: int) -> Figure:
    """Return the targets with the largest range against time."""
    from xarray import DataArray

    rotates = {c.name: c.rotational for c in targets.model.coordinates}
    time = sampled_times(targets)
    # constant targets are drawn as lines, not as points
    time = time if len(time) > 1 else time[0] + np.array([0.0, 1.0])
    units = ["rad" if rotates[name] else "m" for name in targets.coordinates]
    data = DataArray(
        targets.at(time), dims=("time", "coordinate"), name="coordinate_value",
        coords={"time": time, "coordinate": list(targets.coordinates), "coordinate_units": ("coordinate", units)},
    ).to_dataset()  # fmt: skip
    return _time_figure([(panel, data) for panel in TARGET_VALUES], lines)


def _walk_figure(walk: Any, lines: int) -> Figure:
    """Return the coordinates and activations of a predicted walk over a stride."""
    from xarray import DataArray

    data = walk.motion().data
    activation = walk.activations(data["time"].values)
    if activation is not None:
        names = [muscle.name for muscle in walk.walker.model.muscles]
        data = data.assign(muscle_activation=DataArray(activation, {"muscle": names}, ("time", "muscle")))
    figure = _time_figure([(panel, data) for panel in (*COORDINATES, ACTIVATION)], lines)
    verdict = "solved" if walk.solved else "not solved"
    figure.suptitle(f"{plot_name(walk.walker.model.name)} at {walk.speed:.3g} m/s: {verdict}", color=INK)
    return figure


def _paths_figure(paths: MusclePaths, lines: int) -> Figure:
    """Return the lengths of muscles and the largest moment arms by frame; bars of lengths if there is one frame."""
    from xarray import DataArray

    if len(paths.length) == 1:
        figure, (left, right) = _bar_figure(len(paths.muscle))
        _bars(left, [plot_name(name) for name in paths.muscle], paths.length[0], "muscle length [m]")
        rows = np.arange(len(paths.muscle)), np.abs(paths.moment_arm[0]).argmax(axis=1)
        names = [plot_name(paths.coordinate[k]) for k in rows[1]]
        _bars(right, names, paths.moment_arm[0][rows], "largest moment arm [m, or 1]")
        return figure
    data = paths.to_dataset(np.arange(len(paths.length)))
    arm = paths.moment_arm.reshape(len(paths.length), -1)
    arms = [f"{muscle}, {coordinate}" for muscle in paths.muscle for coordinate in paths.coordinate]
    data = data.assign(arm=DataArray(arm, {"pair": arms}, ("time", "pair")))
    return _time_figure([(panel, data) for panel in PATHS], lines, "frame")


def _analysis_figure(analysis: Any, lines: int) -> Figure:
    energy = analysis.energy
    stages: list[tuple[tuple[Panel, ...], Any]] = [(MOTION, energy.torques.motion), (TORQUES, energy.torques)]
    stages += [(MUSCLES, energy.muscles)] if energy.muscles is not None else []
    stages.append((ENERGY, energy))
    return _time_figure([(panel, stage.data) for panels, stage in stages for panel in panels], lines)


def _fit_figure(fit: Fit, lines: int) -> Figure:
    """Return bars of segment lengths with their uncertainty, and of marker errors."""
    data = fit.data
    length, sd, given = (1e3 * data[name].values for name in ("length", "length_sd", "length_given"))
    rms = 1e3 * data["marker_rms"].values
    figure, (left, right) = _bar_figure(max(len(length), len(rms)))
    _bars(left, data["segment"].values, length, "segment length [mm]", error=2.0 * sd)
    left.plot(given, np.arange(len(given)), "|", color=ORANGE, markersize=8, label="before the fit")
    left.legend(frameon=False, fontsize=7)
    _bars(right, data["marker"].values, rms, "marker error, RMS [mm]")
    left.set_title("bars: fitted; lines: 95 % interval", fontsize=8, color=INK)
    return figure


def _model_figure(model: Model, lines: int) -> Figure:
    """Return bars of body masses, and the range of motion of rotational coordinates."""
    coordinates = [c for c in model.coordinates if c.rotational and np.isfinite([c.lower, c.upper]).all()]
    figure, (left, *others) = _bar_figure(max(len(model.bodies), len(coordinates)), 2 if coordinates else 1)
    _bars(left, [plot_name(body.name) for body in model.bodies], [body.mass for body in model.bodies], "body mass [kg]")
    low, high = (np.degrees([getattr(c, end) for c in coordinates]) for end in ("lower", "upper"))
    for right in others:
        _bars(right, [plot_name(c.name) for c in coordinates], high - low, "range of motion [deg]", left=low)
    left.set_title(f"{plot_name(model.name)}: {model.mass:.4g} kg", fontsize=8, color=INK)
    return figure


def _bar_figure(rows: int, columns: int = 2) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 1.2 + 0.14 * rows), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def _bars(axes: Axes, names: Any, values: Any, label: str, *, error: Any = None, left: Any = 0.0) -> None:
    """Draw horizontal bars, the first on top."""
    place = np.arange(len(names))
    axes.barh(place, values, left=left, xerr=error, color=BLUE, height=0.7, error_kw={"lw": 1.0, "ecolor": INK})
    axes.set_yticks(place, [str(name) for name in names], fontsize=6)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(label, fontsize=8)
    style_axes(axes)
    axes.grid(visible=False, axis="y")


def _stage_figure(panels: Sequence[Panel]) -> Callable[[Any, int], Figure]:
    return lambda stage, lines: _time_figure([(panel, stage.data) for panel in panels], lines)


PLOTS: Mapping[str, Callable[[Any, int], Figure]] = {
    "Analysis": _analysis_figure,
    "Animation": lambda animation, lines: _simulation_figure(animation.data, lines),
    "Dataset": _simulation_figure,
    "Energy": _stage_figure(ENERGY),
    "Fit": _fit_figure,
    "Model": _model_figure,
    "Motion": _stage_figure(MOTION),
    "MuscleForces": _stage_figure(MUSCLES),
    "MusclePaths": _paths_figure,
    "PredictedWalk": _walk_figure,
    "Recording": recording_figure,
    "ScaleResult": lambda result, lines: _model_figure(result.model, lines),
    "Scene": lambda scene, lines: _model_figure(scene.model, lines),
    "Simulation": lambda simulation, lines: _state_figure(simulation_state(simulation)),
    "Solution": solution_figure,
    "SyntheticRecording": lambda synthetic, lines: recording_figure(synthetic.recording, lines),
    "Targets": _targets_figure,
    "Torques": _stage_figure((*COORDINATES, *TORQUES)),
    "TrackedMotion": tracking_figure,
    "WhatIf": what_if_figure,
}
"""Plots by class of result."""
