"""Force elements of a simulation: springs, bushings, forces and drives in time; virtual sensors."""
