"""The policy that rescales once: to the tasks that a given rate needs, whatever the rate is later.

It is what a job without an autoscaler runs with, provisioned for its peak. Tasks are those of DS2's model (section 3.2) for
`factor` times the rate, from the true rates of the first interval after the warm-up.
"""

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.decisions.change import changes_in_words, runs_already
from models.scaling.ds2.model import ds2
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from models.schema import Format, NonNegative, Positive


class StaticSettings(Format):
    """Settings of the policy `static`."""

    rate: Positive | None = Field(
        None,
        description="Rate of all sources together to provision for, records/s; that of the first decision if absent.",
    )
    factor: Positive = Field(1.2, description="Factor on that rate: room for catching up, skew and bursts.")
    warm_up_s: NonNegative = Field(120.0, description="Time after the start whose metrics are ignored, seconds.")
    interval_s: float = Field(
        60.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="Time over which true rates are measured, seconds."
    )


class Static:
    """The policy `static`."""

    name = "static"

    def __init__(self, settings: StaticSettings) -> None:
        self._settings = settings
        self._decided: Decision | None = None

    @property
    def interval_s(self) -> float:
        return self._settings.interval_s

    def decide(self, rates: Rates) -> Decision:
        arriving = sum(rates.source_rates.values())
        wanted = (self._settings.rate or arriving) * self._settings.factor
        count = len(rates.source_rates)
        targets = {
            name: wanted * (rate / arriving if arriving > 0 else 1 / count) for name, rate in rates.source_rates.items()
        }
        return ds2(rates.model_copy(update={"source_rates": targets}))

    def observe(self, facts: Facts) -> Recommendation:
        if facts.last_rescale is not None:
            return Recommendation(None, "Static has deployed its tasks, and keeps them.")
        if facts.began_within(self._settings.warm_up_s):
            return Recommendation(None, f"Static ignores the first {self._settings.warm_up_s:g} s after the start.")
        if self._decided is None:
            self._decided = self.decide(facts.rates)
        if runs_already(self._decided, facts.rates):
            return Recommendation(None, "Static runs with its tasks, and keeps them.")
        return Recommendation(
            self._decided, f"Static scales {changes_in_words(self._decided, facts.rates)}, once and for all."
        )
