from borelli.dynamics.generalized_dynamics import bias_forces as bias_forces
from borelli.dynamics.generalized_dynamics import body_jacobian as body_jacobian
from borelli.dynamics.generalized_dynamics import forward_dynamics as forward_dynamics
from borelli.dynamics.generalized_dynamics import linearize as linearize
from borelli.dynamics.generalized_dynamics import mass_matrix as mass_matrix
from borelli.dynamics.model_dynamics import ModelDynamics as ModelDynamics
