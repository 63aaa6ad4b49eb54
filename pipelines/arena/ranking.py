"""The ranking of policies by a stated rule, and the results of many cells as a table.

The rule, for each job and workload: among the policies whose p95 latency is within a bound, the one with the fewest
task-hours; if none is, the one with the lowest p95. Over several seeds the medians count.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import pyarrow as pa

from pipelines.arena.grid import Finished
from pipelines.arena.request import LATENCY_BOUND_S


@dataclass(frozen=True)
class Standing:
    """The result of a policy on one job and workload: medians over the seeds."""

    job: str
    workload: str
    policy: str
    latency_p50_s: float | None
    latency_p95_s: float | None
    throughput_ratio: float | None
    task_hours: float
    memory_gib_hours: float
    rescales: float
    downtime_s: float
    convergence_s: float | None
    """None if it did not converge with all seeds, or the workload has no lasting changes."""
    convergence_steps: float
    seeds: int
    within_bound: bool


@dataclass(frozen=True)
class Ranking:
    """The policies of one job and workload, best first, and why."""

    standings: tuple[Standing, ...]
    reason: str

    @property
    def winner(self) -> Standing:
        return self.standings[0]


def rank(finished: Sequence[Finished], bound_s: float = LATENCY_BOUND_S) -> list[Ranking]:
    """One ranking for each job, workload and rescale mode, in order of appearance; starts count as seeds do."""
    groups: dict[tuple[str, ...], dict[str, list[Finished]]] = defaultdict(lambda: defaultdict(list))
    for one in finished:
        cell = one.cell
        groups[cell.job.name, cell.workload.name, cell.rescale_mode][cell.policy].append(one)
    return [_ranked([_standing(runs, bound_s) for runs in group.values()], bound_s) for group in groups.values()]


def _standing(runs: Sequence[Finished], bound_s: float) -> Standing:
    cell, outcomes = runs[0].cell, [run.outcome for run in runs]
    p95 = _median([o.latency_p95_s for o in outcomes])
    return Standing(
        job=cell.job.name,
        workload=cell.workload.name,
        policy=cell.policy,
        latency_p50_s=_median([o.latency_p50_s for o in outcomes]),
        latency_p95_s=p95,
        throughput_ratio=_median([o.throughput_ratio for o in outcomes]),
        task_hours=median(o.task_hours for o in outcomes),
        memory_gib_hours=median(o.memory_gib_hours for o in outcomes),
        rescales=median(o.rescales for o in outcomes),
        downtime_s=median(o.downtime_s for o in outcomes),
        convergence_s=_median([o.convergence_s for o in outcomes]),
        convergence_steps=median(o.convergence_steps for o in outcomes),
        seeds=len(runs),
        within_bound=p95 is None or p95 <= bound_s,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _ranked(standings: Sequence[Standing], bound_s: float) -> Ranking:
    """Those within the bound by task-hours, then the others by latency."""
    ordered = sorted(
        standings,
        key=lambda s: (not s.within_bound, s.task_hours if s.within_bound else s.latency_p95_s, s.latency_p95_s or 0),
    )
    best = ordered[0]
    if len(ordered) == 1:
        kept = "within" if best.within_bound else "beyond"
        return Ranking(tuple(ordered), f"{best.policy}: replayed alone; its p95 latency is {kept} {bound_s:g} s")
    figures = f"{_latency(best)}, {best.task_hours:,.1f} task-hours"
    within = sum(s.within_bound for s in ordered)
    if within > 1:
        why = f"it takes the fewest task-hours of the {within} policies with a p95 latency within {bound_s:g} s"
    elif within:
        why = f"only its p95 latency is within {bound_s:g} s"
    else:
        why = f"no policy keeps the p95 latency within {bound_s:g} s, and this one has the lowest"
    reason = f"{best.policy}: {why} ({figures})"
    return Ranking(tuple(ordered), reason)


def _latency(standing: Standing) -> str:
    return "no records arrived" if standing.latency_p95_s is None else f"p95 {standing.latency_p95_s:,.1f} s"


def results_table(finished: Sequence[Finished]) -> pa.Table:
    """One row per cell: its inputs, its metrics, and the key of its trace."""
    rows = [
        {
            "job": one.cell.job.name,
            "workload": one.cell.workload.name,
            "policy": one.cell.policy,
            "seed": one.cell.seed,
            "cluster": one.cell.cluster.name,
            "placement": one.cell.placement,
            "rescale_mode": one.cell.rescale_mode,
            "start": one.cell.start,
            "burn_in_s": one.cell.burn_in_s,
            "least_between_s": one.cell.least_between_s,
            "peak_rate": one.cell.workload.peak_rate,
            **one.outcome.model_dump(exclude={"convergences"}),
            "convergence_s": one.outcome.convergence_s,
            "convergence_steps": one.outcome.convergence_steps,
            "key": one.key,
        }
        for one in finished
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS_SCHEMA)


_TEXT, _NUMBER, _COUNT = pa.string(), pa.float64(), pa.int64()
RESULTS_SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, _TEXT, nullable=False) for name in ("job", "workload", "policy")),
        pa.field("seed", _COUNT, nullable=False),
        *(pa.field(name, _TEXT, nullable=False) for name in ("cluster", "placement", "rescale_mode", "start")),
        *(pa.field(name, _NUMBER, nullable=False) for name in ("burn_in_s", "least_between_s", "peak_rate")),
        *(pa.field(name, _NUMBER) for name in ("latency_p50_s", "latency_p95_s")),
        *(pa.field(name, _NUMBER) for name in ("within_1_s", "within_10_s", "within_60_s")),
        *(pa.field(name, _NUMBER, nullable=False) for name in ("input_rate", "throughput")),
        pa.field("throughput_ratio", _NUMBER),
        *(
            pa.field(name, _NUMBER, nullable=False)
            for name in ("most_lag", "last_lag", "task_hours", "memory_gib_hours")
        ),
        *(pa.field(name, _COUNT, nullable=False) for name in ("most_tasks", "rescales", "refusals", "held_back")),
        pa.field("downtime_s", _NUMBER, nullable=False),
        pa.field("convergence_s", _NUMBER),
        pa.field("convergence_steps", _COUNT, nullable=False),
        pa.field("key", _TEXT, nullable=False),
    ]
)
"""Units as in `pipelines.arena.replays.cell.ReplayOutcome`."""
