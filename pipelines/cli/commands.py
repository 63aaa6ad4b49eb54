"""Imports every command module, so that each registers its commands on the app."""

from pipelines.cli import capacity, evaluate, jobs, models, placement, plan, plans, scale, thresholds  # noqa: F401
