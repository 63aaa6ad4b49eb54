"""Whether a cluster has the memory that a plan wants."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from models.cluster import Cluster, WorkerOffer
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.plan.content import Plan
from models.planning.resources import budget_memory_mb, check_memory, fitting_memory, stateful_per_slot
from models.resources.planned import PlanResources

SMALL = {"name": "small", "slots": 1, "cores": 1, "memory_mb": 1024}
LARGE = {"name": "large", "slots": 4, "cores": 4, "memory_mb": 4096}


def cluster(*workers: dict[str, Any]) -> Cluster:
    return Cluster.model_validate({"name": "lab", "workers": workers})


def test_no_more_memory_may_be_asked_for_than_each_worker_has() -> None:
    """Its slots are few enough for the measured share of each to fit: 2048 MiB for 4 slots are 512 for the one."""
    for memory_mb, workers in ((1024, [SMALL, LARGE]), (4096, [LARGE]), (1e9, [{"name": "unknown", "slots": 1}])):
        check_memory(memory_mb, cluster(*workers))
    assert fitting_memory([2048], 4, cluster(SMALL, LARGE)) == [2048]
    with pytest.raises(
        InvalidInput,
        match=r"TaskManagers of 2,048 MiB were asked for, but worker 'small' of cluster 'lab' has 1,024 MiB",
    ):
        check_memory(2048, cluster(LARGE, SMALL))


def test_more_memory_must_be_asked_for_than_the_jvm_takes() -> None:
    """Flink's defaults: 256 MiB of metaspace, and a tenth of the memory, 192 MiB at least."""
    check_memory(449, cluster(LARGE))
    with pytest.raises(
        InvalidInput, match=r"of 448 MiB were asked for, of which the JVM alone takes 448 MiB; ask for more"
    ):
        check_memory(448, cluster(LARGE))


def test_kinds_on_offer_get_their_share_by_their_slots() -> None:
    kinds = [SMALL | {"price_per_hour": 1}, LARGE | {"price_per_hour": 4}]
    offer = WorkerOffer.model_validate({"name": "cloud", "kinds": kinds})
    check_memory(65536, offer)
    assert fitting_memory([16384], 16, offer) == [16384]
    with pytest.raises(Infeasible, match=r"at least 1,025 MiB \(16,400 for 16 slots\)"):
        fitting_memory([16400], 16, offer)


def shared_job(*groups: str | None) -> Job:
    """source -> count -> sum -> sink; count and sum keep state. Groups of these four, if any."""
    names = ("source", "count", "sum", "sink")
    figures = {"cost": {"cpu_s": 1e-6}, "figures_from": "assumed: test"}
    kinds = {"source": {"kind": "source"}, "sink": {"kind": "sink"}}
    return Job.model_validate(
        {
            "name": "j",
            "description": "A job.",
            "figures_from": "assumed: test",
            "operators": [{"name": n, **figures, **kinds.get(n, {"state": {"bytes_per_key": 8}})} for n in names],
            "edges": [{"from": a, "to": b, "partitioning": "hash"} for a, b in pairwise(names)],
            "vertices": [{"operators": [n], "slot_sharing_group": g} for n, g in zip(names, groups, strict=False) if g],
        }
    )


def plan(root: Path, memory_mb: float, kind: str | None = None, testbed: str = "simulator") -> Plan:
    """Of 9 TaskManagers with 4 slots each."""
    made = Plan.model_validate_json((root / "tests/data/plans/nexmark-q5-v1.json").read_bytes())
    resources = PlanResources(
        task_managers=9,
        kind=kind,
        slots=4,
        cores=None,
        memory_mb=memory_mb,
        total_cores=None,
        total_memory_mb=9 * memory_mb,
        price=None,
    )
    lineage = made.lineage.model_copy(update={"testbed": testbed})
    return made.model_copy(update={"memory_mb": memory_mb, "resources": resources, "lineage": lineage})


def test_the_memory_of_a_plan_as_the_capacity_model_counts_it(root: Path) -> None:
    """The job was measured with 16 slots in a TaskManager, and a task with state in each."""
    alone, together = shared_job(), shared_job("all", "all", "all", "all")
    assert budget_memory_mb(plan(root, 65536), alone, 16) == 65536
    # count and sum share a slot, which so has twice the memory; unless that is how the job was seen.
    assert budget_memory_mb(plan(root, 65536), together, 16) == 32768
    assert budget_memory_mb(plan(root, 65536, testbed="running"), together, 16) == 65536
    # 4 x (17,344 - 256 - 1,024) + 256 + 1,024
    assert budget_memory_mb(plan(root, 17344, kind="small"), alone, 16) == 65536
    assert budget_memory_mb(plan(root, 17344, kind="small"), together, 16) == 32768


def test_operators_with_state_divide_the_memory_of_a_slot_that_they_share() -> None:
    assert stateful_per_slot(shared_job()) == 1  # a slot for each task
    assert stateful_per_slot(shared_job("a", "a", "a", "a")) == 2
    assert stateful_per_slot(shared_job("a", "a", "b", "a")) == 1
    four = Cluster.model_validate({"count": 2, "slots": 4, "memory_mb": 4000})  # 1000 MiB per slot
    assert fitting_memory([2000.0, 3000.0], 2, four) == [2000.0]
    assert fitting_memory([800.0, 2000.0], 2, four, times=2) == [800.0]
    with pytest.raises(Infeasible, match=r"needs at least 2,000 MiB .* for each of 2 operators with state"):
        fitting_memory([2000.0], 2, four, times=2)
