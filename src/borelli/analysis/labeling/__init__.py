"""Labels checked and found by geometry: a generic body is posed to the measured points."""
