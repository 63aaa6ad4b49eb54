"""Observing a job and planning it, over the REST interface of a server of this machine."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flink.observed import COUNT, JOB_ID, PARTITIONS, SINK, SOURCE, ObservedFlink
from flink_client.jobs.running import NotRunning
from flink_client.metrics.counts import CountsReader
from flink_client.metrics.partitions import Place
from flink_client.rest.client import FlinkRest
from models.capacity.observed.record import ObservedJob
from models.errors import Infeasible, InvalidInput, SluiceError
from models.plan.content import Plan
from pipelines.inputs.catalogue import load_job
from pipelines.observe import watching
from pipelines.observe.observation import Observed, observe_job, running_job_id, write_job_file
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.planning.replan import replan
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LEAST_PAUSE_S", 0.05)


def observed(flink: ObservedFlink, place: Workspace, seconds: float = 0.8) -> Observed:
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        return observe_job(rest, running_job_id(rest, None), seconds, place, Quiet())


def planned(flink: ObservedFlink, place: Workspace, rate: float, headroom: float | None = None) -> Plan:
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        seen = observe_job(rest, running_job_id(rest, None), 0.8, place, Quiet())
        return plan_running(rest, seen, RunningRequest(rate, headroom=headroom), place, Quiet())


def test_a_job_is_described_without_changing_anything(flink: ObservedFlink, place: Workspace) -> None:
    seen = observed(flink, place).job
    assert [v.id for v in seen.vertices] == [SOURCE, COUNT, SINK]
    source, count, sink = seen.vertices
    assert source.operators == ("card transactions", "parse")
    assert (source.observed_rate, source.true_rate) == pytest.approx((600, 600 / 0.3))
    assert count.true_rate == pytest.approx((450 / 0.6 + 150 / 0.2) / 2)
    assert (count.busyness, count.fullest_busyness, count.fullest_share) == pytest.approx((0.4, 0.6, 0.75))
    assert (count.state_bytes, sink.state_bytes) == (4096, None)
    assert source.partitions == PARTITIONS
    assert seen.arriving_rate == pytest.approx(600)
    assert (seen.bound_by.vertex, seen.bound_by.cause) == ("count", "hot key")
    assert seen.capacity is not None
    assert seen.capacity.mst.value == pytest.approx(600 / 0.6)
    assert {request.split()[0] for request in flink.requests} == {"GET"}


def test_what_arrives_at_an_overloaded_source_is_more_than_it_takes(flink: ObservedFlink, place: Workspace) -> None:
    flink.pending, flink.pending_grows, flink.backpressure = 100_000.0, 200.0, 0.7
    flink.busy[COUNT] = (1.0, 0.4)
    found = observed(flink, place)
    seen, first, last = found.job, found.watched.readings[1], found.watched.readings[-1]
    # The server's clock runs faster than that of the readings, by which a lag is dated.
    before, after = (one.vertices[0].tasks[0].pending for one in (first, last))
    assert before is not None and after is not None and after > before
    assert seen.arriving_rate == pytest.approx(600 + (after - before) / (last.time_s - first.time_s))
    assert seen.lag_growth is not None
    assert seen.lag_growth > 0
    assert seen.bound_by.vertex == "count"


def test_a_refresh_is_asked_for_before_each_reading(flink: ObservedFlink, place: Workspace) -> None:
    """Else Flink shows what it fetched at the reading before."""
    readings = observed(flink, place).watched.readings
    refresh, read = f"GET /jobs/{JOB_ID}/metrics", f"GET /jobs/{JOB_ID}"
    assert [one for one in flink.requests if one in (refresh, read)] == [refresh, read] * len(readings)


def test_large_jobs_are_read_less_often() -> None:
    """A thousand tasks every 90 s; eight tasks as often as Flink refreshes, and 100,000 three times in three minutes."""
    assert watching.paused_s(10.0, 1000, 3600.0) == pytest.approx(90.0)
    assert watching.paused_s(10.0, 8, 180.0) == pytest.approx(11.0)
    assert watching.paused_s(10.0, 100_000, 180.0) == pytest.approx(90.0)


def test_documents_and_samples_are_kept(flink: ObservedFlink, place: Workspace) -> None:
    seen = observed(flink, place)
    (key,) = place.list("observed/Fraud-detection")
    assert place.read(key, ObservedJob).vertices == seen.job.vertices
    table = pq.read_table(place.local_folder("production", "Fraud-detection"))
    assert table.schema.equals(SAMPLE_SCHEMA)
    assert set(table["operator"].to_pylist()) == {"card-transactions-parse", "count", "store-nowhere"}
    assert set(table["phase"].to_pylist()) == {"observe"}


def test_the_job_file_is_one_that_the_catalogue_reads(flink: ObservedFlink, place: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "fraud.yaml"
    write_job_file(observed(flink, place).as_job(), path)
    job = load_job(path)
    assert [o.name for o in job.operators] == ["card-transactions-parse", "count", "store-nowhere"]
    assert job.operator("card-transactions-parse").flink_name == "Source: card transactions -> parse"
    assert {(e.upstream, e.downstream, e.partitioning.value) for e in job.edges} == {
        ("card-transactions-parse", "count", "hash"),
        ("count", "store-nowhere", "rebalance"),
    }
    assert job.key_groups == 128
    # One core is used by tasks that are busy for 0.3 + 0.8 + 0.2 = 1.3 s of each second, 0.3 s of it for 600 records.
    assert job.operator("card-transactions-parse").cost.cpu_s == pytest.approx(0.3 / 1.3 / 600, rel=0.3)
    with pytest.raises(InvalidInput, match="exists already"):
        write_job_file(job, path)


def test_a_gap_is_said_and_bridged(flink: ObservedFlink, place: Workspace) -> None:
    flink.fails_at = range(3, 6)
    seen = observed(flink, place).job
    assert any("a reading is missing" in remark for remark in seen.remarks)
    assert seen.consumed_rate == pytest.approx(600)


def test_metrics_that_are_off_are_named(flink: ObservedFlink, place: Workspace) -> None:
    flink.reports = False
    with pytest.raises(SluiceError, match=r"reported no counters .* metrics are fetched"):
        observed(flink, place)


def test_a_cluster_that_fetches_no_metrics_is_not_waited_for(flink: ObservedFlink, place: Workspace) -> None:
    flink.refresh = "0 s"
    with pytest.raises(
        InvalidInput, match=r"metrics.fetcher.update-interval of .* must be a time above 0, but is '0 s'"
    ):
        observed(flink, place)


def test_a_job_that_fails_again_and_again_is_quoted(flink: ObservedFlink, place: Workspace) -> None:
    trace = "JobException: Recovery is done\n\tat a.b(C)\nCaused by: JsonParseException: Unrecognized token 'x'\n\tat d.e(F)"
    flink.failures = [trace, trace]
    seen = observed(flink, place).job
    assert seen.restarts == 2
    assert seen.remarks[0].startswith("the job failed and was started again 2 time(s) while it was observed")
    assert "of: JsonParseException: Unrecognized token 'x'" in seen.remarks[0]
    flink.failures.insert(0, "Another")
    assert observed(flink, place).job.restarts == 0, "failures from before are not counted"
    flink.reports = False
    flink._looks = 0
    with pytest.raises(SluiceError, match=r"failed and was started again 3 time\(s\) .* because of: Another"):
        observed(flink, place)


def test_a_job_without_checkpoints_says_what_is_unknown_by_that(flink: ObservedFlink, place: Workspace) -> None:
    flink.takes_checkpoints, flink.pending = False, 50.0
    seen = observed(flink, place).job
    assert seen.checkpoints is None
    assert seen.lag_records == pytest.approx(50.0)
    (said,) = [remark for remark in seen.remarks if "checkpoint" in remark]
    assert "takes no checkpoints (execution.checkpointing.interval)" in said
    assert "what waits is counted as the sources report it" in said


def test_records_that_get_older_wait_though_the_source_reports_none(flink: ObservedFlink, place: Workspace) -> None:
    flink.backpressure, flink.age_grows = 0.7, 0.25
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        watched = watching.watch(rest, JOB_ID, 0.8, Quiet())
    first, *_, last = (one.vertices[0].tasks[0] for one in watched.readings)
    # 600 records/s that are older by 1/4 s each second arrived at up to 600 / (3 / 4) = 800 records/s.
    older_s = 0.25 * ((last.ran_s or 0.0) - (first.ran_s or 0.0))
    assert last.pending == pytest.approx(older_s * 800)
    flink.backpressure = 0.1  # idle for a part, so that nothing waits
    assert observed(flink, place).job.lag_records == 0.0


def test_what_kafkas_consumer_has_fetched_waits(flink: ObservedFlink) -> None:
    """120 records are fetched and not read, and the source is idle for a part."""
    flink.fetched_ahead = 120.0
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        watched = watching.watch(rest, JOB_ID, 0.8, Quiet())
    waiting = [one.vertices[0].tasks[0].pending for one in watched.readings]
    assert waiting == pytest.approx([120.0] * len(waiting))


def test_a_partition_without_records_is_named(flink: ObservedFlink, place: Workspace) -> None:
    flink.silent = frozenset({3})
    assert any("no record of 1 of its 8 partitions (cards-3)" in said for said in observed(flink, place).job.remarks)
    flink.silent = frozenset()
    assert not any("partitions" in said for said in observed(flink, place).job.remarks)


def test_accesses_to_state_are_shown_where_rocksdb_counts_them(flink: ObservedFlink, place: Workspace) -> None:
    flink.backend, flink.counts_state = "EmbeddedRocksDBStateBackend", True
    seen = observed(flink, place)
    _, count, sink = seen.job.vertices
    assert (count.state_read, count.state_written, count.cache_hit_rate) == pytest.approx((6000, 3000, 0.75))
    assert sink.state_read is None
    table = place.read_table(seen.samples_key)
    read = sum(table["state_read_bytes"].to_pylist())
    assert read == pytest.approx(10 * sum(r["records_in"] for r in table.to_pylist() if r["operator"] == "count"))
    assert not any("not counted" in remark for remark in seen.job.remarks)
    flink.counts_state = False
    (said,) = [remark for remark in observed(flink, place).job.remarks if "not counted" in remark]
    assert "state.backend.rocksdb.metrics.bytes-read" in said
    flink.backend = "ForStStateBackend"
    (said,) = [remark for remark in observed(flink, place).job.remarks if "not counted" in remark]
    assert "state.backend.forst.metrics.bytes-read" in said
    flink.backend = "HashMapStateBackend"
    assert not any("not counted" in remark for remark in observed(flink, place).job.remarks)


def test_while_the_broker_is_away_only_the_lag_is_unknown(flink: ObservedFlink, place: Workspace) -> None:
    flink.silent, asked = frozenset({0}), []

    def ends(places: Collection[Place]) -> Mapping[Place, float]:
        asked.append(places)
        if 3 <= len(asked) <= 8:  # twice in each of three readings
            raise SluiceError("no Kafka broker answers at b:9092")
        return dict.fromkeys(places, 100.0 + 10 * len(asked))

    with FlinkRest(flink.url, patience_s=0.0) as rest:
        watched = watching.watch(rest, JOB_ID, 0.8, Quiet(), log_ends=ends)
    waiting = [reading.vertices[0].tasks[0].pending for reading in watched.readings]
    # After 10 s it is unknown where the task begins in the partition that it has not read. Then what came since it was first
    # seen waits there; of the 7 others all after the second record.
    assert waiting[:2] == [None, pytest.approx(10 + 7 * (120 - 2))]
    assert waiting[2:5] == [None, None, None]
    assert waiting[5] == pytest.approx(80 + 7 * (190 - 2))
    assert watched.gaps == ["what waits is unknown: no Kafka broker answers at b:9092 (3 readings)"]


def test_what_waits_is_counted_up_to_the_time_when_flink_was_asked_for_metrics(flink: ObservedFlink) -> None:
    asked: list[Collection[Place]] = []

    def ends(places: Collection[Place]) -> Mapping[Place, float]:
        asked.append(places)
        return dict.fromkeys(places, 1000.0 * len(asked))

    with FlinkRest(flink.url, patience_s=0.0) as rest:
        reader = CountsReader(rest, JOB_ID, ends)
        first = reader.read(workers=False)
        reader.refresh()
        second = reader.read(workers=False)
    assert len(asked) == 2
    waiting = [reading.vertices[0].tasks[0].pending or 0.0 for reading in (first, second)]
    assert waiting[1] - waiting[0] == pytest.approx(8 * 1000.0, rel=0.05)


def test_a_partition_that_has_moved_is_counted_where_it_is_read(flink: ObservedFlink) -> None:
    flink.busy, flink.moved = {**flink.busy, SOURCE: (0.5, 0.5)}, frozenset({0, 3})
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        reading = CountsReader(rest, JOB_ID, lambda places: dict.fromkeys(places, 110.0)).read(workers=False)
    # Of each of 8 partitions all after the second record wait.
    assert [task.pending for task in reading.vertices[0].tasks] == pytest.approx([8 * (110 - 2), 0])


def test_a_broker_that_never_answers_is_an_error(flink: ObservedFlink) -> None:
    def never(_places: Collection[Place]) -> Mapping[Place, float]:
        raise SluiceError("no Kafka broker answers at b:9092")

    with FlinkRest(flink.url, patience_s=0.0) as rest, pytest.raises(SluiceError, match="no Kafka broker answers"):
        watching.watch(rest, JOB_ID, 0.8, Quiet(), log_ends=never)


def test_a_job_that_has_ended_cannot_be_observed(flink: ObservedFlink, place: Workspace) -> None:
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        id_ = running_job_id(rest, "Fraud detection")
        flink.state = "CANCELED"
        with pytest.raises(NotRunning, match="is canceled"):
            observe_job(rest, id_, 0.5, place, Quiet())


@pytest.mark.parametrize("named", [None, "Fraud detection", JOB_ID])
def test_a_job_whose_input_was_bounded_is_said_to_have_read_it(flink: ObservedFlink, named: str | None) -> None:
    flink.state = "FINISHED"
    with FlinkRest(flink.url, patience_s=0.0) as rest, pytest.raises(InvalidInput, match=r"has finished after 0\.9 s"):
        running_job_id(rest, named)


def test_an_unknown_job_is_answered_with_those_that_run(flink: ObservedFlink) -> None:
    with FlinkRest(flink.url, patience_s=0.0) as rest, pytest.raises(InvalidInput, match="'Fraud detection'"):
        running_job_id(rest, "fraud")


@pytest.mark.slow
def test_a_plan_for_another_rate(flink: ObservedFlink, place: Workspace) -> None:
    """Evenly busy for 40 % in two tasks at 600 records/s, counting needs 1.6 tasks for 1,200: two, without headroom."""
    flink.busy[COUNT], flink.share = (0.4, 0.4), (0.5, 0.5)
    plan = planned(flink, place, 1200.0, headroom=1.0)
    assert plan.parallelism["count"] == 2
    assert plan.parallelism["card-transactions-parse"] == 1
    assert plan.lineage.testbed == "running"
    assert plan.lineage.model_uri is None
    assert plan.predicted_mst.low < 1200 < plan.predicted_mst.high
    assert plan.bound_by is not None
    more = planned(flink, place, 6000.0, headroom=1.0)
    # 10 x 0.8 tasks of counting. Reading is 10 x 0.3 tasks' work, but of three tasks one has three of the eight partitions,
    # more than a third.
    assert more.parallelism["count"] == 8
    assert more.parallelism["card-transactions-parse"] == 4
    assert more.version == 2


def test_the_margin_is_worth_a_task_and_goes_to_the_tightest_vertex(flink: ObservedFlink, place: Workspace) -> None:
    """At 600 records/s counting is 1.2 tasks' work, so that 1,200 fill 2.4 and three take 1,500; reading and storing are 0.3
    and 0.2 tasks' work, and need no second task."""
    flink.busy[COUNT], flink.share = (0.6, 0.6), (0.5, 0.5)
    plan = planned(flink, place, 1200.0)
    assert plan.parallelism["count"] in (3, 4)
    assert plan.parallelism | {"count": 0} == {"card-transactions-parse": 1, "count": 0, "store-nowhere": 1}
    assert plan.predicted_mst.low < 1500 < plan.predicted_mst.high


def test_a_rate_that_is_too_unsure_for_the_partitions_says_so(flink: ObservedFlink, place: Workspace) -> None:
    """A task reads 2,000 records/s by the figures, and as many tasks as partitions may read less than that together."""
    flink.busy[COUNT], flink.share = (0.4, 0.4), (0.5, 0.5)
    with pytest.raises(Infeasible, match=rf"90% sure, .* 'card-transactions-parse' needs .* may have {PARTITIONS}"):
        planned(flink, place, 2000.0 * PARTITIONS)


def test_operators_with_state_that_share_slots_need_no_more_memory_than_they_run_with(
    flink: ObservedFlink, place: Workspace
) -> None:
    """As in jobs of Apache Beam, where several operators with keys share each slot of a TaskManager of 1,024 MiB."""
    alone = planned(flink, place, 600.0, headroom=1.0)
    flink.to_sink = "HASH"
    plan = planned(flink, place, 600.0, headroom=1.0)
    assert plan.memory_mb == alone.memory_mb == 1024
    (before,), shared = (
        [o.managed_memory_mb for o in one.operators if o.managed_memory_mb > 0] for one in (alone, plan)
    )
    assert shared == pytest.approx([before / 2] * 2, abs=0.1)
    assert not any("times the memory" in reason for reason in plan.reasons)


def test_a_plan_beyond_a_hot_key_or_the_partitions_says_so(flink: ObservedFlink, place: Workspace) -> None:
    """One task gets 3/4 of the records of two, so that half of them have one key: at 0.6 busy for 600 records/s, 0.5 x 0.8 of
    it is that key's."""
    with pytest.raises(Infeasible, match="of 'count' gets 50%"):
        planned(flink, place, 4000.0)


def test_what_was_computed_from_little_load_is_less_sure(flink: ObservedFlink, place: Workspace) -> None:
    much = observed(flink, place).job.capacity
    flink.busy = {vertex: tuple(b / 10 for b in of) for vertex, of in flink.busy.items()}
    little = observed(flink, place).job.capacity
    assert much is not None
    assert little is not None
    assert little.mst.value == pytest.approx(10 * much.mst.value)
    assert little.mst.high / little.mst.value > 2 * much.mst.high / much.mst.value


def test_a_plan_from_a_running_job_is_not_replanned_by_a_model(flink: ObservedFlink, place: Workspace) -> None:
    flink.busy[COUNT], flink.share = (0.4, 0.4), (0.5, 0.5)
    planned(flink, place, 1200.0)
    with pytest.raises(InvalidInput, match="made from a running job"):
        replan(place, "Fraud-detection", 1500.0)
