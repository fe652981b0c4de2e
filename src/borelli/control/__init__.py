"""Targets that a body is asked to follow, and how it may approach them: the analytic response of a controller."""
