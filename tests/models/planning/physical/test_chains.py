"""Operators that Flink chains get the same number of tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import Infeasible
from models.job import Job
from models.planning.inputs import MeasuredOperators
from models.planning.physical.chains import chained_groups, equalised, with_stated_chains


def job(*edges: tuple[str, str, str], limit: int | None = None) -> Job:
    names = list(dict.fromkeys(name for edge in edges for name in edge[:2]))
    inputs, outputs = {e[1] for e in edges}, {e[0] for e in edges}
    operators = [
        {
            "name": name,
            "kind": "source" if name not in inputs else "sink" if name not in outputs else "operator",
            "cost": {"cpu_s": 1e-6, "bytes_out": 0 if name not in outputs else 10},
            "rate_share": 1.0,
            "figures_from": "made for tests",
            "max_parallelism": limit if name == "parse" else None,
        }
        for name in names
    ]
    return Job.model_validate(
        {
            "name": "chained",
            "description": "x",
            "figures_from": "made for tests",
            "operators": operators,
            "edges": [{"from": a, "to": b, "partitioning": how} for a, b, how in edges],
        }
    )


def test_a_forward_edge_to_an_operator_with_one_input_chains() -> None:
    made = job(
        ("source", "parse", "rebalance"),
        ("parse", "filter", "forward"),
        ("filter", "count", "hash"),
        ("count", "sink", "forward"),
    )
    assert chained_groups(made) == (("parse", "filter"), ("count", "sink"))


def test_an_operator_with_two_inputs_heads_its_own_vertex() -> None:
    made = job(
        ("source", "left", "rebalance"),
        ("source", "right", "rebalance"),
        ("left", "join", "forward"),
        ("right", "join", "forward"),
        ("join", "sink", "hash"),
    )
    assert chained_groups(made) == ()


def test_a_chained_group_gets_its_largest_number_of_tasks_and_the_plan_says_so() -> None:
    made = job(("source", "parse", "forward"), ("parse", "filter", "forward"), ("filter", "sink", "hash"))
    tasks, reasons = equalised(made, {"source": 2, "parse": 5, "filter": 3, "sink": 1})
    assert tasks == {"source": 5, "parse": 5, "filter": 5, "sink": 1}
    (reason,) = reasons
    assert reason.startswith("source -> parse -> filter get 5 tasks each, since Flink chains them")
    assert equalised(made, tasks) == (tasks, ())


def test_a_chained_group_that_cannot_be_equal_is_refused() -> None:
    made = job(("source", "parse", "forward"), ("parse", "sink", "hash"), limit=2)
    with pytest.raises(Infeasible, match=r"one needs 4 tasks and 'parse' may have at most 2"):
        equalised(made, {"source": 4, "parse": 2, "sink": 1})


def test_a_chained_group_beyond_the_key_groups_of_its_input_is_refused() -> None:
    made = job(("source", "count", "hash"), ("count", "sink", "forward")).model_copy(update={"key_groups": 128})
    with pytest.raises(Infeasible, match=r"count -> sink one needs 200 tasks and 'count' may have at most 128"):
        equalised(made, {"source": 1, "count": 100, "sink": 200})
    assert equalised(made, {"source": 1, "count": 128, "sink": 60})[0] == {"source": 1, "count": 128, "sink": 128}


def operators(made: Job, true_rates: dict[str, float]) -> MeasuredOperators:
    """All operators receive every record of the source."""
    return MeasuredOperators(
        job=made,
        true_rate_per_task=true_rates,
        selectivity=dict.fromkeys(true_rates, 1.0),
        records_in_per_source_record=dict.fromkeys(true_rates, 1.0),
        unit_costs={},
        origin="made for tests",
    )


def stated(made: Job, *vertices: tuple[str, ...]) -> Job:
    return Job.model_validate(
        made.model_dump(by_alias=True) | {"vertices": [{"operators": operators} for operators in vertices]}
    )


CHAIN = job(("source", "parse", "forward"), ("parse", "count", "hash"), ("count", "sink", "forward"))
RATES = {"source": 1000.0, "parse": 400.0, "count": 100.0, "sink": 1000.0}


def test_a_stated_chain_has_the_tasks_for_the_work_of_all_its_operators() -> None:
    # 8 tasks of count alone sustain 800/s, at which sink keeps 0.8 of a task busy: 8.8 in one thread each, so 9 tasks.
    # parse keeps 2 of its 2 tasks busy, and the source 0.5 at the planned 500/s.
    made = stated(CHAIN, ("source", "parse"), ("count", "sink"))
    alone = {"source": 1, "parse": 2, "count": 8, "sink": 1}
    tasks, reasons = with_stated_chains(operators(made, RATES), alone, 500.0)
    assert tasks == {"source": 3, "parse": 3, "count": 9, "sink": 9}
    assert reasons[1] == (
        "count -> sink get 9 tasks each, since one thread runs a task of all of them (alone: count 8, sink 1)"
    )


def test_operators_that_no_chain_joins_keep_their_tasks() -> None:
    alone = {"source": 1, "parse": 2, "count": 8, "sink": 1}
    assert with_stated_chains(operators(stated(CHAIN, ("source",)), RATES), alone, 500.0) == (alone, ())


def test_a_chain_beyond_the_limit_of_an_operator_is_refused() -> None:
    limited = job(("source", "parse", "forward"), ("parse", "count", "hash"), ("count", "sink", "forward"), limit=2)
    made = stated(limited, ("source", "parse"))
    alone = {"source": 1, "parse": 2, "count": 8, "sink": 1}
    # At 800/s the source keeps 0.8 of a task busy and parse 2: 3 tasks.
    with pytest.raises(Infeasible, match=r"source -> parse need 3 tasks, but 'parse' may have at most 2"):
        with_stated_chains(operators(made, RATES), alone, 800.0)
    # At 500/s 0.5 + 1.25 fit two tasks, though they would not bear the 800/s of the others.
    tasks, _ = with_stated_chains(operators(made, RATES), alone, 500.0)
    assert (tasks["source"], tasks["parse"]) == (2, 2)


@given(
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
    st.sampled_from([(("source", "parse"), ("count", "sink")), (("source", "parse"),), (("count", "sink"),)]),
)
def test_chained_operators_are_equal_and_none_gets_less_than_alone(
    alone: list[int], chains: tuple[tuple[str, ...], ...]
) -> None:
    made = stated(CHAIN, *chains)
    before = dict(zip(RATES, alone, strict=True))
    tasks, _ = with_stated_chains(operators(made, RATES), before, 400.0)
    assert all(tasks[name] >= before[name] for name in before)
    assert all(len({tasks[name] for name in chain}) == 1 for chain in chains)
