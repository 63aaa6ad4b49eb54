"""The jobs of the catalogue hold the figures they claim to hold."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from models.dataflow import Partitioning
from models.job import Job, Kind, records_in_per_source_record
from pipelines.inputs.catalogue import catalogue_folder, job_names, load_job

STREAMBED = Path(__file__).parent.parent / "data" / "streambed"
NEXMARK = ["nexmark-q1", "nexmark-q2", "nexmark-q3", "nexmark-q5", "nexmark-q6", "nexmark-q8", "nexmark-q11"]

TABLE_2 = {
    # StreamBed Table 2: operators without source and sink, records/s of one task each.
    "nexmark-q1": (1, 1.6e6),
    "nexmark-q2": (1, 3.6e6),
    "nexmark-q5": (8, 50e3),
    "nexmark-q8": (8, 1.4e6),
    "nexmark-q11": (3, 60e3),
}


def busy_s_per_source_record(job: Job) -> dict[str, float]:
    ratio = records_in_per_source_record(job)
    return {o.name: ratio[o.name] * o.cost.cpu_s for o in job.scaled_operators}


def single_task_capacity(job: Job) -> float:
    """Source rate at which the first operator, sources aside, is busy all the time with one task each."""
    return 1 / max(busy_s_per_source_record(job).values())


def published(query: str, memory_mb: int) -> list[dict[str, Any]]:
    vectors = json.loads((STREAMBED / "bids2_vectors.json").read_text())
    return next(v["operators"] for v in vectors if v["query"] == query and v["tm_memory_mb"] == memory_mb)


def test_the_catalogue_is_complete() -> None:
    assert job_names() == ["justin-q8", "justin-q11", *NEXMARK, "q3-inf", "wordcount"]


@pytest.mark.parametrize("name", job_names())
def test_every_operator_says_where_its_figures_come_from(name: str) -> None:
    job = load_job(name)
    for operator in job.operators:
        assert re.search(r"StreamBed|CAPSys|DS2|Justin|assumed: |As the source of nexmark-q1", operator.figures_from)
        if "assumed" in operator.figures_from:
            assert re.search(r"assumed: \w", operator.figures_from)


@pytest.mark.parametrize("name", NEXMARK)
def test_sql_lies_beside_the_job(name: str) -> None:
    job = load_job(name)
    sql = (catalogue_folder() / "jobs" / str(job.sql)).read_text()
    assert sql.startswith("-- Nexmark q") and sql.rstrip().endswith(";")
    assert re.search(r"\b(FROM|JOIN) (bid|auction|person)\b", sql)


@pytest.mark.parametrize("name", job_names())
def test_stateful_operators_are_hashed_to_and_have_keys_state_and_costs(name: str) -> None:
    job = load_job(name)
    for operator in job.operators:
        hashed = {e.partitioning is Partitioning.HASH for e in job.upstream_edges(operator.name)}
        assert len(hashed) <= 1
        assert (hashed == {True}) == (operator.keys is not None) == (operator.state is not None)
        assert (operator.state is not None) == (operator.cost.state_read_bytes > 0)
        if operator.window:
            assert operator.state is not None and operator.state.ttl_s is None


@pytest.mark.parametrize("name", job_names())
def test_sinks_emit_nothing_and_all_others_emit_bytes(name: str) -> None:
    for operator in load_job(name).operators:
        assert (operator.kind is Kind.SINK) == (operator.selectivity == 0) == (operator.cost.bytes_out == 0)


@pytest.mark.parametrize("name", TABLE_2)
def test_operators_and_single_task_rate_are_those_of_streambed(name: str) -> None:
    operators, rate = TABLE_2[name]
    job = load_job(name)
    assert len([o for o in job.operators if o.kind is Kind.OPERATOR]) == operators
    if name != "nexmark-q8":  # its operators are busy in turn; the simulator's tests hold its rate
        assert single_task_capacity(job) == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize(
    ("query", "faster"),
    [("q1", {"calc": 0.9312}), ("q5", {"count-window": 1.1051, "max": 1.2065, "join": 1.8153})],
    ids=["q1", "q5"],
)
def test_rates_and_record_ratios_are_those_streambed_published(query: str, faster: dict[str, float]) -> None:
    """One task of most operators takes the published rate; those of `faster` take a multiple of it.

    The published rates are records over busy time. They are too low where a task waits for its state or is hardly busy: the
    join was busy for a tenth of the time. With those rates the job would not take the throughput that was published
    (`tests/testbeds/simulator/test_published.py`), so the unit costs of these operators follow from the throughput.
    """
    job = load_job(f"nexmark-{query}")
    ratio = records_in_per_source_record(job)
    operators = published(query, 65536)
    assert len(operators) == len(job.scaled_operators)
    for ours, theirs in zip(job.scaled_operators, operators, strict=True):
        rate = faster.get(ours.name, 1.0) * theirs["true_rate_per_task"]
        assert 1 / ours.cost.cpu_s == pytest.approx(rate, rel=1e-4)
        assert ratio[ours.name] == pytest.approx(theirs["records_in_per_source_record"], rel=1e-5)


def test_q5_joins_the_operators_as_its_flink_plan_does() -> None:
    job = load_job("nexmark-q5")
    theirs = published("q5", 65536)
    name_of = {t["id"]: o.name for o, t in zip(job.scaled_operators, theirs, strict=True)}
    for operator in theirs:
        ours = [e.upstream for e in job.upstream_edges(name_of[operator["id"]])]
        assert ours == [name_of.get(i, "source") for i in operator["inputs"]]


def test_memory_hardly_changes_the_published_rates_that_q5_is_made_from() -> None:
    """Operators of which the 65536 MB instance is typical: those with enough busy time to be measured well."""
    for large, small in zip(published("q5", 65536), published("q5", 32768), strict=True):
        if large["name"] in ("op0_Calc", "op1_GroupWindowAggregate", "op4_GroupAggregate"):
            assert large["true_rate_per_task"] == pytest.approx(small["true_rate_per_task"], rel=0.03)


def test_wordcount_needs_10_flatmap_and_20_count_tasks() -> None:
    """DS2 section 5.2: 1 M sentences a minute."""
    job = load_job("wordcount")
    ratio = records_in_per_source_record(job)
    tasks = {o.name: 1e6 / 60 * ratio[o.name] * o.cost.cpu_s for o in job.operators}
    assert tasks["flatmap"] == pytest.approx(10)
    assert tasks["count"] == pytest.approx(20)
    assert tasks["source"] < 1


def test_q3_inf_has_the_loads_of_its_profile() -> None:
    """CAPSys artifact, profile of Q3-inf at 600 x 5 records/s: tasks, busy ms/s and MB/s of one task."""
    profile = {
        "source": (5, 780.6863815445957, 46.948131303920654),
        "transform": (8, 870.517294722701, 29.33123891657369),
        "compress": (6, 810.2425064424252, 1.8841116234031605),
        "inference": (4, 1100.1707245231992, 0.08037316285317603),
        "sink": (1, 20.78626895607747, 0.0),
    }
    for operator in load_job("q3-inf").operators:
        tasks, busy_ms, net_mb = profile[operator.name]
        assert 3000 * operator.cost.cpu_s == pytest.approx(tasks * busy_ms / 1000, rel=1e-3)
        assert 3000 * operator.selectivity * operator.cost.bytes_out == pytest.approx(tasks * net_mb * 1e6, rel=2e-3)


def test_q3_join_has_the_loads_of_its_profile() -> None:
    """CAPSys artifact, profile of Q4-join at 420 000 auctions/s, of which persons are 3/10, half of them kept."""
    tasks, busy_ms, state_kb = 12, 840.8076193064386, 3624.254503429085
    records_in = 420e3 + 0.5 * 126e3
    join = load_job("nexmark-q3").operator("join")
    assert join.cost.cpu_s == pytest.approx(tasks * busy_ms / 1000 / records_in, rel=1e-3)
    state = join.cost.state_read_bytes + join.cost.state_write_bytes
    assert state == pytest.approx(tasks * state_kb * 1000 / records_in, rel=0.01)


def test_q6_has_the_loads_of_its_profile() -> None:
    """CAPSys artifact, profile of Q5-aggregate at 180 000 auctions/s and as many bids/s: tasks, busy ms/s, kB/s of
    state and MB/s of output of one task."""
    profile = {
        "auction-source": (2, 361.49500318300784, 0.0, 9.362666770670872),
        "bid-source": (2, 140.09981943151865, 0.0, 3.314840144546088),
        "join": (12, 930.3991183365727, 44430.203097486716, 0.41282249472935717),
        "average": (6, 800.5248692595923, 329546.48478030827, 0.8253686667718628),
        "sink": (1, 40.10289528494526, 0.0, 0.0),
    }
    job = load_job("nexmark-q6")
    ratio = records_in_per_source_record(job)
    for operator in job.operators:
        tasks, busy_ms, state_kb, net_mb = profile[operator.name]
        records_in = 360e3 * ratio[operator.name]
        assert records_in * operator.cost.cpu_s == pytest.approx(tasks * busy_ms / 1000, rel=1e-3)
        state = operator.cost.state_read_bytes + operator.cost.state_write_bytes
        assert records_in * state == pytest.approx(tasks * state_kb * 1000, rel=1e-3)
        records_out = records_in * (1.0 if operator in job.sources else operator.selectivity)
        assert records_out * operator.cost.bytes_out == pytest.approx(tasks * net_mb * 1e6, rel=0.02)


def test_a_state_access_has_the_bytes_of_the_sliding_window_profile() -> None:
    """CAPSys artifact, profile of Q1-sliding at 20 000 bids/s: each is read and written in 60 windows (1 h by 1 min)."""
    tasks, state_kb = 18, 17067.08440212565
    access = tasks * state_kb * 1000 / 20_000 / 60 / 2
    window = load_job("nexmark-q5").operator("count-window")
    assert window.cost.state_write_bytes == pytest.approx(access, rel=0.001)
    panes_read = window.selectivity * 5
    assert window.cost.state_read_bytes == pytest.approx((1 + panes_read) * access, rel=0.002)
    assert window.window is not None
    assert window.window.fire_share == pytest.approx(panes_read / (2 + panes_read), abs=0.005)


@pytest.mark.parametrize(
    ("name", "operator", "of_hot_key", "batch", "records_per_item"),
    [
        ("nexmark-q5", "count-window", 0.5, 100, 46 / 3),  # bids by auction: another hot one every 100 auctions
        ("nexmark-q8", "auction-window", 0.75, 100, 3),  # auctions by seller: another every 100 persons
        ("nexmark-q11", "session-window", 0.75, 100, 46),  # bids by bidder: another every 100 persons
    ],
)
def test_hot_keys_are_those_of_the_nexmark_generator(
    name: str, operator: str, of_hot_key: float, batch: int, records_per_item: float
) -> None:
    """Defaults of the public generator: 1 person, 3 auctions, 46 bids in 50 events; hot ratios 2, 4 and 4."""
    keys = load_job(name).operator(operator).keys
    assert keys is not None
    assert keys.hot_share == of_hot_key
    assert keys.hot_period_records == pytest.approx(batch * records_per_item, abs=1)
    assert keys.lifetime_records == pytest.approx(keys.distinct * records_per_item, abs=1)
