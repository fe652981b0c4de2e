"""Fitting a model to recordings, with the uncertainty of each parameter."""
