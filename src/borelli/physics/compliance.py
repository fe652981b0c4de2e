"""How the bodies that touch answer to pushes at each other, all rows but the contacts' staying on their segments.

Without contact impulses the touching bodies would have the velocities v0; an impulse f on them (six numbers a body)
makes that v = v0 + S f. A column of S is one back-substitution with the factors of all other rows.
"""

from __future__ import annotations

from borelli.jit import leaf, part
from borelli.physics.blocks import store6
from borelli.physics.contact import BODY_A, FREE, LOCAL_A, MOST_BODIES
from borelli.physics.elimination import solve_factored
from borelli.physics.factor import FLAT_ROW, MODE, RIGHT, SOLUTION, U_NOW, C
from borelli.physics.graph import PLACE


@leaf
def list_touching(node, touch_tuple):
    """Number the solved bodies that touch, into columns of `who`; how many there are, -1 when more than fit."""
    who, member, number = touch_tuple.who, touch_tuple.member, touch_tuple.number
    for k in range(len(number)):
        number[k] = -1
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


@part
def find_answers(rows, graph, factor, fill, touch_tuple, bodies):
    """S and v0, from factors without the contact rows and a solution with no contact impulses."""
    block, mark, value = factor.block, factor.mark, factor.value
    member, answer, speed = touch_tuple.member, touch_tuple.answer, touch_tuple.speed
    for a in range(bodies):
        for n in range(6):
            speed[6 * a + n, FREE] = block[member[a], SOLUTION + n]
    for k in range(rows.used[0]):
        value[k, U_NOW] = value[k, C]
        if mark[k, MODE] != FLAT_ROW:
            value[k, C] = 0.0
    for a in range(bodies):
        for n in range(6):
            for k in range(graph.count[0]):
                store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            block[member[a], RIGHT + n] = 1.0
            solve_factored(rows, graph, factor, fill)
            for b in range(bodies):
                for m in range(6):
                    answer[6 * b + m, 6 * a + n] = block[member[b], SOLUTION + m]
    for k in range(rows.used[0]):
        value[k, C] = value[k, U_NOW]
