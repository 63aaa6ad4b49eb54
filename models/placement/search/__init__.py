"""Searches for a plan within limits: the search tree of CAPS, and tabu repair."""
