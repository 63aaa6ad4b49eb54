"""The replays on which the findings of the evaluation of autoscalers are checked, and their metrics.

Settings are those of its section 6.1: Dhalion's scale-down factor 0.2, DS2's overprovisioning factor 0.2, targets of 70 %
for both HPA policies, and 5 minutes without an action after each rescale. For DS2 these are 10 warm-up intervals of 30 s.
The cluster has 70 slots, and the peak rates are those of `sluice evaluate`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from models.metrics import SAMPLE_INTERVAL_S
from pipelines.arena.evaluation import evaluate
from pipelines.arena.replays.cell import Convergence, ReplayOutcome, RescaleRecord
from pipelines.arena.replays.workloads import Pattern
from pipelines.arena.request import EvaluationRequest
from pipelines.inputs.catalogue import load_cluster
from pipelines.store.workspace import Workspace

JOBS: Final = {
    "Map": "nexmark-q1",
    "Filter": "nexmark-q2",
    "IJ": "nexmark-q3",
    "SA": "nexmark-q5",
    "SWA": "nexmark-q11",
}
"""The paper's names, and the catalogue's."""
POLICIES: Final = ("ds2", "dhalion", "hpa-cpu", "hpa-varga")
PER_MINUTE: Final = round(60 / SAMPLE_INTERVAL_S)
MOST_DELAY_MINUTES: Final = 20
LATE_S: Final = 10.0


@dataclass(frozen=True)
class Replay:
    """One policy on one job and workload; arrays float64[minutes], means of each minute."""

    job: str
    workload: str
    policy: str
    slots: int
    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]
    trace: pa.Table

    @property
    def p50_s(self) -> float:
        return self.outcome.latency_p50_s or 0.0

    @property
    def p95_s(self) -> float:
        return self.outcome.latency_p95_s or 0.0

    @property
    def steps(self) -> list[RescaleRecord]:
        """Completed rescales."""
        return [r for r in self.rescales if not r.refused]

    @cached_property
    def rounds(self) -> list[Convergence]:
        """How it converged after each change of the workload in steps.

        Tasks that stay since they take all slots are no convergence while records wait.
        """
        found = self.outcome.convergences
        ends = [round(c.change_s / 60) for c in found[1:]] + [len(self.tasks)]
        return [
            c.model_copy(update={"seconds": None}) if self._held_by_slots(end) else c
            for c, end in zip(found, ends, strict=True)
        ]

    def _held_by_slots(self, end: int) -> bool:
        """Whether all slots were taken and records waited just before this minute."""
        return bool(self.tasks[end - 1] >= self.slots and self._by_minute("latency_s")[end - 1] > LATE_S)

    @cached_property
    def rate(self) -> np.ndarray:
        return self._by_minute("rate")

    @cached_property
    def tasks(self) -> np.ndarray:
        return self._by_minute("tasks")

    @property
    def follows(self) -> float:
        """Correlation of tasks and rate."""
        return _correlation(self.rate, self.tasks)

    @property
    def delay_minutes(self) -> int:
        """Delay of the rate that correlates best with the tasks, minutes."""
        last = len(self.rate)
        delays = range(MOST_DELAY_MINUTES + 1)
        return max(delays, key=lambda d: _correlation(self.rate[: last - d], self.tasks[d:]))

    @property
    def full_share(self) -> float:
        """Share of time with 95 % of all slots or more in use."""
        return float(np.mean(self.tasks >= 0.95 * self.slots))

    @property
    def scale_downs(self) -> int:
        """Rescales to fewer tasks."""
        return int(np.sum(np.diff(self._deployed) < 0))

    @property
    def grown_at_once(self) -> int:
        """Most operators that grew in one rescale."""
        known = [self._first, *(r.parallelism for r in self.steps)]
        grown = [sum(b[n] > a[n] for n in a) for a, b in pairwise(known)]
        return max(grown, default=0)

    @property
    def shrinks_while_late(self) -> tuple[int, int]:
        """Rescales to fewer tasks that were decided while records waited for over 10 s, and all to fewer tasks."""
        late = self.trace["latency_s"].to_numpy() > LATE_S
        sizes = self._deployed
        shrinks = [r for r, before in zip(self.steps, sizes, strict=False) if r.tasks < before]
        return sum(bool(late[round(r.time_s / SAMPLE_INTERVAL_S) - 1]) for r in shrinks), len(shrinks)

    @property
    def _first(self) -> dict[str, int]:
        return dict(self.trace["parallelism"][0].as_py())

    @property
    def _deployed(self) -> list[int]:
        return [sum(self._first.values()), *(r.tasks for r in self.steps)]

    def _by_minute(self, column: str) -> np.ndarray:
        values = self.trace[column].to_numpy().astype(np.float64)
        return np.asarray(values[: len(values) // PER_MINUTE * PER_MINUTE].reshape(-1, PER_MINUTE).mean(axis=1))


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's; 0 where one of them never changes."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


class Replays:
    """All replays, by the paper's name of the query, workload and policy."""

    def __init__(self, found: Iterable[Replay]) -> None:
        self._found = {(r.job, r.workload, r.policy): r for r in found}

    def one(self, job: str, workload: str, policy: str) -> Replay:
        return self._found[job, workload, policy]

    def of(self, policy: str, jobs: Iterable[str], workloads: Iterable[str]) -> list[Replay]:
        """A policy's, over all jobs and workloads given."""
        workloads = list(workloads)
        return [self.one(job, workload, policy) for job in jobs for workload in workloads]

    def others(self, than: Replay) -> list[Replay]:
        """Replays of the other policies on the same job and workload."""
        return [self.one(than.job, than.workload, p) for p in POLICIES if p != than.policy]

    def __iter__(self) -> Iterator[Replay]:
        return iter(self._found.values())


SETTINGS: Final[dict[str, dict[str, JsonValue]]] = {
    "ds2": {"warm_up_intervals": 10},
    **{policy: {"cooldown_s": 300} for policy in ("dhalion", "hpa-cpu", "hpa-varga")},
}
"""Section 6.1: five minutes between two rescales."""


def replays(workspace: Workspace, seed: int, processes: int | None) -> Replays:
    """Each of the five queries under each of the five workloads and four policies, as `sluice evaluate` replays them."""
    cluster = load_cluster("arena")
    names = {catalogued: name for name, catalogued in JOBS.items()}
    request = EvaluationRequest(
        jobs=tuple(names),
        workloads=tuple(Pattern),
        policies=POLICIES,
        seed=seed,
        rescale_modes=("savepoint",),
        burn_in_minutes=0,
        settings=SETTINGS,
    )
    return Replays(
        Replay(
            job=names[done.cell.job.name],
            workload=done.cell.workload.name,
            policy=done.cell.policy,
            slots=cluster.slots,
            outcome=done.outcome,
            rescales=done.rescales,
            trace=done.trace(workspace),
        )
        for done in evaluate(request, workspace, processes=processes).finished
    )
