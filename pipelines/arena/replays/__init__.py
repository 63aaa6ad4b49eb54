"""Replays: a workload on a testbed under a scaling policy, and the resulting metrics."""
