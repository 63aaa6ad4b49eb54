"""A plan with shared slots applied to word count on a real Flink whose vertices share slots."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from flink.releases import NEWEST_IN_CI
from flink.server import word_count_plan
from flink_client.jobs.running import tasks_in_slots
from flink_client.rest.client import FlinkRest
from models.job import Job
from models.plan.content import PlanContent
from models.plan.slots import SlotBundle
from pipelines.apply.application import apply
from pipelines.apply.applied import Applied
from pipelines.apply.preparation import prepare
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.distribution import line_of
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

pytestmark = pytest.mark.slow
ALL, NARROW = ("source", "flatmap", "count"), ("count",)
WORKERS = ("tm1", "tm2")
Slots = dict[str, tuple[SlotBundle, ...]]


@dataclass(frozen=True)
class Running:
    """The job, with a task of each vertex in one slot."""

    cluster: LocalCluster
    id: str
    folder: Path

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest

    def where(self) -> dict[str, dict[str, int]]:
        """TaskManager -> operator -> tasks."""
        found: dict[str, Counter[str]] = {}
        for vertex in self.rest.job(self.id).vertices:
            for one in self.rest.subtasks(self.id, vertex.id):
                found.setdefault(one.task_manager, Counter())[vertex.name.removeprefix("Source: ")] += 1
        return {worker: dict(tasks) for worker, tasks in found.items()}

    def slots_since(self, before: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
        """TaskManager and operators of each slot that tasks were sent to after `before` was seen."""
        shared: dict[str, set[str]] = {}
        for worker, line in (self.sent - before).elements():
            found = re.search(r"task (?:Source: )?(\w+) \(.*slot with allocation id (\w+)", line)
            assert found is not None, line
            shared.setdefault(f"{worker} {found[2]}", set()).add(found[1])
        return sorted((slot.split()[0], " ".join(sorted(names))) for slot, names in shared.items())

    @property
    def sent(self) -> Counter[tuple[str, str]]:
        """TaskManager and line of its log for each task that was sent there."""
        return Counter(
            (worker, line)
            for worker in WORKERS
            for line in (self.cluster.folder / f"{worker}.log").read_text().splitlines()
            if "deploy into slot" in line
        )

    @property
    def slots(self) -> int:
        """Of the cluster. A placed job asks for all of them, and gives those back that it does not use."""
        return sum(one["slotsNumber"] for one in self.rest.get("/taskmanagers")["taskmanagers"])

    def apply(self, content: PlanContent) -> Applied:
        plan = PlanStore(Workspace(self.folder)).publish(content, "2026-01-01T00:00:00+00:00")
        prepared = prepare(self.rest, plan, job_id=self.id, vertices=None, job_file=None, program=None)
        assert prepared.move is not None, prepared.advice
        return apply(self.rest, prepared, timeout_s=60.0, observe_s=0.0)


@pytest.fixture(params=NEWEST_IN_CI)
def running(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(release=request.param) as cluster, SourceControl() as control:
        cluster.ensure(Profile(tuple(TaskManager(name, 2, 900) for name in WORKERS)))
        control.offer({"source": 100.0})
        tasks = dict.fromkeys(job.order, 1)
        program = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED, slot_per_task=False)
        id_ = cluster.rest.run(cluster.uploaded(cluster.kit), program)
        cluster.rest.wait_until_running(id_, 60.0)
        yield Running(cluster, id_, tmp_path)


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
        applied = running.apply(content)
        assert (applied.outcome, applied.placement) == ("applied", "as-planned"), applied.reason
        assert running.where() == content.placement
        assert sum(content.parallelism.values()) > running.slots


def test_slots_that_flink_would_not_make_are_shared_as_planned(running: Running) -> None:
    """Source and flatmap are apart; by Flink's default, both are in the first slot."""
    before = running.sent
    apart = {
        "tm1": (SlotBundle(vertices=("source", "count"), slots=1), SlotBundle(vertices=NARROW, slots=1)),
        "tm2": (SlotBundle(vertices=("flatmap", "count"), slots=1),),
    }
    content = plan_of(apart)
    applied = running.apply(content)
    assert (applied.outcome, applied.placement) == ("applied", "as-planned"), applied.reason
    assert running.where() == content.placement
    by_heartbeats = {"1.20": None, "2.3": {"tm1": (1, 2), "tm2": (2,)}}
    assert tasks_in_slots(running.rest, running.id) == by_heartbeats[line_of(running.rest.flink_version())]
    assert running.slots_since(before) == [("tm1", "count"), ("tm1", "count source"), ("tm2", "count flatmap")]
