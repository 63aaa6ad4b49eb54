"""When the autoscaler acts: after settling, over a full window, outside the band, and not while it waits."""

from collections.abc import Iterator

import pytest

from models.errors import InvalidInput
from models.scaling.flink.policy import FlinkAutoscaler
from models.scaling.policies import make_policy
from models.scaling.policy import Facts, Recommendation, Rescaled
from models.scaling.rates import Rates

MINUTE = 60.0


def job(rate: float, tasks: int, *, source_rate: float = 5000.0, lag: float = 0.0, **more) -> Rates:
    """source -> work, `rate` records/s coming in; a task of `work` can do 100, the only one of the source `source_rate`."""
    read = min(rate, 100.0 * tasks, source_rate)
    source = {"parallelism": 1, "observed_input_rate": read, "busyness": read / source_rate}
    work = {"parallelism": tasks, "observed_input_rate": read, "busyness": read / (100 * tasks)}
    return Rates.model_validate(
        {
            "edges": [("source", "work")],
            "source_rates": {"source": rate},
            "operators": {
                "source": source | {"lag_records": lag, "lag_change_per_s": rate - read},
                "work": work | {"true_processing_rate": 100.0 * tasks, **more},
            },
        }
    )


ONLY_WORK = {"vertex.exclude.ids": "source"}


def minutes(policy: FlinkAutoscaler, rates: Rates, first: int, last: int, rescaled: Rescaled | None = None) -> Iterator:
    """Calls at the ends of minutes `first` to `last`."""
    for minute in range(first, last + 1):
        yield minute, policy.observe(Facts(minute * MINUTE, MINUTE, rates, rescaled))


def deployed(answers: Iterator[tuple[int, Recommendation]]) -> dict[int, int]:
    return {minute: answer.deploy.parallelism["work"] for minute, answer in answers if answer.deploy is not None}


def test_it_settles_five_minutes_and_fills_a_window_of_fifteen():
    answers = dict(minutes(make_policy("flink", ONLY_WORK), job(1000, 8), 1, 20))
    assert [minute for minute, answer in answers.items() if answer.deploy] == [20]
    assert answers[4].reason == "The autoscaler waits: the job is left to settle for 300 s after its start."
    assert answers[6].reason == "The autoscaler waits: 840 s of the metrics window of 900 s are still to come."
    # 1000 / 0.7 + 1000 x 300 / 1800 = 1595 at 800: 15.95 tasks.
    assert answers[20].deploy.parallelism == {"source": 1, "work": 16}
    assert answers[20].deploy.exact["work"] == pytest.approx(15.95)
    assert answers[20].reason == (
        "The autoscaler scales work from 8 to 16 tasks: at work, 1,000 records/s come in, which calls for a capacity "
        "of 1,595, and 8 tasks can do 800: 15.95, so 16 tasks, instead of 8."
    )


def test_it_starts_again_after_a_rescale():
    policy = make_policy("flink", ONLY_WORK)
    assert deployed(minutes(policy, job(1000, 8), 1, 20)) == {20: 16}
    done = Rescaled(ended_s=22 * MINUTE, downtime_s=120.0, state_mb=0.0)
    assert deployed(minutes(policy, job(2000, 16), 23, 42, done)) == {42: 32}


def test_a_rescale_from_outside_empties_the_window():
    policy = make_policy("flink", ONLY_WORK)
    assert deployed(minutes(policy, job(1000, 8), 1, 19)) == {}
    assert deployed(minutes(policy, job(1000, 9), 20, 33)) == {}
    assert deployed(minutes(policy, job(1000, 9), 34, 34)) == {34: 16}


@pytest.mark.parametrize(("tasks", "first"), [(9, (20, 16)), (10, None), (16, None), (26, None), (27, (80, 16))])
def test_within_the_band_it_does_nothing(tasks, first):
    # Content from 1000 / 1.0 of capacity on, up to 1000 / 0.4 + 1000 x 300 / 1800 = 2667.
    got = deployed(minutes(make_policy("flink", ONLY_WORK), job(1000, tasks), 1, 85))
    assert next(iter(got.items()), None) == first


def test_a_scale_down_waits_an_hour():
    policy = make_policy("flink", ONLY_WORK)
    answers = dict(minutes(policy, job(1000, 30), 1, 80))
    assert {minute: a.deploy.parallelism["work"] for minute, a in answers.items() if a.deploy} == {80: 16}
    assert answers[79].reason == (
        "The autoscaler leaves the job as it is: work has needed only 16 tasks for less than 3600 s."
    )


def test_release_1_6_scales_down_at_once_but_not_within_an_hour_of_a_scale_up():
    policy = make_policy("flink", ONLY_WORK | {"operator.release": "1.6"})
    assert deployed(minutes(policy, job(1000, 30), 1, 20)) == {20: 16}
    policy = make_policy("flink", ONLY_WORK | {"operator.release": "1.6"})
    assert deployed(minutes(policy, job(1000, 8), 1, 20)) == {20: 16}
    # It runs with 16 tasks from minute 21 on; 300 records/s are 478.6 with catch-up at 100 a task, so 5 tasks, but a
    # scale-down keeps 40 % of the tasks at least: 7.
    answers = list(minutes(policy, job(300, 16), 41, 90, Rescaled(21 * MINUTE, MINUTE, 0.0)))
    assert deployed(iter(answers)) == {80: 7} | dict.fromkeys(range(81, 91), 7)
    assert answers[-12][1].reason == (
        "The autoscaler leaves the job as it is: work needs only 7 tasks, but was scaled up less than 3600 s ago."
    )


def test_no_scale_down_while_a_backlog_is_processed():
    # 400 s of records wait, which adds 1000 x 400 / 1800 to what is wanted: 19 tasks. The backlog opens the band.
    policy = make_policy("flink", ONLY_WORK)
    answers = dict(minutes(policy, job(1000, 30, lag=400_000), 1, 120))
    assert not any(answer.deploy for answer in answers.values())
    assert answers[120].reason.endswith("within its utilisation band; a backlog is being processed.")


def test_one_operator_outside_the_band_takes_the_others_along():
    # 11 tasks of `work` are few, but within the band.
    assert deployed(minutes(make_policy("flink"), job(1000, 11), 1, 20)) == {}
    answers = dict(minutes(make_policy("flink"), job(1000, 11, source_rate=900), 1, 20))
    assert answers[20].deploy.parallelism == {"source": 2, "work": 16}


def test_a_tracked_restart_time_asks_for_less():
    options = ONLY_WORK | {"restart.time-tracking.enabled": True}
    done = Rescaled(ended_s=0.0, downtime_s=36.0, state_mb=0.0)
    # 1000 / 0.7 + 1000 x 36 / 1800 = 1449
    assert deployed(minutes(make_policy("flink", options), job(1000, 8), 1, 20, done)) == {20: 15}


def test_what_is_observed_is_the_mean_of_the_window():
    policy = make_policy("flink", ONLY_WORK)
    assert deployed(minutes(policy, job(400, 8), 6, 12)) == {}
    assert deployed(minutes(policy, job(1000, 8), 13, 20)) == {}
    # 7 minutes at 400 and 8 at 1000: 720 records/s, which 8 tasks can do; a minute later 760, two later 800.
    assert deployed(minutes(policy, job(1000, 8), 21, 23)) == {23: 14}


def test_a_decision_ignores_waiting_and_the_band():
    policy = make_policy("flink", ONLY_WORK)
    assert policy.decide(job(1000, 12)).parallelism == {"source": 1, "work": 16}
    assert policy.decide(job(1000, 30)).parallelism["work"] == 16
    assert policy.decide(job(1000, 100)).parallelism["work"] == 40  # no more than 60 % at once
    assert policy.decide(job(0, 10)).reasons["work"] == "nothing was read, so 4 tasks, instead of 10"


def test_limits_of_the_vertex_and_of_the_settings():
    assert make_policy("flink").decide(job(1000, 8, max_parallelism=12)).parallelism["work"] == 12
    assert make_policy("flink", {"vertex.max-parallelism": 10}).decide(job(1000, 8)).parallelism["work"] == 10
    assert make_policy("flink", {"vertex.min-parallelism": 20}).decide(job(1000, 30)).parallelism["work"] == 20
    # What runs is never out of bounds.
    assert make_policy("flink", {"vertex.max-parallelism": 5}).decide(job(1000, 8)).parallelism["work"] == 8


def test_what_is_not_decided_about_says_so():
    rates = job(1000, 8)
    excluded = make_policy("flink", ONLY_WORK).decide(rates)
    assert excluded.reasons["source"] == "it is not to be scaled, so 1 task, as now"
    assert "source" not in excluded.exact
    unknown = rates.operators["source"].model_copy(update={"busyness": None})
    blind = rates.model_copy(update={"operators": rates.operators | {"source": unknown}})
    assert make_policy("flink").decide(blind).reasons["source"] == "what it can do is not known, so 1 task, as now"
    alone = rates.model_copy(update={"operators": {"work": rates.operators["work"]}})
    assert make_policy("flink").decide(alone).parallelism == {"work": 16}


def test_a_reason_names_what_changed_the_decision():
    policy = make_policy("flink", ONLY_WORK)
    few = policy.decide(job(1000, 8, key_groups=100))
    assert few.reasons["work"].endswith(": 15.95, fitted to its limits 17, so 17 tasks, instead of 8")  # 5 groups each
    assert policy.decide(job(1000, 100)).reasons["work"].endswith(": 40, so 40 tasks, instead of 100")
    answers = dict(minutes(policy, job(1000, 30), 1, 78))
    assert not any(answer.deploy for answer in answers.values())
    # The last two minutes want less; the most in the hour is still due.
    last = dict(minutes(policy, job(100, 30), 79, 80))[80].deploy
    assert last.parallelism["work"] == 16
    assert last.reasons["work"].endswith("so 16 tasks as the most that was wanted while it waited, instead of 30")


def test_deciding_in_between_does_not_disturb_observing():
    policy = make_policy("flink", ONLY_WORK)
    other = Rates.model_validate(
        {
            "edges": [("a", "b")],
            "source_rates": {"a": 1},
            "operators": {"b": {"parallelism": 1, "true_processing_rate": 1}},
        }
    )
    for _, answer in minutes(policy, job(1000, 8), 1, 19):
        assert answer.deploy is None
        policy.decide(other)
    assert deployed(minutes(policy, job(1000, 8), 20, 20)) == {20: 16}


def test_memory_is_tuned_where_it_is_asked_for():
    options = {
        "memory.tuning.enabled": True,
        "taskmanager.memory.process.size": "4 gb",
        "taskmanager.numberOfTaskSlots": 4,
    }
    rates = job(1000, 8, memory_mb=100.0, state_mb=10.0)
    with pytest.raises(InvalidInput, match="add task_manager_use to the rates"):
        make_policy("flink", options).decide(rates)
    used = Rates.model_validate(rates.model_dump() | {"task_manager_use": {"heap_mb": 500, "metaspace_mb": 100}})
    decision = make_policy("flink", options).decide(used)
    # 4096 MiB less 409.6 of overhead and 256 of metaspace: 40 % of 3430.4 MiB is managed, a quarter of it for each slot.
    assert decision.memory_mb == pytest.approx(dict.fromkeys(("source", "work"), 3430.4 * 0.4 / 4), abs=1e-4)
    # With 128 MiB off-heap, buffers of 4 x 50 x 32 KiB, 120 of metaspace and 600 of heap.
    assert decision.reasons["work"].endswith("; TaskManagers are tuned to 2,636 MiB, 1,372 of them managed")
    stateless = job(1000, 8, memory_mb=0.0).model_copy(update={"task_manager_use": used.task_manager_use})
    assert set(make_policy("flink", options).decide(stateless).memory_mb.values()) == {0.0}
    too_small = options | {"taskmanager.memory.process.size": "512 mb"}
    with pytest.raises(InvalidInput, match=r"process.size must hold more than .* overhead, metaspace and framework"):
        make_policy("flink", too_small).decide(used)
