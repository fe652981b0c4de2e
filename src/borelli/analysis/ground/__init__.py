"""Prediction of ground reaction forces from motion alone."""
