"""Measuring a job on a testbed: which testbed, the configuration of a budget, and its MST."""
