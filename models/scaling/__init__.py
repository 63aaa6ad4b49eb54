"""Scaling: how many tasks each operator should have."""
