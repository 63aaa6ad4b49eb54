"""A plan with shared slots applied to word count on a real Flink whose vertices share slots."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from flink_client.rest import FlinkRest
from flink_server import word_count_plan
from models.job import Job
from models.plan import Plan, PlanContent
from models.slots import SlotBundle
from pipelines.apply.application import apply
from pipelines.apply.preparation import prepare
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

pytestmark = pytest.mark.slow
ALL, NARROW = ("source", "flatmap", "count"), ("count",)
Slots = dict[str, tuple[SlotBundle, ...]]


@dataclass(frozen=True)
class Running:
    """The job, with a task of each vertex in one slot."""

    rest: FlinkRest
    id: str
    folder: Path

    def where(self) -> dict[str, dict[str, int]]:
        """TaskManager -> operator -> tasks."""
        found: dict[str, Counter[str]] = {}
        for vertex in self.rest.job(self.id).vertices:
            for one in self.rest.subtasks(self.id, vertex.id):
                found.setdefault(one.task_manager, Counter())[vertex.name.removeprefix("Source: ")] += 1
        return {worker: dict(tasks) for worker, tasks in found.items()}

    @property
    def slots(self) -> int:
        """Of the cluster. A placed job asks for all of them, and gives those back that it does not use."""
        return sum(one["slotsNumber"] for one in self.rest.get("/taskmanagers")["taskmanagers"])

    def publish(self, content: PlanContent) -> Plan:
        return PlanStore(Workspace(self.folder)).publish(content, "2026-01-01T00:00:00+00:00")


@pytest.fixture
def running(root: Path, tmp_path: Path) -> Iterator[Running]:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster() as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 2, 900), TaskManager("tm2", 2, 900))))
        control.offer({"source": 100.0})
        tasks = dict.fromkeys(job.order, 1)
        program = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED, slot_per_task=False)
        id_ = cluster.rest.run(cluster.uploaded(cluster.kit), program)
        cluster.rest.wait_until_running(id_, 60.0)
        yield Running(cluster.rest, id_, tmp_path)


def plan_of(slots: Slots) -> PlanContent:
    placement: dict[str, dict[str, int]] = {}
    for worker, bundles in slots.items():
        for bundle in bundles:
            for name in bundle.vertices:
                own = placement.setdefault(worker, {})
                own[name] = own.get(name, 0) + bundle.slots
    alone = word_count_plan(placement)
    vertex = {"slot_sharing_group": "default", "managed_memory_mb": 0.0, "predicted_busyness": 0.5}
    vertices = [vertex | {"operators": [name], "parallelism": n} for name, n in alone.parallelism.items()]
    shared = {"vertices": vertices, "slots": slots, "total_slots": max(alone.parallelism.values())}
    return PlanContent.model_validate(alone.model_dump() | shared)


def test_slots_are_shared_and_placed_as_planned(running: Running) -> None:
    """Three tasks of count and one of each other operator run in three slots; the cluster has four."""
    both, one = SlotBundle(vertices=ALL, slots=1), SlotBundle(vertices=NARROW, slots=1)
    for slots in ({"tm1": (one,), "tm2": (both, one)}, {"tm1": (both, one), "tm2": (one,)}):
        content = plan_of(slots)
        plan = running.publish(content)
        prepared = prepare(running.rest, plan, job_id=running.id, vertices=None, job_file=None, program=None)
        assert prepared.move is not None, prepared.advice
        applied = apply(running.rest, prepared, timeout_s=60.0, observe_s=0.0)
        assert (applied.outcome, applied.placement) == ("applied", "as-planned"), applied.reason
        assert running.where() == content.placement
        assert sum(content.parallelism.values()) > running.slots
