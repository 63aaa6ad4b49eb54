"""Drift: compares production with the measurements of a plan, and requests new measurements if they differ."""
