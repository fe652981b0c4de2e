"""Tests of this folder need CasADi."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("casadi") else ["test_*.py"]
