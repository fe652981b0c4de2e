"""Readers and writers of model files, one module or package per format."""
