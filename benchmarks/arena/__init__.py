"""Scaling policies in the arena: convergence, cost beside each other and beside the lower bound, CPU time."""
