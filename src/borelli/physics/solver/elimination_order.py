"""Order of elimination of the bodies (minimum degree), and the fill-in that follows from it.

Bodies are the nodes of a graph; a row on several bodies joins them. Eliminating a body joins all its remaining
neighbors. On a tree, leaves first, each body has one neighbor left (its parent) and there is no fill-in: the cost is
linear. A loop fills blocks along its path. One rule serves trees, loops and nets: among the bodies whose
joint-children are eliminated, take the one with the fewest neighbors (minimum degree), the lowest index on a tie.
Children go before parents so that a joint's hard rows are owned by its child, on which they are independent. In a net
of many loops that rule would fill almost everything; its rows have slopes (`arrays`), and its bodies wait for none.

All numbers are stored in this order; a body's index in it is its *position*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel_function

OVERFLOW = -1

# columns of `node`, by position except POSITION
BODY = 0  # the body at this position
POSITION = 1  # by body: its position, -1 if it is kinematic
NEIGHBORS = 2  # remaining neighbors at its elimination: neighbor[node[k, NEIGHBORS] : node[k + 1, NEIGHBORS]]
CHILD = 3  # positions whose first neighbor it is: child[node[k, CHILD] : node[k + 1, CHILD]]
WIDE = 4  # 1 if it has several neighbors, or a child that has: it is part of a loop
LISTED = 5  # index of its first row in the list of rows kept as unknowns
FOLDS = 6  # index of its first row in the list of folded rows
DUALS = 7  # number of its listed rows that are active
CORNER = 8  # offset of its C in `corner`
OUTER = 9  # offset of its U in `outer` (wide positions)
FRONT = 10  # offset of its update matrix in `front` (wide positions)
DIRTY = 11  # 1 if it must be factored again
COUPLED = 12  # 1 if its coupling block B is not zero
NODE_COLUMNS = 13

# columns of `neighbor`
NEIGHBOR = 0  # position of the neighbor, ascending within a list; the first is the parent in the elimination tree
SLOT = 1  # index of the neighbor in that parent's own list, -1 for the parent itself


class Graph(NamedTuple):
    """Elimination order of one set of links."""

    count: NDArray[np.int64]
    """(1,) number of solved (dynamic) bodies."""
    node: NDArray[np.int64]
    """(n + 1, NODE_COLUMNS)"""
    neighbor: NDArray[np.int64]
    """(capacity, 2)"""
    child: NDArray[np.int64]
    """(n,)"""


class GraphWork(NamedTuple):
    """Scratch arrays of `order_bodies`."""

    joined: NDArray[np.uint8]
    """(n, n) bodies joined by a row or by fill-in."""
    degree: NDArray[np.int64]
    """(n,) remaining neighbors."""
    waiting: NDArray[np.int64]
    """(n,) joint-children not yet eliminated."""


def make_graph(bodies: int, neighbors: int) -> Graph:
    """Return an empty graph for so many bodies and at most `neighbors` neighbors in all."""
    return Graph(
        count=np.zeros(1, np.int64),
        node=np.zeros((bodies + 1, NODE_COLUMNS), np.int64),
        neighbor=np.zeros((neighbors, 2), np.int64),
        child=np.zeros(bodies, np.int64),
    )


def make_graph_work(bodies: int) -> GraphWork:
    """Return scratch arrays of `order_bodies`."""
    return GraphWork(
        joined=np.zeros((bodies, bodies), np.uint8),
        degree=np.zeros(bodies, np.int64),
        waiting=np.zeros(bodies, np.int64),
    )


@inline
def mark_for_factoring(graph, dirty):
    """Mark all bodies for factoring (1), or none (0)."""
    for k in range(graph.count[0]):
        graph.node[k, DIRTY] = dirty


@kernel_function
def order_bodies(tree_parent, kinematic, links, link_count, graph, work):
    """Fill the graph for the given links (pairs of bodies); return the number of neighbors, or OVERFLOW."""
    bodies = len(tree_parent)
    node, neighbor = graph.node, graph.neighbor
    joined, degree, waiting = work.joined, work.degree, work.waiting
    joined[:, :] = 0
    degree[:] = 0
    waiting[:] = 0
    node[:, :] = 0
    dynamic = 0
    for b in range(bodies):
        node[b, POSITION] = -1
        dynamic += 1 - kinematic[b]
        if tree_parent[b] >= 0:
            waiting[tree_parent[b]] += 1
    for i in range(link_count):
        _join(joined, degree, links[i, 0], links[i, 1])
    used = 0
    for k in range(dynamic):
        b = _next_body(kinematic, node, waiting, degree)
        node[k, BODY] = b
        node[b, POSITION] = k
        if tree_parent[b] >= 0:
            waiting[tree_parent[b]] -= 1
        node[k, NEIGHBORS] = used
        if used + degree[b] > len(neighbor):
            return OVERFLOW
        for j in range(bodies):
            if joined[b, j] and node[j, POSITION] < 0:
                neighbor[used, NEIGHBOR] = j
                used += 1
                degree[j] -= 1
        for i in range(node[k, NEIGHBORS], used):
            for j in range(node[k, NEIGHBORS], i):
                _join(joined, degree, neighbor[i, NEIGHBOR], neighbor[j, NEIGHBOR])
    node[dynamic, NEIGHBORS] = used
    graph.count[0] = dynamic
    _sort_neighbors(node, neighbor, dynamic)
    _link_children(node, neighbor, graph.child, degree, dynamic)
    return used


@kernel_function
def _join(joined, degree, a, b):
    if a != b and not joined[a, b]:
        joined[a, b] = 1
        joined[b, a] = 1
        degree[a] += 1
        degree[b] += 1


@kernel_function
def _next_body(kinematic, node, waiting, degree):
    best = -1
    for b in range(len(kinematic)):
        if node[b, POSITION] < 0 and not kinematic[b] and waiting[b] == 0 and (best < 0 or degree[b] < degree[best]):
            best = b
    return best


@inline
def _sort_neighbors(node, neighbor, count):
    """Replace neighbor bodies by positions, ascending (insertion sort: the lists are short)."""
    for k in range(count):
        for i in range(node[k, NEIGHBORS], node[k + 1, NEIGHBORS]):
            value = node[neighbor[i, NEIGHBOR], POSITION]
            j = i
            while j > node[k, NEIGHBORS] and neighbor[j - 1, NEIGHBOR] > value:
                neighbor[j, NEIGHBOR] = neighbor[j - 1, NEIGHBOR]
                j -= 1
            neighbor[j, NEIGHBOR] = value


@inline
def _link_children(node, neighbor, child, fill, count):
    for k in range(count):
        first = node[k, NEIGHBORS]
        if node[k + 1, NEIGHBORS] > first:
            parent = neighbor[first, NEIGHBOR]
            node[parent + 1, CHILD] += 1
            if node[k + 1, NEIGHBORS] - first > 1:
                node[k, WIDE] = 1
                node[parent, WIDE] = 1
    for k in range(count):
        node[k + 1, CHILD] += node[k, CHILD]
    fill[:] = 0
    for k in range(count):
        first = node[k, NEIGHBORS]
        if node[k + 1, NEIGHBORS] > first:
            parent = neighbor[first, NEIGHBOR]
            child[node[parent, CHILD] + fill[parent]] = k
            fill[parent] += 1
            neighbor[first, SLOT] = -1
            j = node[parent, NEIGHBORS]
            for i in range(first + 1, node[k + 1, NEIGHBORS]):
                while neighbor[j, NEIGHBOR] != neighbor[i, NEIGHBOR]:
                    j += 1
                neighbor[i, SLOT] = j - node[parent, NEIGHBORS]
