"""Calibrating the simulator: a job's operators are measured on a real cluster, and the simulator is fitted to them."""
