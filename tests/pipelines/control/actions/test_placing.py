from pathlib import Path

import numpy as np
import pytest

from autopilots.flight import Flight
from flink.steered import COUNT, SINK, SOURCE, SteeredJob
from flink_client.rest.answers import VertexEdge
from models.capacity.observed.counters.counts import JobCounts, TaskCounts, VertexCounts
from models.dataflow import Partitioning
from models.metrics import Activity
from models.scaling.control.activity import JobActivity, VertexTraffic
from pipelines.control.actions.placing import shared_dataflow
from pipelines.control.sensing import Sight
from testbeds.flink.placement_hook import PLACEMENT_FLAG

BEFORE = "slots 16\n"


@pytest.fixture
def hook(flight: Flight, tmp_path: Path) -> Path:
    """The file of the cluster's placement hook; the rate rises after a minute, and takes 7 tasks instead of 4."""
    file = tmp_path / "placement"
    file.write_text(BEFORE)
    flight.flink.jvm_options = ["-Xmx1g", f"{PLACEMENT_FLAG}{file}"]
    flight.job.rate = lambda t: 1000.0 if t < 60 else 2600.0
    return file


def test_the_hook_gets_a_place_for_each_task_before_flink_is_asked_for_them(flight: Flight, hook: Path) -> None:
    seen: list[str] = []
    flight.flink.before = lambda method, path: seen.append(hook.read_text()) if method == "PUT" else None
    stored = flight.fly(flight.autopilot(), 180.0)
    (rescale,) = [d.rescale for d in stored if d.rescale is not None]
    assert rescale.placement == {"tm1": {"clicks": 1, "count": 7, "out": 1}} and rescale.as_placed
    slots, fewer, *lines = hook.read_text().splitlines()
    assert (slots, fewer) == ("slots 16", "fewer")
    tasks = [*[(COUNT, n) for n in range(7)], (SOURCE, 0), (SINK, 0)]
    assert sorted(lines) == sorted(f"{vertex} {n} tm1" for vertex, n in tasks)
    assert seen == [hook.read_text()]


def test_a_rescale_that_does_not_come_about_leaves_the_places_as_they_were(flight: Flight, hook: Path) -> None:
    flight.flink.before = lambda method, path: setattr(flight.job, "slots", 4 if method == "PUT" else 16)
    stored = flight.fly(flight.autopilot(back_off_s=600.0), 180.0)
    assert [d.done for d in stored if d.rescale is not None] == ["rolled-back"]
    assert hook.read_text() == BEFORE


def test_a_dry_run_says_where_the_tasks_would_go_and_writes_nothing(flight: Flight, hook: Path) -> None:
    stored = flight.fly(flight.autopilot(dry_run=True), 120.0)
    would = [d.rescale for d in stored if d.done == "dry-run" and d.rescale is not None]
    assert would and all(one.placement == {"tm1": {"clicks": 1, "count": 7, "out": 1}} for one in would)
    assert hook.read_text() == BEFORE and flight.flink.changes == []


def test_why_a_hook_is_not_asked_is_recorded_and_the_rescale_is_done(flight: Flight, hook: Path) -> None:
    other = SteeredJob(flight.clock, id="2" * 32, name="other")
    flight.flink.jobs[other.id] = other
    stored = flight.fly(flight.autopilot(), 120.0)
    (rescale,) = [d.rescale for d in stored if d.done == "rescaled" and d.rescale is not None]
    assert rescale.placement is None and rescale.as_placed is None
    assert rescale.not_placed == "the placement hook serves one job, but 'other' runs on the cluster, too"
    assert hook.read_text() == BEFORE


def test_without_a_hook_nothing_is_said_of_places(flight: Flight) -> None:
    flight.job.rate = lambda t: 1000.0 if t < 60 else 2600.0
    stored = flight.fly(flight.autopilot(), 120.0)
    (rescale,) = [d.rescale for d in stored if d.done == "rescaled" and d.rescale is not None]
    assert (rescale.placement, rescale.as_placed, rescale.not_placed) == (None, None, None)


def test_each_wanted_task_gets_an_even_share_of_what_was_seen() -> None:
    """In 10 s two counting tasks used 4 and 6 s of CPU, and sent 100 bytes/s together: for 4 tasks 0.25 cores and 25 bytes/s
    each. Of what the source sends, three sinks get a copy each, and the counting tasks one in all."""
    tasks = [TaskCounts(task=n, attempt=0, runs=True, finished=False, worker="tm1") for n in range(2)]
    vertices = (
        VertexCounts(SOURCE, "Source: clicks", ("clicks",), 128, "g", True, (tasks[0],)),
        VertexCounts(COUNT, "count", ("count",), 128, "h", False, (tasks[0], tasks[1])),
        VertexCounts(SINK, "out", ("out",), 128, "h", False, (tasks[0],)),
    )
    sight = Sight(
        0.0, JobCounts(0.0, 0, "RUNNING", vertices, {}), names={SOURCE: "clicks", COUNT: "count", SINK: "out"}
    )
    used = {SOURCE: [1.0], COUNT: [4.0, 6.0], SINK: [0.0]}
    activity = JobActivity(
        seconds=10.0,
        vertices={id_: _of_cpu(np.array(cpu)) for id_, cpu in used.items()},
        traffic={
            SOURCE: VertexTraffic(sent=300.0, state=0.0),
            COUNT: VertexTraffic(sent=100.0, state=40.0),
            SINK: VertexTraffic(sent=0.0, state=0.0),
        },
        arriving={},
        lag_unknown=frozenset(),
        growth_unknown={},
        busy_unknown=frozenset(),
        in_flight={},
    )
    edges = [
        VertexEdge(SOURCE, COUNT, "HASH"),
        VertexEdge(SOURCE, SINK, "BROADCAST"),
        VertexEdge(COUNT, SINK, "FORWARD"),
    ]
    shared = shared_dataflow(sight, activity, {SOURCE: 1, COUNT: 4, SINK: 3}, edges)
    clicks, count, _ = shared.dataflow.operators
    assert (clicks.parallelism, clicks.cpu, clicks.io, clicks.net) == (1, 0.1, 0.0, 300.0)
    assert (count.parallelism, count.cpu, count.io, count.net) == (4, 0.25, 10.0, 25.0)
    assert [(e.upstream, e.downstream, e.partitioning, e.share) for e in shared.dataflow.edges] == [
        ("clicks", "count", Partitioning.HASH, 0.25),
        ("clicks", "out", Partitioning.BROADCAST, 0.75),
        ("count", "out", Partitioning.REBALANCE, 1.0),
    ]
    assert shared.slots == 5


def _of_cpu(cpu_s: np.ndarray) -> Activity:
    nothing = np.zeros(len(cpu_s))
    return Activity(
        seconds=10.0, records_in=nothing, records_out=nothing, busy_s=cpu_s, backpressured_s=nothing, idle_s=nothing,
        cpu_s=cpu_s, cache_hits=nothing, cache_misses=nothing, state_time_s=nothing, input_queue_share=nothing,
        lag_records=nothing, state_bytes=nothing, keeps_state=False,
    )  # fmt: skip
