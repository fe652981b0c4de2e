"""The report: one HTML file that shows an analysis and how far to trust it."""
