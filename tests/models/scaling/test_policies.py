"""What every scaling policy must hold, whatever it decides by."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.scaling.change import runs_already
from models.scaling.policies import POLICIES, make_policy
from models.scaling.policy import Decision, Facts, Policy, Recommendation, Rescaled
from models.scaling.rates import OperatorMetrics, Rates, TaskManagerUse

every_policy = pytest.mark.parametrize("name", POLICIES)

STRUCTURE = {"parallelism", "true_processing_rate", "true_output_rate", "max_parallelism"}
"""Fields whose absence `Rates` itself judges."""
MOST_TASKS = 40
DOWNTIME_S = 20.0


@dataclass
class LinearJob:
    """source -> map -> window -> sink, each of whose tasks takes `rate` records/s whatever their number.

    What is above a task's rate waits upstream: the sources lag, and all operators before the first that is overloaded
    are backpressured.
    """

    tasks: dict[str, int]
    rate: dict[str, float]
    selectivity: dict[str, float]
    memory_mb: dict[str, float]
    lag: float = 0.0

    ORDER = ("source", "map", "window", "sink")

    def rates(self, arriving: float, seconds: float) -> Rates:
        """Of an interval in which records arrive at that rate; what is not read adds to the lag."""
        load = dict(zip(self.ORDER, self._load(), strict=True))
        capacity = min(self.tasks[name] * self.rate[name] / load[name] for name in self.ORDER if load[name])
        read = min(arriving + self.lag / seconds, capacity)
        growth = arriving - read
        self.lag = max(0.0, self.lag + growth * seconds)
        busy = {n: min(1.0, read * load[n] / (self.tasks[n] * self.rate[n])) for n in self.ORDER}
        full = next((n for n in self.ORDER if busy[n] > 1 - 1e-9), None)
        operators = {n: self._metrics(n, read * load[n], busy[n], full, growth) for n in self.ORDER}
        edges = tuple(zip(self.ORDER, self.ORDER[1:], strict=False))
        use = TaskManagerUse(heap_mb=500.0, metaspace_mb=100.0)
        return Rates(edges=edges, source_rates={"source": arriving}, operators=operators, task_manager_use=use)

    def _load(self) -> Iterator[float]:
        load = 1.0
        for name in self.ORDER:
            yield load
            load *= self.selectivity[name]

    def _metrics(self, name: str, rate: float, busy: float, full: str | None, growth: float) -> OperatorMetrics:
        held_up = full is not None and self.ORDER.index(name) < self.ORDER.index(full)
        source, stateful = name == "source", name == "window"
        return OperatorMetrics(
            parallelism=self.tasks[name],
            true_processing_rate=self.tasks[name] * self.rate[name],
            true_output_rate=self.tasks[name] * self.rate[name] * self.selectivity[name],
            observed_input_rate=rate,
            observed_output_rate=rate * self.selectivity[name],
            busyness=busy,
            max_busyness=busy,
            backpressure=1 - busy if held_up else 0.0,
            idleness=0.0 if held_up else 1 - busy,
            input_queue_share=None if source else 1.0 if name == full else max(0.1, 2 * busy - 1),
            lag_records=self.lag if source else None,
            lag_change_per_s=growth if source else None,
            cpu_cores=self.tasks[name] * busy,
            memory_mb=self.memory_mb[name],
            cache_hit_rate=0.95 if stateful else None,
            state_latency_s=1e-4 if stateful else None,
            state_mb=50.0 if stateful else None,
            max_parallelism=MOST_TASKS,
            key_groups=128 if stateful else None,
            partitions=MOST_TASKS if source else None,
        )

    def deploy(self, decision: Decision) -> None:
        self.tasks |= decision.parallelism
        self.memory_mb |= decision.memory_mb


@st.composite
def linear_jobs(draw: st.DrawFn) -> LinearJob:
    def each(values: st.SearchStrategy[Any]) -> dict[str, Any]:
        return {name: draw(values) for name in LinearJob.ORDER}

    return LinearJob(
        tasks=each(st.integers(1, 20)),
        rate=each(st.floats(50, 5000)),
        selectivity=each(st.sampled_from([0.1, 0.5, 1.0, 2.0])) | {"source": 1.0, "sink": 0.0},
        memory_mb=each(st.sampled_from([0.0, 158.0, 316.0])),
    )


def drive(policy: Policy, job: LinearJob, arriving: list[float]) -> Iterator[tuple[Facts, Recommendation]]:
    """Each interval with a rate, every recommendation deployed."""
    time_s, last = 0.0, None
    for rate in arriving:
        seconds = policy.interval_s
        if last is not None and time_s < last.ended_s:
            job.lag += rate * last.downtime_s
            seconds = time_s + policy.interval_s - last.ended_s
        time_s += policy.interval_s
        if seconds <= 0:
            continue
        facts = Facts(time_s, seconds, job.rates(rate, seconds), last, 4 * MOST_TASKS)
        recommendation = policy.observe(facts)
        yield facts, recommendation
        if recommendation.deploy is not None:
            job.deploy(recommendation.deploy)
            last = Rescaled(time_s + DOWNTIME_S, DOWNTIME_S, 50.0)


some_rate = st.just(0.0) | st.floats(0.01, 20_000)
arrivals = st.lists(some_rate, min_size=1, max_size=8).map(lambda rates: [r for r in rates for _ in "abcd"])


def assert_sound(decision: Decision, rates: Rates) -> None:
    assert decision.parallelism.keys() <= rates.operators.keys()
    assert decision.reasons.keys() == decision.parallelism.keys()
    for name, tasks in decision.parallelism.items():
        assert 1 <= tasks <= MOST_TASKS
        assert decision.reasons[name].strip()


def assert_sentence(text: str) -> None:
    assert text == text.strip() and "\n" not in text
    assert text.endswith(".") and len(text.split()) >= 4, text
    assert text[0].isupper() or text[0].isdigit() or text[0] == '"', text


@every_policy
def test_it_is_registered_under_its_name(name):
    policy = make_policy(name)
    assert policy.name == name == POLICIES[name].name
    assert POLICIES[name].title
    assert policy.interval_s > 0 and math.isclose(policy.interval_s % 5.0, 0.0)
    for field in POLICIES[name].settings.model_fields.values():
        assert field.description
        assert not field.is_required()


@every_policy
@given(job=linear_jobs(), arriving=arrivals)
@settings(max_examples=20, deadline=None)
def test_what_it_recommends_is_new_possible_and_explained(name, job, arriving):
    for facts, recommendation in drive(make_policy(name), job, arriving):
        assert_sentence(recommendation.reason)
        if recommendation.deploy is not None:
            assert_sound(recommendation.deploy, facts.rates)
            assert not runs_already(recommendation.deploy, facts.rates)


@every_policy
@given(job=linear_jobs(), arriving=some_rate)
@settings(max_examples=40, deadline=None)
def test_a_single_decision_needs_no_history(name, job, arriving):
    rates = job.rates(arriving, 60.0)
    decision = make_policy(name).decide(rates)
    assert_sound(decision, rates)
    assert decision == make_policy(name).decide(rates)


@every_policy
@given(job=linear_jobs(), arriving=arrivals)
@settings(max_examples=10, deadline=None)
def test_the_same_facts_get_the_same_answers_and_deciding_changes_nothing(name, job, arriving):
    observer, twin = make_policy(name), make_policy(name)
    for facts, recommendation in drive(observer, job, arriving):
        twin.decide(facts.rates)
        assert twin.observe(facts) == recommendation


@every_policy
@given(job=linear_jobs(), arriving=st.floats(1, 20_000))
@settings(max_examples=5, deadline=None)
def test_where_a_single_decision_is_what_runs_it_rests(name, job, arriving):
    policy = make_policy(name)
    for _ in range(30):
        decision = policy.decide(job.rates(arriving, 60.0))
        job.deploy(decision)
        job.lag = 0.0
    assume(runs_already(policy.decide(job.rates(arriving, 60.0)), job.rates(arriving, 60.0)) and job.lag == 0.0)
    assert all(advice.deploy is None for _, advice in drive(policy, job, [arriving] * 90))


@every_policy
@pytest.mark.parametrize("field", sorted(OperatorMetrics.model_fields.keys() - STRUCTURE))
def test_a_missing_metric_is_named(name, field):
    job = LinearJob(
        tasks={"source": 2, "map": 4, "window": 6, "sink": 1},
        rate=dict.fromkeys(LinearJob.ORDER, 500.0),
        selectivity={"source": 1.0, "map": 1.0, "window": 0.1, "sink": 0.0},
        memory_mb=dict.fromkeys(LinearJob.ORDER, 158.0),
    )
    rates = job.rates(1900.0, 60.0)
    without = {n: m.model_copy(update={field: None}) for n, m in rates.operators.items()}
    lacking = rates.model_copy(update={"operators": without})
    facts = Facts(10_000.0, make_policy(name).interval_s, lacking, None, 100)
    for call, argument in (("decide", lacking), ("observe", facts)):
        try:
            answer = getattr(make_policy(name), call)(argument)
        except InvalidInput as error:
            assert field in str(error)
        else:
            assert isinstance(answer, Decision if call == "decide" else Recommendation)


def test_an_unknown_policy_or_setting_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"no policy 'autopilot'; there are .*'ds2'.*'justin'"):
        make_policy("autopilot")
    with pytest.raises(InvalidInput, match=r"'ds2' has no setting 'patience'; it has .*'warm_up_intervals'"):
        make_policy("ds2", {"patience": 3})
    with pytest.raises(InvalidInput, match="policy_interval_s: Input should be a multiple of 5"):
        make_policy("ds2", {"policy_interval_s": 7})
    assert make_policy("ds2", {"policy_interval_s": 10}).interval_s == 10.0
