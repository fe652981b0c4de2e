"""Constraint rows and their force-velocity laws."""
