"""Samples of a running job, from the counters of its tasks, its sources and its TaskManagers."""
