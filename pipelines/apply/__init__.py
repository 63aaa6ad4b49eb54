"""Applying a plan to a running Flink job: prepare, rehearse, change, verify, and roll back on failure."""
