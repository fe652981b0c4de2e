"""Bounded reading of text, XML and netCDF; atomic writes; HTML summaries."""
