"""Watching running jobs, which stay as they are: their samples, and what bounds them."""
