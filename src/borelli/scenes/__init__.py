"""Scenes: the gallery, scene files, and running them."""
