"""The sizes that a twin is simulated with."""

import pytest

from models.capacity.observation import Observation, OperatorRates
from models.capacity.twin.ladder import larger_rungs, measured_rungs, rungs_between, tasks_of
from models.errors import Infeasible
from models.job import Job


def observed(slots: int, memory_mb: float = 1024.0) -> Observation:
    return Observation(run=f"m{slots}", task_slots=slots, memory_mb=memory_mb, parallelism={"a": slots}, mst=1.0)


def test_each_measured_size_is_simulated_once_with_the_configuration_of_the_most_memory() -> None:
    found = measured_rungs([observed(4), observed(2), observed(4, 2048.0), observed(9)])
    assert [(o.task_slots, o.memory_mb) for o in found] == [(2, 1024.0), (4, 2048.0), (9, 1024.0)]


def test_up_to_eight_sizes_are_all_simulated() -> None:
    sizes = [9, 10, 14, 23, 26, 28, 48]
    assert [o.task_slots for o in measured_rungs([observed(n) for n in sizes])] == sizes


def test_of_many_sizes_eight_are_simulated_evenly_in_logarithms_with_both_ends() -> None:
    found = [o.task_slots for o in measured_rungs([observed(n) for n in range(1, 129)])]
    assert found == [1, 2, 4, 8, 16, 32, 64, 128]


def test_sizes_fill_what_lies_far_apart_evenly_in_logarithms() -> None:
    # ln 2.25 / ln 1.3 = 3.1, so four steps of a ratio of 1.22; ln 1.28 / ln 1.3 < 1, so none.
    assert rungs_between([16, 36, 46]) == [20, 24, 29]


def test_no_size_lies_between_neighbouring_whole_numbers() -> None:
    assert rungs_between([1, 2, 4]) == [3]
    assert rungs_between([7]) == []


def test_larger_sizes_grow_by_half_until_they_pass_the_most() -> None:
    assert larger_rungs(48, 200) == [72, 108, 162, 243]
    assert larger_rungs(48, 48) == []


def test_tasks_are_those_of_bids2() -> None:
    job = Job.model_validate(
        {
            "name": "j",
            "description": "d",
            "figures_from": "f",
            "operators": [
                {"name": "source", "kind": "source", "cost": {"cpu_s": 1}, "figures_from": "f"},
                {"name": "map", "cost": {"cpu_s": 1}, "figures_from": "f", "max_parallelism": 3},
                {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1}, "figures_from": "f", "max_parallelism": 2},
            ],
            "edges": [
                {"from": "source", "to": "map", "partitioning": "rebalance"},
                {"from": "map", "to": "sink", "partitioning": "rebalance"},
            ],
        }
    )
    rates = [
        OperatorRates(name="map", true_rate_per_task=10.0, records_in_per_source_record=1.0),
        OperatorRates(name="sink", true_rate_per_task=30.0, records_in_per_source_record=1.0),
    ]
    assert tasks_of(job, rates, 4) == ({"map": 3, "sink": 1}, 30.0)
    with pytest.raises(Infeasible):
        tasks_of(job, rates, 6)
