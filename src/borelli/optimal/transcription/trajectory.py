"""Trajectories of a solved program in physical units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.casadi_import import ca
from borelli.optimal.problem import Phase, Problem
from borelli.optimal.transcription.mesh import Mesh
from borelli.optimal.transcription.nlp import Nlp, PhaseNlp
from borelli.optimal.transcription.point_functions import system_parameters
from borelli.optimal.transcription.transcribe import element_arguments, element_inputs

Array = NDArray[np.float64]


class Trajectory(NamedTuple):
    """Phase of a solution at the points of the transcription."""

    phase: Phase
    mesh: Mesh
    start: float
    """[s]"""
    duration: float
    """[s]"""
    time: Array
    """(points,) [s]"""
    x: Array
    """(points, states)"""
    xdot: Array
    z: Array
    u: Array
    udot: Array
    outputs: Array
    """(points, outputs)"""
    nodes: Array
    """(controls, nodes or intervals) Values of the controls."""
    edges: NDArray[np.bool_]
    """(points,) Whether a point is the end of an element, or the start of the phase."""
    parameters: Array
    """Parameters of the problem."""

    def control(self, fraction: Any, element: int) -> Array:
        """Return the controls at a fraction of an element."""
        mesh = self.mesh
        interval = mesh.interval[element]
        before = self.nodes[:, interval]
        if not mesh.linear:
            return before
        position = mesh.left[element] + fraction * (mesh.right[element] - mesh.left[element])
        return before + position * (self.nodes[:, interval + 1] - before)


def read_trajectories(nlp: Nlp, w: Array) -> tuple[Trajectory, ...]:
    """Return the phases of a solution, one after another in time."""
    parameters = nlp.parameters.read(w).ravel()
    found, start = [], 0.0
    for phase in nlp.phases:
        found.append(_read_phase(nlp.problem, phase, w, parameters, start))
        start += found[-1].duration
    return tuple(found)


def _read_phase(problem: Problem, nlp: PhaseNlp, w: Array, parameters: Array, start: float) -> Trajectory:
    phase, scheme, mesh = nlp.functions.phase, nlp.scheme, nlp.mesh
    duration = float(nlp.duration.read(w)[0, 0])
    controls, x0 = nlp.controls.read(w), nlp.start.read(w)
    arguments = element_arguments(nlp.functions, scheme, mesh, ca.DM(controls), start, duration, ca.DM(parameters))
    if nlp.stages is not None:
        stages = nlp.stages.read(w)
        starts = np.hstack([x0, stages[list(scheme.end_rows), :-1]])
    else:
        stages = np.zeros((0, mesh.count))
        ends = np.array(scheme.element.mapaccum(mesh.count)(x0, stages, *arguments)[0])
        starts = np.hstack([x0, ends[:, :-1]])
    inputs = (ca.DM(starts), ca.DM(stages), *arguments)
    x, xdot, z, u, udot = (np.array(part) for part in scheme.points.map(mesh.count)(*inputs))
    widths = np.diff(mesh.edges)
    fractions = (mesh.edges[:-1, None] + np.outer(widths, scheme.fractions)).ravel()
    first = (x0, *_start_rates(problem, nlp, inputs, x0, controls, parameters, start), controls[:, [0]], udot[:, [0]])
    x, xdot, z, u, udot = (
        np.hstack([a.reshape(-1, 1), b]).T for a, b in zip(first, (x, xdot, z, u, udot), strict=True)
    )
    time = start + duration * np.concatenate([[0.0], fractions])
    edges = np.concatenate([[True], np.tile(np.array(scheme.fractions) == 1.0, mesh.count)])
    outputs = evaluate_outputs(problem, phase, time, (x, xdot, z, u), parameters)
    return Trajectory(phase, mesh, start, duration, time, x, xdot, z, u, udot, outputs, controls, edges, parameters)


def _start_rates(
    problem: Problem, nlp: PhaseNlp, inputs: tuple[Any, ...], x0: Array, controls: Array, p: Array, start: float
) -> tuple[Array, Array]:
    """Return rates and algebraic variables at the start, from the transcription or else from the explicit form."""
    if nlp.scheme.start_point is not None:
        xdot, z = nlp.scheme.start_point(*element_inputs(inputs, nlp.mesh, 0))
    else:
        phase = nlp.functions.phase
        chosen = system_parameters(problem, phase, ca.DM(p))
        xdot, z = phase.system.explicit(start, x0, controls[:, 0], chosen)
    return np.array(xdot), np.array(z)


def evaluate_outputs(
    problem: Problem, phase: Phase, time: Array, columns: tuple[Array, ...], parameters: Array
) -> Array:
    """Return the outputs (points, outputs) for columns (x, xdot, z, u), each (points, variables)."""
    system = phase.system
    if system.outputs is None:
        return np.empty((len(time), 0))
    x, xdot, z, u = columns
    chosen = system_parameters(problem, phase, ca.DM(parameters))
    count = len(time)
    found = system.outputs.map(count)(
        ca.DM(time).T, ca.DM(x.T), ca.DM(z.T), ca.DM(u.T), ca.repmat(chosen, 1, count), ca.DM(xdot.T)
    )
    return np.vstack([np.array(part) for part in (found if isinstance(found, tuple) else (found,))]).T
