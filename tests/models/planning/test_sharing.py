"""Partitions and key groups that do not divide, by hand."""

import pytest

from models.job import Job
from models.planning.sharing import tasks_for_partitions, uneven_key_groups


@pytest.mark.parametrize(
    ("busy", "partitions", "tasks"),
    [
        (4.5, None, 5),
        (4.5, 12, 6),  # of 5 tasks the fullest has 3 partitions of 12, 1.125 times what it reads; of 6 each has 2
        (4.0, 12, 4),
        (3.1, 12, 4),
        (6.5, 13, 7),  # 2 of 13 partitions are 1 / 6.5
        (6.6, 13, 13),
        (11.0, 12, 12),
        (13.0, 12, 13),  # no number of tasks reads that: partitions bound the plan
        (0.0, 12, 1),
    ],
)
def test_the_fullest_task_keeps_up_with_its_partitions(busy: float, partitions: int | None, tasks: int) -> None:
    assert tasks_for_partitions(busy, partitions) == tasks


def job(groups: int | None) -> Job:
    operators = [
        {"name": name, "kind": kind, "cost": {"cpu_s": 1e-3}, "figures_from": "made up"}
        for name, kind in (("source", "source"), ("count", "operator"), ("sink", "sink"))
    ]
    edges = [
        {"from": "source", "to": "count", "partitioning": "hash"},
        {"from": "count", "to": "sink", "partitioning": "rebalance"},
    ]
    document = {"name": "j", "description": "A job.", "figures_from": "made up", "operators": operators, "edges": edges}
    return Job.model_validate(document | ({} if groups is None else {"key_groups": groups}))


def test_a_prime_number_of_key_groups_is_warned_of() -> None:
    # ceil(127 / 16) = 8 of a mean of 7.94; ceil(127 / 20) = 7 of 6.35.
    assert uneven_key_groups(job(127), {"source": 3, "count": 16, "sink": 5}) == []
    (said,) = uneven_key_groups(job(127), {"source": 3, "count": 20, "sink": 5})
    assert said == (
        "20 tasks of count share 127 key groups: the fullest has 7, 10% more than the mean; 127 is prime, so only 1 or 127 "
        "tasks share it evenly; a power of two as key groups would help"
    )


def test_the_numbers_of_tasks_that_are_even_are_named() -> None:
    # ceil(128 / 20) = 7 of 6.4 is 9 %; ceil(128 / 24) = 6 of 5.33 is 12.5 %.
    assert uneven_key_groups(job(None), {"source": 1, "count": 20, "sink": 1}) == []
    (said,) = uneven_key_groups(job(None), {"source": 1, "count": 24, "sink": 1})
    assert said == (
        "24 tasks of count share 128 key groups: the fullest has 6, 12% more than the mean; 16 or 32 tasks share them evenly"
    )
