"""Reduced dynamics of models as CasADi expressions, for optimal control."""
