"""Forces of contacts in a state: those of the next step."""
