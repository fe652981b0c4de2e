"""Solver of constraint rows: elimination, Newton, interior point, Gauss-Seidel, friction."""
