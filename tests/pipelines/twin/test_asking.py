"""The sizes that are simulated because the answer falls on them."""

import numpy as np

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TwinCurve
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.twin.asking import answers, apart
from pipelines.twin.rungs import Rung

JOB = Job.model_validate(
    {
        "name": "j",
        "description": "d",
        "figures_from": "hand",
        "operators": [
            {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-9}, "figures_from": "hand"},
            {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1e-3}, "figures_from": "hand"},
        ],
        "edges": [{"from": "source", "to": "sink", "partitioning": "rebalance"}],
    }
)
SLOTS = np.array([1.0, 2, 4, 8, 16, 32])


def rung(slots: int) -> Rung:
    return Rung(task_slots=slots, memory_mb=1024.0, parallelism={"sink": slots}, mst=1000.0 * slots)


def test_the_answer_is_that_of_the_model_with_the_twin() -> None:
    # A thousand records/s a slot, measured without scatter: 100 slots take 100,000, and some more are surely enough.
    data = Dataset(np.full(6, 1024.0), SLOTS, 1000 * SLOTS)
    curve = TwinCurve(memory_mb=(1024.0,), task_slots=(1.0, 400.0), mst=((1000.0, 400_000.0),))
    (found,) = answers(PlanRequest(job="j", rate=1e5, risk=0.1), JOB, data, curve)
    assert 100 < found < 150


def test_an_answer_beyond_the_largest_size_is_left_out() -> None:
    data = Dataset(np.full(6, 1024.0), SLOTS, 1000 * SLOTS)
    curve = TwinCurve(memory_mb=(1024.0,), task_slots=(1.0, 90.0), mst=((1000.0, 90_000.0),))
    assert answers(PlanRequest(job="j", rate=1e5, risk=0.1), JOB, data, curve) == set()


def test_sizes_near_simulated_ones_are_those() -> None:
    assert apart({20, 200, 201, 220, 400}, [rung(48), rung(200)], most_measured=48) == [220, 400]
