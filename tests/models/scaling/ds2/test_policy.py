"""DS2's scaling manager against the sequences that section 5 of the paper reports, and by hand."""

from dataclasses import replace
from itertools import pairwise

import pytest

from models.errors import InvalidInput
from models.scaling.ds2.policy import Ds2, Ds2Settings
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import OperatorMetrics, Rates


def chain(target: float, read: float, **operators: tuple[int, float, float]) -> Rates:
    """A source and operators in a row: (tasks, true rate of one task, records out per record in)."""
    names = ["source", *operators]
    metrics = {
        name: OperatorMetrics(
            parallelism=tasks, true_processing_rate=tasks * rate, true_output_rate=tasks * rate * selectivity
        )
        for name, (tasks, rate, selectivity) in operators.items()
    }
    metrics["source"] = OperatorMetrics(parallelism=1, observed_output_rate=read)
    edges = tuple(pairwise(names))
    return Rates(edges=edges, source_rates={"source": target}, operators=metrics)


def single(tasks: int, target: float, read: float, task_rate: float = 100.0) -> Rates:
    return chain(target, read, map=(tasks, task_rate, 1.0))


def tasks_of(advice: Recommendation) -> dict[str, int] | None:
    if advice.deploy is None:
        return None
    return {name: tasks for name, tasks in advice.deploy.parallelism.items() if name != "source"}


class Clock:
    """Calls a policy at multiples of its interval; `rescaled` is when the job last ran again."""

    def __init__(self, **settings: object) -> None:
        self.policy = Ds2(Ds2Settings.model_validate({"policy_interval_s": 10, "warm_up_intervals": 0, **settings}))
        self.facts = Facts(0.0, 10.0, single(1, 1, 1))

    def observe(self, rates: Rates, time_s: float | None = None, rescaled: float | None = None) -> Recommendation:
        now = self.facts.time_s + 10.0 if time_s is None else time_s
        last = self.facts.last_rescale if rescaled is None else Rescaled(rescaled, 5.0, 0.0)
        ran_s = now - last.ended_s if last else now
        self.facts = replace(self.facts, time_s=now, interval_s=min(10.0, ran_s), rates=rates, last_rescale=last)
        return self.policy.observe(self.facts)


def test_the_defaults_are_a_decision_in_30_s_after_2_minutes_of_warm_up():
    policy = Ds2(Ds2Settings())
    assert policy.interval_s == 30.0
    answers = [policy.observe(Facts(t, 30.0, single(1, 500, 100))).deploy for t in (30.0, 60.0, 90.0, 120.0, 150.0)]
    assert [answer is None for answer in answers] == [True, True, True, True, False]


def test_heron_word_count_is_right_in_one_step():
    """Section 5.2: 60 s interval, no warm-up, activation after one interval, ratio 1.0; 10 and 20 tasks."""
    clock = Clock(policy_interval_s=60, target_rate_ratio=1.0)
    first = clock.observe(chain(1e6, 5e4, flatmap=(1, 1e5, 20.0), count=(1, 1e6, 0.0)), time_s=60)
    assert tasks_of(first) == {"flatmap": 10, "count": 20}
    assert first.reason == (
        "DS2 scales count from 1 to 20 tasks, flatmap from 1 to 10 tasks: the sources should read 1,000,000 records/s "
        "and read 50,000."
    )
    settled = chain(1e6, 1e6, flatmap=(10, 1e5, 20.0), count=(20, 1e6, 0.0))
    assert clock.observe(settled, time_s=180, rescaled=90).deploy is None


def test_flink_word_count_takes_the_steps_of_figure_7():
    """Section 5.3: 10 s interval, 30 s warm-up, ratio 1.0. 14 and 7 tasks from 10 and 5 at 40 s; 19 and 11 at 150 s;
    after 800 s half the rate: 7 and 4, and one Count more at 900 s. The paper reports no rates: `needed` is what they
    come to, before rounding up; tasks do less each time that there are more of them."""
    clock = Clock(warm_up_intervals=3, target_rate_ratio=1.0)

    def measured(target: float, now: tuple[int, int], needed: tuple[float, float]) -> Rates:
        (flatmaps, counts), (f, c) = now, needed
        read = min(target, target * flatmaps / f, target * counts / c)
        return chain(target, read, flatmap=(flatmaps, target / f, 20.0), count=(counts, 20 * target / c, 0.0))

    start = measured(2e6, (10, 5), (14.0, 7.0))
    assert [tasks_of(clock.observe(start, t)) for t in (10, 20, 30)] == [None, None, None]
    assert tasks_of(clock.observe(start, 40)) == {"flatmap": 14, "count": 7}
    second = measured(2e6, (14, 7), (18.1, 10.1))
    assert [tasks_of(clock.observe(second, t, rescaled=110)) for t in (120, 130, 140)] == [None, None, None]
    assert tasks_of(clock.observe(second, 150)) == {"flatmap": 19, "count": 11}
    third = measured(2e6, (19, 11), (18.5, 10.5))
    assert {tasks_of(clock.observe(third, t, rescaled=200)) is None for t in range(210, 800, 10)} == {True}
    assert tasks_of(clock.observe(measured(1e6, (19, 11), (7.0, 4.0)), 810)) == {"flatmap": 7, "count": 4}
    last = measured(1e6, (7, 4), (7.0, 4.5))
    assert [tasks_of(clock.observe(last, t, rescaled=860)) for t in (870, 880, 890)] == [None, None, None]
    assert tasks_of(clock.observe(last, 900)) == {"flatmap": 7, "count": 5}
    assert clock.observe(measured(1e6, (7, 5), (7.0, 4.5)), 970, rescaled=930).deploy is None


@pytest.mark.parametrize(
    ("warm_up", "ended_s", "acts_at"),
    [(0, 0.0, 10), (1, 0.0, 20), (3, 0.0, 40), (1, 12.0, 40), (2, 12.0, 50), (2, 20.0, 50)],
)
def test_whole_intervals_are_ignored_after_a_start(warm_up, ended_s, acts_at):
    clock = Clock(warm_up_intervals=warm_up)
    for time_s in range(10, 100, 10):
        if time_s > ended_s and clock.observe(single(1, 500, 100), float(time_s), rescaled=ended_s).deploy is not None:
            break
    assert time_s == acts_at


@pytest.mark.parametrize(("by", "chosen"), [("max", 9), ("median", 6)])
def test_activation_takes_several_decisions_together(by, chosen):
    """A window that fires lowers the true rate for one interval."""
    clock = Clock(activation_intervals=3, activation=by)
    assert clock.observe(single(2, 600, 200)).reason == "DS2 waits for 2 more decisions before it acts on them."
    assert clock.observe(single(2, 600, 200, task_rate=600 / 9)).deploy is None
    assert tasks_of(clock.observe(single(2, 600, 200))) == {"map": chosen}
    assert clock.observe(single(chosen, 600, 600), rescaled=45).deploy is None, "decisions before a rescale are history"


def test_the_median_of_an_even_number_is_the_upper_one():
    clock = Clock(activation_intervals=2, activation="median")
    clock.observe(single(2, 600, 200))
    assert tasks_of(clock.observe(single(2, 600, 200, task_rate=50.0))) == {"map": 12}


def test_a_decision_within_the_activation_time_slides_on():
    clock = Clock(activation_intervals=2)
    clock.observe(single(4, 350, 350))
    clock.observe(single(4, 350, 350))
    assert tasks_of(clock.observe(single(4, 500, 400))) == {"map": 5}


@pytest.mark.parametrize(("wanted", "deployed"), [(9, None), (8, {"map": 8}), (11, {"map": 11})])
def test_only_a_small_scale_down_is_minor(wanted, deployed):
    assert tasks_of(Clock(minor_change_tasks=1).observe(single(10, 100.0 * wanted, 100.0 * wanted))) == deployed


def test_a_minor_change_is_reported():
    advice = Clock(minor_change_tasks=2).observe(single(10, 800, 800))
    assert advice == Recommendation(
        None,
        "DS2 ignores the minor change of map from 10 to 8 tasks: the sources should read 800 records/s and read 800.",
    )


def test_overheads_that_true_rates_miss_are_corrected_and_remembered():
    # 10 tasks should take 1,000 records/s and take 800: 10 x 1,000 / 800 = 12.5, so 13.
    clock = Clock()
    corrected = clock.observe(single(10, 1000, 800))
    assert tasks_of(corrected) == {"map": 13}
    assert "1.25 times what true rates ask for" in corrected.reason
    assert corrected.deploy is not None
    assert corrected.deploy.reasons["map"].endswith("as now; 1.25 times that for what true rates miss: 13 tasks")
    # The model alone would go back to 10 now.
    assert clock.observe(single(13, 1000, 1000), rescaled=15).deploy is None
    # 11 x 1.25 = 13.75, but 13 are enough; they no longer are when less is read than asked for.
    assert clock.observe(single(13, 1050, 1050)).deploy is None
    assert tasks_of(clock.observe(single(13, 1050, 1020))) == {"map": 14}
    # A different rate is another matter: 5 tasks by the model, and no correction unless it is short again.
    assert tasks_of(clock.observe(single(13, 500, 500))) == {"map": 5}


def test_a_shortfall_within_the_target_rate_ratio_is_left():
    assert Clock(target_rate_ratio=1.3).observe(single(10, 1000, 800)).deploy is None
    assert tasks_of(Clock(target_rate_ratio=1.2).observe(single(10, 1000, 800))) == {"map": 13}


def test_a_shortfall_that_the_model_explains_is_not_corrected():
    assert tasks_of(Clock().observe(single(5, 1000, 500))) == {"map": 10}


def test_a_source_that_filters_and_keeps_up_leaves_the_tasks_as_they_are():
    """10,000 records/s arrive, a tenth of them passes the filter, and 10 tasks take 100 each."""
    rates = chain(10_000, 1_000, map=(10, 100.0, 1.0)).model_copy(update={"source_selectivity": {"source": 0.1}})
    kept = Clock().observe(rates)
    assert kept.deploy is None
    assert kept.reason == "DS2 keeps the current tasks: the sources should read 10,000 records/s and read 10,000."


def test_the_source_that_is_furthest_behind_counts():
    def two_sources(read_b: float) -> Rates:
        return Rates(
            edges=(("a", "join"), ("b", "join")),
            source_rates={"a": 600, "b": 400},
            operators={
                "a": OperatorMetrics(parallelism=1, observed_output_rate=600),
                "b": OperatorMetrics(parallelism=1, observed_output_rate=read_b),
                "join": OperatorMetrics(parallelism=10, true_processing_rate=1000),
            },
        )

    decision = Clock().observe(two_sources(200)).deploy
    assert decision is not None and decision.parallelism["join"] == 20
    assert Clock().observe(two_sources(400)).deploy is None


def test_a_scale_up_after_which_less_is_read_is_rolled_back_for_good():
    clock = Clock()
    assert tasks_of(clock.observe(single(4, 1000, 400))) == {"map": 10}
    back = clock.observe(single(10, 1000, 300, task_rate=50.0), rescaled=15)
    assert tasks_of(back) == {"map": 4}
    assert back.reason == (
        "DS2 rolls back: the sources read 400 records/s before and 300 after the scale-up; map from 10 to 4 tasks."
    )
    again = clock.observe(single(4, 1000, 400), rescaled=25)
    assert again.deploy is None and again.reason.startswith("DS2 keeps the configuration that it rolled back to")
    assert tasks_of(clock.observe(single(4, 1200, 400))) == {"map": 12}, "a target 20 % higher is another matter"


def test_a_decision_is_judged_by_as_many_intervals_as_it_was_made_from():
    """One interval in which tasks are still cold is no reason to roll back; reading less in all is."""

    def after(reads: tuple[float, float]) -> list[dict[str, int] | None]:
        clock = Clock(activation_intervals=2)
        for _ in range(2):
            advice = clock.observe(single(4, 1000, 400))
        assert tasks_of(advice) == {"map": 10}
        return [tasks_of(clock.observe(single(10, 1000, read), rescaled=25)) for read in reads]

    assert after((300, 1000)) == [None, {"map": 22}], "10 x the median of 1000 / 300 and 1, 2.17"
    assert after((300, 350)) == [None, {"map": 4}]


def test_reading_less_because_less_is_asked_for_is_no_reason_to_roll_back():
    clock = Clock()
    assert tasks_of(clock.observe(single(4, 1000, 400))) == {"map": 10}
    assert tasks_of(clock.observe(single(10, 300, 300), rescaled=15)) == {"map": 3}


def test_a_scale_down_that_falls_short_is_refined_not_rolled_back():
    """Table 4, q8 from 16 tasks: 8, then 10."""
    clock = Clock()
    assert tasks_of(clock.observe(single(16, 780, 780))) == {"map": 8}
    assert tasks_of(clock.observe(single(8, 780, 650, task_rate=81.0), rescaled=15)) == {"map": 10}


def test_a_scale_down_that_fell_short_is_not_tried_again_at_this_rate():
    """State that fits in memory of 10 tasks, not of 5: tasks do 200 records/s or 80."""
    clock = Clock()
    assert tasks_of(clock.observe(single(10, 1000, 1000, task_rate=200.0))) == {"map": 5}
    assert tasks_of(clock.observe(single(5, 1000, 400, task_rate=80.0), rescaled=15)) == {"map": 13}
    kept = clock.observe(single(13, 1000, 1000, task_rate=200.0), rescaled=25)
    assert kept.reason == "DS2 keeps the current tasks: the sources should read 1,000 records/s and read 1,000."
    assert tasks_of(clock.observe(single(13, 1080, 1080, task_rate=80.0))) == {"map": 14}
    assert tasks_of(clock.observe(single(14, 800, 800, task_rate=200.0), rescaled=45)) == {"map": 4}


def test_scale_ups_without_effect_end():
    """Skew: one task is the limit, whatever the number of tasks."""
    clock = Clock(max_futile_decisions=2)
    tasks, decisions = 4, []
    for _ in range(8):
        advice = clock.observe(single(tasks, 1000, 500 + tasks))
        if advice.deploy is not None:
            tasks = advice.deploy.parallelism["map"]
            decisions.append(tasks)
            clock.facts = replace(clock.facts, last_rescale=Rescaled(clock.facts.time_s + 5.0, 5.0, 0.0))
    # The model's 10; then, at 510 records/s, 10 x 1000 / 510 = 19.6. Both brought less than 5 %.
    assert decisions == [10, 20]
    assert advice.reason == (
        "DS2 stops at a target of 1,000 records/s: 2 scale-ups in a row had almost no effect, the sources read 510 "
        "records/s before and 520 after the last."
    )


def test_over_provisioning_adds_its_share():
    decision = Clock(over_provisioning_factor=0.2).policy.decide(single(5, 1000, 1000))
    assert decision.parallelism["map"] == 12
    assert decision.exact["map"] == pytest.approx(12.0)
    assert decision.reasons["map"] == (
        "1,000 records/s come in and one task can do 100: 12 with 20% to spare, so 12 tasks, instead of 5"
    )


def test_no_operator_gets_more_tasks_than_it_may_have():
    rates = single(5, 1000, 500)
    limited = rates.operators["map"].model_copy(update={"max_parallelism": 8})
    rates = rates.model_copy(update={"operators": {**rates.operators, "map": limited}})
    decision = Clock().policy.decide(rates)
    assert decision.parallelism["map"] == 8
    assert decision.exact["map"] == 10.0
    assert decision.reasons["map"].endswith("so 10 tasks, but at most 8 are allowed, instead of 5")
    assert tasks_of(Clock(over_provisioning_factor=1.0).observe(rates)) == {"map": 8}


def test_a_silent_job_keeps_its_tasks():
    assert tasks_of(Clock().observe(single(6, 0, 0))) == {"map": 1}


def test_the_rate_that_a_source_achieves_must_be_known():
    rates = single(5, 1000, 500)
    unknown = rates.operators | {"source": OperatorMetrics(parallelism=1)}
    with pytest.raises(InvalidInput, match="source 'source' has no observed_output_rate, which is compared with its"):
        Clock().observe(rates.model_copy(update={"operators": unknown}))


def test_what_a_task_of_the_model_needs_is_minor_too():
    """With a factor of 2, one task less in the model is two less that run."""
    clock = Clock()
    assert tasks_of(clock.observe(single(10, 1000, 500))) == {"map": 20}
    assert clock.observe(single(20, 940, 940), rescaled=15).deploy is None, "10 x 2 = 20"
    assert clock.observe(single(20, 900, 900)).deploy is None, "9 x 2 = 18, two less"
    assert tasks_of(clock.observe(single(20, 900, 900, task_rate=112.5))) == {"map": 16}
