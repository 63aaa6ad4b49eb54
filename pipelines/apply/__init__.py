"""Applying a plan to a job that runs on Flink: prepare, rehearse, change, verify, and roll back on failure."""
