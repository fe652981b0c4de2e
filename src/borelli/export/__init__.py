"""Results as files: stages to continue from, tables for other programs, and a summary."""
