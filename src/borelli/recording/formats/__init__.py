"""Readers and writers of recordings, one module or package per format."""
