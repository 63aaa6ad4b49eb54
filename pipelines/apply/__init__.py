"""Applying a plan to a job that runs on Flink: what is to be done, doing it, making sure, and going back on failure."""
