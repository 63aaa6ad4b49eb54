"""The autopilot on a real Flink with a placement hook."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from autopilots.flown import RATE, Flown
from flink.releases import NEWEST_IN_CI
from models.job import Job
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager

pytestmark = pytest.mark.slow


@pytest.fixture(params=NEWEST_IN_CI)
def flown(root: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Flown]:
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(release=request.param) as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 3, 900), TaskManager("tm2", 3, 900))))
        control.offer({"source": RATE})
        made = Flown(cluster, control, job, Workspace(tmp_path))
        yield made
        made.end()


def places(flown: Flown) -> dict[str, Counter[str]]:
    """TaskManager -> tasks of each vertex that run there."""
    found: dict[str, Counter[str]] = {}
    for vertex in flown.cluster.rest.job(flown.id).vertices:
        for one in flown.cluster.rest.subtasks(flown.id, vertex.id):
            if one.state == "RUNNING":
                found.setdefault(one.task_manager, Counter())[vertex.name.removeprefix("Source: ")] += 1
    return found


def test_a_rescale_puts_tasks_where_they_disturb_each_other_least_and_outlives_a_taskmanager(flown: Flown) -> None:
    """One cluster for both, since its start takes longer than the rest."""
    flown.until(lambda: any(d.done == "none" and d.held is None for d in flown.stored), 90.0)
    flown.control.offer({"source": 1.6 * RATE})
    flown.until(lambda: len(flown.actions) == 1, 90.0)
    (first,) = flown.actions
    assert first.done == "rescaled" and first.rescale is not None and first.rescale.after["count"] == 2
    # The two counting tasks are the busiest by far: one for each TaskManager, which Flink fills one after the other.
    assert first.rescale.placement is not None and first.rescale.as_placed
    assert {worker: dict(tasks) for worker, tasks in places(flown).items()} == first.rescale.placement
    assert [tasks["count"] for tasks in first.rescale.placement.values()] == [1, 1]
    flown.cluster.kill("tm2")
    flown.until(lambda: places(flown) == {"tm1": Counter({"source": 1, "flatmap": 1, "count": 1})}, 150.0)
