"""Measuring a job: the testbed, the configuration of a budget, and its MST."""
