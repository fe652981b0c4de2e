"""Positions of the scalars that kernels get in packed arrays."""

# `Tables.parameters`
CONTACT_MARGIN, BOUNCE_SPEED, PUSH_OUT_SPEED, FRICTION_TOLERANCE, SQUARED_MARKER_SPEED, STEP_SIZE = range(6)

# `Tables.iteration_limits`
MAX_FRICTION_SOLVES, REFINEMENTS, GAUSS_SEIDEL_SWEEPS = range(3)

# `JointTables.row_ranges`: the first row of each kind; rows of a kind end where those of the next begin
JOINT_ROWS, COUPLING_ROWS, LIMIT_ROWS, DRIVE_ROWS, ROWS_END = range(5)

# columns of `Record.solver_stats`
NEWTON_ITERATIONS, FRICTION_SOLVES, CONTACT_COUNT, STATUS = range(4)

# columns of `Record.ground`: force impulse, contact points weighted by normal impulse, sum of normal impulses, angular
# impulse about the world origin
GROUND_IMPULSE, GROUND_POINT, GROUND_WEIGHT, GROUND_MOMENT = 0, 3, 6, 7
GROUND_COLUMNS = 10
