"""A whole analysis: settings, stages, resuming, uncertainty."""
