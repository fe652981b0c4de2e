"""The report: one HTML file with the results of an analysis and their reliability."""
