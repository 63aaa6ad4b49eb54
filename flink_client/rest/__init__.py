"""Flink's REST interface: requests and what is asked again, the typed answers, jars, jobs, savepoints and checkpoints."""
