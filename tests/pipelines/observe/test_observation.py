"""Observing a job and planning it, over the REST interface of a server of this machine."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flink_client.rest import FlinkRest
from flink_client.running import NotRunning
from models.capacity.observed.record import ObservedJob
from models.errors import Infeasible, InvalidInput, SluiceError
from models.plan import Plan
from observed_flink import COUNT, PARTITIONS, SINK, SOURCE, ObservedFlink
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


@pytest.fixture
def flink() -> Iterator[ObservedFlink]:
    with ObservedFlink() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


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
    seen = observed(flink, place).job
    # The server's clock runs faster than that of the readings, by which a lag is dated.
    assert seen.lag_growth is not None
    assert seen.lag_growth > 0
    assert seen.arriving_rate == pytest.approx(600 + seen.lag_growth, rel=0.1)  # readings are not evenly spaced
    assert seen.bound_by.vertex == "count"


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


def test_a_job_that_has_ended_cannot_be_observed(flink: ObservedFlink, place: Workspace) -> None:
    with FlinkRest(flink.url, patience_s=0.0) as rest:
        id_ = running_job_id(rest, "Fraud detection")
        flink.state = "CANCELED"
        with pytest.raises(NotRunning, match="is canceled"):
            observe_job(rest, id_, 0.5, place, Quiet())


def test_an_unknown_job_is_answered_with_those_that_run(flink: ObservedFlink) -> None:
    with FlinkRest(flink.url, patience_s=0.0) as rest, pytest.raises(InvalidInput, match="'Fraud detection'"):
        running_job_id(rest, "fraud")


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
    # 10 x 0.8 tasks of counting, 10 x 0.3 of parsing.
    assert more.parallelism["count"] == 8
    assert more.parallelism["card-transactions-parse"] == 3
    assert more.version == 2


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
