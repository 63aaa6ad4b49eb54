"""The conformance suite of scaling policies: subclass it to test a new policy.

    class TestMine(PolicyConformance):
        settle_s = 60.0

        def make(self) -> Policy:
            return Mine(MySettings())

The policy is driven by an ideal job: each task takes a fixed rate, whatever the number of tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.decisions.change import runs_already
from models.scaling.policy import Decision, Facts, Policy, Recommendation, Rescaled
from models.scaling.rates import OperatorMetrics, Rates, TaskManagerUse

MOST_TASKS: Final = 40
"""Maximum parallelism of every operator."""
DOWNTIME_S: Final = 20.0
CHECKED_BY_RATES: Final = {"parallelism", "true_processing_rate", "true_output_rate", "max_parallelism"}
"""Fields that `Rates` itself validates, or that are optional."""

_some_rate = st.just(0.0) | st.floats(0.01, 20_000)
_arrivals = st.lists(_some_rate, min_size=1, max_size=8).map(lambda rates: [r for r in rates for _ in range(4)])


@dataclass
class LinearJob:
    """source -> map -> window -> sink, each of whose tasks takes `rate` records/s.

    Records beyond a task's rate wait upstream: the source lags, and all operators before the first overloaded one are
    backpressured.
    """

    tasks: dict[str, int]
    rate: dict[str, float]
    selectivity: dict[str, float]
    memory_mb: dict[str, float]
    key_groups: int = 128
    lag: float = 0.0

    ORDER: ClassVar = ("source", "map", "window", "sink")

    @classmethod
    def even(cls, **tasks: int) -> "LinearJob":
        """Every task takes 500 records/s."""
        return cls(
            tasks={"source": 2, "map": 4, "window": 6, "sink": 1} | tasks,
            rate=dict.fromkeys(cls.ORDER, 500.0),
            selectivity={"source": 1.0, "map": 1.0, "window": 0.1, "sink": 0.0},
            memory_mb=dict.fromkeys(cls.ORDER, 158.0),
        )

    def rates(self, arriving: float, seconds: float) -> Rates:
        """The rates of an interval with `arriving` records/s; unread records add to the lag."""
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
            max_parallelism=None if stateful and self.key_groups < MOST_TASKS else MOST_TASKS,
            key_groups=self.key_groups if stateful else None,
            partitions=MOST_TASKS if source else None,
        )

    def most_tasks(self, name: str) -> int:
        """The most tasks that an operator may have."""
        return min(self.key_groups, MOST_TASKS) if name == "window" else MOST_TASKS

    def deploy(self, decision: Decision) -> None:
        """Deploy a decision."""
        self.tasks |= decision.parallelism
        self.memory_mb |= decision.memory_mb


@st.composite
def linear_jobs(draw: st.DrawFn) -> LinearJob:
    """Jobs with other tasks, rates, selectivities, memory and key groups."""

    def each(values: st.SearchStrategy[Any]) -> dict[str, Any]:
        return {name: draw(values) for name in LinearJob.ORDER}

    key_groups = draw(st.sampled_from([8, 128]))
    tasks = each(st.integers(1, 20))
    return LinearJob(
        tasks=tasks | {"window": min(tasks["window"], key_groups)},
        rate=each(st.floats(50, 5000)),
        selectivity=each(st.sampled_from([0.1, 0.5, 1.0, 2.0])) | {"source": 1.0, "sink": 0.0},
        memory_mb=each(st.sampled_from([0.0, 158.0, 316.0])),
        key_groups=key_groups,
    )


def drive(
    policy: Policy, job: LinearJob, arriving: list[float], sinkless: range = range(0)
) -> Iterator[tuple[Facts, Recommendation]]:
    """Run one interval per rate, and deploy every recommendation; in intervals `sinkless` the sink is not known."""
    time_s, last = 0.0, None
    for i, rate in enumerate(arriving):
        seconds = policy.interval_s
        if last is not None and time_s < last.ended_s:
            job.lag += rate * last.downtime_s
            seconds = time_s + policy.interval_s - last.ended_s
        time_s += policy.interval_s
        if seconds <= 0:
            continue
        rates = job.rates(rate, seconds)
        facts = Facts(time_s, seconds, without_sink(rates) if i in sinkless else rates, last, 4 * MOST_TASKS)
        recommendation = policy.observe(facts)
        yield facts, recommendation
        if recommendation.deploy is not None:
            job.deploy(recommendation.deploy)
            last = Rescaled(time_s + DOWNTIME_S, DOWNTIME_S, 50.0)


def without_sink(rates: Rates) -> Rates:
    """The rates before the sink has taken its first record."""
    operators = {name: metrics for name, metrics in rates.operators.items() if name != "sink"}
    return Rates(
        edges=rates.edges[:-1],
        source_rates=rates.source_rates,
        operators=operators,
        task_manager_use=rates.task_manager_use,
    )


def assert_sound(decision: Decision, rates: Rates, job: LinearJob) -> None:
    """It names known operators, stays within their limits, and gives a reason for each."""
    assert decision.parallelism.keys() <= rates.operators.keys()
    assert decision.reasons.keys() == decision.parallelism.keys()
    for name, tasks in decision.parallelism.items():
        assert 1 <= tasks <= job.most_tasks(name), (name, tasks)
        assert decision.reasons[name].strip()


def assert_sentence(text: str) -> None:
    """A reason for a person."""
    assert text == text.strip() and "\n" not in text
    assert text.endswith(".") and len(text.split()) >= 4, text
    assert text[0].isupper() or text[0].isdigit() or text[0] == '"', text


def _examples(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    # One suite is run by many classes, each with a policy of its own.
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.differing_executors])


class PolicyConformance(ABC):
    """The suite of scaling policies."""

    settle_s: ClassVar[float]
    """After a rescale, how long the policy recommends nothing, seconds."""

    @abstractmethod
    def make(self) -> Policy:
        """A new policy, without history."""

    def test_its_interval_is_a_multiple_of_the_reporting_interval(self) -> None:
        intervals = self.make().interval_s / SAMPLE_INTERVAL_S
        assert intervals >= 1 and intervals == round(intervals)

    @given(job=linear_jobs(), arriving=_arrivals)
    @_examples(20)
    def test_what_it_recommends_is_new_within_limits_and_explained(self, job: LinearJob, arriving: list[float]) -> None:
        for facts, recommendation in drive(self.make(), job, arriving):
            assert_sentence(recommendation.reason)
            if recommendation.deploy is not None:
                assert_sound(recommendation.deploy, facts.rates, job)
                assert not runs_already(recommendation.deploy, facts.rates)

    @given(job=linear_jobs(), arriving=_some_rate)
    @_examples(40)
    def test_a_single_decision_needs_no_history(self, job: LinearJob, arriving: float) -> None:
        rates = job.rates(arriving, 60.0)
        decision = self.make().decide(rates)
        assert_sound(decision, rates, job)
        assert decision == self.make().decide(rates)

    @given(job=linear_jobs(), arriving=_arrivals)
    @_examples(10)
    def test_equal_facts_give_equal_answers_and_deciding_changes_nothing(
        self, job: LinearJob, arriving: list[float]
    ) -> None:
        observer, twin = self.make(), self.make()
        for facts, recommendation in drive(observer, job, arriving):
            twin.decide(facts.rates)
            assert twin.observe(facts) == recommendation

    @given(job=linear_jobs(), arriving=st.floats(1, 20_000))
    @_examples(5)
    def test_it_recommends_nothing_when_its_decision_already_runs(self, job: LinearJob, arriving: float) -> None:
        policy = self.make()
        for _ in range(30):
            job.deploy(policy.decide(job.rates(arriving, 60.0)))
            job.lag = 0.0
        runs = runs_already(policy.decide(job.rates(arriving, 60.0)), job.rates(arriving, 60.0))
        assume(runs and job.lag == 0.0)
        assert all(advice.deploy is None for _, advice in drive(policy, job, [arriving] * 90))

    @given(job=linear_jobs(), arriving=_arrivals)
    @_examples(20)
    def test_it_recommends_nothing_while_the_job_settles_after_a_rescale(
        self, job: LinearJob, arriving: list[float]
    ) -> None:
        for facts, recommendation in drive(self.make(), job, arriving):
            rescale = facts.last_rescale
            if rescale is not None and facts.time_s < rescale.ended_s + self.settle_s:
                assert recommendation.deploy is None, recommendation.reason

    def test_a_job_without_records_keeps_a_task_of_each_operator(self) -> None:
        job = LinearJob.even()
        for facts, recommendation in drive(self.make(), job, [0.0] * 200):
            assert_sentence(recommendation.reason)
            if recommendation.deploy is not None:
                assert_sound(recommendation.deploy, facts.rates, job)

    @pytest.mark.parametrize("sinkless", [range(20), range(20, 40)])
    def test_an_operator_may_be_unknown_until_its_first_record(self, sinkless: range) -> None:
        """Or again, after a restart."""
        job, acted = LinearJob.even(), 0
        for facts, recommendation in drive(self.make(), job, [1900.0] * 10 + [9000.0] * 90, sinkless):
            assert_sentence(recommendation.reason)
            if recommendation.deploy is not None:
                assert_sound(recommendation.deploy, facts.rates, job)
                acted += 1
        assert acted or self.make().name == "static"

    def test_a_source_without_metrics_is_left_alone_or_named(self) -> None:
        rates = LinearJob.even().rates(1900.0, 60.0)
        operators = {name: metrics for name, metrics in rates.operators.items() if name != "source"}
        self._answers(rates.model_copy(update={"operators": operators}), "source")

    @pytest.mark.parametrize("field", sorted(OperatorMetrics.model_fields.keys() - CHECKED_BY_RATES))
    def test_a_metric_that_is_missing_is_named_if_it_is_needed(self, field: str) -> None:
        rates = LinearJob.even().rates(1900.0, 60.0)
        operators = {name: metrics.model_copy(update={field: None}) for name, metrics in rates.operators.items()}
        self._answers(rates.model_copy(update={"operators": operators}), field)

    def _answers(self, lacking: Rates, what: str) -> None:
        """Both calls either answer without the missing metric, or name it."""
        facts = Facts(10_000.0, self.make().interval_s, lacking, None, 100)
        calls: tuple[Callable[[], Decision | Recommendation], ...] = (
            lambda: self.make().decide(lacking),
            lambda: self.make().observe(facts),
        )
        for call in calls:
            try:
                answer = call()
            except InvalidInput as error:
                assert what in str(error)
            else:
                decision = answer if isinstance(answer, Decision) else answer.deploy
                assert decision is None or decision.parallelism.keys() <= lacking.operators.keys()
