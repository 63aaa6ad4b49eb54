"""The arena: hours of a workload replayed against a testbed under a scaling policy, and what came of it."""
