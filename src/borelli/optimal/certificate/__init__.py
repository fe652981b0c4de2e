"""Certificates: independent checks that decide whether a solution is solved, whatever the solver reported."""
