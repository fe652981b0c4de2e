"""Response of the bodies in contact to impulses on each other, all other rows staying on their pieces.

Without contact impulses these bodies have the velocities v0; an impulse f on them (six numbers a body) changes that to
v = v0 + S f. A column of S is one back-substitution with the factors of all other rows. J S J^T is the Delassus
operator of the contacts.
"""

from __future__ import annotations

from borelli.kernels.jit import by_pointer, inline, kernel_function
from borelli.kernels.shared_tuples import load_shared
from borelli.physics.rows.contact_rows import BODY_A, CONTACTS_NOW, FREE, LOCAL_A, MAX_CONTACT_BODIES
from borelli.physics.solver.blocks import store6
from borelli.physics.solver.elimination import backward_position, forward_position
from borelli.physics.solver.elimination_order import NEIGHBOR, NEIGHBORS, POSITION, WIDE
from borelli.physics.solver.factor_arrays import FLAT_ROW, MODE, RIGHT, SOLUTION, U_NOW, UPDATE_RIGHT, C

# a body without contact and one on the path of impulses to the root
NO_CONTACT, AFFECTED = -1, -2


@inline
def index_contact_bodies(node, contact_arrays):
    """Index the solved bodies in contact into `contact_body`; return their number, -1 if more than fit."""
    contact_body, member, local_index = contact_arrays.contact_body, contact_arrays.member, contact_arrays.local_index
    for k in range(len(local_index)):
        local_index[k] = NO_CONTACT
    bodies = 0
    for i in range(contact_arrays.count[CONTACTS_NOW]):
        for side in range(2):
            body = contact_body[i, BODY_A + side]
            index_here = -1
            if body >= 0:
                position = node[body, POSITION]
                if local_index[position] < 0:
                    if bodies == MAX_CONTACT_BODIES:
                        return -1
                    local_index[position] = bodies
                    member[bodies] = position
                    bodies += 1
                index_here = local_index[position]
            contact_body[i, LOCAL_A + side] = index_here
    return bodies


@inline
def _list_affected(graph, contact_arrays, bodies):
    """List the positions affected by impulses on the bodies in contact (all if in loops); return their number."""
    node, neighbor, count = graph.node, graph.neighbor, graph.count[0]
    path, local_index = contact_arrays.path, contact_arrays.local_index
    looped = False
    for k in range(count):
        if local_index[k] >= 0 or local_index[k] == AFFECTED:
            looped = looped or node[k, WIDE] != 0
            parent = neighbor[node[k, NEIGHBORS], NEIGHBOR]
            if node[k + 1, NEIGHBORS] > node[k, NEIGHBORS] and local_index[parent] < 0:
                local_index[parent] = AFFECTED
    length = 0
    for k in range(count):
        if looped or local_index[k] != NO_CONTACT:
            path[length] = k
            length += 1
    return length


@kernel_function
def compute_contact_response(work, bodies):
    """Compute S and v0 from factors without the contact rows and a solution without contact impulses."""
    rows, graph, factor, fill = load_shared(work.rows, work.graph, work.factor, work.fill)
    contact_arrays = load_shared(work.contact_arrays)
    block, mark, value = factor.block, factor.mark, factor.value
    member, path = contact_arrays.member, contact_arrays.path
    response, body_velocity = contact_arrays.response, contact_arrays.body_velocity
    for a in range(bodies):
        for n in range(6):
            body_velocity[6 * a + n, FREE] = block[member[a], SOLUTION + n]
    for k in range(rows.used[0]):
        value[k, U_NOW] = value[k, C]
        if mark[k, MODE] != FLAT_ROW:
            value[k, C] = 0.0
    for k in range(graph.count[0]):
        store6(block, k, UPDATE_RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    length = _list_affected(graph, contact_arrays, bodies)
    for a in range(bodies):
        for n in range(6):
            for index in range(length):
                k = path[index]
                store6(block, k, RIGHT, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
                if k == member[a]:
                    block[k, RIGHT + n] = 1.0
                forward_position(graph, factor, fill, k)
            for index in range(length):
                backward_position(graph, factor, fill, path[length - 1 - index])
            for b in range(bodies):
                for m in range(6):
                    response[6 * b + m, 6 * a + n] = block[member[b], SOLUTION + m]
    for k in range(rows.used[0]):
        value[k, C] = value[k, U_NOW]


compute_contact_response_by_pointer = by_pointer(compute_contact_response)
