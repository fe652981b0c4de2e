"""Scaling of a model by measured distances, as OpenSim's ScaleTool does."""
