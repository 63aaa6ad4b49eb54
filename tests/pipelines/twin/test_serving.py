"""Lag and recovery that a twin predicts, against records that are counted by hand: a task takes 1,000 records/s."""

import math

import pytest

from models.cluster import Worker
from models.job import Job
from models.objectives.objectives import RecoveryObjective
from models.objectives.parsing import parse_objectives
from pipelines.twin.serving import OBSERVE_S, SETTLE_S, ServingTwin, foresee, lag_quantile_s, time_to_recover_s
from pipelines.twin.simulation import Twin
from testbeds.simulator.settings import Physics

JOB = Job.model_validate(
    {
        "name": "j",
        "description": "One operator.",
        "figures_from": "made up",
        "operators": [
            {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-6, "bytes_out": 1000}, "figures_from": "made up"},
            {"name": "work", "cost": {"cpu_s": 1e-3, "bytes_out": 1000}, "figures_from": "made up"},
            {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1e-6}, "figures_from": "made up"},
        ],
        "edges": [
            {"from": "source", "to": "work", "partitioning": "rebalance"},
            {"from": "work", "to": "sink", "partitioning": "rebalance"},
        ],
    }
)
TWIN = Twin(JOB, Worker(name="tm", slots=8, cores=8, memory_mb=8192), Physics().ideal(), {"source": 1e6})
FOUR = ServingTwin(TWIN, {"source": 1, "work": 4, "sink": 1}, 8192)
"""4,000 records/s."""


def test_records_wait_no_time_below_the_capacity() -> None:
    assert lag_quantile_s(FOUR, 3600, 0.99) == 0.0


def test_above_the_capacity_the_lag_grows_with_the_time() -> None:
    # Of 5,000 records/s 4,000 are read: those that came at t are read at 1.25 t, or wait at the end. The longest wait is a
    # fifth of the time, and the median that of the middle of the time observed, as far as it is read by then.
    end = SETTLE_S + OBSERVE_S
    assert lag_quantile_s(FOUR, 5000, 0.9999) == pytest.approx(0.2 * end, rel=0.05)
    assert lag_quantile_s(FOUR, 5000, 0.5) < lag_quantile_s(FOUR, 5000, 0.99)


@pytest.mark.parametrize(("rate", "seconds"), [(2000.0, 300.0), (3000.0, 900.0)])
def test_an_outage_is_recovered_from_as_the_formula_says(rate: float, seconds: float) -> None:
    # 300 s of records are read with what the rate leaves of 4,000: 300 x 2000 / 2000, and 300 x 3000 / 1000.
    found = time_to_recover_s(FOUR, rate, RecoveryObjective(outage_s=300, within_s=900))
    assert found == pytest.approx(seconds, abs=0.03 * seconds + 10)


def test_a_restart_counts_into_the_time() -> None:
    # 360 s of 2,000 records/s are read in 360 s, which begin 60 s after the outage.
    found = time_to_recover_s(FOUR, 2000, RecoveryObjective(outage_s=300, within_s=900, restart_s=60))
    assert found == pytest.approx(420, abs=20)


def test_what_is_not_read_in_twice_the_time_is_never() -> None:
    asked = parse_objectives("recover 5 min outage in 5 min, lag p99 < 30 s")
    found = foresee(FOUR, 3900, recovery=asked.recovery)
    assert found.recovery_s == math.inf and found.lag_s is None
    assert found.missed(asked) == "recovery"
