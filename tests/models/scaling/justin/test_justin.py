"""Justin's Algorithm 1 branch by branch, its trigger and history, and the memory of section 5."""

import pytest

from models.errors import InvalidInput
from models.resources.memory import deployed_memory_mb
from models.scaling.justin.algorithm import JustinSettings, ScaledUp, justin
from models.scaling.justin.policy import Justin
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import OperatorMetrics, Rates

SETTINGS = JustinSettings()
STATE = {"cache_hit_rate": 0.95, "state_latency_s": 1e-4, "state_mb": 100.0, "memory_mb": 158.0}


def query(
    tasks: int = 1, needed: float = 3.0, busy: float = 1.0, held_up: float = 0.6, **window: float | None
) -> Rates:
    """Source -> window -> sink, 1,000 records/s; `needed` tasks of the window would take them. Unless given, its state
    is accessed fast."""
    rate = 1000 / needed
    operators = {
        "source": OperatorMetrics(parallelism=2, backpressure=held_up, memory_mb=158.0),
        "window": OperatorMetrics(
            parallelism=tasks,
            true_processing_rate=tasks * rate,
            true_output_rate=tasks * rate / 100,
            busyness=busy,
            backpressure=0.0,
            **{**STATE, **window},
        ),
        "sink": OperatorMetrics(
            parallelism=1, true_processing_rate=1e4, busyness=0.01, backpressure=0.0, memory_mb=158.0
        ),
    }
    return Rates(edges=(("source", "window"), ("window", "sink")), source_rates={"source": 1000.0}, operators=operators)


def decided(rates: Rates, before: ScaledUp | None = None, **settings: float) -> tuple[int, float, bool]:
    """(p^t, managed memory of a task, v^t) of the window."""
    raised = {} if before is None else {"window": before}
    decision, now_raised = justin(rates, raised, JustinSettings.model_validate(settings))
    return decision.parallelism["window"], decision.memory_mb["window"], "window" in now_raised


def before(hits: float | None, latency_s: float | None, level: int = 1) -> ScaledUp:
    return ScaledUp(level, hits, latency_s)


def test_stateless_operators_lose_their_managed_memory_and_keep_ds2s_tasks():
    """Lines 3 and 4."""
    decision, raised = justin(query(cache_hit_rate=None, state_latency_s=None, state_mb=None), {}, SETTINGS)
    assert decision.memory_mb == {"source": 0.0, "window": 0.0, "sink": 0.0}
    assert decision.parallelism == {"source": 2, "window": 3, "sink": 1}
    assert decision.reasons["sink"].endswith("as now; it keeps no state, so it gets no managed memory")
    assert raised == {}


@pytest.mark.parametrize("metric", ["cache_hit_rate", "state_latency_s", "state_mb"])
def test_one_metric_of_the_state_backend_makes_an_operator_stateful(metric):
    absent = {"cache_hit_rate": None, "state_latency_s": None, "state_mb": None}
    assert decided(query(**{**absent, metric: 0.0})) in {(3, 158.0, False), (1, 316.0, True)}


def test_an_operator_that_ds2_does_not_scale_is_left_alone():
    """Line 6: its hit rate does not matter."""
    assert decided(query(tasks=3, cache_hit_rate=0.1, memory_mb=316.0)) == (3, 316.0, False)


@pytest.mark.parametrize(
    ("hits", "latency_s", "up"),
    [
        (0.79, 1e-4, True),
        (0.80, 1e-4, False),
        (0.95, 1.1e-3, True),
        (0.95, 1.0e-3, False),
        (0.50, 2e-3, True),
        (None, 2e-3, True),
        (None, 1e-4, False),
        (0.5, None, True),
    ],
)
def test_slow_state_access_gets_memory_instead_of_tasks(hits, latency_s, up):
    """Lines 14 to 16: hit rate under 80 % or latency over 1 ms."""
    expected = (1, 316.0, True) if up else (3, 158.0, False)
    assert decided(query(cache_hit_rate=hits, state_latency_s=latency_s)) == expected


def test_the_thresholds_are_settings():
    assert decided(query(cache_hit_rate=0.7), min_cache_hit_rate=0.6) == (3, 158.0, False)
    assert decided(query(state_latency_s=2e-3), max_state_latency_s=0.003) == (3, 158.0, False)


@pytest.mark.parametrize(
    ("memory_mb", "max_level", "expected"),
    [
        (158.0, 3, (1, 316.0, True)),
        (316.0, 3, (1, 632.0, True)),
        (632.0, 3, (3, 632.0, False)),
        (316.0, 2, (3, 316.0, False)),
        (158.0, 1, (3, 158.0, False)),
        (160.0, 3, (1, 316.0, True)),
        (0.0, 3, (1, 316.0, True)),
        (None, 3, (1, 316.0, True)),
        (1500.0, 3, (3, 1500.0, False)),
    ],
)
def test_levels_end_below_max_level(memory_mb, max_level, expected):
    """158, 316 and 632 MB are the three levels of section 5."""
    assert decided(query(cache_hit_rate=0.2, memory_mb=memory_mb), max_level=max_level) == expected


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (before(0.4, 2e-3), {"cache_hit_rate": 0.5, "state_latency_s": 2e-3}),
        (before(0.4, 2e-3), {"cache_hit_rate": 0.4, "state_latency_s": 1.9e-3}),
        (before(0.4, 2e-3), {"cache_hit_rate": 0.95, "state_latency_s": 1e-4}),
        (before(None, 2e-3), {"cache_hit_rate": None, "state_latency_s": 1e-3}),
    ],
)
def test_memory_that_helped_is_doubled_again(was, now):
    """Lines 8 to 11: also where the thresholds are met by now."""
    assert decided(query(memory_mb=316.0, **now), was) == (1, 632.0, True)


def test_memory_that_helped_stays_at_the_highest_level_and_ds2s_tasks_stand():
    """Line 9 fails: no line sets m^t."""
    was = before(0.4, 2e-3, level=2)
    assert decided(query(memory_mb=632.0, cache_hit_rate=0.5), was) == (3, 632.0, False)


@pytest.mark.parametrize("now", [{"cache_hit_rate": 0.4}, {"cache_hit_rate": 0.3}, {"cache_hit_rate": None}])
def test_memory_that_did_not_help_is_taken_back(now):
    """Line 12: DS2's tasks with the memory of before."""
    assert decided(query(memory_mb=316.0, state_latency_s=2e-3, **now), before(0.4, 2e-3)) == (3, 158.0, False)
    assert decided(query(memory_mb=632.0, state_latency_s=2e-3, **now), before(0.4, 2e-3, 2)) == (3, 316.0, False)


def test_how_much_is_an_improvement_is_a_setting():
    """The footnote to line 8."""
    now = query(memory_mb=316.0, cache_hit_rate=0.43, state_latency_s=1.9e-3)
    assert decided(now, before(0.4, 2e-3), min_improvement=0.05)[1] == 632.0
    assert decided(now, before(0.4, 2e-3), min_improvement=0.1)[1] == 158.0


def test_fewer_tasks_under_pressure_are_answered_by_memory_too():
    """Line 6 says different, not more."""
    assert decided(query(tasks=5, cache_hit_rate=0.5)) == (5, 316.0, True)


def test_unknown_memory_is_followed_by_history():
    slow = {"memory_mb": None, "cache_hit_rate": 0.5}
    assert decided(query(**slow), before(0.4, 2e-3)) == (1, 632.0, True)
    assert decided(query(**slow), before(0.6, 1e-5)) == (3, 158.0, False)


def test_the_reason_names_tasks_and_memory():
    reason = justin(query(cache_hit_rate=0.42, state_latency_s=2e-3), {}, SETTINGS)[0].reasons["window"]
    assert reason == (
        "1,000 records/s come in and one task can do 333: 3, so 3 tasks, instead of 1; its state is accessed slowly "
        "(42% of reads from memory, 2 ms an access), so it gets more memory and keeps its 1 task"
    )


def at(policy: Justin, time_s: float, rates: Rates, ended_s: float | None = None) -> Recommendation:
    last = None if ended_s is None else Rescaled(ended_s, 20.0, 100.0)
    began = time_s - policy.interval_s if ended_s is None else max(time_s - policy.interval_s, ended_s)
    return policy.observe(Facts(time_s, time_s - began, rates, last, 100))


def test_it_looks_at_whole_windows_once_the_job_is_stable():
    policy = Justin(SETTINGS)
    assert policy.interval_s == 120.0
    assert at(policy, 120, query()).reason == "Justin ignores the first 60 s after a start."
    assert at(policy, 240, query()).deploy is not None
    assert [at(policy, t, query(), ended_s=290).deploy is None for t in (360, 480, 600)] == [True, False, False]
    assert at(Justin(JustinSettings(stabilization_s=0)), 120, query()).deploy is not None


def test_the_trigger_is_a_busy_operator_that_holds_its_input_up():
    assert at(Justin(SETTINGS), 240, query()).reason == (
        "Justin scales window from 1 to 3 tasks, source from 158 to 0 MiB a task, sink from 158 to 0 MiB a task, since "
        "window is 100% busy and its upstream is backpressured 60% of the time."
    )
    for calm in (query(busy=0.8), query(busy=0.95, held_up=0.04)):
        assert at(Justin(SETTINGS), 240, calm) == Recommendation(
            None, "Justin keeps the current configuration: no operator is too busy or too idle."
        )


def test_the_trigger_is_a_busy_source_whose_log_grows():
    def behind(busyness: float, lag_change_per_s: float) -> Rates:
        calm = query(busy=0.5, held_up=0.0)
        rate = calm.source_rates["source"]
        known = {"busyness": busyness, "true_output_rate": rate / 2, "lag_change_per_s": lag_change_per_s * rate}
        source = calm.operators["source"].model_copy(update=known)
        return calm.model_copy(update={"operators": {**calm.operators, "source": source}})

    recommended = at(Justin(SETTINGS), 240, behind(1.0, 0.4))
    assert recommended.deploy.parallelism["source"] == 4
    assert recommended.reason.endswith("since source is 100% busy and leaves 40% of its records unread.")
    for calm in (behind(1.0, 0.04), behind(1.0, -0.4), behind(0.8, 0.4)):
        assert at(Justin(SETTINGS), 240, calm).deploy is None


def test_the_trigger_is_an_idle_operator_of_several_tasks():
    calm = {"held_up": 0.0, "needed": 1.5}
    assert at(Justin(SETTINGS), 240, query(tasks=8, busy=0.19, **calm)).deploy.parallelism["window"] == 2
    assert at(Justin(SETTINGS), 240, query(tasks=8, busy=0.2, **calm)).deploy is None
    assert at(Justin(SETTINGS), 240, query(tasks=1, busy=0.05, **calm)).deploy is None


def test_a_trigger_without_a_change_is_reported():
    stripped = query(tasks=3)
    memory = {n: m.model_copy(update={"memory_mb": 0.0}) for n, m in stripped.operators.items() if n != "window"}
    same = stripped.model_copy(update={"operators": {**stripped.operators, **memory}})
    assert at(Justin(SETTINGS), 240, same) == Recommendation(
        None,
        "Justin keeps the current configuration, although window is 100% busy and its upstream is backpressured 60% of "
        "the time.",
    )


def test_it_remembers_what_its_last_reconfiguration_raised():
    """Section 5, q11: memory first, then more tasks with the memory that helped at its highest level."""
    policy = Justin(SETTINGS)

    def step(time_s: float, ended_s: float | None, **window: float) -> tuple[int, float]:
        deploy = at(policy, time_s, query(**window), ended_s).deploy
        assert deploy is not None
        return deploy.parallelism["window"], deploy.memory_mb["window"]

    slow = {"cache_hit_rate": 0.4, "state_latency_s": 2e-3}
    assert step(240, None, memory_mb=158.0, **slow) == (1, 316.0)
    assert step(480, 260, memory_mb=316.0, cache_hit_rate=0.6, state_latency_s=1.5e-3) == (1, 632.0)
    assert step(720, 500, memory_mb=632.0, cache_hit_rate=0.9, state_latency_s=2e-4) == (3, 632.0)
    # Tasks were added last, so memory is judged by the thresholds again; it is at the highest level.
    assert step(960, 740, tasks=3, needed=6.0, memory_mb=632.0, **slow) == (6, 632.0)


@pytest.mark.parametrize(("operator", "metric"), [("window", "busyness"), ("source", "backpressure")])
def test_the_trigger_names_what_it_misses(operator, metric):
    rates = query()
    lacking = rates.operators[operator].model_copy(update={metric: None})
    with pytest.raises(InvalidInput, match=f"policy 'justin' decides by '{metric}', which is missing for '{operator}'"):
        at(Justin(SETTINGS), 240, rates.model_copy(update={"operators": {**rates.operators, operator: lacking}}))


@pytest.mark.parametrize(
    ("ds2", "of_justin", "saved"), [((12, 158.0), (6, 316.0), 0.28), ((24, 158.0), (12, 316.0), 0.27)]
)
def test_memory_is_accounted_as_in_figure_5(ds2, of_justin, saved):
    """q11 and q8: (tasks; MB) of the primary operator, and a sink of one task, with DS2 and with Justin."""
    with_ds2 = deployed_memory_mb({"window": ds2[0], "sink": 1}, {"window": ds2[1], "sink": 158.0})
    with_justin = deployed_memory_mb({"window": of_justin[0], "sink": 1}, {"window": of_justin[1]})
    assert 1 - with_justin / with_ds2 == pytest.approx(saved, abs=0.005)


def test_memory_of_seven_tasks_of_q1():
    """Section 5.1: 2,317 MB with DS2."""
    assert deployed_memory_mb({"map": 7}, {"map": 158.0}) == 2317.0
    assert deployed_memory_mb({"map": 7}, {"map": 0.0}) == 1211.0
