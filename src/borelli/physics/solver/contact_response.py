"""How the bodies that touch answer to pushes at each other, all rows but the contacts' staying on their segments.

Without contact impulses the touching bodies would have the velocities v0; an impulse f on them (six numbers a body)
makes that v = v0 + S f. A column of S is one back-substitution with the factors of all other rows.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import BODY_A, FREE, LOCAL_A, MOST_BODIES
from borelli.physics.solver.blocks import store6
from borelli.physics.solver.elimination import leafward, rootward
from borelli.physics.solver.elimination_order import NEAR, NEIGHBOUR, PLACE, WIDE
from borelli.physics.solver.factor_arrays import FLAT_ROW, HANDED, MODE, RIGHT, SOLUTION, U_NOW, C

UNTOUCHED, PASSED = -1, -2  # a body without contact; one that pushes pass through


@inline
def list_touching(node, touch_tuple):
    """Number the solved bodies that touch, into columns of `who`; how many there are, -1 when more than fit."""
    who, member, number = touch_tuple.who, touch_tuple.member, touch_tuple.number
    for k in range(len(number)):
        number[k] = UNTOUCHED
    bodies = 0
    for i in range(touch_tuple.count[0]):
        for side in range(2):
            body = who[i, BODY_A + side]
            local = -1
            if body >= 0:
                position = node[body, PLACE]
                if number[position] < 0:
                    if bodies == MOST_BODIES:
                        return -1
                    number[position] = bodies
                    member[bodies] = position
                    bodies += 1
                local = number[position]
            who[i, LOCAL_A + side] = local
    return bodies


@inline
def _list_path(graph, touch_tuple, bodies):
    """The positions through which pushes on the touching bodies pass, in order; how many. With loops it is all."""
    node, near, count = graph.node, graph.near, graph.count[0]
    path, number = touch_tuple.path, touch_tuple.number
    looped = False
    for k in range(count):
        if number[k] >= 0 or number[k] == PASSED:
            looped = looped or node[k, WIDE] != 0
            parent = near[node[k, NEAR], NEIGHBOUR]
            if node[k + 1, NEAR] > node[k, NEAR] and number[parent] < 0:
                number[parent] = PASSED
    length = 0
    for k in range(count):
        if looped or number[k] != UNTOUCHED:
            path[length] = k
            length += 1
    return length


@kernel_function
def find_answers(rows_at, graph_at, factor_at, fill_at, touch_at, bodies):
    """S and v0, from factors without the contact rows and a solution with no contact impulses."""
    rows, graph, factor, fill, touch_tuple = load_shared(rows_at, graph_at, factor_at, fill_at, touch_at)
    block, mark, value = factor.block, factor.mark, factor.value
    member, path = touch_tuple.member, touch_tuple.path
    answer, speed = touch_tuple.answer, touch_tuple.speed
    for a in range(bodies):
        for n in range(6):
            speed[6 * a + n, FREE] = block[member[a], SOLUTION + n]
    for k in range(rows.used[0]):
        value[k, U_NOW] = value[k, C]
        if mark[k, MODE] != FLAT_ROW:
            value[k, C] = 0.0
    for k in range(graph.count[0]):
        store6(block, k, HANDED, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    length = _list_path(graph, touch_tuple, bodies)
    for a in range(bodies):
        for n in range(6):
            for index in range(length):
                k = path[index]
                store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
                if k == member[a]:
                    block[k, RIGHT + n] = 1.0
                leafward(graph, factor, fill, k)
            for index in range(length):
                rootward(graph, factor, fill, path[length - 1 - index])
            for b in range(bodies):
                for m in range(6):
                    answer[6 * b + m, 6 * a + n] = block[member[b], SOLUTION + m]
    for k in range(rows.used[0]):
        value[k, C] = value[k, U_NOW]


find_answers_by_pointer = by_pointer(find_answers)
