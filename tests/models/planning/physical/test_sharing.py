"""Partitions and key groups that do not divide, by hand."""

from typing import Any

import pytest

from models.errors import Infeasible
from models.job import Job
from models.planning.physical.sharing import (
    check_partitions,
    shared_partitions,
    tasks_for_partitions,
    uneven_key_groups,
)


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
        (13.0, 12, 12),  # no number of tasks reads that, and a 13th would find no partition
        (0.0, 12, 1),
    ],
)
def test_the_fullest_task_keeps_up_with_its_partitions(busy: float, partitions: int | None, tasks: int) -> None:
    assert tasks_for_partitions(busy, partitions) == tasks


def job(groups: int | None = None, partitions: int | None = None) -> Job:
    operators: list[dict[str, Any]] = [
        {"name": name, "kind": kind, "cost": {"cpu_s": 1e-3}, "figures_from": "made up"}
        for name, kind in (("source", "source"), ("count", "operator"), ("sink", "sink"))
    ]
    operators[0]["max_parallelism"] = partitions
    edges = [
        {"from": "source", "to": "count", "partitioning": "hash"},
        {"from": "count", "to": "sink", "partitioning": "rebalance"},
    ]
    document = {"name": "j", "description": "A job.", "figures_from": "made up", "operators": operators, "edges": edges}
    return Job.model_validate(document | ({} if groups is None else {"key_groups": groups}))


@pytest.mark.parametrize(
    ("busy", "planned", "said"),
    [
        (4.0, 4, None),  # divided evenly
        (4.5, 6, "5 tasks would have 3 on the busiest, as 4 do, and one keeps up with 2.67; 6 planned"),
        # 10 tasks have 2 on the busiest, as 6 do; one keeps up with 12 / 9.5 = 1.26 of them.
        (9.5, 12, "10 tasks would have 2 on the busiest, as 6 do, and one keeps up with 1.26; 12 planned"),
        (
            2.5,
            5,  # 3 would do
            "5 tasks have 3 on the busiest, as 4 do; 5 planned, since those of the operators that Flink chains to it "
            "are as many",
        ),
        (2.5, 6, None),  # also more than would do, but even
        (
            12.5,
            12,
            "13 tasks would be needed with headroom, but only 12 find a partition; 12 planned, which leaves less headroom; "
            "more partitions would help",
        ),
    ],
)
def test_a_plan_says_how_the_tasks_of_a_source_share_its_partitions(
    busy: float, planned: int, said: str | None
) -> None:
    found = shared_partitions(job(partitions=12), {"source": busy}, {"source": planned, "count": 1, "sink": 1})
    assert found == ([] if said is None else [f"12 partitions of source: {said}"])
    assert shared_partitions(job(), {"source": busy}, {"source": planned}) == []


def test_a_source_with_too_few_partitions_for_the_rate_has_no_plan() -> None:
    check_partitions(job(partitions=12), {"source": 12.0}, 1_200)
    check_partitions(job(), {"source": 13.0}, 1_300)
    with pytest.raises(Infeasible) as refused:
        check_partitions(job(partitions=12), {"source": 12.5}, 1_250)
    assert str(refused.value) == (
        "source needs 13 tasks to read its share of 1,250 records/s, but its topic has 12 partitions, and a task without one "
        "reads nothing; give the topic 13 partitions or more (and state them as max_parallelism of source), or plan for at "
        "most 1,200 records/s"
    )


def test_a_prime_number_of_key_groups_is_warned_of() -> None:
    # ceil(127 / 16) = 8 of a mean of 7.94; ceil(127 / 20) = 7 of 6.35.
    (warning,) = uneven_key_groups(job(127), {"source": 3, "count": 16, "sink": 5})
    assert warning.startswith("key_groups: 127 is prime, so that only 1 or 127 tasks share them evenly; set 120 or 128")
    same, said = uneven_key_groups(job(127), {"source": 3, "count": 20, "sink": 5})
    assert same == warning
    assert said == (
        "20 tasks of count share 127 key groups: the fullest has 7, 10% more than the mean; 1 or 127 tasks share them evenly"
    )


def test_the_numbers_of_tasks_that_are_even_are_named() -> None:
    # ceil(128 / 20) = 7 of 6.4 is 9 %; ceil(128 / 24) = 6 of 5.33 is 12.5 %.
    assert uneven_key_groups(job(None), {"source": 1, "count": 20, "sink": 1}) == []
    (said,) = uneven_key_groups(job(None), {"source": 1, "count": 24, "sink": 1})
    assert said == (
        "24 tasks of count share 128 key groups: the fullest has 6, 12% more than the mean; 16 or 32 tasks share them evenly"
    )
