"""A policy that sees compressed time."""

from dataclasses import replace
from typing import Any, Final

from models.scaling.policy import Decision, Facts, Policy, Recommendation
from models.scaling.rates import OperatorMetrics, Rates

_RATES: Final = (
    *("true_processing_rate", "true_output_rate", "observed_input_rate", "observed_output_rate"),
    "lag_change_per_s",
)
_SECONDS: Final = ("state_latency_s",)


class ScaledTime:
    """Lets a policy decide in the time of a workload that is replayed `factor` times as fast; a Policy itself.

    Times are multiplied and rates divided by the factor; what has no unit of time stays.
    """

    def __init__(self, policy: Policy, factor: float) -> None:
        self._policy, self._factor = policy, factor

    @property
    def name(self) -> str:
        return self._policy.name

    @property
    def interval_s(self) -> float:
        """Of real time."""
        return self._policy.interval_s / self._factor

    def decide(self, rates: Rates) -> Decision:
        return self._policy.decide(slowed(rates, self._factor))

    def observe(self, facts: Facts) -> Recommendation:
        last, factor = facts.last_rescale, self._factor
        if last is not None:
            last = replace(last, ended_s=last.ended_s * factor, downtime_s=last.downtime_s * factor)
        return self._policy.observe(
            replace(
                facts,
                time_s=facts.time_s * factor,
                interval_s=facts.interval_s * factor,
                rates=slowed(facts.rates, factor),
                last_rescale=last,
            )
        )


def slowed(rates: Rates, factor: float) -> Rates:
    """Rates of real time in that of the workload."""
    return rates.model_copy(
        update={
            "source_rates": {name: rate / factor for name, rate in rates.source_rates.items()},
            "operators": {name: _slowed(metrics, factor) for name, metrics in rates.operators.items()},
        }
    )


def _slowed(metrics: OperatorMetrics, factor: float) -> OperatorMetrics:
    changed: dict[str, Any] = {}
    for names, by in ((_RATES, 1 / factor), (_SECONDS, factor)):
        known = ((name, getattr(metrics, name)) for name in names)
        changed |= {name: value * by for name, value in known if value is not None}
    return metrics.model_copy(update=changed)
