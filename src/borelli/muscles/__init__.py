"""Muscles: paths with wrapping, moment arms, force curves, activation and musculotendon dynamics, energy."""
