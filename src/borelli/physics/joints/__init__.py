"""Joint frames; coordinates from poses and back."""
