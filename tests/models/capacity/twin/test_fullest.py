"""The MST between simulated sizes, by numbers that can be checked by hand."""

import numpy as np
import pytest

from models.capacity.observation import OperatorRates
from models.capacity.twin.fullest import FullestTask, Simulated, curve_of
from models.capacity.twin.keys import FOR_GOOD
from models.job import Cost, Job, Keys


def keyed(keys: Keys | None = None, key_groups: int | None = None) -> Job:
    """A count that costs 1 ms a record, behind a hash-partitioned edge, and a sink of next to nothing."""
    return Job.model_validate(
        {
            "name": "j",
            "description": "d",
            "figures_from": "hand",
            "key_groups": key_groups,
            "operators": [
                {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-9}, "figures_from": "hand"},
                {
                    "name": "count",
                    "cost": {"cpu_s": 1e-3},
                    "keys": None if keys is None else keys.model_dump(),
                    "figures_from": "hand",
                },
                {
                    "name": "sink",
                    "kind": "sink",
                    "cost": {"cpu_s": 1e-9},
                    "max_parallelism": 1,
                    "figures_from": "hand",
                },
            ],
            "edges": [
                {"from": "source", "to": "count", "partitioning": "hash"},
                {"from": "count", "to": "sink", "partitioning": "rebalance"},
            ],
        }
    )


RATES = (
    OperatorRates(name="count", true_rate_per_task=1000.0, records_in_per_source_record=1.0),
    OperatorRates(name="sink", true_rate_per_task=1e9, records_in_per_source_record=1.0),
)


def test_the_task_with_the_most_key_groups_is_busy_first() -> None:
    fullest = FullestTask(keyed(), RATES)
    # 100 tasks share 256 groups: three of them at the fullest. 128 tasks share as many: two each.
    assert fullest.bound({"count": 100, "sink": 1}) == pytest.approx(1000 / 3 * 256)
    assert fullest.bound({"count": 128, "sink": 1}) == pytest.approx(1000 / 2 * 256)
    assert fullest.bound_at(129) == fullest.bound({"count": 128, "sink": 1})


def test_a_task_is_busy_while_it_waits_outside_the_job() -> None:
    job = keyed()
    waits = [
        o.model_copy(update={"cost": Cost(cpu_s=2e-4, external_wait_s=8e-4)}) if o.name == "count" else o
        for o in job.operators
    ]
    # 0.2 + 0.8 ms a record, and 128 tasks of two key groups each, as above.
    fullest = FullestTask(job.model_copy(update={"operators": tuple(waits)}), RATES)
    assert fullest.bound({"count": 128, "sink": 1}) == pytest.approx(1000 / 2 * 256)


def test_a_key_that_stays_hot_bounds_any_number_of_tasks() -> None:
    fullest = FullestTask(keyed(Keys(distinct=10**7, hot_share=0.5, hot_period_records=FOR_GOOD)), RATES)
    # Half of all records, and one task's share of the others.
    assert fullest.bound({"count": 128, "sink": 1}) == pytest.approx(1000 / (0.5 + 0.5 / 128))


def test_a_key_that_changes_does_not() -> None:
    fullest = FullestTask(keyed(Keys(distinct=10**7, hot_share=0.5, hot_period_records=1000)), RATES)
    assert fullest.bound({"count": 128, "sink": 1}) == pytest.approx(128_000)


def test_between_simulated_sizes_the_curve_is_a_staircase() -> None:
    fullest = FullestTask(keyed(), RATES)
    sizes = [Simulated(n, {"count": n - 1, "sink": 1}, 0.9 * fullest.bound_at(n), lasts=True) for n in (65, 257)]
    curve = curve_of([1024.0], [sizes], fullest)
    slots = np.array([65.0, 100.0, 128.0, 129.0, 172.0, 173.0])
    # The fullest of 64 tasks has 2 of 128 key groups, of 99 and 127 three of 256, of 128 and 171 two, of 172 three of 512.
    wanted = [
        0.9 * 1000 * groups / most for groups, most in ((128, 2), (256, 3), (256, 3), (256, 2), (256, 2), (512, 3))
    ]
    assert np.exp(curve.log_mst(1024.0, slots)) == pytest.approx(wanted, rel=1e-6)


def test_what_buffers_hold_for_minutes_is_not_sustained() -> None:
    fullest = FullestTask(keyed(Keys(distinct=10**7, hot_share=0.5, hot_period_records=FOR_GOOD)), RATES)
    sizes = [
        Simulated(n, {"count": n - 1, "sink": 1}, 3000.0, lasts=long)
        for n, long in ((9, False), (17, True), (33, True))
    ]
    curve = curve_of([1024.0], [sizes], fullest)
    assert curve.mst[0][0] == 3000.0
    assert curve.mst[0][-1] == pytest.approx(1000 / (0.5 + 0.5 / 32))


def test_sizes_that_the_job_cannot_use_are_left_out() -> None:
    fullest = FullestTask(keyed(key_groups=128), RATES)
    sizes = [Simulated(n, {"count": n - 1, "sink": 1}, 500.0 * n, lasts=True) for n in (65, 129)]
    assert curve_of([1024.0], [sizes], fullest).task_slots[-1] == 129
