"""The threshold table of a job: placement thresholds for likely scalings, tuned ahead of time on Spark.

CAPSys section 5.2: "we can pre-compute thresholds for various possible scaling scenarios (combinations of operator
parallelism settings) offline and in parallel". The scenarios are the rates around the present one, each scaled as a
replan would scale it; rates that need the same tasks share a row.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
from pydantic import Field

from models.cluster import Cluster
from models.errors import Infeasible
from models.placement import Tuning
from models.planning.inputs import PlanningInputs
from models.planning.parallelism import Scaling
from models.planning.workers.planned import PlannedWorkers
from models.schema import Format, NonNegative, Positive
from pipelines.planning.gathering import gather
from pipelines.planning.replan_policy import scaled_for_replan
from pipelines.planning.threshold_request import ThresholdRequest
from pipelines.progress import Progress, Quiet
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.thresholds import FOLDER, ThresholdRow, add_rows, read_rows, scaling_key, table_key
from pipelines.store.workspace import Workspace

ROWS_PER_CORE: Final = 4
"""Rows per core that are tuned before they are written; a killed run loses at most these."""
SETTLED: Final = ("optimal", "feasible", "infeasible")
"""Rows with another status are tuned again."""


class Unreachable(Format):
    """A rate that no scaling serves."""

    rate: Positive
    reason: str


class ThresholdTable(Format):
    """A job's table."""

    job: str
    uri: str
    rows: tuple[ThresholdRow, ...] = Field(description="Rows of the requested rates, by rate; the table may hold more.")
    unreachable: tuple[Unreachable, ...] = Field((), description="Rates that are out of reach, by rate.")
    tuned: int = Field(ge=0, description="Number of rows tuned now; the others existed.")
    seconds: NonNegative


def threshold_table(
    workspace: Workspace, job: str, request: ThresholdRequest | None = None, progress: Progress | None = None
) -> str:
    """Make a job's threshold table, or add the missing rows; returns its URI. Raises as `make_table` does."""
    return make_table(workspace, job, request, progress).uri


def make_table(
    workspace: Workspace, job: str, request: ThresholdRequest | None = None, progress: Progress | None = None
) -> ThresholdTable:
    """Make a job's threshold table, or add the missing rows.

    Rows are stored a few at a time, so a killed run resumes with the missing ones.

    Args:
        job: name of a job that has a plan.

    Raises:
        InvalidInput: the job has no plan yet, or its plan's run is not in the workspace.
        SluiceError: Spark did not start, or its job failed.
    """
    began, request, progress = time.monotonic(), request or ThresholdRequest(), progress or Quiet()
    plan = PlanStore(workspace).current(job)
    run = PipelineRun.of_plan(workspace, plan, progress)
    known = gather(run)
    scalings, unreachable = _scalings(known, run, request, request.rate or plan.target_rate)
    rows, tuned = [], 0
    for key, alike in scalings.items():
        there = read_rows(workspace, key)
        missing = [name for name in alike if name not in there or there[name].status not in SETTLED]
        if missing:
            progress.say(f"threshold_table: {len(missing)} of {len(alike)} scalings to tune, on Spark")
            _tune(workspace, key, {name: alike[name] for name in missing}, request, progress)
            there = read_rows(workspace, key)
        rows += [there[name] for name in alike]
        tuned += len(missing)
    table = ThresholdTable(
        job=job,
        uri=workspace.uri(next(iter(scalings)) if len(scalings) == 1 else f"{FOLDER}/{job}"),
        rows=tuple(sorted(rows, key=lambda row: (row.rate, row.key))),
        unreachable=tuple(sorted(unreachable, key=lambda u: u.rate)),
        tuned=tuned,
        seconds=time.monotonic() - began,
    )
    progress.say(
        f"threshold_table: {len(table.rows)} scalings of {job}, {table.tuned} tuned now, "
        f"{len(unreachable)} rates out of reach, {table.seconds:.1f} s"
    )
    return table


class _RatedScaling(NamedTuple):
    """A scaling, the rate that needs it, records/s, and the workers that it is placed on."""

    rate: float
    scaling: Scaling
    cluster: Cluster


def _scalings(
    known: PlanningInputs, run: PipelineRun, request: ThresholdRequest, rate: float
) -> tuple[dict[str, dict[str, _RatedScaling]], list[Unreachable]]:
    """The distinct scalings by table and key, the nearest rates first, and the rates that have none.

    Scalings that a worker kind was picked for share a table if they have the same workers.
    """
    scalings: dict[str, dict[str, _RatedScaling]] = {}
    if isinstance(run.cluster, Cluster):
        scalings[table_key(known.operators, run.cluster)] = {}
    unreachable = []
    for factor in request.factors():
        wanted = factor * rate
        try:
            sizing, scaling, _ = scaled_for_replan(known, run, wanted)
            cluster = PlannedWorkers.of(run.cluster, sizing, scaling, wanted).cluster
        except Infeasible as error:
            unreachable.append(Unreachable(rate=wanted, reason=str(error)))
            continue
        if scaling.slots > cluster.slots or scaling.vertices:
            reason = f"it needs {scaling.slots} slots, but the cluster has {cluster.slots}"
            if scaling.vertices:
                reason = "thresholds of shared slots are tuned when a plan is made"
            unreachable.append(Unreachable(rate=wanted, reason=reason))
            continue
        alike = scalings.setdefault(table_key(known.operators, cluster), {})
        alike.setdefault(scaling_key(scaling, cluster), _RatedScaling(wanted, scaling, cluster))
    return scalings, unreachable


def _tune(
    workspace: Workspace,
    key: str,
    scalings: dict[str, _RatedScaling],
    request: ThresholdRequest,
    progress: Progress,
) -> None:
    """Tune the scalings of one table in parallel, and add them to it a few at a time."""
    # Spark takes long to import, which other commands do not need.
    from spark.session import session
    from spark.threshold_table import tune_scalings

    spark, cluster = session(), next(iter(scalings.values())).cluster
    parts = list(_parts(list(scalings), ROWS_PER_CORE * spark.sparkContext.defaultParallelism))
    for part in progress.track(parts, "tuning scalings"):
        dataflows = {name: scalings[name].scaling.dataflow for name in part}
        tuned = tune_scalings(spark, cluster, dataflows, seed=request.seed, time_limit_s=request.time_limit_s)
        add_rows(workspace, key, _rows(tuned, scalings))


def _rows(tuned: pa.Table, scalings: dict[str, _RatedScaling]) -> list[ThresholdRow]:
    rows = []
    for found in tuned.to_pylist():
        rate, scaling, _ = scalings[found["key"]]
        tuning = None if found["tuning"] is None else Tuning.model_validate_json(found["tuning"])
        rows.append(
            ThresholdRow(
                key=found["key"],
                rate=rate,
                parallelism=scaling.parallelism,
                memory_mb=max(o.memory_mb for o in scaling.dataflow.operators),
                total_slots=scaling.dataflow.tasks,
                status=found["status"],
                message=found["message"],
                thresholds=None if tuning is None else tuning.thresholds,
                seconds=found["seconds"],
                tuning=tuning,
            )
        )
    return rows


def _parts(names: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(names)
    while part := list(islice(rest, size)):
        yield part
