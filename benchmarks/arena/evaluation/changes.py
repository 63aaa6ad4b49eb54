"""Supposed causes of why findings of the evaluation of autoscalers do not come out: changes of the replays of `findings.py`."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.arena.evaluation import checks
from benchmarks.arena.evaluation.runs import JOBS, Replays
from models.job import Job
from models.metrics import Activity
from models.scaling.decisions.tasks import Wanted
from models.scaling.dhalion import Dhalion
from models.scaling.rates import OperatorMetrics
from pipelines.arena.evaluation import PEAK_SHARE
from pipelines.arena.replays.metrics import TIMED_ROWS, Fetched, FlinkMetrics, MetricNoise, Totals
from pipelines.arena.replays.workloads import Workload

HEAVY_JOIN: Final = 100.0
"""Factor on the join's CPU cost: then it needs nine tenths of all tasks; with the catalogue's, less than a tenth."""
MORE_CPU: Final = 0.25
"""CPU of a task's process beside its own thread (network, garbage collection, fetching), as a share of its busy time."""
NOISY: Final = MetricNoise(records=0.05, time=0.15)
"""Five times the noise of the arena."""
SLIDE_S: Final = 60.0
"""How often the windows of Nexmark's query 5 fire as first published; each 2 s in the catalogue."""
GUST: Final = 0.2
"""Most by which a rate differs from that of its minute, as a share of it."""
GUST_S: Final = 10.0
"""How long such a rate lasts."""
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


class RoundingUp(Dhalion):
    """Removes fewer tasks: the paper does not say how a share of an operator's tasks is rounded."""

    def _lowered(self, metrics: OperatorMetrics, why: str, empty: bool) -> Wanted:
        lowered = super()._lowered(metrics, why, empty)
        return Wanted(min(metrics.parallelism, math.ceil(lowered.exact)), why, lowered.exact)


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
    workload: Callable[[Workload], Workload] = lambda workload: workload
    dhalion: type[Dhalion] = Dhalion
    metrics: Callable[[int], FlinkMetrics | None] = FlinkMetrics


def _heavy(job: Job) -> Job:
    """With a join that dominates the job."""
    if job.name != JOBS["IJ"]:
        return job

    def changed(o: Any) -> Any:
        cost = o.cost.model_copy(update={"cpu_s": o.cost.cpu_s * HEAVY_JOIN})
        return o.model_copy(update={"cost": cost}) if o.name == "join" else o

    return job.model_copy(update={"operators": tuple(changed(o) for o in job.operators)})


def _slow_slide(job: Job) -> Job:
    """With windows that slide each minute, and hold a record as often as the catalogue's, five times."""
    if job.name != JOBS["SA"]:
        return job
    document = job.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for o in document["operators"]:
        if "window" in o:
            o["window"] |= {"length_s": 5 * SLIDE_S, "slide_s": SLIDE_S}
        if "hot_period_s" in o.get("keys", {}):
            o["keys"]["hot_period_s"] = SLIDE_S
    return Job.model_validate(document)


def _gusty(workload: Workload) -> Workload:
    """With rates that change within each minute."""
    times = round(workload.step_s / GUST_S)
    rng = np.random.default_rng(len(workload.rates))
    rates = np.repeat(workload.rates, times) * rng.uniform(1 - GUST, 1 + GUST, times * len(workload.rates))
    return workload.model_copy(update={"step_s": GUST_S, "rates": tuple(map(float, rates))})


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
        (checks.sliding_by_ds2, checks.cpu_best_on_sliding, checks.ds2_follows),
        metrics=lambda seed: None,
    ),
    "prompt": Cause(
        "nothing that delays HPA: 60 s between two rescales, in place, and metrics as above",
        (checks.hpa_follows,),
        cell={"least_between_s": 60.0, "rescale_mode": "in-place"},
        hpa={"cooldown_s": 0},
        metrics=lambda seed: None,
    ),
    "cpu": Cause(
        f"CPU in use {MORE_CPU:.0%} above busy time",
        (checks.varga_worse_on_complex, checks.cpu_best_on_sliding),
        metrics=MoreCpu,
    ),
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
    "rounding": Cause(
        "Dhalion rounds up where it removes tasks",
        (
            checks.dhalion_takes_most,
            checks.join_by_dhalion,
            checks.random_swa_latency,
            checks.dhalion_is_slow,
            checks.dhalion_never_rests,
        ),
        dhalion=RoundingUp,
    ),
    "slides": Cause(
        "windows that slide each minute, not each 2 s",
        (checks.sliding_by_ds2, checks.cpu_best_on_sliding),
        job=_slow_slide,
    ),
    "gusts": Cause(
        "rates that change by up to a fifth each 10 s",
        (checks.varga_never_rests, checks.only_cpu_and_ds2_rest_on_map, checks.none_rests_on_swa),
        workload=_gusty,
    ),
    "redeploy": Cause(
        "rescales by redeployment: minutes of downtime, slow code after it",
        (
            checks.ds2_ignores_lag,
            checks.none_accounts_for_lag,
            checks.ds2_follows,
            checks.random_swa_latency,
            checks.varga_never_rests,
        ),
        cell={"rescale_mode": "redeploy"},
    ),
}
