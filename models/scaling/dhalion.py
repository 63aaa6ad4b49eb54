"""Dhalion at operator level, as the evaluation of autoscalers extends it (its section 4.1, Eq. 1 and 2).

Over the last monitoring window, with p tasks of an operator now:

    unhealthy    an operator is backpressured, or the log of a source grows
    bottleneck   an operator that is not backpressured itself while one upstream of it is;
                 a source is one when its log grows and it is not backpressured
    f            backpressured time / normal time                               of an operator that is fed (Eq. 1)
                 growth of the lag / records consumed, both per second          of a source (Eq. 2)
    scale up     when unhealthy, the bottleneck alone: ceil(p (1 + f))
    scale down   when healthy, every operator whose input queue is almost empty: floor(p (1 - scale-down factor))

Rulings, where the paper is silent:

- Times are those of the job that the bottleneck slows down, hence of the most backpressured operator right upstream of
  it: with b its backpressured share, f = b / (1 - b). An operator counts as backpressured above a threshold.
- f is at most `max_scale_up_factor`, also where a source consumes nothing. The paper's artifact caps it in the same way.
- Several bottlenecks: the root is the one with the fullest input queue, then the one with the largest f, then the
  first in topological order. An operator downstream of a backpressured one with room in its queue is not the cause.
- If a sink is backpressured, and thereby all operators upstream, no operator is the root, and nothing is done.
- Scaling down rounds down: rounding up would never leave 4 tasks (ceil(4 x 0.8) = 4). One task stays.
- The input queue of a source is its log. A source without a lag, or whose lag is not measured, is left as it is.
- No blacklist and no undoing: section 4.1 has none.
- After a rescale nothing is done during the cooldown (section 6.1), which begins when the job runs again.
"""

import math
from typing import Final

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.decisions.backpressure import THRESHOLD, bottlenecks, measured
from models.scaling.decisions.tasks import Wanted, cooling_down, decision_of, recommend, round_up
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import OperatorMetrics, Rates
from models.schema import Format, NonNegative, Positive, Ratio
from models.wording import amount

_ROUNDING: Final = 1e-9
"""Rounding tolerance in tasks: 10 x (1 - 0.2) is 8."""


class DhalionSettings(Format):
    """Names and defaults are those of the evaluation paper (section 6.1) and its public artifact."""

    monitoring_window_s: float = Field(
        60.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="w_i: monitoring window of a decision, seconds."
    )
    scale_down_factor: float = Field(0.2, gt=0, lt=1, description="Share of an operator's tasks removed at once.")
    max_scale_up_factor: Positive = Field(
        9.0, description="Most tasks added at once, as a multiple of the current tasks."
    )
    backpressure_threshold: Ratio = Field(
        THRESHOLD, description="Share of time above which an operator counts as backpressured."
    )
    buffer_usage_close_to_zero_threshold: Ratio = Field(
        0.2, description="Share of input buffers in use up to which an input queue counts as almost empty."
    )
    kafka_lag_close_to_zero_threshold_records: NonNegative = Field(
        10_000.0, description="Lag up to which the log of a source counts as almost empty, records."
    )
    kafka_lag_rate_to_be_backpressured_threshold: NonNegative = Field(
        1_000.0, description="Growth of the lag above which the log of a source counts as backpressured, records/s."
    )
    cooldown_s: NonNegative = Field(300.0, description="Time after a rescale without a new action, seconds.")


class Dhalion:
    """The policy `dhalion`."""

    name = "dhalion"

    def __init__(self, settings: DhalionSettings) -> None:
        self._settings = settings

    @property
    def interval_s(self) -> float:
        return self._settings.monitoring_window_s

    def decide(self, rates: Rates) -> Decision:
        return decision_of(self._wanted(rates), rates)

    def observe(self, facts: Facts) -> Recommendation:
        waiting = cooling_down(facts, self._settings.cooldown_s)
        if waiting:
            return Recommendation(None, waiting)
        nothing = "Dhalion leaves the job as it is: no operator has tasks to gain or to spare."
        return recommend(self._wanted(facts.rates), facts.rates, "Dhalion", nothing)

    def _wanted(self, rates: Rates) -> dict[str, Wanted]:
        pressure = measured(rates, "backpressure", rates.order, self.name)
        backpressured = {n for n, share in pressure.items() if share > self._settings.backpressure_threshold}
        growing = {n for n in rates.sources if self._grows(rates.operators[n])}
        if not backpressured and not growing:
            return self._scale_down(rates)
        factors = {
            name: self._source_factor(rates.operators[name])
            if name in growing
            else self._factor(max(pressure[u] for u in rates.upstream(name)))
            for name in bottlenecks(rates, backpressured, growing)
        }
        if not factors:
            return {n: Wanted.unchanged(m, "the job is held up from outside") for n, m in rates.operators.items()}
        root = max(factors, key=lambda n: (_fullness(rates.operators[n], n in growing), factors[n]))
        return self._scale_up(rates, root, factors[root], root in growing)

    def _grows(self, source: OperatorMetrics) -> bool:
        """Whether the log of a source counts as backpressured."""
        growth = source.lag_change_per_s
        return growth is not None and growth > self._settings.kafka_lag_rate_to_be_backpressured_threshold

    def _factor(self, backpressured: float) -> float:
        """Eq. 1, from the share of time that the job was backpressured."""
        cap = self._settings.max_scale_up_factor
        normal = 1 - backpressured
        return min(cap, backpressured / normal) if normal > 0 else cap

    def _source_factor(self, source: OperatorMetrics) -> float:
        """Eq. 2, of a source whose lag grows."""
        cap = self._settings.max_scale_up_factor
        growth, consumed = source.lag_change_per_s or 0.0, source.observed_input_rate or 0.0
        return min(cap, growth / consumed) if consumed > 0 else cap

    def _scale_up(self, rates: Rates, root: str, factor: float, by_lag: bool) -> dict[str, Wanted]:
        wanted = {
            name: Wanted.unchanged(metrics, f"backpressure is resolved at {root} alone")
            for name, metrics in rates.operators.items()
        }
        metrics = rates.operators[root]
        cause = (
            f"its lag grows by {amount(metrics.lag_change_per_s or 0.0)} records/s"
            if by_lag
            else "it holds up an operator before it and nothing holds it up"
        )
        exact = metrics.parallelism * (1 + factor)
        tasks = max(metrics.parallelism, metrics.at_most(round_up(exact)))
        wanted[root] = Wanted(tasks, f"{cause}, scale-up factor {factor:.3g}", exact)
        return wanted

    def _scale_down(self, rates: Rates) -> dict[str, Wanted]:
        fed = [name for name in rates.order if rates.upstream(name)]
        usage = measured(rates, "input_queue_share", fed, self.name)
        return {
            name: self._spared(metrics, usage[name]) if name in usage else self._spared_source(metrics)
            for name, metrics in rates.operators.items()
        }

    def _spared(self, metrics: OperatorMetrics, usage: float) -> Wanted:
        why = f"nothing is held up and {usage:.0%} of its input buffers are in use"
        return self._lowered(metrics, why, usage <= self._settings.buffer_usage_close_to_zero_threshold)

    def _spared_source(self, metrics: OperatorMetrics) -> Wanted:
        lag = metrics.lag_records
        if lag is None:
            return Wanted.unchanged(metrics, "the lag of this source is not known")
        why = f"nothing is held up and {amount(lag)} records wait in its log"
        return self._lowered(metrics, why, lag <= self._settings.kafka_lag_close_to_zero_threshold_records)

    def _lowered(self, metrics: OperatorMetrics, why: str, empty: bool) -> Wanted:
        if not empty:
            return Wanted.unchanged(metrics, why)
        exact = metrics.parallelism * (1 - self._settings.scale_down_factor)
        return Wanted(max(1, math.floor(exact + _ROUNDING)), why, exact)


def _fullness(metrics: OperatorMetrics, by_lag: bool) -> float:
    """Share of the input queue in use; a log that grows is full."""
    return 1.0 if by_lag else metrics.input_queue_share or 0.0
