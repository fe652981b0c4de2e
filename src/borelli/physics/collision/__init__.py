"""Contact points between shapes."""
