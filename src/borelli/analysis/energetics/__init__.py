"""Power, work, energy balance and co-contraction."""
