"""Operators that Flink chains get the same number of tasks."""

import pytest

from models.errors import Infeasible
from models.job import Job
from models.planning.chains import chained_groups, equalised


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
