"""Inputs of `models` that are small or made by hand, so that the right answers are known."""
