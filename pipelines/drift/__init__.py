"""Drift: compares production with the measurements of a plan, and requests new measurements if they differ."""

from pipelines.drift.detect import detect_drift, drift_key, latest_drift
from pipelines.drift.production import jobs_with_samples, production_key
from pipelines.drift.record import DriftReport
from pipelines.drift.request import ReprofileRequest, request_reprofile

__all__ = [
    "DriftReport",
    "ReprofileRequest",
    "detect_drift",
    "drift_key",
    "jobs_with_samples",
    "latest_drift",
    "production_key",
    "request_reprofile",
]
