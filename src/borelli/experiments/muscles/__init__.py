"""Experiments with muscles: Weinstein, Guendelman and Fedkiw (2008), section 6."""
