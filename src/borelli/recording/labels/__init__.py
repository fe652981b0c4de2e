"""Meanings of marker labels: landmark, side and segment, from the labels of any laboratory."""
