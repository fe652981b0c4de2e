"""Optimal control of recorded motions: tracking, muscles of a prescribed motion, and what-if."""
