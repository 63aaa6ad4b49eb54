"""Replanning a running job: the placement that moves the fewest tasks."""
