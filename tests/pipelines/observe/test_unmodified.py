"""Flink's own examples, as Maven has them, on a real Flink of this machine."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_client.jobs.running import has_ended, running_job
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from models.errors import InvalidInput
from pipelines.apply.preparation import prepare
from pipelines.observe.observation import observe_job, running_job_id
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.planning.planned_job import job_of
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.local.maven import jars

pytestmark = pytest.mark.slow
PROFILE = Profile((TaskManager("tm1", 4, 900.0),))
PACKAGE = "org.apache.flink.streaming.examples.windowing"
RATE = 10.0
"""Records/s that the top speed example makes up."""
SETTLE_S = 10.0


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkRest]:
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not installed; apt-get install maven")
    with LocalCluster() as cluster:
        cluster.ensure(PROFILE)
        yield cluster.rest


def started(flink: FlinkRest, root: Path, example: str) -> str:
    folder = jars(root / "benchmarks" / "running" / "unmodified" / "examples-1.20.pom.xml", "this test")
    (jar,) = folder.glob(f"*-{example}.jar")
    return flink.run(flink.upload(jar), JarProgram(f"{PACKAGE}.{example}", (), {"parallelism.default": "1"}))


def test_a_program_with_a_source_of_its_own_is_observed_planned_and_can_be_applied(
    flink: FlinkRest, root: Path, tmp_path: Path
) -> None:
    job = started(flink, root, "TopSpeedWindowing")
    try:
        flink.wait_until_running(job, 180.0)
        time.sleep(SETTLE_S)
        before, place = running_job(flink, job), Workspace(tmp_path)
        seen = observe_job(flink, running_job_id(flink, None), 40.0, place, Quiet())
        source, window = seen.job.vertices
        assert (source.operators[0], window.operators[0]) == ("Car data generator source", "GlobalWindows")
        # Its limiter lets records through by the second, and counters are refreshed by the second, too.
        assert seen.job.consumed_rate == pytest.approx(RATE, rel=0.15)
        assert window.observed_rate == pytest.approx(RATE, rel=0.15)
        assert seen.job.lag_records is None
        assert any("pendingRecords" in remark for remark in seen.job.remarks)

        plan = plan_running(flink, seen, RunningRequest(2 * RATE), place, Quiet())
        todo = prepare(flink, plan, job_id=job, vertices=None, job_file=job_of(place, plan), program=None)
        assert set(todo.vertices.values()) == {source.id, window.id}
        assert running_job(flink, job) == before
    finally:
        flink.cancel(job)


def test_a_program_that_ends_at_once_is_said_to_have_read_its_input(flink: FlinkRest, root: Path) -> None:
    job = started(flink, root, "SessionWindowing")
    until = time.monotonic() + 180.0
    while not has_ended(flink, job):
        assert time.monotonic() < until
        time.sleep(0.2)
    with pytest.raises(InvalidInput, match=r"has finished after .* all of its input was bounded"):
        running_job_id(flink, job)
