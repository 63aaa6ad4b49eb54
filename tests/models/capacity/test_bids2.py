"""BIDS2 against StreamBed's published solutions, brute force, and CBC."""

import itertools
import math

import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.errors import Infeasible, InvalidInput


def operator(name: str, rate: float, ratio: float = 1.0) -> OperatorRates:
    return OperatorRates(name=name, true_rate_per_task=rate, records_in_per_source_record=ratio)


def source_rate(operators: list[OperatorRates], tasks: tuple[int, ...]) -> float:
    """Eq. 2 and 3: the source rate at which the first operator saturates."""
    return min(
        t * o.true_rate_per_task / o.records_in_per_source_record if o.records_in_per_source_record > 0 else math.inf
        for o, t in zip(operators, tasks, strict=True)
    )


def brute_force(operators: list[OperatorRates], slots: int, limits: dict[str, int]) -> float | None:
    """The best source rate over all parallelisms that use exactly the slots; None if there are none."""
    ranges = [range(1, min(limits.get(o.name, slots), slots) + 1) for o in operators]
    rates = [source_rate(operators, tasks) for tasks in itertools.product(*ranges) if sum(tasks) == slots]
    return max(rates, default=None)


def cbc(operators: list[OperatorRates], slots: int) -> float:
    """Eq. 1-4 as the paper solves them: a mixed-integer program, solved by CBC."""
    problem = pulp.LpProblem("bids2", pulp.LpMaximize)
    source = problem.add_variable("source", lowBound=0)
    tasks = [problem.add_variable(f"tasks{i}", lowBound=1, cat="Integer") for i in range(len(operators))]
    problem += source
    problem += pulp.lpSum(tasks) == slots
    for o, t in zip(operators, tasks, strict=True):
        problem += source * o.records_in_per_source_record <= t * o.true_rate_per_task
    problem.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=0.0, gapAbs=0.0))
    return source_rate(operators, tuple(round(t.value()) for t in tasks))


@st.composite
def instances(draw: st.DrawFn) -> tuple[list[OperatorRates], int, dict[str, int]]:
    count = draw(st.integers(1, 4))
    # Small whole rates make ties likely, where an inexact method would go wrong.
    rates = draw(st.lists(st.integers(1, 12), min_size=count, max_size=count))
    ratios = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 3.0]), min_size=count, max_size=count))
    if not any(ratios):
        ratios[0] = 1.0
    operators = [operator(f"o{i}", rate, ratio) for i, (rate, ratio) in enumerate(zip(rates, ratios, strict=True))]
    limited = draw(st.lists(st.sampled_from([o.name for o in operators]), unique=True))
    return operators, draw(st.integers(count, 12)), {name: draw(st.integers(1, 6)) for name in limited}


def test_the_published_instances_are_reproduced(bids2_vectors):
    assert len(bids2_vectors) == 35
    for vector in bids2_vectors:
        fields = ("name", "true_rate_per_task", "records_in_per_source_record")
        operators = [OperatorRates(**{f: o[f] for f in fields}) for o in vector["operators"]]
        result = bids2(operators, vector["slots_budget_excl_sources"])
        assert list(result.parallelism.values()) == vector["paper_cbc_parallelism"]
        assert result.source_rate == pytest.approx(vector["paper_objective"], rel=1e-7)


@given(instances())
@settings(max_examples=300)
def test_it_is_as_good_as_brute_force(instance):
    operators, slots, limits = instance
    best = brute_force(operators, slots, limits)
    if best is None:
        with pytest.raises(Infeasible):
            bids2(operators, slots, limits)
        return
    result = bids2(operators, slots, limits)
    assert sum(result.parallelism.values()) == slots
    assert all(1 <= tasks <= limits.get(name, slots) for name, tasks in result.parallelism.items())
    assert result.source_rate == pytest.approx(best, rel=1e-12)
    assert result.source_rate == source_rate(operators, tuple(result.parallelism.values()))


# PuLP 4 will ship CBC apart.
@pytest.mark.filterwarnings("ignore:PULP_CBC_CMD is deprecated:DeprecationWarning")
@given(
    st.lists(st.tuples(st.floats(1e3, 1e7), st.floats(1e-3, 5.0)), min_size=1, max_size=6),
    st.integers(0, 60),
)
@settings(max_examples=40)
def test_it_is_as_good_as_cbc(rates, more_slots):
    operators = [operator(f"o{i}", rate, ratio) for i, (rate, ratio) in enumerate(rates)]
    slots = len(operators) + more_slots
    # CBC stops within its own tolerances; it must never beat the exact answer.
    assert bids2(operators, slots).source_rate == pytest.approx(cbc(operators, slots), rel=1e-6)
    assert bids2(operators, slots).source_rate >= cbc(operators, slots) * (1 - 1e-12)


@given(instances(), st.integers(0, 3000))
def test_starting_ahead_ends_where_one_by_one_does(instance, more_slots):
    operators, slots, _ = instance
    tasks = [1] * len(operators)
    for _ in range(slots + more_slots - len(operators)):
        sustained = [source_rate([o], (t,)) for o, t in zip(operators, tasks, strict=True)]
        tasks[min(range(len(tasks)), key=lambda i: (sustained[i], tasks[i], i))] += 1
    assert list(bids2(operators, slots + more_slots).parallelism.values()) == tasks


def test_the_slots_that_are_left_over_lower_the_next_busiest_operator():
    # "a" is full at 1 task and limits to 10/s whatever the others get; "b" is then the next to saturate.
    result = bids2([operator("a", 10), operator("b", 20), operator("c", 90)], 8, {"a": 1})
    assert result.parallelism == {"a": 1, "b": 5, "c": 2}
    assert (result.source_rate, result.limited_by) == (10, "a")


def test_an_operator_without_records_never_limits():
    result = bids2([operator("busy", 10), operator("unused", 1e-3, ratio=0.0)], 6)
    assert result.parallelism == {"busy": 5, "unused": 1}
    assert result.source_rate == 50


@pytest.mark.parametrize(
    ("operators", "slots", "limits", "error", "message"),
    [
        ([operator("a", 1), operator("b", 1)], 1, {}, Infeasible, "2 operators do not fit in 1 slots"),
        ([operator("a", 1)], 3, {"a": 2}, Infeasible, "2 tasks, fewer than the 3 slots"),
        ([], 3, {}, InvalidInput, "at least one operator"),
        ([operator("a", 1), operator("a", 2)], 3, {}, InvalidInput, "'a' stands twice"),
        ([operator("a", 1, 0.0)], 3, {}, InvalidInput, "is 0 for all of them"),
        ([operator("a", 1)], 3, {"b": 2}, InvalidInput, "'b', which is no operator; known: a"),
        ([operator("a", 1)], 3, {"a": 0}, InvalidInput, "must be at least 1, but got 0"),
        ([operator("a", 1e308, 1e-300)], 3, {}, InvalidInput, "check their units"),
    ],
)
def test_what_has_no_answer_says_why(operators, slots, limits, error, message):
    with pytest.raises(error, match=message):
        bids2(operators, slots, limits)
