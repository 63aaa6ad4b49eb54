"""An evaluation: its jobs, workloads, policies and seeds, and the results."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from models.cluster import Cluster
from models.errors import InvalidInput
from models.job import Job
from models.scaling.policies import make_policy
from models.scaling.provision import sustainable_rate
from models.schema import SCHEMA_VERSION, Format, Positive, PositiveInt
from pipelines.arena.grid import FOLDER, Compute, Finished, cell_key, run_cells
from pipelines.arena.ranking import LATENCY_BOUND_S, Ranking, rank, results_table
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.workloads import SEED, Pattern, Workload, pattern, read_workload
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.progress import Progress
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace

PEAK_SHARE: Final = 0.5
"""Nominal peak rate of the patterns, as a share of the rate that the cluster sustains by the job's nominal costs. The rest
is room to catch up, and for contention and cache misses."""
PLACED_BY_CAPS: Final = "sluice"
"""The policy that includes a placement."""
AS_EVALUATED: Final[dict[str, dict[str, JsonValue]]] = {
    "ds2": {"over_provisioning_factor": 0.2, "warm_up_intervals": 10},
    "justin": {"over_provisioning_factor": 0.2},
}
"""Settings that differ from a policy's own defaults, so that it is compared as in section 6.1 of the evaluation of
autoscalers: DS2, and what builds on it, adds 20 % of tasks for spikes and for the lag of rescales; DS2 waits 5 minutes (10
intervals of 30 s) after each, as Dhalion and both HPA policies do by default."""


class EvaluationRequest(Format):
    """The replays to run: every job under every workload and policy, with every seed."""

    schema_version: Literal[1] = SCHEMA_VERSION
    jobs: tuple[str, ...] = Field(min_length=1, description="Names in the catalogue, or paths of job files.")
    workloads: tuple[str, ...] = Field(
        min_length=1, description="Patterns, or paths of CSV files of rates, each with :COLUMN where that is ambiguous."
    )
    policies: tuple[str, ...] = Field(min_length=1, description="Names of scaling policies.")
    settings: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict, description="Settings by policy, where they differ from those of the evaluation."
    )
    cluster: str = Field("arena", description="Name of a cluster of the catalogue, or path of a cluster file.")
    seed: int = Field(SEED, ge=0, description="The first seed; the default gives the published workloads.")
    seeds: PositiveInt = Field(1, description="Number of consecutive seeds, from the first on.")
    minutes: PositiveInt | None = Field(
        None, description="Length of the workloads, minutes; if absent, the whole of a file, and 140 for a pattern."
    )
    peak_rate: Positive | None = Field(
        None,
        description="Peak rate, records/s: nominal for patterns, the highest of a file. If absent, patterns reach a share "
        "of what the cluster sustains, and files keep their rates.",
    )
    placement: Literal["evenly", "caps"] | None = Field(
        None, description="Placement of tasks; if absent, evenly, but CAPS for 'sluice' on workers with several slots."
    )
    managed_memory_mb: Positive | None = Field(
        None, description="Managed memory of one task at the start, MiB; the even share of its TaskManager's if absent."
    )
    latency_bound_s: Positive = Field(LATENCY_BOUND_S, description="Bound on the p95 latency, seconds.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for what in ("jobs", "workloads", "policies"):
            names = getattr(self, what)
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(
                    f"each of {what} must be named once, but {twice[0]!r} appears {names.count(twice[0])} times"
                )
        strangers = sorted(self.settings.keys() - set(self.policies))
        if strangers:
            raise ValueError(f"there are settings for {strangers[0]!r}, which is not among the policies evaluated")
        return self

    def settings_of(self, policy: str) -> dict[str, JsonValue]:
        """Settings of a policy in the replays, and in use if it is chosen, as far as they differ from its defaults."""
        return AS_EVALUATED.get(policy, {}) | self.settings.get(policy, {})


@dataclass(frozen=True)
class Evaluation:
    """The results of a request."""

    finished: tuple[Finished, ...]
    rankings: tuple[Ranking, ...]
    results_key: str
    """Key of the Parquet table of all cells in the workspace, with `pipelines.arena.ranking.RESULTS_SCHEMA`."""


def evaluate(
    request: EvaluationRequest,
    workspace: Workspace,
    progress: Progress | None = None,
    processes: int | None = None,
    compute: Compute | None = None,
) -> Evaluation:
    """Replay all cells of the request, except those stored in the workspace.

    Args:
        processes, compute: see `pipelines.arena.grid.run_cells`.

    Raises:
        InvalidInput: a job, workload, policy or setting is unknown or unusable.
        Infeasible: a job does not fit the cluster.
    """
    return conclude(request, run_cells(cells(request), workspace, progress, processes, compute), workspace)


def conclude(request: EvaluationRequest, finished: Sequence[Finished], workspace: Workspace) -> Evaluation:
    """The table and the rankings of the request's cells."""
    name = digest([cell_key(one.cell) for one in finished])[:32]
    key = f"{FOLDER}/evaluations/{name}/results.parquet"
    workspace.write(f"{FOLDER}/evaluations/{name}/request.json", request)
    workspace.write_table(key, results_table(finished))
    return Evaluation(tuple(finished), tuple(rank(finished, request.latency_bound_s)), key)


def cells(request: EvaluationRequest) -> list[Cell]:
    """All cells of a request, validated as far as possible without a replay; raises as `evaluate`."""
    for policy in request.policies:
        make_policy(policy, request.settings_of(policy))
    cluster = load_cluster(request.cluster)
    found = []
    for job in map(load_job, request.jobs):
        for name in request.workloads:
            for seed in range(request.seed, request.seed + request.seeds):
                workload = _workload(request, name, job, cluster, seed)
                found += [_cell(request, job, cluster, workload, policy, seed) for policy in request.policies]
    return found


def _cell(request: EvaluationRequest, job: Job, cluster: Cluster, workload: Workload, policy: str, seed: int) -> Cell:
    several = any(worker.slots > 1 for worker in cluster.workers)
    return Cell(
        job=job,
        cluster=cluster,
        workload=workload,
        policy=policy,
        settings=request.settings_of(policy),
        placement=request.placement or ("caps" if several and policy == PLACED_BY_CAPS else "evenly"),
        managed_memory_mb=request.managed_memory_mb,
        seed=seed,
    )


def _workload(request: EvaluationRequest, name: str, job: Job, cluster: Cluster, seed: int) -> Workload:
    if name in set(Pattern):
        peak = request.peak_rate or PEAK_SHARE * sustainable_rate(job, cluster.slots)
        made = pattern(Pattern(name), peak, seed)
        return made if request.minutes is None else pattern(Pattern(name), peak, seed, request.minutes)
    read = _read(name)
    if request.minutes is not None:
        read = read.first(request.minutes)
    return read if request.peak_rate is None else read.scaled_to(request.peak_rate)


def _read(name: str) -> Workload:
    path, colon, column = name.rpartition(":")
    if colon and path.endswith(".csv"):
        return read_workload(Path(path), column)
    if not name.endswith(".csv"):
        raise InvalidInput(
            f"there is no workload {name!r}; there are {', '.join(Pattern)}, and CSV files of rates (FILE.csv, or "
            f"FILE.csv:COLUMN)"
        )
    return read_workload(Path(name))
