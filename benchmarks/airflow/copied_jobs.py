"""Many planned jobs from one that was measured: the same measurements, model and plan under other names.

Measuring and planning hundreds of jobs would take hours, and what follows or lists them does not depend on how their figures
came about. Everything is stored by the functions that Sluice itself stores it with.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import yaml

from autopilots.records import decided, state_of
from models.plan.content import Plan, PlanContent
from models.scaling.rate_band import RateChange, RateSample
from pipelines.control.files import AutopilotFiles
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import keep
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.planning.gathering import FEATURES_FILE
from pipelines.progress import TerminalProgress
from pipelines.rates.record import RateChangeEvent, keep_event, take
from pipelines.registry.models import APPROVED, SELECTION_TAG, find_version, promote, register, selection_tag
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.tracking import mlflow_errors, open_tracking
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord
from pipelines.store.plans import PlanStore
from pipelines.store.samples import samples_key
from pipelines.store.workspace import Workspace

ROOT: Final = Path(__file__).resolve().parents[2]
MODEL_JOB: Final = "wordcount"
RATE: Final = 30_000.0
"""That all jobs are planned for, records/s."""
PLANNED_AT: Final = "2026-01-01T00:00:00+00:00"
_OUTPUTS: Final[Mapping[str, Any]] = {EXPLORATION_FILE: ExplorationRecord, PROFILE_FILE: ProfileRecord}
_RUN: Final = "copied"
_EVENTS: Final = 12
"""Changes of the rate, and checks for drift, of each job."""


class CopiedJobs:
    """Jobs of a workspace that are planned as one of them was.

    Args:
        folder: of their files.
    """

    def __init__(self, workspace: Workspace, folder: Path) -> None:
        self.workspace, self.folder = workspace, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._document = yaml.safe_load((ROOT / "jobs" / f"{MODEL_JOB}.yaml").read_text()) | {"sql": None}
        self._measured = self._measure()

    def _measure(self) -> PipelineRun:
        """Measure and plan the job that the others are copies of, on the simulator."""
        file = self.write_file(MODEL_JOB, None)
        request = PlanRequest(job=str(file), rate=RATE, run=_RUN, max_measurements=3, max_task_slots=12)
        run = PipelineRun(request, self.workspace, TerminalProgress())
        run_all(run)
        return run

    def write_file(self, job: str, operations: Mapping[str, Any] | None) -> Path:
        """The job's file, with how it is operated."""
        file = self.folder / f"{job}.yaml"
        file.write_text(yaml.safe_dump(self._document | {"name": job, "operations": operations}))
        return file

    def add(self, job: str, operations: Mapping[str, Any] | None) -> Plan:
        """Store a job with its request, its measurements, a champion, samples of production, and a plan."""
        file = self.write_file(job, operations)
        run = PipelineRun(self._measured.request.model_copy(update={"job": str(file)}), self.workspace)
        run.start()
        for name, form in _OUTPUTS.items():
            self.workspace.once(run.key(name), {}, form, partial(self._measured.output, name, form))
        features = _of_job(self.workspace.read_table(self._measured.key(FEATURES_FILE)), job)
        self.workspace.write_table(run.key(FEATURES_FILE), features)
        self._register(run)
        self._store_production(job)
        content = {name: getattr(self._plan, name) for name in PlanContent.model_fields} | {"job": job}
        return PlanStore(self.workspace).publish(PlanContent(**content), PLANNED_AT)

    @property
    def _plan(self) -> Plan:
        return PlanStore(self.workspace).get(MODEL_JOB, 1)

    def _register(self, run: PipelineRun) -> None:
        job, tracking = run.job.name, open_tracking(self.workspace)
        own = self._measured.output(SELECTION_FILE, SelectionRecord)
        selection = own.model_copy(update={"job": job, "model_uri": f"models:/{job}/1", "model_version": 1})
        with mlflow_errors(tracking):
            source = tracking.client.get_model_version(own.job, str(own.model_version)).source or ""
            register(tracking, job, f"A copy of {own.model_uri}.")
            tags = {SELECTION_TAG: selection_tag(selection), "sluice.job": job}
            tracking.client.create_model_version(job, source, tags=tags)
            self.workspace.once(run.key(SELECTION_FILE), {}, SelectionRecord, lambda: selection)
            promote(self.workspace, tracking, find_version(tracking, job, 1), APPROVED, "the benchmark", "it is a copy")

    def _store_production(self, job: str) -> None:
        """Samples that show what was measured, so that nothing has drifted."""
        profile = self._measured.output(PROFILE_FILE, ProfileRecord).run
        samples = self.workspace.read_table(samples_key(MODEL_JOB, profile))
        samples = samples.append_column("job", pa.array([job] * len(samples)))
        samples = samples.append_column("run", pa.array(["window"] * len(samples)))
        self.workspace.write_table(f"production/{job}/window.parquet", samples)


def airflow_settings(workspace: Path) -> dict[str, str]:
    """Settings of an Airflow that works on the workspace with this checkout."""
    lines = (ROOT / "docker" / "airflow.env").read_text().splitlines()
    shared = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return shared | {
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "SLUICE_WORKSPACE": str(workspace),
    }


def operate(workspace: Workspace, job: str, now: datetime) -> None:
    """Store what a few days of operation leave: changes of the rate, checks for drift, and the state of an autopilot."""
    for number in range(1, _EVENTS + 1):
        rate = RATE * (1 + number / 100)
        change = RateChange(
            old_rate=RATE, new_rate=rate, low=0.9 * RATE, high=RATE, samples=(RateSample(time_s=0.0, rate=rate),)
        )
        at = now - timedelta(hours=number)
        event = RateChangeEvent(
            job=job, plan_version=1, number=number, reported_at=at, origin="Prometheus", change=change
        )
        keep_event(workspace, event)
        take(workspace, event.key, "a run")
        report = DriftReport(
            job=job,
            version=1,
            created_at=at.isoformat(timespec="seconds"),
            plan_version=1,
            run=_RUN,
            source_rate=rate,
            samples={},
            drifted=False,
            reason="all 9 comparisons of 3 operators are within the measured range",
            comparisons=(),
            busyness=(),
        )
        keep(workspace, report)
    AutopilotFiles(workspace, job).keep_state(state_of(decided(1, now, job), now, job))


def _of_job(table: pa.Table, job: str) -> pa.Table:
    return table.set_column(table.column_names.index("job"), "job", pa.array([job] * len(table)))
