"""Muscles and ligaments that move a model forward: their state and their forces in every step, soft or impulse."""
