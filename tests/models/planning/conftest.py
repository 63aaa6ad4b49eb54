"""A job whose sink Flink chains to the operator before it, and a sizing of it by a model that is a line."""

from collections.abc import Callable

import pytest

from known_answers.capacity_laws import line
from models.capacity.observation import Budget
from models.capacity.sizing import Margin, SlotsInterval
from models.job import Job
from models.planning.budget import Sizing
from models.planning.inputs import MeasuredOperators, PlanningModel, stated_operators


@pytest.fixture
def chained() -> Callable[..., MeasuredOperators]:
    """Makes the job. Every record reaches the sink; a task of map takes 280 records/s, one of count 100, and one of the sink
    1,400, so that 5, 14 and 1 of them take 1,400."""

    def make(**fields: object) -> MeasuredOperators:
        takes = {"source": 2000, "map": 280, "count": 100, "sink": 1400}
        edges = [("source", "map", "rebalance"), ("map", "count", "hash"), ("count", "sink", "forward")]
        document = {
            "name": "made-up",
            "description": "Counts.",
            "figures_from": "assumed: all",
            "operators": [
                {
                    "name": name,
                    "kind": name if name in ("source", "sink") else "operator",
                    "cost": {"cpu_s": 1 / rate},
                    "figures_from": "assumed: all",
                }
                for name, rate in takes.items()
            ],
            "edges": [{"from": a, "to": b, "partitioning": how} for a, b, how in edges],
            **fields,
        }
        return stated_operators(Job.model_validate(document))

    return make


@pytest.fixture
def twenty_slots() -> Sizing:
    """Each of 20 slots is predicted to take 60 records/s of an MST."""
    model = PlanningModel(uri="models:/j/1", mlflow_run_id="r", capacity=line(60.0), reason="the only one")
    return Sizing(
        model=model,
        margin=Margin(headroom=1.25),
        planned_rate=1250,
        budget=Budget(task_slots=20, memory_mb=1024),
        slots=SlotsInterval(value=20, low=19, high=22),
        task_slots_by_memory_mb={1024.0: 20},
        slots_per_worker=4,
        reason="20 slots",
    )
