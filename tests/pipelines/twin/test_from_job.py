"""The twin of a job whose costs are known by hand."""

import numpy as np
import pytest

from models.capacity.observation import Observation
from models.errors import Infeasible
from models.job import Job
from pipelines.inputs.catalogue import load_cluster
from pipelines.twin.from_job import twin_of_job

WORKER = load_cluster("testbed").workers[0]


def job(sink_s: float) -> Job:
    """A source that costs next to nothing, and a sink."""
    return Job.model_validate(
        {
            "name": "sunk",
            "description": "A sink.",
            "figures_from": "set by hand",
            "operators": [
                {
                    "name": "source",
                    "kind": "source",
                    "cost": {"cpu_s": 1e-7, "bytes_out": 1000},
                    "figures_from": "hand",
                },
                {"name": "sink", "kind": "sink", "cost": {"cpu_s": sink_s}, "selectivity": 0, "figures_from": "hand"},
            ],
            "edges": [{"from": "source", "to": "sink", "partitioning": "rebalance"}],
        }
    )


def measured(*slots: int) -> tuple[Observation, ...]:
    return tuple(
        Observation(run=f"m{n}", task_slots=n, memory_mb=8192.0, parallelism={}, mst=1000.0 * n) for n in slots
    )


def test_each_task_of_a_sink_of_one_millisecond_brings_a_thousand_records_per_second() -> None:
    lines: list[str] = []
    curve = twin_of_job(job(1e-3), WORKER, measured(1, 4), 8192.0, 10_000.0, lines.append)
    assert curve.memory_mb == (8192.0,)
    # The slowest of n tasks decides, 2 % times the expected largest of n normal numbers; rates are looked for to 3 %.
    wanted = [1e3, 4e3 / (1 + 0.02 * 1.03), 2e4 / (1 + 0.02 * 1.87)]
    assert np.exp(curve.log_mst(8192.0, np.array([1.0, 4.0, 20.0]))) == pytest.approx(wanted, rel=0.04)
    simulated = [int(line.split()[1]) for line in lines]
    assert simulated[:2] == [1, 4]
    assert set(simulated) < set(curve.task_slots)


def test_it_is_simulated_until_a_size_takes_twice_the_rate() -> None:
    lines: list[str] = []
    curve = twin_of_job(job(1e-3), WORKER, measured(1, 4), 8192.0, 10_000.0, lines.append)
    last_but_one = int(lines[-2].split()[1])
    assert curve.mst[0][curve.task_slots.index(last_but_one)] < 20_000 <= curve.mst[0][-1]


def test_a_job_that_cannot_use_the_measured_slots_is_refused() -> None:
    limited = job(1e-3)
    operators = [o.model_copy(update={"max_parallelism": 1}) if o.name == "sink" else o for o in limited.operators]
    with pytest.raises(Infeasible, match="may have 1 tasks, fewer than the 4 slots"):
        twin_of_job(
            limited.model_copy(update={"operators": tuple(operators)}),
            WORKER,
            measured(1, 4),
            8192.0,
            10_000.0,
            lambda line: None,
        )
