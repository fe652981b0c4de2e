"""Recordings that are made, not measured: the truth behind them is known. All say so in their notes."""
