"""Every policy passes the conformance suite, and each fault fails the test that looks for it."""

import itertools

import pytest

from models.scaling.conformance import PolicyConformance
from models.scaling.ds2.policy import Ds2, Ds2Settings
from models.scaling.policies import POLICIES, make_policy
from models.scaling.policy import Facts, Policy, Recommendation


class TestDs2(PolicyConformance):
    settle_s = 120.0

    def make(self) -> Policy:
        return make_policy("ds2")


class TestFlink(PolicyConformance):
    settle_s = 300.0

    def make(self) -> Policy:
        return make_policy("flink")


class TestFlinkWithShortWindows(PolicyConformance):
    settle_s = 60.0

    def make(self) -> Policy:
        short = {"metrics.window": "2 min", "stabilization.interval": "1 min", "scale-down.interval": "2 min"}
        return make_policy("flink", short)


class TestStatic(PolicyConformance):
    settle_s = 1e9

    def make(self) -> Policy:
        return make_policy("static")


class TestStaticForAPeak(PolicyConformance):
    settle_s = 1e9

    def make(self) -> Policy:
        return make_policy("static", {"rate": 4000.0, "factor": 1.0, "warm_up_s": 0})


class TestJustin(PolicyConformance):
    settle_s = 60.0

    def make(self) -> Policy:
        return make_policy("justin")


class TestDhalion(PolicyConformance):
    settle_s = 300.0

    def make(self) -> Policy:
        return make_policy("dhalion")


class TestHpaCpu(PolicyConformance):
    settle_s = 300.0

    def make(self) -> Policy:
        return make_policy("hpa-cpu")


class TestHpaVarga(PolicyConformance):
    settle_s = 300.0

    def make(self) -> Policy:
        return make_policy("hpa-varga")


class TestSluice(PolicyConformance):
    settle_s = 60.0

    def make(self) -> Policy:
        return make_policy("sluice")


def test_every_registered_policy_has_a_suite() -> None:
    suites = [value for value in globals().values() if isinstance(value, type) and value is not PolicyConformance]
    tested = {suite().make().name for suite in suites if issubclass(suite, PolicyConformance)}
    assert tested == set(POLICIES)


class Odd(Ds2):
    """Called at times at which no sample ends."""

    interval_s = 7.0  # type: ignore[assignment]


class Silent(Ds2):
    def observe(self, facts: Facts) -> Recommendation:
        return Recommendation(super().observe(facts).deploy, "")


class Restless(Ds2):
    """Recommends what runs already."""

    def observe(self, facts: Facts) -> Recommendation:
        return Recommendation(self.decide(facts.rates), "DS2 takes what it wants.")


class Unbounded(Ds2):
    """Asks for more tasks than an operator has key groups."""

    def decide(self, rates):
        wanted = super().decide(rates)
        return wanted.model_copy(update={"parallelism": {name: p + 10 for name, p in wanted.parallelism.items()}})


class Random(Ds2):
    count = itertools.count(1)

    def decide(self, rates):
        wanted = super().decide(rates)
        return wanted.model_copy(update={"exact": dict.fromkeys(wanted.exact, float(next(self.count)))})


class Moody(Ds2):
    """A single decision changes what it does next."""

    decided = 0

    def decide(self, rates):
        self.decided += 1
        return super().decide(rates)

    def observe(self, facts: Facts) -> Recommendation:
        advice = super().observe(facts)
        return Recommendation(advice.deploy, f"DS2 has now decided {self.decided} times.")


class Eager(Ds2):
    """Does not wait for the job to settle."""

    def __init__(self, settings: Ds2Settings) -> None:
        super().__init__(settings.model_copy(update={"warm_up_intervals": 0}))


class Fragile(Ds2):
    """Divides by a rate that may be 0."""

    def observe(self, facts: Facts) -> Recommendation:
        1 / sum(facts.rates.source_rates.values())
        return super().observe(facts)


class Trusting(Ds2):
    """Takes every source's metrics for granted."""

    def decide(self, rates):
        assert all(rates.operators[name] for name in rates.sources)
        return super().decide(rates)


class Careless(Ds2):
    """Calculates with a metric that may be absent."""

    def decide(self, rates):
        assert all(metrics.busyness >= 0 for metrics in rates.operators.values())
        return super().decide(rates)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "test", "arguments"),
    [
        (Odd, "test_its_interval_is_a_multiple_of_the_reporting_interval", ()),
        (Silent, "test_what_it_recommends_is_new_within_limits_and_explained", ()),
        (Restless, "test_what_it_recommends_is_new_within_limits_and_explained", ()),
        (Unbounded, "test_a_single_decision_needs_no_history", ()),
        (Random, "test_a_single_decision_needs_no_history", ()),
        (Moody, "test_equal_facts_give_equal_answers_and_deciding_changes_nothing", ()),
        (Eager, "test_it_recommends_nothing_while_the_job_settles_after_a_rescale", ()),
        (Fragile, "test_a_job_without_records_keeps_a_task_of_each_operator", ()),
        (Trusting, "test_a_source_without_metrics_is_left_alone_or_named", ()),
        (Careless, "test_a_metric_that_is_missing_is_named_if_it_is_needed", ("busyness",)),
    ],
)
def test_a_broken_policy_fails(broken: type[Ds2], test: str, arguments: tuple[str, ...]) -> None:
    class Suite(PolicyConformance):
        settle_s = 120.0

        def make(self) -> Policy:
            return broken(Ds2Settings())

    with pytest.raises((AssertionError, ZeroDivisionError, KeyError, TypeError)):
        getattr(Suite(), test)(*arguments)
