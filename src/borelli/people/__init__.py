"""Models of people: the generic human, the full skeleton, anthropometric tables."""
