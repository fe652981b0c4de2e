"""Compiled geometry of muscle paths: wrapping, lengths, forces per unit tension and moment arms."""
