"""Direct transcription: from a problem in time to a nonlinear program with finitely many unknowns."""
