"""The rate at which facts saturate, and how they change."""

import pytest

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.diagnosis.rates import saturating_rate, unlimited, with_slots, with_tasks


def facts(*operators: OperatorFacts, **known: float) -> BoundFacts:
    return BoundFacts(rate=1000.0, measured=True, operators=operators, **known)


def busy(name: str, share: float, tasks: int = 1, **known: object) -> OperatorFacts:
    return OperatorFacts(name=name, parallelism=tasks, busyness=share, peak_busyness=known.pop("peak", share), **known)


def test_the_fullest_task_or_worker_saturates_first() -> None:
    assert saturating_rate(facts(busy("a", 0.5), busy("b", 0.25))) == 2000
    assert saturating_rate(facts(busy("a", 0.5), cores_use=0.8)) == 1250
    assert saturating_rate(facts(busy("a", 0.5), network_use=1.25)) == 800
    assert saturating_rate(facts(busy("a", 0.0))) is None
    assert saturating_rate(facts(busy("a", 0.5), OperatorFacts(name="b", parallelism=1))) is None


def test_a_task_held_back_from_downstream_counts_with_its_busyness_over_time() -> None:
    known = {"peak_busyness": 0.9, "fullest_busyness": 0.5, "busyness": 0.4}
    assert OperatorFacts(name="a", parallelism=4, backpressure=0.1, **known).held_busyness == 0.9
    assert OperatorFacts(name="a", parallelism=4, backpressure=0.3, **known).held_busyness == 0.5


def test_a_hot_key_stays_with_one_task() -> None:
    """Two tasks' worth of work, of which one task has half and its even share of the rest: 2 (0.5 + 0.5 / 4) = 1.25."""
    hot = busy("a", 0.5, tasks=4, peak=1.25)
    assert hot.hot_share == pytest.approx(0.5)
    doubled = with_tasks(hot, 8)
    assert (doubled.busyness, doubled.peak_busyness) == (pytest.approx(0.25), pytest.approx(2 * (0.5 + 0.5 / 8)))
    assert with_tasks(busy("b", 0.8, tasks=4), 8).held_busyness == pytest.approx(0.4)


def test_slots_go_to_the_tightest_that_may_have_more() -> None:
    before = facts(busy("a", 0.9, most_tasks=2), busy("b", 0.8), busy("c", 0.3), cores_use=0.6)
    after = with_slots(before, 3)
    # a has its second task, then b is tightest twice: 0.8 and 0.4 against 0.45 of a, which is full.
    assert {o.name: o.parallelism for o in after.operators} == {"a": 2, "b": 3, "c": 1}
    assert after.cores_use == pytest.approx(0.6 * 3 / 6)
    assert saturating_rate(after) == pytest.approx(1000 / 0.45)


def test_sources_get_none_of_the_slots() -> None:
    before = facts(busy("source", 1.0, is_source=True), busy("a", 0.5))
    assert {o.name: o.parallelism for o in with_slots(before, 2).operators} == {"source": 1, "a": 3}


def test_slots_go_to_the_sources_where_flink_chains_all_to_them() -> None:
    whole = facts(busy("all", 0.5, tasks=4, is_source=True), cores_use=1.0)
    after = with_slots(whole, 1)
    # The work of 2 busy tasks on 5.
    assert (after.operators[0].parallelism, after.operators[0].busyness) == (5, pytest.approx(0.4))
    assert after.cores_use == pytest.approx(4 / 5)
    full = facts(busy("all", 0.5, tasks=4, is_source=True, most_tasks=4), cores_use=1.0)
    assert with_slots(full, 1) == full


def test_the_only_operator_gets_twice_its_tasks_at_most() -> None:
    after = unlimited(facts(busy("all", 1.0, tasks=3, is_source=True)), "all")
    assert (after.operators[0].parallelism, saturating_rate(after)) == (6, pytest.approx(2000))
