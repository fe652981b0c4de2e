from borelli.physics.inputs import AppliedForce as AppliedForce
from borelli.physics.inputs import Drive as Drive
from borelli.physics.run_soft_steps import Simulation as Simulation
from borelli.physics.solver_settings import SolverSettings as SolverSettings
from borelli.physics.state import State as State
