"""Each cause by hand: facts in, the vertex, its cause, the remedy and what that brings."""

import pytest
from pydantic import ValidationError

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts

RATE = 100_000.0


def source(**known: object) -> OperatorFacts:
    given = {"parallelism": 2, "busyness": 0.2, "peak_busyness": 0.2, "backpressure": 0.7}
    return OperatorFacts(name="source", is_source=True, **{**given, **known})


def operator(name: str = "count", **known: object) -> OperatorFacts:
    return OperatorFacts(name=name, upstream=("source",), **{"parallelism": 4, "backpressure": 0.0, **known})


def even(name: str, busy: float, **known: object) -> OperatorFacts:
    return operator(name, busyness=busy, fullest_busyness=busy, peak_busyness=busy, **known)


def facts(*operators: OperatorFacts, **known: object) -> BoundFacts:
    return BoundFacts(rate=RATE, measured=True, operators=operators, **known)


def test_even_and_busy_tasks_are_bound_by_cpu() -> None:
    found = diagnose(facts(source(), even("count", 1.0), even("sink", 0.5, parallelism=2)))
    assert (found.vertex, found.cause, found.also) == ("count", "CPU", ())
    assert found.sentence.startswith("at 100,000 records/s, the 4 tasks of count are busy for 100% of the time")
    # 6 slots and 2 more, both for count: 4 tasks' worth of work on 6 tasks.
    assert found.effect is not None
    assert found.effect.change == "6 -> 8 tasks (count 4 -> 6)"
    assert found.effect.rate_then == pytest.approx(RATE * 6 / 4)
    assert found.effect.then_bound_by == "count"
    assert "more slots for count" in str(found.remedy)


def test_tasks_that_work_off_what_buffers_hold_are_busy_for_all_of_the_time_and_no_more() -> None:
    found = diagnose(facts(source(), even("count", 1.02)))
    assert "are busy for 100% of the time, the fullest for 100%" in found.sentence


def test_the_share_of_time_that_is_waited_stays_with_more_slots() -> None:
    """At 80 % busy the fullest task waits for a fifth of its time, and is assumed to do so with more slots, too."""
    found = diagnose(facts(source(), even("count", 0.8)))
    assert found.effect is not None
    assert found.effect.rate_then == pytest.approx(RATE * 5 / 4)


def test_a_key_that_one_task_gets_at_a_time() -> None:
    """Two tasks do one task's work in turns: over time even, in short intervals 80 % to one of them."""
    hot = operator(
        "join", parallelism=2, keyed=True, busyness=0.5, fullest_busyness=0.52, peak_busyness=0.8, key_groups=128
    )
    found = diagnose(facts(source(), even("map", 0.4), hot))
    assert (found.vertex, found.cause) == ("join", "hot key")
    assert "since one task at a time gets 80% of the records and an even share is 50%" in found.sentence
    assert "two-phase (local-global) aggregation" in str(found.remedy)
    assert found.effect is not None
    # Even, join would saturate at 100,000 / 0.5.
    assert (found.effect.rate_then, found.effect.then_bound_by) == (pytest.approx(200_000), "join")


def test_operators_that_bind_alike_are_lifted_together() -> None:
    hot = {"parallelism": 2, "keyed": True, "busyness": 0.4, "fullest_busyness": 0.4, "key_groups": 128}
    both = (operator("max", peak_busyness=0.78, **hot), operator("join", peak_busyness=0.8, **hot))
    found = diagnose(facts(source(), even("map", 0.5), *both))
    assert (found.vertex, found.also) == ("join", ("max",))
    assert found.effect is not None
    assert found.effect.change == "even shares for the tasks of join and max"
    assert (found.effect.rate_then, found.effect.then_bound_by) == (pytest.approx(200_000), "map")


def test_unevenness_that_comes_from_the_number_of_key_groups() -> None:
    """128 groups over 42 tasks: some have 4, the mean is 3.05."""
    uneven = operator("window", parallelism=42, keyed=True, key_groups=128, busyness=0.75, peak_busyness=1.0)
    found = diagnose(facts(source(), uneven))
    assert (found.vertex, found.cause) == ("window", "key groups")
    assert "some have 4 and others 3, 31% more than the mean" in found.sentence
    assert found.effect is not None
    assert found.effect.rate_then == pytest.approx(RATE * 4 * 42 / 128)


def test_busy_time_that_is_spent_waiting_for_state() -> None:
    slow = even("join", 0.8, state_share=0.75, cache_hit_rate=0.94)
    found = diagnose(facts(source(), slow, even("sink", 0.3)))
    assert (found.vertex, found.cause) == ("join", "state reads")
    assert "75% of that they wait for state: 6.0% of the reads are not in memory" in found.sentence
    assert found.effect is not None
    # In memory, join is busy for 20 %; then the sink is first, at 0.8 / 0.3 of the rate.
    assert (found.effect.rate_then, found.effect.then_bound_by) == (pytest.approx(RATE * 0.8 / 0.3), "sink")


def test_state_in_memory_does_not_lack_memory() -> None:
    assert diagnose(facts(source(), even("join", 0.9, state_share=0.75, cache_hit_rate=1.0))).cause == "CPU"


def test_an_operator_that_may_have_no_more_tasks() -> None:
    found = diagnose(facts(source(), even("calc", 1.0, most_tasks=4), even("sink", 0.8)))
    assert (found.vertex, found.cause) == ("calc", "max parallelism")
    assert "it may have no more than 4 tasks" in found.sentence
    assert found.effect is not None
    # 5 tasks are busy for 80 %, as the sink is.
    assert (found.effect.change, found.effect.rate_then) == ("4 -> 5 tasks of calc", pytest.approx(RATE / 0.8))


def test_sources_without_further_partitions() -> None:
    full = source(busyness=0.95, peak_busyness=0.95, backpressure=0.0, most_tasks=2)
    found = diagnose(facts(full, even("count", 0.5)))
    assert (found.vertex, found.cause, found.remedy) == ("source", "source partitions", "more partitions for source")
    assert found.effect is not None
    # Twice the tasks at most, which are busy for 47.5 %; count, for 50 %, is first.
    assert found.effect.rate_then == pytest.approx(RATE * 0.95 / 0.5)
    assert found.effect.then_bound_by == "count"


def test_a_worker_whose_network_is_full() -> None:
    found = diagnose(facts(source(), even("map", 0.5), network_use=0.95, network_vertex="map"))
    assert (found.vertex, found.cause) == ("map", "network")
    assert "the fullest worker uses 95% of its network; map sends most of it" in found.sentence
    assert found.effect is not None
    assert found.effect.rate_then == pytest.approx(RATE * 0.95 / 0.5)


def test_a_worker_whose_cores_are_full_although_its_tasks_are_not() -> None:
    assert (
        diagnose(facts(source(), even("map", 0.5), network_use=1.8, network_vertex="map", cores_use=4.7)).cause == "CPU"
    )
    found = diagnose(facts(source(), even("map", 0.5), cores_use=0.96))
    assert (found.vertex, found.cause) == ("map", "CPU")
    assert "the fullest worker's tasks use 96% of its cores" in found.sentence


def test_a_job_chained_whole_is_its_source() -> None:
    chained = {"parallelism": 4, "backpressure": 0.0, "most_tasks": 8}
    full = diagnose(facts(source(busyness=1.0, peak_busyness=1.0, **chained)))
    assert (full.vertex, full.cause, full.remedy) == ("source", "source partitions", "more tasks of source")
    assert full.effect is not None
    assert (full.effect.change, full.effect.rate_then) == ("4 -> 8 tasks of source", pytest.approx(2 * RATE))
    # Of its machine's cores all are used, although its tasks wait for half of the time: a quarter more tasks, on more machines.
    waits = diagnose(facts(source(busyness=0.5, peak_busyness=0.5, **chained), cores_use=1.0))
    assert (waits.vertex, waits.cause) == ("source", "CPU")
    assert waits.effect is not None
    assert waits.effect.change == "4 -> 5 tasks (source 4 -> 5)"
    assert waits.effect.rate_then == pytest.approx(RATE * 5 / 4)


def test_windows_that_wait_in_turns() -> None:
    found = diagnose(facts(source(), even("window", 0.6, windowed=True), even("join", 0.4)))
    assert (found.vertex, found.cause, found.effect) == ("window", "waiting", None)
    assert "for 60%" in found.sentence and "for 70% of the time" in found.sentence
    assert found.no_effect_because == "the facts do not say how much of the waiting would remain"


@pytest.mark.parametrize(
    "operators",
    [
        (source(), even("map", 0.5)),  # nothing is busy, there is no window
        (source(backpressure=0.0), even("window", 0.5, windowed=True)),  # nothing waits
        (operator("map"),),  # nothing is known
    ],
)
def test_what_the_facts_do_not_explain_is_unknown(operators: tuple[OperatorFacts, ...]) -> None:
    found = diagnose(facts(*operators))
    assert (found.vertex, found.cause, found.remedy, found.effect) == (None, "unknown", None, None)
    assert found.sentence.startswith(("at 100,000 records/s, no task is busy all the time (", "nothing is known of"))
    assert found.no_effect_because == "the cause is unknown"


def test_an_unknown_busyness_leaves_the_effect_unknown() -> None:
    found = diagnose(facts(source(), even("count", 1.0, most_tasks=4), operator("sink")))
    assert (found.cause, found.effect) == ("max parallelism", None)
    assert found.no_effect_because == "the busyness of an operator is unknown"


def test_a_plan_without_a_cause_of_its_own_has_that_of_the_largest_measurement() -> None:
    measured = diagnose(facts(source(), even("window", 0.6, windowed=True)))
    planned = BoundFacts(rate=RATE, measured=False, operators=(even("window", 0.5),))
    found = diagnose(planned, seen=measured)
    assert (found.vertex, found.cause, found.effect) == ("window", "waiting", None)
    assert found.sentence.startswith("as in the largest configuration measured: at 100,000 records/s")
    assert diagnose(planned).cause == "unknown"
    # That one operator had too few tasks says nothing of more tasks.
    assert diagnose(planned, seen=diagnose(facts(source(), even("window", 1.0)))).cause == "unknown"


def test_another_predictor_computes_the_effect() -> None:
    """The rate is asked of the facts before and after, of which it may know more than their busyness."""
    asked: list[int] = []

    def predict(of: BoundFacts) -> float:
        asked.append(of.operator("count").parallelism)
        return 1000.0 * asked[-1]

    found = diagnose(facts(source(), even("count", 1.0)), predict=predict)
    assert asked == [4, 5]
    assert found.effect is not None and found.effect.rate_then == pytest.approx(RATE * 5 / 4)


def test_a_known_cause_needs_a_remedy() -> None:
    with pytest.raises(ValidationError, match="a remedy must be given"):
        BoundBy(vertex="map", cause="CPU", sentence="busy", remedy=None, no_effect_because="?")
    with pytest.raises(ValidationError, match="either an effect"):
        BoundBy(vertex="map", cause="CPU", sentence="busy", remedy="more slots")
