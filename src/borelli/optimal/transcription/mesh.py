"""Mesh of a phase: control nodes at equal distances, and finite elements within each interval between nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from borelli.optimal.problem import Phase

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mesh:
    """Elements of a phase, in fractions of its duration."""

    nodes: int
    linear: bool
    """Whether controls are linear between nodes; else constant."""
    edges: Array
    """(elements + 1,) Ends of the elements, from 0 to 1."""
    interval: NDArray[np.intp]
    """(elements,) Interval between nodes that contains each element."""
    left: Array
    """(elements,) Start of each element as a fraction of its interval."""
    right: Array
    """(elements,) End of each element as a fraction of its interval."""

    @property
    def count(self) -> int:
        """Number of elements."""
        return len(self.interval)

    @property
    def control_columns(self) -> int:
        """Number of values of each control."""
        return self.nodes if self.linear else self.nodes - 1

    @property
    def control_fractions(self) -> Array:
        """Times of the control values: nodes, or midpoints of the intervals."""
        nodes = np.linspace(0.0, 1.0, self.nodes)
        return nodes if self.linear else 0.5 * (nodes[1:] + nodes[:-1])


def make_mesh(phase: Phase) -> Mesh:
    """Return the mesh of a phase."""
    counts = np.array(phase.element_counts)
    interval = np.repeat(np.arange(len(counts)), counts)
    position = np.concatenate([np.arange(count) for count in counts])
    left, right = position / counts[interval], (position + 1) / counts[interval]
    edges = np.concatenate([[0.0], (interval + right) / len(counts)])
    return Mesh(phase.nodes, phase.control == "linear", edges, interval, left, right)
