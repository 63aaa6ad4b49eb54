"""Autopilots for tests: flights of a simulated job, deaths at a chosen step, and records of every kind."""
