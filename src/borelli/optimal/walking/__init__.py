"""Prediction of walking: the gait of a planar model with least effort at a given speed."""
