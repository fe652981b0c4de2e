"""Compiled kernels: compilation, cache, and arrays shared with kernels by address."""
