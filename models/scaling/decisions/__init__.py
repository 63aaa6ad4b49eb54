"""Shared by the policies: bottlenecks, changes that a decision makes, and rules for single operators."""
