"""Counters of a running job's tasks: what they grew by between two readings, and which of these intervals count."""
