"""Load sharing (static optimization): muscle activations and forces that produce given joint torques."""
