"""The order in which bodies are eliminated, and which blocks that fills.

Bodies are the nodes of a graph; a row that touches several bodies joins them. Eliminating a body joins all its
neighbours that are still there. On a tree, leaves first, each body has one neighbour left (its parent) and nothing is
filled: the cost is linear. A loop fills blocks along its path. One rule serves trees, loops and nets: among the bodies
whose joint-children are gone, take the one with the fewest neighbours (minimum degree), the lowest index on a tie.
Children go before parents so that a joint's hard rows are owned by its child, on which they are independent. In a net
of many loops that rule would fill almost everything; its rows have slopes (`tables`), and its bodies wait for none.

Everything numeric is kept in this order; a body's place in it is its *position*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from borelli.kernels.jit import inline, kernel_function

OVERFLOW = -1

# columns of `node`, by position unless said otherwise
BODY = 0  # the body at this position
PLACE = 1  # by body: its position, -1 if it is kinematic
NEAR = 2  # its neighbours still present when it goes are near[node[k, NEAR] : node[k + 1, NEAR]]
CHILD = 3  # positions whose first neighbour it is: child[node[k, CHILD] : node[k + 1, CHILD]]
WIDE = 4  # 1 if it has several neighbours, or a child that has: a loop passes through it
LISTED = 5  # rows it owns and keeps as unknowns start here in the list
FOLDS = 6  # rows folded into its block start here
DUALS = 7  # how many of its listed rows are in force
CORNER = 8  # place of its C in `corner`
OUTER = 9  # place of its U in `outer` (wide positions)
FRONT = 10  # place of its update matrix in `front` (wide positions)
DIRTY = 11  # 1 if it must be factored again
COUPLED = 12  # 1 if its coupling block B is not zero
NODE_COLUMNS = 13

# columns of `near`
NEIGHBOUR = 0  # position of the neighbour, ascending within a list; the first is the parent in the elimination tree
SLOT = 1  # index of the neighbour in that parent's own list, -1 for the parent itself


class Graph(NamedTuple):
    """The elimination order of one set of links."""

    count: NDArray[np.int64]
    """(1,) number of solved (dynamic) bodies."""
    node: NDArray[np.int64]
    """(n + 1, NODE_COLUMNS)"""
    near: NDArray[np.int64]
    """(capacity, 2)"""
    child: NDArray[np.int64]
    """(n,)"""


class GraphWork(NamedTuple):
    """What finding the order needs besides."""

    joined: NDArray[np.uint8]
    """(n, n) bodies joined by a row or by fill."""
    degree: NDArray[np.int64]
    """(n,) neighbours still present."""
    waiting: NDArray[np.int64]
    """(n,) joint-children not yet eliminated."""


def make_graph(bodies: int, neighbours: int) -> Graph:
    """An empty graph for so many bodies and at most `neighbours` neighbours in all."""
    return Graph(
        count=np.zeros(1, np.int64),
        node=np.zeros((bodies + 1, NODE_COLUMNS), np.int64),
        near=np.zeros((neighbours, 2), np.int64),
        child=np.zeros(bodies, np.int64),
    )


def make_graph_work(bodies: int) -> GraphWork:
    """Work arrays for finding the order."""
    return GraphWork(
        joined=np.zeros((bodies, bodies), np.uint8),
        degree=np.zeros(bodies, np.int64),
        waiting=np.zeros(bodies, np.int64),
    )


@kernel_function
def order_bodies(
    # tables
    tree_parent, kinematic,
    # in
    links, link_count,
    # out
    graph, work,
):
    """Fill the graph for the given links (pairs of bodies); the number of neighbours, or OVERFLOW."""
    bodies = len(tree_parent)
    node, near = graph.node, graph.near
    joined, degree, waiting = work.joined, work.degree, work.waiting
    joined[:, :] = 0
    degree[:] = 0
    waiting[:] = 0
    node[:, :] = 0
    dynamic = 0
    for b in range(bodies):
        node[b, PLACE] = -1
        dynamic += 1 - kinematic[b]
        if tree_parent[b] >= 0:
            waiting[tree_parent[b]] += 1
    for i in range(link_count):
        _join(joined, degree, links[i, 0], links[i, 1])
    used = 0
    for k in range(dynamic):
        b = _next_body(kinematic, node, waiting, degree)
        node[k, BODY] = b
        node[b, PLACE] = k
        if tree_parent[b] >= 0:
            waiting[tree_parent[b]] -= 1
        node[k, NEAR] = used
        if used + degree[b] > len(near):
            return OVERFLOW
        for j in range(bodies):
            if joined[b, j] and node[j, PLACE] < 0:
                near[used, NEIGHBOUR] = j
                used += 1
                degree[j] -= 1
        for i in range(node[k, NEAR], used):
            for j in range(node[k, NEAR], i):
                _join(joined, degree, near[i, NEIGHBOUR], near[j, NEIGHBOUR])
    node[dynamic, NEAR] = used
    graph.count[0] = dynamic
    _sort_neighbours(node, near, dynamic)
    _link_children(node, near, graph.child, degree, dynamic)
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
        if node[b, PLACE] < 0 and not kinematic[b] and waiting[b] == 0 and (best < 0 or degree[b] < degree[best]):
            best = b
    return best


@inline
def _sort_neighbours(node, near, count):
    """Turn neighbours from bodies into positions, ascending (insertion sort: the lists are short)."""
    for k in range(count):
        for i in range(node[k, NEAR], node[k + 1, NEAR]):
            value = node[near[i, NEIGHBOUR], PLACE]
            j = i
            while j > node[k, NEAR] and near[j - 1, NEIGHBOUR] > value:
                near[j, NEIGHBOUR] = near[j - 1, NEIGHBOUR]
                j -= 1
            near[j, NEIGHBOUR] = value


@inline
def _link_children(node, near, child, fill, count):
    for k in range(count):
        first = node[k, NEAR]
        if node[k + 1, NEAR] > first:
            parent = near[first, NEIGHBOUR]
            node[parent + 1, CHILD] += 1
            if node[k + 1, NEAR] - first > 1:
                node[k, WIDE] = 1
                node[parent, WIDE] = 1
    for k in range(count):
        node[k + 1, CHILD] += node[k, CHILD]
    fill[:] = 0
    for k in range(count):
        first = node[k, NEAR]
        if node[k + 1, NEAR] > first:
            parent = near[first, NEIGHBOUR]
            child[node[parent, CHILD] + fill[parent]] = k
            fill[parent] += 1
            near[first, SLOT] = -1
            j = node[parent, NEAR]
            for i in range(first + 1, node[k + 1, NEAR]):
                while near[j, NEIGHBOUR] != near[i, NEIGHBOUR]:
                    j += 1
                near[i, SLOT] = j - node[parent, NEAR]
