"""The effects around planning: gathering what was measured, replans, and threshold tables."""
