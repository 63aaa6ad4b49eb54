"""Planned jobs with production samples, in a few files: no testbed, model or Spark is needed to make them.

Each operator has one task in a window of 10 s:

    operator   records in   records out   CPU a record
    source          1,000         1,000           1 us
    window          1,000           100          20 us, or what production is said to take
    sink              100             0          10 us

Useful time is CPU time. Measured were two runs with just these figures, so an interval is 10 % on either side. With the plan's
2, 30 and 2 tasks the window saturates first, at 30 tasks / 20 us = 1,500,000 records/s.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import yaml

from models.plan.content import Plan, PlanContent
from pipelines.drift.production import find_samples
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import keep
from pipelines.inputs.parsing.files import read_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.gathering import FEATURES_FILE
from pipelines.run import OBSERVED_SAMPLES, PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

ROOT: Final = Path(__file__).resolve().parents[3]
RUN: Final = "measured"
WINDOW_S: Final = 10.0
CPU_S: Final[Mapping[str, float]] = {"source": 1e-6, "window": 20e-6, "sink": 10e-6}
RECORDS: Final[Mapping[str, tuple[float, float]]] = {
    "source": (1000.0, 1000.0),
    "window": (1000.0, 100.0),
    "sink": (100.0, 0.0),
}
"""In and out."""


def plan_job(
    workspace: Workspace, job: str, run: str = RUN, testbed: Literal["simulator", "running"] = "simulator"
) -> Plan:
    """Store the job's file, its request, the features of its measurements, and a plan.

    Args:
        testbed: `running`: the plan was made from the running job, of which a window of samples is stored in place of features.
    """
    file = _write_file(Path(workspace.url.removeprefix("file://")).parent / "jobs", job)
    measured = PipelineRun(PlanRequest(job=str(file), rate=800_000.0, run=run, testbed=testbed), workspace)
    measured.start()
    if testbed == "running":
        rows = [_sample_of(job, operator, run, CPU_S["window"]) for operator in CPU_S]
        workspace.write_table(measured.key(OBSERVED_SAMPLES), pa.Table.from_pylist(rows, SAMPLE_SCHEMA))
    else:
        features = [{"run": measured_in} | _feature_of(operator) for operator in CPU_S for measured_in in ("m1", "m2")]
        workspace.write_table(measured.key(FEATURES_FILE), pa.Table.from_pylist(features))
    plan = read_as(ROOT / "tests" / "data" / "plans" / "nexmark-q5-v1.json", Plan)
    content = {name: getattr(plan, name) for name in PlanContent.model_fields} | {"job": job}
    digests = plan.lineage.digests | {"samples": "0" * 64}
    content["lineage"] = plan.lineage.model_copy(update={"run": run, "digests": digests})
    return PlanStore(workspace).publish(PlanContent(**content), "2026-01-01T00:00:00+00:00")


def sample_production(workspace: Workspace, job: str, window_cpu_s: float = 20e-6, name: str = "hour-1") -> None:
    """Store a window of production samples in which a record costs the operator `window` so much."""
    rows = [_sample_of(job, operator, name, window_cpu_s) for operator in CPU_S]
    workspace.write_table(f"production/{job}/{name}.parquet", pa.Table.from_pylist(rows, SAMPLE_SCHEMA))


def keep_report(workspace: Workspace, job: str, drifted: bool) -> DriftReport:
    """Store the report of a check of the present samples, so that the next check has nothing to compute."""
    report = DriftReport(
        job=job,
        version=1,
        created_at="2026-01-02T00:00:00+00:00",
        plan_version=PlanStore(workspace).current(job).version,
        run=RUN,
        source_rate=100.0,
        samples=dict(find_samples(workspace, job, None, 1000).files),
        drifted=drifted,
        reason=f"records of {job} cost more" if drifted else "all is as it was measured",
        comparisons=(),
        busyness=(),
    )
    return keep(workspace, report)


def _write_file(folder: Path, job: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    document = yaml.safe_load((ROOT / "jobs" / "nexmark-q5.yaml").read_text()) | {"name": job, "sql": None}
    file = folder / f"{job}.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def _feature_of(operator: str) -> dict[str, Any]:
    records_in, records_out = RECORDS[operator]
    return {
        "operator": operator,
        "cpu_s_per_record": CPU_S[operator],
        "state_bytes_per_record": 0.0,
        "bytes_out_per_record": 100.0 * records_out / records_in,
        "selectivity": records_out / records_in,
        "true_rate_per_task": 1 / CPU_S[operator],
        "records_in_per_source_record": records_in / RECORDS["source"][0],
    }


def _sample_of(job: str, operator: str, name: str, window_cpu_s: float) -> dict[str, Any]:
    records_in, records_out = RECORDS[operator]
    busy_s = records_in * (window_cpu_s if operator == "window" else CPU_S[operator])
    return {
        "run": name,
        "job": job,
        "operator": operator,
        "task": 0,
        "worker": "tm-1",
        "phase": "observe",
        "time_s": WINDOW_S,
        "interval_s": WINDOW_S,
        "records_in": records_in,
        "records_out": records_out,
        "bytes_out": 100.0 * records_out,
        "busy_s": busy_s,
        "backpressured_s": 0.0,
        "idle_s": WINDOW_S - busy_s,
        "cpu_s": busy_s,
        "state_read_bytes": 0.0,
        "state_written_bytes": 0.0,
        "cache_hits": 0.0,
        "cache_misses": 0.0,
        "state_latency_s": None,
        "lag_records": 0.0 if operator == "source" else None,
    }
