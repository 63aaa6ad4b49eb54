"""An evaluation: its jobs, workloads, policies and seeds, and the results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from models.cluster import Cluster
from models.errors import InvalidInput
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.policies import make_policy
from pipelines.arena.grid import FOLDER, Compute, Finished, cell_key, run_cells
from pipelines.arena.ranking import Ranking, rank
from pipelines.arena.replays.cell import MINUTE_S, Cell
from pipelines.arena.replays.compute import capacity
from pipelines.arena.replays.workloads import Pattern, Workload, pattern, read_workload
from pipelines.arena.request import EvaluationRequest, RescaleMode, StartSize
from pipelines.arena.results import results_table
from pipelines.arena.scoring.verdict import PolicyVerdict, verdict
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.progress import Progress
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace

PEAK_SHARE: Final = 0.5
"""Nominal peak rate of the patterns, as a share of the highest rate that the simulated cluster sustains. The rest is room to
catch up."""
PLACED_BY_CAPS: Final = "sluice"
"""The policy that includes a placement."""


@dataclass(frozen=True)
class Evaluation:
    """The results of a request."""

    finished: tuple[Finished, ...]
    rankings: tuple[Ranking, ...]
    results_key: str
    """Key of the Parquet table of all cells in the workspace, with `pipelines.arena.results.RESULTS_SCHEMA`."""

    def rankings_of(self, job: str, mode: RescaleMode) -> list[Ranking]:
        """Those of one job in one rescale mode."""
        return [ranking for ranking in self.rankings if (ranking.job, ranking.rescale_mode) == (job, mode)]

    @property
    def verdicts(self) -> dict[RescaleMode, PolicyVerdict]:
        """Over all jobs and workloads of each rescale mode."""
        modes = dict.fromkeys(ranking.rescale_mode for ranking in self.rankings)
        return {mode: verdict([r.group for r in self.rankings if r.rescale_mode == mode]) for mode in modes}


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
    return Evaluation(tuple(finished), tuple(rank(finished, request)), key)


def cells(request: EvaluationRequest) -> list[Cell]:
    """All cells of a request, validated as far as possible without a replay; raises as `evaluate`."""
    for policy, mode in product(request.policies, request.rescale_modes):
        make_policy(policy, request.settings_of(policy, mode))
    cluster = load_cluster(request.cluster)
    found = []
    for job in map(load_job, request.jobs):
        for name in request.workloads:
            for seed in range(request.seed, request.seed + request.seeds):
                workload = _workload(request, name, job, cluster, seed)
                cell = partial(_cell, request, job, cluster, workload, seed)
                for mode, start, policy in product(request.rescale_modes, request.starts, request.policies):
                    found += [cell(mode, start, policy, own) for own in request.swept_settings(policy, mode)]
    return found


def _cell(
    request: EvaluationRequest,
    job: Job,
    cluster: Cluster,
    workload: Workload,
    seed: int,
    mode: RescaleMode,
    start: StartSize,
    policy: str,
    settings: dict[str, JsonValue],
) -> Cell:
    several = any(worker.slots > 1 for worker in cluster.workers)
    return Cell(
        job=job,
        cluster=cluster,
        workload=workload,
        policy=policy,
        settings=_with_peak(policy, settings, workload),
        rescale_mode=mode,
        start=start,
        burn_in_s=_burn_in_s(request, workload),
        placement=request.placement or ("caps" if several and policy == PLACED_BY_CAPS else "evenly"),
        managed_memory_mb=request.managed_memory_mb,
        seed=seed,
    )


def _with_peak(policy: str, settings: dict[str, JsonValue], workload: Workload) -> dict[str, JsonValue]:
    """`static` is provisioned for the peak of the workload unless its settings say otherwise."""
    peak: dict[str, JsonValue] = {"rate": workload.peak_rate} if policy == "static" and workload.peak_rate > 0 else {}
    return peak | settings


def _burn_in_s(request: EvaluationRequest, workload: Workload) -> float:
    """In whole reporting intervals."""
    burn_in_s = round(request.burn_in_minutes * MINUTE_S / SAMPLE_INTERVAL_S) * SAMPLE_INTERVAL_S
    if burn_in_s >= workload.seconds:
        raise InvalidInput(
            f"the burn-in must be shorter than the workload, but workload {workload.name!r} lasts "
            f"{workload.seconds / MINUTE_S:g} minutes and burn_in_minutes is {request.burn_in_minutes:g}; give less"
        )
    return burn_in_s


def _workload(request: EvaluationRequest, name: str, job: Job, cluster: Cluster, seed: int) -> Workload:
    if name in set(Pattern):
        peak = request.peak_rate or PEAK_SHARE * capacity(job, cluster, request.managed_memory_mb).rate
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
