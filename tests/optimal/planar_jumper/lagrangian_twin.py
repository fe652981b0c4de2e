"""Slow twin of the jumper's dynamics: Lagrange's equations of four planar segments, M = sum m J'J + I, by CasADi."""

import casadi as ca
import numpy as np

from borelli.optimal.planar_jumper.jumper_model import jumper_table


def lagrangian_twin():
    """Return casadi.Function(q, v) -> mass matrix, bias and center of mass; q as in the model."""
    table = jumper_table()
    q, v = ca.SX.sym("q", 6), ca.SX.sym("v", 6)
    # absolute angles of the segments: proximal segments rotate by minus OpenSim's angles
    foot = q[2]
    shank = foot - q[3]
    thigh = shank - q[4]
    hat = thigh - q[5]

    def turn(angle, xy):
        c, s = ca.cos(angle), ca.sin(angle)
        return ca.vertcat(c * xy[0] - s * xy[1], s * xy[0] + c * xy[1])

    toe = q[:2]
    ankle = toe + turn(foot, table["foot"]["ankle"])
    knee = ankle - turn(shank, table["shank"]["ankle"])
    hip = knee - turn(thigh, table["thigh"]["knee"])
    origins = {"foot": (toe, foot), "shank": (knee, shank), "thigh": (hip, thigh), "hat": (hip, hat)}
    mass, bias, total, moment = ca.SX.zeros(6, 6), ca.SX.zeros(6), 0.0, ca.SX.zeros(2)
    gravity = np.array([0.0, table["gravity"]])
    for name, (origin, angle) in origins.items():
        row = table[name]
        center = origin + turn(angle, row["center_of_mass"])
        jacobian, spin = ca.jacobian(center, q), ca.jacobian(angle, q)
        mass += row["mass"] * jacobian.T @ jacobian + row["inertia"] * spin.T @ spin
        bias += row["mass"] * jacobian.T @ (ca.jtimes(jacobian @ v, q, v) + gravity)
        total, moment = total + row["mass"], moment + row["mass"] * center
    return ca.Function("twin", [q, v], [mass, bias, moment / total])
