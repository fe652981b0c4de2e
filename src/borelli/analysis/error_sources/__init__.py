"""Sources of error of an analysis, drawn at random at their published sizes for Monte Carlo repeats."""
