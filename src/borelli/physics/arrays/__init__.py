"""A Model compiled into arrays for kernels."""
