"""The plans and models of a workspace as OpenMetrics: drift, how plans were applied, and models that wait for a person."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, get_args

from prometheus_client.core import GaugeMetricFamily, Metric, StateSetMetricFamily
from prometheus_client.registry import Collector

from models.errors import SluiceError
from pipelines.apply.applied import Outcome
from pipelines.apply.record import recorded
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import latest_drift
from pipelines.monitoring.exporter import JOB
from pipelines.registry.tracking import DATABASE, FOLDER, TRACKING_VARIABLE
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

PLAN: Final = "sluice_plan"
MODELS_EVERY_S: Final = 60.0
"""Time between two questions to MLflow, however often is scraped."""


class PlanCollector(Collector):
    """Reads the workspace when it is scraped, and MLflow now and then. What is unknown has no sample."""

    def __init__(self, workspace: Workspace, models_every_s: float = MODELS_EVERY_S) -> None:
        self._workspace, self._every_s = workspace, models_every_s
        self._lock = threading.Lock()
        self._asked_s: float | None = None
        self._waiting: Mapping[str, int] | None = {}

    def collect(self) -> Iterator[Metric]:
        """All families, each with the samples of all jobs."""
        with self._lock:
            yield from self._of_plans()
            yield from self._of_models()

    def _of_plans(self) -> Iterator[Metric]:
        version = GaugeMetricFamily(f"{PLAN}_version", "Version of the plan in force.", labels=[JOB])
        drifted = GaugeMetricFamily(
            f"{PLAN}_drifted",
            "1 if production differs from what the plan in force was measured with, by the newest report on it.",
            labels=[JOB],
        )
        checked = GaugeMetricFamily(
            f"{PLAN}_drift_checked_timestamp_seconds", "When that report was made.", labels=[JOB]
        )
        applied = StateSetMetricFamily(
            f"{PLAN}_apply_outcome", "How the newest application of the plan in force ended.", labels=[JOB]
        )
        unreadable = GaugeMetricFamily(
            f"{PLAN}_unreadable", "1 if the newest plan of the job, or a file about it, cannot be read.", labels=[JOB]
        )
        for job in PlanStore(self._workspace).jobs():
            try:
                number, report, outcome = self._of_job(job)
            except (SluiceError, OSError):
                unreadable.add_metric([job], 1.0)
                continue
            # A plan that was damaged is passed over for the version before it.
            unreadable.add_metric([job], float(number != PlanStore(self._workspace).versions(job)[-1]))
            version.add_metric([job], number)
            if report is not None:
                drifted.add_metric([job], float(report.drifted))
                checked.add_metric([job], datetime.fromisoformat(report.created_at).timestamp())
            if outcome is not None:
                applied.add_metric([job], {one: one == outcome for one in get_args(Outcome)})
        yield from (version, drifted, checked, applied, unreadable)

    def _of_job(self, job: str) -> tuple[int, DriftReport | None, Outcome | None]:
        """The plan's version, the newest report on it, and how its newest application ended. Raises Damaged."""
        plan = PlanStore(self._workspace).current(job)
        report = latest_drift(self._workspace, job)
        applications = recorded(self._workspace, job, plan.version)
        return (
            plan.version,
            report if report is not None and report.plan_version == plan.version else None,
            applications[-1].outcome if applications else None,
        )

    def _of_models(self) -> Iterator[Metric]:
        if self._asked_s is None or time.monotonic() - self._asked_s >= self._every_s:
            self._waiting, self._asked_s = waiting_models(self._workspace), time.monotonic()
        answers = GaugeMetricFamily("sluice_model_registry_up", "1 if MLflow answers, 0 if it does not.")
        answers.add_metric([], float(self._waiting is not None))
        waiting = GaugeMetricFamily(
            "sluice_models_waiting", "Capacity models that wait for a person's review.", labels=[JOB]
        )
        for job, count in (self._waiting or {}).items():
            waiting.add_metric([job], count)
        yield from (answers, waiting)


def waiting_models(workspace: Workspace) -> Mapping[str, int] | None:
    """Models of each job that wait for a person; None where MLflow does not answer. No database is made for the question."""
    if not os.environ.get(TRACKING_VARIABLE) and not workspace.exists(f"{FOLDER}/{DATABASE}"):
        return {}
    from pipelines.registry.models import (  # MLflow takes seconds to import
        CHALLENGER,
        PENDING,
        list_jobs,
        list_versions,
    )
    from pipelines.registry.tracking import mlflow_errors, open_tracking

    try:
        tracking = open_tracking(workspace)
        with mlflow_errors(tracking):
            return {
                job: sum(one.review == PENDING and CHALLENGER in one.aliases for one in list_versions(tracking, job))
                for job in list_jobs(tracking)
            }
    except SluiceError:
        return None
