"""borelli and its peers on the same jobs, in the same run."""
