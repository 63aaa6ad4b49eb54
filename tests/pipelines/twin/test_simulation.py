"""What the simulator says of a configuration in production, where it is known by hand."""

import pytest

from models.job import Job
from pipelines.inputs.catalogue import load_cluster
from pipelines.twin.simulation import Twin, in_production, without_run_noise
from testbeds.simulator import Physics

TASKS = 20


def job(hot_share: float) -> Job:
    """A sink of 1 ms a record; one key that stays hot has a share of them."""
    keys = {"distinct": 131072} | ({"hot_share": hot_share, "hot_period_records": 1e15} if hot_share else {})
    return Job.model_validate(
        {
            "name": "hot",
            "description": "A sink.",
            "figures_from": "set by hand",
            "operators": [
                {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-7, "bytes_out": 10}, "figures_from": "hand"},
                {
                    "name": "sink",
                    "kind": "sink",
                    "cost": {"cpu_s": 1e-3},
                    "selectivity": 0,
                    "keys": keys,
                    "figures_from": "hand",
                },
            ],
            "edges": [{"from": "source", "to": "sink", "partitioning": "hash"}],
        }
    )


@pytest.mark.parametrize("guess", [1_000.0, 20_000.0])
def test_a_key_that_stays_hot_caps_the_job_at_what_its_task_takes(guess: float) -> None:
    """Buffers hold minutes of records of 10 B, so that the source notices nothing."""
    twin = Twin(job(0.5), load_cluster("testbed").workers[0], without_run_noise(Physics()), {"source": 1e7})
    # The task of the hot key gets half of the records and its share of the others: 1,000 / (0.5 + 0.5 / 20).
    assert in_production(twin, {"sink": TASKS}, 8192.0, guess) == pytest.approx(1_905, rel=0.05)
