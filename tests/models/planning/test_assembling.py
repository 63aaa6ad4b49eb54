"""The content of a plan where Flink chains operators: all of its tasks, and the MST of those that add to it."""

from collections.abc import Callable

import pytest

from models.cluster import Cluster
from models.placement import tune
from models.plan.parts import Lineage
from models.planning.assembling import Decisions, TunedPlacement, assemble
from models.planning.budget import Sizing
from models.planning.inputs import MeasuredOperators
from models.planning.parallelism import scale
from models.planning.workers.planned import PlannedWorkers

RATE = 1500.0
LINEAGE = Lineage(
    run="r1", trigger="plan", testbed="recorded", model="linear", policy="bids2", code_version="0.1.0", seed=0
)


def test_tasks_that_only_chaining_adds_are_slots_of_the_plan_and_no_capacity(
    chained: Callable[..., MeasuredOperators], twenty_slots: Sizing
) -> None:
    """5 of map, 14 of count and 14 of the sink, of which the model counts 20, beside one of the source."""
    operators, cluster = chained(), Cluster.model_validate({"count": 9, "slots": 4, "cores": 4})
    scaling = scale(operators, twenty_slots, RATE, "bids2")
    placement = TunedPlacement(tuning=tune(scaling.dataflow, cluster), from_table=False)
    workers = PlannedWorkers.of(cluster, twenty_slots, scaling, RATE)
    plan = assemble(operators.job, RATE, Decisions(twenty_slots, scaling, placement, workers), LINEAGE)
    assert (plan.task_slots, plan.total_slots) == (33, 34)
    assert plan.predicted_mst.value == pytest.approx(20 * 60)
    assert any("MST begins at 1,200 records/s, below the target of 1,500" in reason for reason in plan.reasons)
