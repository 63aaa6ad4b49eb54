"""A stage of a run in a process of its own, which outlives whoever started it, and is followed through the workspace."""
