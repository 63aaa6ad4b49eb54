"""Why findings of the evaluation of autoscalers do not come out: each supposed cause is changed, one at a time.

    python -m benchmarks.arena.evaluation.causes --workspace FOLDER [--causes cooldown,join] [--seed 1066]

A cause is a change of the replays of `findings.py`, and the findings that it may explain. Only the replays that a
finding looks at are made; each is stored in the workspace, so a killed run resumes. A finding that comes out with the change
is explained by it as far as the simulator goes; one that does not is not explained by it.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.arena.evaluation import checks
from benchmarks.arena.evaluation.runs import JOBS, SETTINGS, Replay, Replays
from benchmarks.arena.evaluation.statements import FINDINGS
from models.job import Job
from models.metrics import Activity
from models.scaling.policies import make_policy
from pipelines.arena.evaluation import PEAK_SHARE
from pipelines.arena.grid import run_cells
from pipelines.arena.replays.cell import Cell, CellResult
from pipelines.arena.replays.compute import capacity, start, testbed, with_key_groups
from pipelines.arena.replays.metrics import TIMED_ROWS, Fetched, FlinkMetrics, MetricNoise, Totals
from pipelines.arena.replays.outcome import outcome, table
from pipelines.arena.replays.replay import replay
from pipelines.arena.replays.workloads import Pattern, pattern
from pipelines.arena.request import SEED, recommended_settings
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.store.workspace import Workspace

MODE: Final = "savepoint"
HEAVY_JOIN: Final = 100.0
"""Factor on the join's CPU cost: then it needs nine tenths of all tasks; with the catalogue's, less than a tenth."""
MORE_CPU: Final = 0.25
"""CPU of a task's process beside its own thread (network, garbage collection, fetching), as a share of its busy time."""
NOISY: Final = MetricNoise(records=0.05, time=0.15)
"""Five times the noise of the arena."""


FILLS: Final = 10
"""Buffers of an input: two of its channel and eight floating ones, Flink's defaults."""


class MoreCpu(FlinkMetrics):
    """CPU in use exceeds busy time."""

    def _as_measured(self, done: np.ndarray, tasks: Sequence[int], seconds: float) -> dict[str, np.ndarray]:
        values = super()._as_measured(done, tasks, seconds)
        return values | {"cpu_s": values["cpu_s"] * (1 + MORE_CPU)}


class OldGauges(FlinkMetrics):
    """Times are of the last refresh alone, as before Flink 1.17 (FLINK-30090); records are of the last minute."""

    def _done(self, first: Totals, last: Totals) -> np.ndarray:
        done = super()._done(first, last)
        before = self._seen[-2 - self._age]
        to_window = (last.seconds - first.seconds) / (last.seconds - before.seconds)
        done[TIMED_ROWS] = (last.added - before.added)[TIMED_ROWS] * to_window
        return done


class UnevenArrival(FlinkMetrics):
    """Records wait in front of tasks that keep up: as many buffers as in a queue of random arrivals (M/M/1)."""

    def _fetch(self) -> Fetched:
        found = super()._fetch()
        return Fetched({name: self._queued(own) for name, own in found.activity.items()}, found.arrival_rate)

    def _queued(self, did: Activity) -> Activity:
        busy = np.clip(did.busy_s / did.seconds, 0.0, 0.999)
        waiting = self._rng.geometric(1 - busy) - 1
        return replace(did, input_queue_share=np.maximum(did.input_queue_share, np.minimum(waiting / FILLS, 1.0)))


@dataclass(frozen=True)
class Cause:
    """A change of the replays."""

    what: str
    checks: tuple[Callable[[Replays], checks.Verdict], ...]
    cell: Mapping[str, Any] = field(default_factory=dict)
    """Fields of cells."""
    hpa: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the two HPA policies."""
    job: Callable[[Job], Job] = lambda job: job
    peak_share: float = PEAK_SHARE
    metrics: Callable[[int], FlinkMetrics | None] = FlinkMetrics


def _heavy(job: Job) -> Job:
    """With a join that dominates the job."""
    if job.name != JOBS["IJ"]:
        return job

    def changed(o: Any) -> Any:
        cost = o.cost.model_copy(update={"cpu_s": o.cost.cpu_s * HEAVY_JOIN})
        return o.model_copy(update={"cost": cost}) if o.name == "join" else o

    return job.model_copy(update={"operators": tuple(changed(o) for o in job.operators)})


CAUSES: Final = {
    "cooldown": Cause(
        "HPA without the cooldown of 5 minutes, 60 s between two rescales",
        (checks.cpu_stays_low_on_map, checks.hpa_follows),
        cell={"least_between_s": 60.0},
        hpa={"cooldown_s": 0},
    ),
    "join": Cause(
        f"a join that costs {HEAVY_JOIN:g} times as much", (checks.join_by_dhalion, checks.cpu_fails_on_ij), job=_heavy
    ),
    "peak": Cause(
        "a peak of all that 70 tasks take, not of half",
        (checks.varga_fills_the_cluster, checks.dhalion_takes_most),
        peak_share=1.0,
    ),
    "noise": Cause(
        "five times the noise of metrics",
        (checks.varga_never_rests, checks.only_cpu_and_ds2_rest_on_map, checks.none_rests_on_swa),
        metrics=partial(FlinkMetrics, noise=NOISY),
    ),
    "unsmoothed": Cause(
        "metrics of the last interval alone, exact",
        (checks.sliding_by_ds2, checks.cpu_best_on_sliding),
        metrics=lambda seed: None,
    ),
    "cpu": Cause(f"CPU in use {MORE_CPU:.0%} above busy time", (checks.varga_worse_on_complex,), metrics=MoreCpu),
    "gauges": Cause(
        "times of the last 5 s beside records of the last minute, as before Flink 1.17",
        (
            checks.sliding_by_ds2,
            checks.cpu_best_on_sliding,
            checks.varga_worse_on_complex,
            checks.varga_never_rests,
            checks.only_cpu_and_ds2_rest_on_map,
            checks.none_rests_on_swa,
            checks.hpa_follows,
        ),
        metrics=OldGauges,
    ),
    "queues": Cause(
        "input buffers as full as those of a queue of random arrivals",
        (checks.dhalion_takes_most, checks.join_by_dhalion, checks.random_swa_latency, checks.dhalion_is_slow),
        metrics=UnevenArrival,
    ),
    "start": Cause(
        "a start with half of the tasks that the first rate needs",
        (checks.dhalion_takes_most, checks.join_by_dhalion, checks.random_swa_latency, checks.ds2_follows),
        cell={"start": "under"},
    ),
    "redeploy": Cause(
        "rescales by redeployment: minutes of downtime, slow code after it",
        (checks.ds2_ignores_lag, checks.none_accounts_for_lag, checks.ds2_follows, checks.random_swa_latency),
        cell={"rescale_mode": "redeploy"},
    ),
}


class LazyReplays(Replays):
    """Replays with a cause changed, made when a check looks at them."""

    def __init__(self, name: str, cause: Cause, url: str, seed: int) -> None:
        super().__init__(())
        self._cause, self._seed = cause, seed
        self._workspace = Workspace(f"{url.rstrip('/')}/{name}")

    def one(self, job: str, workload: str, policy: str) -> Replay:
        if (job, workload, policy) not in self._found:
            self._found[job, workload, policy] = self._replayed(job, workload, policy)
        return self._found[job, workload, policy]

    def _replayed(self, job: str, workload: str, policy: str) -> Replay:
        cell = _cell(self._cause, JOBS[job], workload, policy, self._seed)
        (done,) = run_cells([cell], self._workspace, compute=partial(_computed, self._cause))
        trace = done.trace(self._workspace)
        return Replay(job, workload, policy, cell.cluster.slots, done.outcome, done.rescales, trace)


@cache
def _peak_rate(job_json: str) -> float:
    return capacity(Job.model_validate_json(job_json), load_cluster("arena")).rate


def _cell(cause: Cause, job_name: str, workload: str, policy: str, seed: int) -> Cell:
    job = cause.job(load_job(job_name))
    peak = cause.peak_share * _peak_rate(job.model_dump_json(by_alias=True))
    settings = recommended_settings(policy, MODE) | SETTINGS[policy]
    return Cell.model_validate(
        {
            "job": job,
            "cluster": load_cluster("arena"),
            "workload": pattern(Pattern(workload), peak, seed),
            "policy": policy,
            "settings": {**settings, **(cause.hpa if policy.startswith("hpa") else {})},
            "rescale_mode": MODE,
            "burn_in_s": 0,
            "seed": seed,
            **cause.cell,
        }
    )


def _computed(cause: Cause, cells: Mapping[str, Cell]) -> Iterator[tuple[str, CellResult]]:
    """As `run_cell`, with the metrics of the cause."""
    for key, cell in cells.items():
        begin = start(cell)
        job = with_key_groups(cell.job, begin.parallelism)
        policy = make_policy(cell.policy, cell.settings)
        trace = replay(
            testbed(cell), job, cell.workload, policy, begin,
            least_between_s=cell.least_between_s, metrics=cause.metrics(cell.seed),
        )  # fmt: skip
        yield key, CellResult(outcome(trace, cell.workload, cell.burn_in_s), trace.rescales, table(trace))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", required=True, help="folder or URL where replays are stored")
    parser.add_argument("--causes", default=",".join(CAUSES))
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 170)
    found = Table(title="Findings with one cause changed", show_lines=True)
    for column in ("change", "finding", "measured", "comes out"):
        found.add_column(column)
    papers = {finding.check: finding.paper for finding in FINDINGS}
    for name in given.causes.split(","):
        all_ = LazyReplays(name, CAUSES[name], given.workspace, given.seed)
        for check in CAUSES[name].checks:
            measured, agrees = check(all_)
            console.print(f"{name}, {check.__name__}: {escape(measured)}: {'yes' if agrees else 'no'}")
            paper = papers.get(check, check.__doc__ or "")
            found.add_row(CAUSES[name].what, escape(paper), escape(measured), "yes" if agrees else "no")
    console.print(found)


if __name__ == "__main__":
    main()
