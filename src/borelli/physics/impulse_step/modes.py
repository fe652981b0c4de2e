"""Modes of an impulse step and of its position correction."""

EQUATIONS, LIMITED, CONTACTS, IN_PARTS = range(4)
"""Mode of a step: only equations act, so that factors are valid in all stages; controls have limits; bodies are in
contact, or some are outside the controller's world; contacts are known to the controller, or other forces replace its
impulses, so that the step is made in parts."""

FROM_START, REFACTOR, REUSE = range(3)
"""Mode of a correction: impulses at the start of the step, with the factors of stage 4; rows and factors of the present
poses; factors of an earlier correction."""

WHOLE_STEP, BEGIN, FINISH, CONTROL, REPLACE, POSITION = range(6)
"""Part of each step that `run` makes: all of it; up to the errors of controls, or from there on. In three parts from
there on: the solve for the impulses of controls; optionally a solve with other forces in their place; the rest."""
