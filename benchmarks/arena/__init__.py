"""Scaling policies in the arena: cost beside each other and beside the lower bound, CPU time; studies of others repeated."""
