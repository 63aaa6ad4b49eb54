"""Autopilots on running jobs, alone and many at a time, and beside the operator's autoscaler."""
