"""A job that runs on a real Flink of this machine, chained and with shared slots as Flink runs it by default."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_client.jobs.running import running_job
from flink_client.rest.client import FlinkRest
from pipelines.observe.observation import observe_job
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.observe.scraped import Scraper, observe_or_read
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from servers.prometheus import reporter, running_prometheus
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import program_of, whole_script
from testbeds.local.machine import free_port

pytestmark = pytest.mark.slow
RATE = 1000.0
SETTLE_S = 10.0
"""A cold window is behind its source at first, and buffers hold the difference."""


@pytest.fixture(scope="module")
def reporter_port() -> int:
    return free_port()


@pytest.fixture
def running(root: Path, reporter_port: int) -> Iterator[tuple[FlinkRest, str]]:
    """Nexmark q11 at a known rate: a source with a chained calculation, session windows in two tasks, and a sink."""
    with SourceControl() as control, LocalCluster() as cluster:
        cluster.ensure(Profile((TaskManager("tm1", 4, 900.0),), reporter(reporter_port)))
        rest = cluster.rest
        script = whole_script((root / "jobs" / "nexmark-q11.sql").read_text(), control.address, seed=1)
        settings = {"parallelism.default": "2"}
        program = program_of({"name": "events of bidders", "sql": script, "slot_per_task": False}, settings)
        job = rest.run(rest.upload(cluster.kit), program)
        rest.wait_until_running(job, 120.0)
        control.offer({"events": RATE})
        time.sleep(SETTLE_S)
        yield rest, job
        rest.cancel(job)


@pytest.fixture
def prometheus(running: tuple[FlinkRest, str], reporter_port: int, tmp_path: Path) -> Iterator[str]:
    (tmp_path / "prometheus").mkdir()
    with running_prometheus(tmp_path / "prometheus", reporter_port, task_managers=1) as url:
        yield url


def test_what_is_seen_is_what_runs_and_nothing_is_changed(
    running: tuple[FlinkRest, str], prometheus: str, tmp_path: Path
) -> None:
    rest, job = running
    place = Workspace(tmp_path / "workspace")
    before = running_job(rest, job)
    jars = rest.get("/jars")["files"]
    seen = observe_job(rest, job, 40.0, place, Quiet())
    vertices = seen.job.vertices
    assert [v.id for v in vertices] == [v.id for v in before.vertices]
    source = vertices[0]
    assert len(source.operators) > 1
    # Counters are dated by the tasks themselves to within a refresh of one second in forty.
    assert source.observed_rate == pytest.approx(RATE, rel=0.04)
    assert seen.job.arriving_rate == pytest.approx(RATE, rel=0.04)
    keyed = vertices[1]
    assert source.selectivity is not None
    assert keyed.observed_rate == pytest.approx(source.selectivity * RATE, rel=0.05)
    assert keyed.fullest_share == pytest.approx(0.5, abs=0.1)
    assert all(v.true_rate is not None for v in vertices[:2])
    assert seen.job.capacity is not None
    assert seen.job.capacity.mst.low >= 0.9 * RATE
    assert [w.name for w in seen.job.workers] == ["tm1"]

    past = observe_or_read(rest, job, 40.0, place, Quiet(), scraper=Scraper(prometheus))
    of_past = past.job
    source, keyed = of_past.vertices[:2]
    assert source.observed_rate == pytest.approx(RATE, rel=0.04)
    assert source.selectivity is not None
    assert keyed.observed_rate == pytest.approx(source.selectivity * RATE, rel=0.05)
    for by_rest, by_prometheus in zip(vertices, of_past.vertices, strict=True):
        assert by_prometheus.name == by_rest.name
        # Nearly the same 40 s, but not quite: sessions are of a few seconds, and the ends differ by a scrape.
        assert by_prometheus.busyness == pytest.approx(by_rest.busyness, rel=0.2, abs=0.03)
        assert by_prometheus.fullest_share == pytest.approx(by_rest.fullest_share, abs=0.1)
        assert (by_prometheus.state_written is None) == (by_rest.state_written is None)
    # Where two vertices are busy alike, either may bind.
    fullest = {v.name: v.fullest_busyness or 0.0 for v in vertices}
    assert fullest[of_past.bound_by.vertex] >= 0.8 * fullest[seen.job.bound_by.vertex] - 0.03
    (worker,), (other,) = of_past.workers, seen.job.workers
    assert worker.cores == pytest.approx(other.cores, rel=0.2)

    for observed in (seen, past):
        plan = plan_running(rest, observed, RunningRequest(2 * RATE), place, Quiet())
        assert set(plan.parallelism) == {o.name for o in seen.as_job().operators}
        assert plan.source_rates and sum(plan.source_rates.values()) == pytest.approx(2 * RATE)

    assert running_job(rest, job) == before
    assert rest.get("/jars")["files"] == jars
