"""Baselines for CAPS: Flink's own policies, a random plan, and ODRP."""
