"""The workers of a plan: which kind, how many, and whether the price limit holds."""
