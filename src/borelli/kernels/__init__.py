"""Compiled kernels: how they are compiled and cached, and how arrays are shared with them."""
