"""Corrections of recordings: gaps, spikes, swapped labels, filtering, trimming."""
