"""Experiments: what the method can do, measured on motions whose truth is known, beside published figures."""
