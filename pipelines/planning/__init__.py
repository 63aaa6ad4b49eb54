"""The effects around planning: gathering measurements, replans, and threshold tables."""
