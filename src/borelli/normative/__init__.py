"""Normative data: published gait curves."""
