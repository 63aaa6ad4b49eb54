"""DS2's scaling manager: when a decision of the model is deployed (DS2 section 4.2)."""

from pydantic import Field

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.ds2 import ds2
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from models.schema import Format, NonNegative


class Ds2Settings(Format):
    """Knobs of the scaling manager, by the paper's names (section 4.2.1)."""

    policy_interval_s: float = Field(
        30.0, gt=0, multiple_of=SAMPLE_INTERVAL_S, description="How often the policy is invoked, seconds."
    )
    over_provisioning_factor: NonNegative = Field(
        0.0, description="Share of tasks added to what the model asks for (0.2 in the evaluation of autoscalers)."
    )


class Ds2:
    """The policy `ds2`."""

    name = "ds2"

    def __init__(self, settings: Ds2Settings) -> None:
        self._settings = settings

    @property
    def interval_s(self) -> float:
        return self._settings.policy_interval_s

    def decide(self, rates: Rates) -> Decision:
        return ds2(rates, self._settings.over_provisioning_factor)

    def observe(self, facts: Facts) -> Recommendation:
        decision = self.decide(facts.rates)
        now = {name: metrics.parallelism for name, metrics in facts.rates.operators.items()}
        if decision.parallelism == now:
            return Recommendation(None, "DS2 asks for what runs.")
        return Recommendation(decision, "DS2 asks for other tasks than run.")
