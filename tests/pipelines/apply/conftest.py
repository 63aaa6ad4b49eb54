"""Plans of word count for small clusters."""

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from models.plan import PlanContent

MakePlan = Callable[..., PlanContent]
WORDS = 20
TRUE_RATES = {"source": 1e5, "flatmap": 1e5 / 60, "count": 1e6 / 60}
"""Records/s of a task (DS2 section 5.2); a sentence is 20 words."""


@pytest.fixture
def make_plan() -> MakePlan:
    """Makes a plan of word count from worker -> operator -> tasks, for a rate of sentences."""

    def make(placement: Mapping[str, Mapping[str, int]], rate: float = 1500.0, memory_mb: float = 900.0) -> PlanContent:
        tasks = Counter[str]()
        for of_worker in placement.values():
            tasks.update(of_worker)
        records_in = {"source": rate, "flatmap": rate, "count": rate * WORDS}
        operators = [
            {
                "name": name,
                "parallelism": tasks[name],
                "managed_memory_mb": 30.0 if name == "count" else 0.0,
                "records_in_per_s": records_in[name],
                "predicted_busyness": min(1.0, records_in[name] / (tasks[name] * TRUE_RATES[name])),
                "reason": "as the test says",
            }
            for name in records_in
        ]
        return PlanContent.model_validate(
            {
                "job": "wordcount",
                "target_rate": rate,
                "source_rates": {"source": rate},
                "headroom": 1.0,
                "task_slots": tasks["flatmap"] + tasks["count"],
                "total_slots": tasks.total(),
                "memory_mb": memory_mb,
                "operators": operators,
                "placement": placement,
                "cost": {"cpu": 0.0, "io": 0.0, "net": 0.0},
                "thresholds": {"cpu": 1.0, "io": 1.0, "net": 1.0},
                "placement_policy": "caps",
                "placement_status": "optimal",
                "predicted_mst": {"value": rate, "low": rate, "high": rate},
                "reasons": ["as the test says"],
                "lineage": {
                    "run": "test",
                    "trigger": "plan",
                    "testbed": "flink",
                    "model": "log",
                    "policy": "ds2",
                    "code_version": "0",
                    "seed": 1,
                },
            }
        )

    return make
