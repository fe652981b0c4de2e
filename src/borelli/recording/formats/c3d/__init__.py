"""C3D files, force plates included."""
