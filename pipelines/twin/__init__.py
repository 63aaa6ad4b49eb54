"""A job's twin: from the samples of its small runs to a simulated job, and the MST that it predicts at any size."""
