"""Detecting drift: features of production beside those of the runs that the current plan was made from."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from models.planning.drift import BUSY, BYTES_OUT, CPU, SELECTIVITY, STATE, DriftTest, compare_costs, compare_mst
from pipelines.drift.production import ProductionSamples, find_samples, production_features
from pipelines.drift.record import Busyness, DriftReport, reason_of
from pipelines.drift.reports import keep, latest_drift
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.operations import Drifting
from pipelines.progress import Progress, Quiet
from pipelines.run import OBSERVED_SAMPLES, PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

_COLUMNS: Final = {
    CPU: "cpu_s_per_record",
    STATE: "state_bytes_per_record",
    BYTES_OUT: "bytes_out_per_record",
    SELECTIVITY: "selectivity",
}

Rows = Sequence[Mapping[str, Any]]


def detect_drift(
    workspace: Workspace, job: str, samples: str | None = None, progress: Progress | None = None
) -> DriftReport:
    """Compare a job's production with the measurements of its current plan, and store the report.

    The same samples are compared with the same plan only once.

    Args:
        job: name of a job that has a plan.
        samples: as for `find_samples`.

    Raises:
        InvalidInput: the job has no plan, or one made from published measurements; the samples cannot be compared.
        SluiceError: Spark did not start, or refused the samples.
    """
    progress = progress or Quiet()
    plan = PlanStore(workspace).current(job)
    run = origin_of(workspace, plan, progress)
    limits = drift_settings(run.job)
    found = find_samples(workspace, job, samples, limits.windows)
    report = _seen_before(workspace, plan, found) or keep(workspace, _compare(run, plan, found, limits))
    progress.say(f"drift: {'drift' if report.drifted else 'none'} in production of {job}: {report.reason}")
    return report


def origin_of(workspace: Workspace, plan: Plan, progress: Progress) -> PipelineRun:
    """The pipeline run that measured the job for a plan."""
    return PipelineRun.open(workspace, f"runs/{plan.job}/{plan.lineage.run}/request.json", progress)


def drift_settings(job: Job) -> Drifting:
    """The drift settings of the job's file, or the defaults."""
    return operations_of(job).drift


def _seen_before(workspace: Workspace, plan: Plan, found: ProductionSamples) -> DriftReport | None:
    newest = latest_drift(workspace, plan.job)
    same = newest is not None and (newest.plan_version, newest.samples) == (plan.version, dict(found.files))
    return newest if same else None


def _compare(run: PipelineRun, plan: Plan, found: ProductionSamples, limits: Drifting) -> DriftReport:
    measured_rows = _measured(run, plan)
    rows = production_features(run.job, found)
    measured, production = values_by_operator(measured_rows), values_by_operator(rows)
    comparisons = compare_costs(measured, production, limits.tolerance, limits.confidence)
    mst = compare_mst(
        plan.predicted_mst,
        {o.name: o.parallelism for o in plan.operators},
        _ratios(measured_rows, comparisons, of_production=False),
        _ratios(rows, comparisons, of_production=True),
        limits.tolerance,
        len(found.files),
    )
    comparisons = comparisons if mst is None else (*comparisons, mst)
    busyness = _busyness(rows, comparisons)
    return DriftReport(
        job=plan.job,
        version=1,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        plan_version=plan.version,
        run=plan.lineage.run,
        source_rate=_source_rate(run.job, rows),
        as_planned=_as_planned(plan, rows),
        samples=dict(found.files),
        drifted=any(c.drifted for c in comparisons),
        reason=reason_of(comparisons, busyness),
        comparisons=comparisons,
        busyness=busyness,
    )


def _measured(run: PipelineRun, plan: Plan) -> Rows:
    """Features of what the plan was made from."""
    named = f"plan {plan.job}@{plan.version}"
    if run.request.testbed == "recorded":
        raise InvalidInput(
            f"{named} was made from published measurements, which hold no unit costs to compare production with; plan the job "
            "on the simulator or on Flink"
        )
    if run.request.testbed != "running":
        rows: Rows = run.workspace.read_table(run.key("features.parquet")).to_pylist()
        return rows
    key = run.key(OBSERVED_SAMPLES)
    if not run.workspace.exists(key):
        raise InvalidInput(
            f"{named} was made from the running job, and its samples were not kept then; plan it from the running job again"
        )
    return production_features(run.job, ProductionSamples({run.workspace.uri(key): plan.lineage.digests["samples"]}))


def values_by_operator(rows: Rows) -> dict[str, dict[str, list[float]]]:
    """Operator -> quantity -> its value in each row that has it.

    A run in which no operator touched state is taken for one whose state backend does not count accesses.
    """
    values: dict[str, dict[str, list[float]]] = {}
    counted = {row["run"] for row in rows if row[_COLUMNS[STATE]]}
    for row in rows:
        own = values.setdefault(row["operator"], {})
        for quantity, column in _COLUMNS.items():
            if row[column] is not None and (quantity != STATE or row["run"] in counted):
                own.setdefault(quantity, []).append(row[column])
        if row["true_rate_per_task"]:
            own.setdefault(BUSY, []).append(1 / row["true_rate_per_task"])
    return values


def _ratios(rows: Rows, comparisons: Iterable[DriftTest], of_production: bool) -> dict[str, tuple[float, float]]:
    """Operator -> mean records in per source record, and mean useful seconds per record."""
    useful = {c.operator: c.production if of_production else c.expected for c in comparisons if c.quantity == BUSY}
    ratios: dict[str, list[float]] = {}
    for row in rows:
        if row["operator"] in useful and row["records_in_per_source_record"] is not None:
            ratios.setdefault(row["operator"], []).append(row["records_in_per_source_record"])
    return {name: (sum(values) / len(values), useful[name]) for name, values in ratios.items()}


def _busyness(rows: Rows, comparisons: Iterable[DriftTest]) -> tuple[Busyness, ...]:
    """Busyness at the rate that a task had in production, from the useful time per record."""
    rates: dict[str, list[float]] = {}
    for row in rows:
        rates.setdefault(row["operator"], []).append(row["observed_input_rate"] / row["tasks"])
    mean = {name: sum(values) / len(values) for name, values in rates.items()}
    return tuple(
        Busyness(
            operator=c.operator,
            production=c.production * mean[c.operator],
            expected=c.expected * mean[c.operator],
            low=c.low * mean[c.operator],
            high=c.high * mean[c.operator],
        )
        for c in comparisons
        if c.quantity == BUSY and c.operator is not None
    )


def _as_planned(plan: Plan, rows: Rows) -> bool:
    return all(plan.parallelism.get(row["operator"]) == row["tasks"] for row in rows)


def _source_rate(job: Job, rows: Rows) -> float:
    sources = {source.name for source in job.sources}
    windows = {row["run"] for row in rows}
    taken = (row["observed_input_rate"] or row["observed_output_rate"] for row in rows if row["operator"] in sources)
    return float(sum(taken) / len(windows))
