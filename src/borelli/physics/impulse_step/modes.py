"""Modes of an impulse step and of its position correction."""

EQUATIONS, LIMITED, CONTACTS = range(3)
"""Mode of a step: only equations act, so that factors are valid in all stages; controls have limits; bodies are in
contact, or some are outside the controller's world."""

FROM_START, REFACTOR, REUSE = range(3)
"""Mode of a correction: impulses at the start of the step, with the factors of stage 4; rows and factors of the present
poses; factors of an earlier correction."""

WHOLE_STEP, BEGIN, FINISH = range(3)
"""Part of each step that `run` makes."""
