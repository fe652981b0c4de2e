"""The engine: rows and their laws, the solver, the step, and what is measured."""
