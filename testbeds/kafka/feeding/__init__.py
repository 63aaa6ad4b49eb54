"""Feeding topics at a set rate: generated records, and recorded topics in step."""
