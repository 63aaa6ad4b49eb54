"""Capacity models: what they predict at sizes that were not measured, and what each minute of measurements brings."""
