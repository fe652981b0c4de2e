"""Pictures, videos, plots and a browser workbench of what was simulated."""
