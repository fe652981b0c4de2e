"""Scenes: a model, how it starts, what acts on it, and for how long."""
