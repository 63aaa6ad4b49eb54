"""Rates that a twin sustains for minutes, by hand."""

import pytest

from models.cluster import Worker
from models.job import Job
from pipelines.twin.simulation import PRECISION, Twin, in_production, machine_of_twin
from testbeds.simulator.settings import Physics

CALLS = Job.model_validate(
    {
        "name": "calls",
        "description": "An operator that calls a service.",
        "figures_from": "made up",
        "operators": [
            {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-6, "bytes_out": 30}, "figures_from": "made up"},
            {
                "name": "call",
                "cost": {"cpu_s": 1e-4, "external_wait_s": 9.9e-3, "bytes_out": 30},
                "figures_from": "made up",
            },
            {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1e-6}, "figures_from": "made up"},
        ],
        "edges": [
            {"from": "source", "to": "call", "partitioning": "rebalance"},
            {"from": "call", "to": "sink", "partitioning": "rebalance"},
        ],
    }
)


@pytest.mark.parametrize("tasks", [1, 4])
def test_small_records_that_wait_do_not_vanish_in_buffers(tasks: int) -> None:
    # A task takes 100 records/s. The 20 buffers of 32 KiB before it hold 21,800 records, more than three minutes at 200/s bring
    # beyond that; the twin's hold a second of waits, 101 records.
    machine = machine_of_twin(Physics().ideal())
    twin = Twin(CALLS, Worker(name="tm", slots=8, cores=8, memory_mb=8192), machine, {"source": 1e6})
    found = in_production(twin, {"call": tasks, "sink": 1}, 8192, 150.0 * tasks)
    assert found == pytest.approx(100 * tasks, rel=PRECISION)
