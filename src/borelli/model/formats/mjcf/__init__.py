"""MuJoCo models (MJCF)."""
