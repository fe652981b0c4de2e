"""Reduced coordinates: the same model as a tree of turns and shifts, for poses that fit markers and for many frames."""
