"""Placing again while a plan runs: the fewest tasks that have to move."""
