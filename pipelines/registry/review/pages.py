"""Addresses of MLflow's pages, for people's browsers."""

import os
from typing import Final
from urllib.parse import urlsplit

from pipelines.registry.tracking import Tracking, without_password

PAGES_VARIABLE: Final = "SLUICE_MLFLOW_PAGES"
"""Environment variable: where people open MLflow, if that is another address than the one that Sluice calls."""


def pages_address(tracking: Tracking) -> str | None:
    """Where MLflow's pages are; None where Sluice writes to a database and no server is configured."""
    if address := os.environ.get(PAGES_VARIABLE):
        return address.rstrip("/")
    if urlsplit(tracking.uri).scheme in {"http", "https"}:
        return without_password(tracking.uri).rstrip("/")
    return None


def run_link(tracking: Tracking, experiment_id: str, run_id: str) -> str:
    """A run's page; without an address relative to MLflow's own pages, where descriptions are shown."""
    return f"{_base(tracking)}#/experiments/{experiment_id}/runs/{run_id}"


def version_link(tracking: Tracking, job: str, version: int) -> str:
    """The page of a model version, in the same way."""
    return f"{_base(tracking)}#/models/{job}/versions/{version}"


def _base(tracking: Tracking) -> str:
    address = pages_address(tracking)
    return "" if address is None else f"{address}/"
