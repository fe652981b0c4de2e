"""The solver of a step: elimination, Newton, interior point, Gauss-Seidel, friction."""
