"""Runs as tables and pages, beside what the arena says of the same."""
