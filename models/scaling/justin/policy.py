"""When Justin reconfigures: DS2's trigger, decision windows, and the history that Algorithm 1 looks back on.

An operator triggers a decision if it is busier than `max_busyness` and an operator that sends to it is backpressured
(Justin section 4), or if it has several tasks and is less busy than `min_busyness` (section 5: "between 20 % and 80 %").
A busy source triggers if its lag grows: the log takes the place of the upstream operator. A source is busy whenever there
is lag, so busyness alone is not enough.

Rulings: the policy is called once per decision window. A window that begins within the stabilization period after a start
is ignored.
"""

from models.scaling.decisions.backpressure import measured
from models.scaling.decisions.change import changes_in_words, runs_already
from models.scaling.justin.algorithm import JustinSettings, ScaledUp, justin
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates


class Justin:
    """The policy `justin`."""

    name = "justin"

    def __init__(self, settings: JustinSettings) -> None:
        self._settings = settings
        self._raised: dict[str, ScaledUp] = {}
        """Operators whose memory the last reconfiguration raised."""

    @property
    def interval_s(self) -> float:
        return self._settings.decision_window_s

    def decide(self, rates: Rates) -> Decision:
        return justin(rates, {}, self._settings)[0]

    def observe(self, facts: Facts) -> Recommendation:
        if facts.began_within(self._settings.stabilization_s):
            return Recommendation(None, f"Justin ignores the first {self._settings.stabilization_s:g} s after a start.")
        trigger = self._trigger(facts.rates)
        if trigger is None:
            return Recommendation(None, "Justin keeps the current configuration: no operator is too busy or too idle.")
        decision, raised = justin(facts.rates, self._raised, self._settings)
        if runs_already(decision, facts.rates):
            return Recommendation(None, f"Justin keeps the current configuration, although {trigger}.")
        self._raised = raised
        return Recommendation(decision, f"Justin scales {changes_in_words(decision, facts.rates)}, since {trigger}.")

    def _trigger(self, rates: Rates) -> str | None:
        """What triggers a decision; None if nothing does."""
        backpressure = measured(rates, "backpressure", rates.order, self.name)
        idle: str | None = None
        for name in rates.order:
            upstream = rates.upstream(name)
            if not upstream:
                short = self._falls_behind(name, rates)
                if short is not None:
                    return short
                continue
            metrics = rates.operators[name]
            busyness = measured(rates, "busyness", [name], self.name)[name]
            held_up = max(backpressure[u] for u in upstream)
            if busyness > self._settings.max_busyness and held_up >= self._settings.min_backpressure:
                return f"{name} is {busyness:.0%} busy and its upstream is backpressured {held_up:.0%} of the time"
            if idle is None and metrics.parallelism > 1 and busyness < self._settings.min_busyness:
                idle = f"{name} is only {busyness:.0%} busy"
        return idle

    def _falls_behind(self, source: str, rates: Rates) -> str | None:
        """Why this source triggers a decision; None if it does not, or has no metrics."""
        metrics, target = rates.operators.get(source), rates.source_rates[source]
        if metrics is None or not metrics.busyness or not metrics.lag_change_per_s or target <= 0:
            return None
        unread = metrics.lag_change_per_s / target
        if metrics.busyness <= self._settings.max_busyness or unread < self._settings.min_backpressure:
            return None
        return f"{source} is {metrics.busyness:.0%} busy and leaves {unread:.0%} of its records unread"
