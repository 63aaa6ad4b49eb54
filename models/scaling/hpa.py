"""The Kubernetes Horizontal Pod Autoscaler at operator level (evaluation of autoscalers, sections 4.3 and 4.4).

Every operator is scaled on its own, a task being a pod. With p tasks now, and one or several metrics, each with a
target:

    ratio        metric / target
    proposal     p where |ratio - 1| <= tolerance, ceil(p x ratio) otherwise                                    (Eq. 4)
    desired      the largest proposal of all metrics
    scale up     at once, to at most max(2 p, p + 4) tasks, the default limits of Kubernetes for one sync period
    scale down   to the largest desired number of the stabilisation window; when p was first seen counts as one

HPA-CPU has one metric, the CPU in use over the CPU of its tasks. HPA-Varga has two:

    utilization             1 - share of time idle, mean over the tasks                                         (Eq. 5)
    relative lag change     1 + growth of the lag / records consumed, of all sources together                   (Eq. 6)

The sync period is 15 s, the tolerance 10 %, the stabilisation window 5 minutes, all as in Kubernetes.

Rulings, where the papers are silent:

- A task has one core (section 6.1: each TaskManager has one CPU and one task).
- "Input throughput" (Eq. 6) is what the sources read, so that the relative lag change is arrivals / consumption. Where
  they read nothing while lag grows, it asks for as many tasks as the limits allow.
- The relative lag change is measured for the job and assigned to the one operator responsible: a bottleneck, not
  backpressured itself while one upstream of it is (as Dhalion's; the log of a source with lag counts as upstream of
  it); of several, the one with the highest utilisation. All others are scaled by their utilisation alone.
- Below the lag threshold (in records, of all sources) the relative lag change is ignored.
- A source whose metric is not measured keeps its tasks; a lag that is not measured counts as none.
- During the cooldown after a rescale (section 6.1) recommendations are recorded, as Kubernetes does each period, but not
  followed. So work caught up after a restart holds back scaling down.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.decisions.backpressure import THRESHOLD, bottlenecks, measured
from models.scaling.decisions.tasks import Wanted, cooling_down, decision_of, recommend, round_up
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import OperatorMetrics, Rates
from models.schema import Format, NonNegative, Positive, Ratio
from models.wording import amount
from models.wording import tasks as task_count

_SCALE_UP_FACTOR: Final = 2
"""Kubernetes' default scale-up policy `Percent`: 100 % more in 15 s."""

_SCALE_UP_TASKS: Final = 4
"""Kubernetes' default scale-up policy `Pods`: 4 more in 15 s; the larger of the two applies."""

_MOST_TASKS: Final = 1e9
"""A ratio that asks for as many tasks as the limits allow."""

_ROUNDING: Final = 1e-9
"""Keeps a ratio at the edge of the tolerance within it."""


class HpaSettings(Format):
    """Settings of both policies, with the names and defaults of Kubernetes' controller manager."""

    sync_period_s: float = Field(
        15.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="Time between two recommendations, seconds."
    )
    tolerance: NonNegative = Field(0.1, description="Deviation of metric / target from 1 that changes nothing.")
    downscale_stabilization_s: NonNegative = Field(
        300.0, description="Scaling down follows the largest recommendation of this period, seconds."
    )
    cooldown_s: NonNegative = Field(300.0, description="Time after a rescale without a new action, seconds.")


class HpaCpuSettings(HpaSettings):
    """Defaults of the evaluation paper (section 6.1)."""

    target_cpu_utilization: float = Field(
        0.7, gt=0, le=1, description="Target of CPU in use over the CPU of the tasks."
    )


class HpaVargaSettings(HpaSettings):
    """Defaults of the evaluation paper (section 6.1), the lag threshold that of its public artifact's query."""

    target_utilization: float = Field(
        0.7, gt=0, le=1, description="Target share of time that tasks are not idle (Eq. 5)."
    )
    target_relative_lag_change: Positive = Field(
        1.0, description="Target of records arriving over records read (Eq. 6)."
    )
    lag_threshold_records: NonNegative = Field(
        50_000.0, description="Lag of all sources below which the relative lag change is ignored, records."
    )
    backpressure_threshold: Ratio = Field(
        THRESHOLD, description="Share of time above which an operator counts as backpressured."
    )


class _Usage(NamedTuple):
    """One metric of one operator."""

    what: str
    value: float
    target: float

    def tasks(self, current: int, tolerance: float) -> float:
        """Eq. 4 before rounding; the current number within the tolerance."""
        ratio = self.value / self.target
        return current if abs(ratio - 1) <= tolerance + _ROUNDING else current * ratio


class _Recommendations:
    """The recommendations of one operator that no later one exceeds."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, int]] = deque()

    def add(self, time_s: float, tasks: int) -> None:
        while self._kept and self._kept[-1][1] <= tasks:
            self._kept.pop()
        self._kept.append((time_s, tasks))

    def highest(self, after_s: float) -> int:
        """The largest made later than `after_s`; the last one always counts."""
        while len(self._kept) > 1 and self._kept[0][0] <= after_s:
            self._kept.popleft()
        return self._kept[0][1]


class _Hpa(ABC):
    name: ClassVar[str]
    _title: ClassVar[str]

    def __init__(self, settings: HpaSettings) -> None:
        self._common = settings
        self._recommended: dict[str, _Recommendations] = {}

    @property
    def interval_s(self) -> float:
        return self._common.sync_period_s

    def decide(self, rates: Rates) -> Decision:
        desired = self._desired(rates)
        return decision_of({name: _limited(want, rates.operators[name]) for name, want in desired.items()}, rates)

    def observe(self, facts: Facts) -> Recommendation:
        desired = self._desired(facts.rates)
        wanted = {
            name: _limited(self._stabilised(facts, name, want), facts.rates.operators[name])
            for name, want in desired.items()
        }
        waiting = cooling_down(facts, self._common.cooldown_s)
        if waiting:
            return Recommendation(None, waiting)
        return recommend(wanted, facts.rates, self._title, self._rests(desired, facts.rates))

    @abstractmethod
    def _usages(self, rates: Rates) -> Mapping[str, list[_Usage]]:
        """The metrics of every operator; none where it keeps its tasks."""

    def _desired(self, rates: Rates) -> dict[str, Wanted]:
        usages = self._usages(rates)
        return {name: self._proposal(metrics, usages.get(name, [])) for name, metrics in rates.operators.items()}

    def _proposal(self, metrics: OperatorMetrics, usages: list[_Usage]) -> Wanted:
        current = metrics.parallelism
        if not usages:
            return Wanted.unchanged(metrics, "the metric of this source is not known")
        exact, why = max((usage.tasks(current, self._common.tolerance), usage.what) for usage in usages)
        return Wanted(round_up(min(exact, _MOST_TASKS)), why, min(exact, _MOST_TASKS))

    def _stabilised(self, facts: Facts, name: str, want: Wanted) -> Wanted:
        """Scaling down waits until no larger number was recommended during the stabilisation window."""
        current = facts.rates.operators[name].parallelism
        if name not in self._recommended:
            self._recommended[name] = _Recommendations()
            self._recommended[name].add(facts.time_s, current)
        recommended = self._recommended[name]
        recommended.add(facts.time_s, want.tasks)
        highest = recommended.highest(facts.time_s - self._common.downscale_stabilization_s)
        return want.limited(max(want.tasks, min(current, highest)))

    def _rests(self, desired: Mapping[str, Wanted], rates: Rates) -> str:
        spared = [name for name, want in desired.items() if want.tasks < rates.operators[name].parallelism]
        if not spared:
            return f"{self._title} keeps the current tasks."
        could = f"{spared[0]} could do with {task_count(desired[spared[0]].tasks)}"
        window_s = self._common.downscale_stabilization_s
        return f"{self._title} scales down to the largest number of the last {window_s:,.0f} s: {could}."


class HpaCpu(_Hpa):
    """The policy `hpa-cpu`."""

    name = "hpa-cpu"
    _title = "HPA-CPU"

    def __init__(self, settings: HpaCpuSettings) -> None:
        super().__init__(settings)
        self._settings = settings

    def _usages(self, rates: Rates) -> dict[str, list[_Usage]]:
        cores = _known(rates, "cpu_cores", self.name)
        return {name: [self._usage(used / rates.operators[name].parallelism)] for name, used in cores.items()}

    def _usage(self, share: float) -> _Usage:
        target = self._settings.target_cpu_utilization
        return _Usage(f"{share:.0%} of the CPU is in use, {target:.0%} is the target", share, target)


class HpaVarga(_Hpa):
    """The policy `hpa-varga`."""

    name = "hpa-varga"
    _title = "HPA-Varga"

    def __init__(self, settings: HpaVargaSettings) -> None:
        super().__init__(settings)
        self._settings = settings

    def _usages(self, rates: Rates) -> dict[str, list[_Usage]]:
        utilization = {name: 1 - idle for name, idle in _known(rates, "idleness", self.name).items()}
        usages = {name: [self._utilization(share)] for name, share in utilization.items()}
        lag = self._relative_lag_change(rates)
        responsible = self._responsible(rates, utilization) if lag else None
        if lag and responsible:
            usages.setdefault(responsible, []).append(lag)
        return usages

    def _utilization(self, share: float) -> _Usage:
        """Eq. 5."""
        target = self._settings.target_utilization
        return _Usage(f"its tasks are in use {share:.0%} of the time, {target:.0%} is the target", share, target)

    def _relative_lag_change(self, rates: Rates) -> _Usage | None:
        """Eq. 6; None where the lag is below the threshold."""
        sources = [rates.operators[name] for name in rates.sources if name in rates.operators]
        lag = sum(source.lag_records or 0.0 for source in sources)
        if not lag or lag < self._settings.lag_threshold_records:
            return None
        growth = sum(source.lag_change_per_s or 0.0 for source in sources)
        consumed = sum(source.observed_input_rate or 0.0 for source in sources)
        change = 1 + growth / consumed if consumed > 0 else math.inf if growth > 0 else 1.0
        what = f"{amount(lag)} records lag and {change:.3g} records come for each one read"
        return _Usage(what, max(0.0, change), self._settings.target_relative_lag_change)

    def _responsible(self, rates: Rates, utilization: Mapping[str, float]) -> str | None:
        """The operator responsible for the lag; None if the job is held up from outside."""
        lagging = {name for name in rates.sources if name in rates.operators and rates.operators[name].lag_records}
        pressure = measured(rates, "backpressure", rates.order, self.name)
        backpressured = {n for n, share in pressure.items() if share > self._settings.backpressure_threshold}
        candidates = bottlenecks(rates, backpressured, lagging)
        return max(candidates, key=lambda name: utilization.get(name, 0.0), default=None)


def _known(rates: Rates, metric: str, policy: str) -> dict[str, float]:
    """The metric of all operators, and of the sources that have it."""
    fed = [name for name in rates.order if rates.upstream(name)]
    given = [n for n in rates.sources if getattr(rates.operators.get(n), metric, None) is not None]
    return measured(rates, metric, [*given, *fed], policy)


def _limited(want: Wanted, metrics: OperatorMetrics) -> Wanted:
    """Within what Kubernetes adds in one sync period, and what the operator may have."""
    current = metrics.parallelism
    if want.tasks <= current:
        return want
    most = max(_SCALE_UP_FACTOR * current, current + _SCALE_UP_TASKS)
    return want.limited(max(current, metrics.at_most(min(want.tasks, most))))
