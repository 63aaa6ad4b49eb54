"""The loop of the arena: records arrive, the policy observes the operators, and its decisions are deployed.

Rulings. A policy is called at multiples of its interval, with rates over the running time since the last call
(`pipelines.arena.replays.metrics`); not while the job is down, nor within a reporting interval after that, nor before
metrics were fetched in which every operator has taken a record. A decision is ignored within `least_between_s` after a
rescale, and otherwise limited to the cluster (`models.scaling.limits`); if nothing is left to change, the job continues
unchanged. All tasks take a slot, including those of sources.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np

from models.errors import Infeasible, InvalidInput
from models.job import Job, records_in_per_source_record
from models.metrics import SAMPLE_INTERVAL_S
from models.plan.parts import Placement
from models.resources.memory import deployed_memory_mb
from models.scaling.control.deciding import RunningTasks, decide
from models.scaling.control.guard import Hold
from models.scaling.limits import Granted, most_tasks, within
from models.scaling.meter import Meter, MeteredGraph
from models.scaling.policy import Facts, Policy, Rescaled
from models.scaling.rates import Rates
from pipelines.arena.replays.cell import RescaleRecord
from pipelines.arena.replays.metrics import FlinkMetrics
from pipelines.arena.replays.workloads import Workload
from testbeds.protocol import Configuration, ElasticRun, Served, Testbed

_CLOCK_S: Final = 1e-6
"""Times closer than this are equal."""

Placer = Callable[[Mapping[str, int], float], Placement | None]
"""The placement for the current parallelism and rate; None leaves it to the testbed."""


@dataclass(frozen=True)
class Start:
    """The initial deployment of a replay."""

    parallelism: Mapping[str, int]
    memory_mb: float
    """Of one TaskManager, MiB."""
    managed_memory_mb: Mapping[str, float]
    """Of one task of each operator, MiB."""
    seed: int


@dataclass
class Trace:
    """The course of a replay; arrays float64[reporting intervals]."""

    rate: np.ndarray
    read: np.ndarray
    """Records read in each interval."""
    lag: np.ndarray
    running_s: np.ndarray
    capacity: np.ndarray
    """Capacity, records/s; NaN where it is unknown."""
    deployed: tuple[tuple[int, Mapping[str, int], float], ...]
    """First interval with these tasks, the tasks, and the memory of all of them, MiB."""
    rescales: tuple[RescaleRecord, ...]
    held_back: tuple[float, ...] = ()
    """When a recommendation was ignored since the last rescale was too recent, seconds since the start."""


def replay(
    testbed: Testbed,
    job: Job,
    workload: Workload,
    policy: Policy,
    start: Start,
    placer: Placer = lambda parallelism, rate: None,
    least_between_s: float = 0.0,
    metrics: FlinkMetrics | None = None,
) -> Trace:
    """Run the job through the workload under the policy, which rescales it at most once in `least_between_s` of running.

    Args:
        metrics: what the policy gets of what the operators did; None: all that they did since its last call, exactly.

    Raises:
        InvalidInput: the testbed cannot rescale, or lacks a metric that the policy needs.
        Infeasible: the initial deployment does not fit the testbed.
    """
    configuration = Configuration(
        parallelism=dict(start.parallelism),
        memory_mb=start.memory_mb,
        placement=placer(start.parallelism, workload.rates[0]),
        managed_memory_mb=dict(start.managed_memory_mb),
    )
    with testbed.deploy(job, configuration, run=f"arena-{policy.name}", seed=start.seed) as run:
        if not hasattr(run, "serve"):
            raise InvalidInput(f"the testbed {testbed.name!r} cannot rescale a running job; use the simulator")
        loop = _Loop(cast(ElasticRun, run), job, policy, testbed.cluster.slots, placer, least_between_s, metrics)
        for i, rate in enumerate(workload.rates):
            loop.serve(rate, until=round((i + 1) * workload.step_s / SAMPLE_INTERVAL_S))
        return loop.trace()


@dataclass
class _Loop:
    """Time is counted in reporting intervals since the start."""

    run: ElasticRun
    job: Job
    policy: Policy
    slots: int
    placer: Placer
    least_between_s: float
    metrics: FlinkMetrics | None
    now: int = 0
    ran_s: float = 0.0
    """How long the job has run since the policy was last called, seconds."""
    up_s: float = 0.0
    """When the job runs, or will run again."""
    last: Rescaled | None = None
    served: list[Served] = field(default_factory=list)
    capacity: list[tuple[int, int, float]] = field(default_factory=list)
    """First reporting interval of a measured capacity, one after the last, and its value."""
    deployed: list[tuple[int, Mapping[str, int], float]] = field(default_factory=list)
    rescales: list[RescaleRecord] = field(default_factory=list)
    held_back: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.every = round(self.policy.interval_s / SAMPLE_INTERVAL_S)
        self.most = most_tasks(self.job)
        self.ratio = records_in_per_source_record(self.job)
        self.meter = Meter(MeteredGraph.of(self.job))
        self._take_note()

    def _take_note(self) -> None:
        """Memory of the deployments from now on."""
        running = self.run.configuration
        self.ran_s = 0.0
        if self.metrics:
            self.metrics.restart()
        self.meter.deployed(running.parallelism, running.managed_memory_mb)
        self.deployed.append(
            (self.now, running.parallelism, deployed_memory_mb(running.parallelism, running.managed_memory_mb))
        )

    def serve(self, rate: float, until: int) -> None:
        """Let records arrive at `rate` until then, while the policy acts."""
        while self.now < until:
            end = self.now + 1 if self.metrics else min(until, (self.now // self.every + 1) * self.every)
            served = self.run.serve(rate, (end - self.now) * SAMPLE_INTERVAL_S)
            self.now = end
            self.served.append(served)
            self.ran_s += served.running_s
            self._measure(served, rate)
            if end % self.every == 0:
                self._tick(rate)

    def _measure(self, served: Served, rate: float) -> None:
        if self.metrics is None:
            self.meter.record(served.activity, rate)
            return
        fetched = self.metrics.refresh(served.activity, rate)
        if fetched is not None:
            self.meter.record(fetched.activity, fetched.arrival_rate)

    def _tick(self, rate: float) -> None:
        seconds, self.ran_s = self.ran_s, 0.0
        if seconds < SAMPLE_INTERVAL_S:
            self.meter.restart()
            return
        if self.metrics and self.metrics.latest and not self.meter.seconds:
            self.meter.record(self.metrics.latest.activity, self.metrics.latest.arrival_rate)
        rates = self.meter.read()
        if rates is None:
            return
        self.capacity.append((self.now - round(seconds / SAMPLE_INTERVAL_S), self.now, self._capacity(rates)))
        time_s, running = self.now * SAMPLE_INTERVAL_S, self.run.configuration
        step = decide(
            self.policy,
            Facts(time_s, seconds, rates, self.last, self.slots),
            RunningTasks(running.parallelism, running.managed_memory_mb),
            lambda: self._too_soon(time_s),
            lambda wanted, tasks: within(wanted, tasks, self.slots, self.most),
        )
        if step.held is not None and step.held.limit == "interval":
            self.held_back.append(time_s)
        elif step.granted is not None:
            self._deploy(step.granted, step.memory_mb, step.advice.reason, rate)

    def _too_soon(self, time_s: float) -> Hold | None:
        if self.last is None or time_s >= self.last.ended_s + self.least_between_s - _CLOCK_S:
            return None
        return Hold("interval", "the last rescale is too recent")

    def _capacity(self, rates: Rates) -> float:
        """Rate of the sources at which the first operator is busy all the time."""
        true = {name: m.true_processing_rate for name, m in rates.operators.items()}
        return min(value / self.ratio[name] for name, value in true.items() if value and self.ratio[name] > 0)

    def _deploy(self, granted: Granted, memory: Mapping[str, float], reason: str, rate: float) -> None:
        time_s, note, downtime_s, state_mb = self.now * SAMPLE_INTERVAL_S, granted.note, 0.0, 0.0
        try:
            wanted = Configuration(
                parallelism=granted.parallelism,
                memory_mb=self.run.configuration.memory_mb,
                placement=self.placer(granted.parallelism, rate),
                managed_memory_mb=dict(memory),
            )
            done = self.run.rescale(wanted)
        except Infeasible as error:
            note, refused = str(error), True
        else:
            refused, downtime_s, state_mb = False, done.downtime_s, done.state_mb
            self.up_s = time_s + downtime_s
            self.last = Rescaled(self.up_s, downtime_s, state_mb)
            self._take_note()
        self.rescales.append(
            RescaleRecord(
                time_s=time_s,
                downtime_s=downtime_s,
                state_mb=state_mb,
                tasks=sum(granted.parallelism.values()),
                parallelism=granted.parallelism,
                memory_mb=dict(memory),
                reason=reason,
                note=note,
                refused=refused,
            )
        )

    def trace(self) -> Trace:
        capacity = np.full(self.now, np.nan)
        for first, end, value in self.capacity:
            capacity[first:end] = value
        return Trace(
            rate=np.concatenate([s.arrived for s in self.served]) / SAMPLE_INTERVAL_S,
            read=np.concatenate([s.read for s in self.served]),
            lag=np.concatenate([s.lag for s in self.served]),
            running_s=np.concatenate([_running_s(s) for s in self.served]),
            capacity=capacity,
            deployed=tuple(self.deployed),
            rescales=tuple(self.rescales),
            held_back=tuple(self.held_back),
        )


def _running_s(served: Served) -> np.ndarray:
    """Seconds of each interval that the job ran; downtime is at the beginning."""
    ends = SAMPLE_INTERVAL_S * np.arange(1, len(served.read) + 1)
    return np.asarray(np.clip(ends - (served.seconds - served.running_s), 0.0, SAMPLE_INTERVAL_S))
