"""Published curves of normal movement, with their sources."""
