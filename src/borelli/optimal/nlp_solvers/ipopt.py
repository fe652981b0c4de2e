"""Interior-point solution of nonlinear programs by IPOPT (Waechter and Biegler 2006) with exact second derivatives."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from borelli.errors import SettingsError, unknown_name
from borelli.optimal.casadi_import import ca
from borelli.optimal.nlp_solvers.solver_result import Iterate, SolverResult, Watch
from borelli.optimal.transcription.nlp import Nlp

Array = NDArray[np.float64]
LINEAR_SOLVERS = ("mumps", "spral")
"""Linear solvers that CasADi's wheel contains. Some of the others crash the process."""
STATUSES = {
    "Solve_Succeeded": "converged",
    "Solved_To_Acceptable_Level": "stopped before the tolerance",
    "Feasible_Point_Found": "converged",
    "Maximum_Iterations_Exceeded": "iteration limit",
    "Maximum_CpuTime_Exceeded": "time limit",
    "Maximum_WallTime_Exceeded": "time limit",
    "Infeasible_Problem_Detected": "infeasible",
    "Restoration_Failed": "infeasible",
    "User_Requested_Stop": "stopped",
    "Not_Enough_Degrees_Of_Freedom": "more conditions than unknowns",
    "Invalid_Number_Detected": "NaN in a cost or constraint",
    "Search_Direction_Becomes_Too_Small": "no progress",
    "Error_In_Step_Computation": "no progress",
    "Diverging_Iterates": "diverged",
}
"""Words for what IPOPT returns."""
NESTED_DISSECTION = 5
"""MUMPS's number for the ordering of METIS: elements in a row factor in half the time of its own choice."""
WARM_OPTIONS = {"ipopt.mu_init": 1e-3, "ipopt.bound_push": 1e-6, "ipopt.bound_frac": 1e-6}
"""For first values near the solution: stay close to them."""


class _Callback(ca.Callback):  # type: ignore[misc]
    """IPOPT's iteration callback, which hands each iterate to a `Watch`."""

    def __init__(self, nlp: Nlp, watch: Watch) -> None:
        ca.Callback.__init__(self)
        self.nlp, self.watch = nlp, watch
        self.iteration = 0
        self.ended: str | None = None
        self.error: BaseException | None = None
        self.construct("iteration", {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, i: int) -> str:
        return ca.nlpsol_out(i)

    def get_sparsity_in(self, i: int) -> Any:
        sizes = {"x": len(self.nlp.first), "lam_x": len(self.nlp.first), "f": 1}
        sizes |= dict.fromkeys(("g", "lam_g"), len(self.nlp.lower_g))
        return ca.Sparsity.dense(sizes.get(ca.nlpsol_out(i), 0), 1 if sizes.get(ca.nlpsol_out(i), 0) else 0)

    def eval(self, arguments: Any) -> list[int]:
        values = dict(zip(ca.nlpsol_out(), arguments, strict=True))
        w, g = (np.array(values[key]).ravel() for key in ("x", "g"))
        violation = float(self.nlp.violation(w, g).max(initial=0.0))
        try:
            self.ended = self.watch(Iterate(self.iteration, w, float(values["f"]), violation))
        except BaseException as error:
            self.error, self.ended = error, "stopped"
        self.iteration += 1
        return [0 if self.ended is None else 1]


def solve_ipopt(
    nlp: Nlp,
    first: Array,
    *,
    watch: Watch,
    tolerance: float,
    max_iterations: int,
    time_limit: float,
    linear_solver: str,
    warm: bool,
) -> SolverResult:
    """Solve a program from first values.

    Args:
        nlp: The program.
        first: First values of the unknowns.
        watch: Called after every iteration.
        tolerance: Of the scaled optimality conditions.
        max_iterations: Iterations at most.
        time_limit: Wall time at most [s].
        linear_solver: One of `LINEAR_SOLVERS`.
        warm: Whether the first values are near the solution.
    """
    if linear_solver not in LINEAR_SOLVERS:
        raise SettingsError(f"{unknown_name('linear solver', linear_solver, LINEAR_SOLVERS)}.")
    callback = _Callback(nlp, watch)
    options = {
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": False,
        "error_on_fail": False,
        "iteration_callback": callback,
        "ipopt.tol": tolerance,
        "ipopt.constr_viol_tol": 1e-6,
        "ipopt.acceptable_iter": 0,  # an "acceptable" end is often far from the optimum
        "ipopt.max_iter": max_iterations,
        "ipopt.max_wall_time": max(time_limit, 1e-3),
        "ipopt.linear_solver": linear_solver,
        "ipopt.mumps_pivot_order": NESTED_DISSECTION,
        **(WARM_OPTIONS if warm else {}),
        **nlp.derivative_functions,
    }
    begin = time.monotonic()
    solver = ca.nlpsol("solver", "ipopt", nlp.as_casadi(), options)
    found = solver(x0=first, lbx=nlp.lower_w, ubx=nlp.upper_w, lbg=nlp.lower_g, ubg=nlp.upper_g)
    if callback.error is not None:
        raise callback.error
    stats = solver.stats()
    status = callback.ended or STATUSES.get(stats["return_status"], stats["return_status"])
    return SolverResult(
        np.array(found["x"]).ravel(),
        float(found["f"]),
        status,
        int(stats["iter_count"]),
        time.monotonic() - begin,
        np.array(found["lam_x"]).ravel(),
        np.array(found["lam_g"]).ravel(),
    )
