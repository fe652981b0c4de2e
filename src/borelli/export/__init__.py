"""Results as files: whole stages to go on from, tables for other programs, figures for scripts."""
