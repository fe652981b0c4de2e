from borelli.optimal.problem import Constraint as Constraint
from borelli.optimal.problem import Link as Link
from borelli.optimal.problem import Phase as Phase
from borelli.optimal.problem import Problem as Problem
from borelli.optimal.system import System as System
from borelli.optimal.system import Variable as Variable
from borelli.optimal.system import make_system as make_system
