"""Small problems solved by hand, for every solver.

Most have one body of 2 kg and one row along x. With free velocity f, momentum and a sloped piece read

    u = f + p / 2,    u = c_s - beta_s p    hence    p = (c_s - f) / (1/2 + beta_s)

and on a flat piece p is the piece's own impulse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.physics.rows.rows import make_rows

from .called import bounded_law, one_sided_law, soft_law
from .five_piece_laws import dead_zone_law, two_rate_law
from .systems import System

Floats = NDArray[np.float64]
Problem = tuple[str, System, Floats, Floats]

MASS, INERTIA = 2.0, 0.5
X, ABOUT_Z = (1, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 1)


def one_body(
    free: tuple[float, ...], directions: list[tuple[float, ...]], laws: list[tuple], offset: float = 0.0
) -> System:
    """Return a body of 2 kg and 0.5 kg m^2 with rows to the world; a law is a kernel and its arguments."""
    mass = np.diag([MASS] * 3 + [INERTIA] * 3)[None]
    rows = make_rows(np.ones(len(laws), np.int64))
    rows.body[:], rows.jacobian[:], rows.offset[:] = 0, directions, offset
    for k, (law, *arguments) in enumerate(laws):
        law(rows, k, *arguments)
    return System(mass, (mass[0] @ np.array(free))[None], np.array([-1]), rows, np.zeros(0, np.int64))


def along_x(name: str, law: tuple, cases: list[tuple[str, float, float, float]]) -> list[Problem]:
    """Return problems of one row along x; cases are (description, free velocity, velocity, impulse)."""
    problems = []
    for what, free, u, p in cases:
        system = one_body((free, 0, 0, 0, 0, 0), [X], [law])
        problems.append((f"{name}: {what}", system, np.array([[u, 0, 0, 0, 0, 0]]), np.array([p])))
    return problems


def dead_zones() -> list[Problem]:
    """Return problems with no impulse for 0.8 <= u <= 1.2; beyond, beta = 0.5 = 1/m, so p = c_s - f; bounds 1 N s."""
    cases = [
        ("below", 0.0, 0.4, 0.8),
        ("inside", 1.1, 1.1, 0.0),
        ("above", 2.0, 1.6, -0.8),
        ("at the upper bound", -1.0, -0.5, 1.0),
        ("at the lower bound", 3.0, 2.5, -1.0),
        ("on the inner kink", 0.8, 0.8, 0.0),
        ("on the outer kink", -0.2, 0.3, 1.0),
    ]
    limited = along_x("dead zone", (dead_zone_law, 1.0, 0.2, 0.5, -1.0, 1.0), cases)
    unlimited = (dead_zone_law, 1.0, 0.2, 0.5, -np.inf, np.inf)
    return limited + along_x(
        "dead zone without limits", unlimited, [("below", -1.0, -0.1, 1.8), ("inside", 1.0, 1.0, 0.0)]
    )


def stiffening_springs() -> list[Problem]:
    """Return problems with slope 0.2 within 0.1 of 0 (p = -+0.5 at its ends), 0.05 beyond; bounds 2 N s.

    Beyond, c_s = +-(0.1 - 0.05 * 0.5) = +-0.075. Inside p = -f/0.7, beyond p = (+-0.075 - f)/0.55.
    """
    cases = [
        ("inside", 0.07, 0.02, -0.1),
        ("on the kink", 0.35, 0.1, -0.5),
        ("above", 0.9, 0.15, -1.5),
        ("below", -0.9, -0.15, 1.5),
        ("at the bound", 3.0, 2.0, -2.0),
    ]
    return along_x("stiffening spring", (two_rate_law, 0.0, 0.1, 0.05, 0.0, 0.2, -2.0, 2.0), cases)


def secondary_targets() -> list[Problem]:
    """Return problems with target 1.2 and slope 1 within 0.5 of 1, beyond a return with slope 0.1; bounds 3 N s.

    p = 0.7 at u = 0.5 and -0.3 at u = 1.5. Inside p = (1.2 - f)/1.5; below c_s = 0.5 + 0.07 and p = (0.57 - f)/0.6;
    above c_s = 1.5 - 0.03 and p = (1.47 - f)/0.6.
    """
    cases = [
        ("inside", 0.9, 1.0, 0.2),
        ("at the target", 1.2, 1.2, 0.0),
        ("below", 0.0, 0.475, 0.95),
        ("above", 3.0, 1.725, -2.55),
        ("on the kink", 0.15, 0.5, 0.7),
        ("at the bound", -5.0, -3.5, 3.0),
    ]
    return along_x("secondary target", (two_rate_law, 1.0, 0.5, 0.1, 1.2, 1.0, -3.0, 3.0), cases)


def other_rows() -> list[Problem]:
    """Return contacts, a saturated drive, a drive against a limit, a moving marker spring, a hard joint."""
    problems = along_x("contact", (one_sided_law, 0.0, 0.5), [("pushes", -1.0, -0.5, 1.0), ("leaves", 1.0, 1.0, 0.0)])
    # Point (1, 0, 0), normal z: J M^-1 J^T = 1/2 + 1/0.5 = 2.5 and p = 1/(2.5 + 0.5).
    lever = one_body((0, 0, -1, 0, 0, 0), [(0, 0, 1, 0, -1, 0)], [(one_sided_law, 0.0, 0.5)])
    problems.append(("contact at a lever arm", lever, np.array([[0, 0, -5 / 6, 0, -2 / 3, 0]]), np.array([1 / 3])))
    drive = one_body((0, 0, 0, 0, 0, 0), [ABOUT_Z], [(bounded_law, 2.0, 1e-3, -0.25, 0.25)])
    problems.append(("saturated drive", drive, np.array([[0, 0, 0, 0, 0, 0.5]]), np.array([0.25])))
    # The drive saturates at 0.5; the limit keeps u <= 0.1 with -u = -0.1 - 0.01 p: 0.25 - p/2 = 0.1 + 0.01 p.
    laws = [(bounded_law, 1.0, 1e-3, -0.5, 0.5), (one_sided_law, -0.1, 0.01)]
    limited = one_body((0, 0, 0, 0, 0, 0), [X, (-1, 0, 0, 0, 0, 0)], laws)
    u = 0.1 + 0.01 * 0.15 / 0.51
    problems.append(("drive against a limit", limited, np.array([[u, 0, 0, 0, 0, 0]]), np.array([0.5, 0.15 / 0.51])))
    # The marker moves at 1: u = v - 1 = p/2 - 1 = -p/2.
    anchor = one_body((0, 0, 0, 0, 0, 0), [X], [(soft_law, 0.0, 0.5)], offset=-1.0)
    problems.append(("moving marker spring", anchor, np.array([[0.5, 0, 0, 0, 0, 0]]), np.array([1.0])))
    # 2 kg at 4 m/s and 6 kg at rest, joined along x: (2 * 4)/(2 + 6) = 1, and the child got 6 N s.
    mass = np.array([np.eye(6) * 2.0, np.eye(6) * 6.0])
    rows = make_rows(np.array([2]))
    rows.body[:], rows.jacobian[0, 0], rows.jacobian[1, 0] = (1, 0), 1.0, -1.0
    soft_law(rows, 0, 0.0, 0.0)
    momentum, v = np.zeros((2, 6)), np.zeros((2, 6))
    momentum[0, 0], v[:, 0] = 8.0, 1.0
    joined = System(mass, momentum, np.array([-1, 0]), rows, np.array([0]))
    problems.append(("hard joint", joined, v, np.array([6.0])))
    return problems


def hand_problems() -> list[Problem]:
    """Return all problems: name, system, velocity (n, 6) and impulses (rows,) expected."""
    return [*dead_zones(), *stiffening_springs(), *secondary_targets(), *other_rows()]
