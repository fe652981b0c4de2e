"""OpenSim models (.osim)."""
