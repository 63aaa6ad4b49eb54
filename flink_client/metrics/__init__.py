"""Counters of a running job's tasks, read from Flink's REST interface or from Prometheus."""
