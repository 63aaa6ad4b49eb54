"""Capacity from what a running job shows: its counters, its lag, and the rate that it takes."""
