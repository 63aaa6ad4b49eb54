"""Shares of tasks are those of a real Flink, record by record: the same recorded file, read by both."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flink.releases import NEWEST_IN_CI
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from models.job import Job
from models.keys.distribution import key_distribution
from models.keys.sketch import KeyedBy
from pipelines.keys.recorded import sketch_of
from pipelines.keys.stream import RecordedStream
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program, program_of

pytestmark = pytest.mark.slow
PARALLELISM = range(2, 17)
RECORDS = 20_000
COLUMNS = "auction BIGINT, channel STRING, bidder INT"
SEED = 3
KEYS = {"distinct": 2**45, "hot_share": 0.3, "hot_period_records": 5000}
SETTINGS = {"state.backend.type": "hashmap"}


@pytest.fixture(scope="module", params=NEWEST_IN_CI)
def cluster(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    with LocalCluster(release=request.param) as made:
        made.ensure(Profile((TaskManager("tm1", 16, 1400, managed_mb=16.0),)))
        yield made


@pytest.fixture(scope="module")
def bids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bids with Zipf-distributed auctions, of both signs, and channels whose names are short, long and not ASCII."""
    path, random = tmp_path_factory.mktemp("recorded") / "bids.jsonl", np.random.default_rng(8)
    auctions = random.zipf(1.3, RECORDS) % 2**40 * random.choice([-1, 1], RECORDS)
    channels = [f"{'é' * (n % 3)}channel-{n % 999}"[: 3 + n % 20] for n in np.abs(auctions).tolist()]
    rows = zip(auctions.tolist(), channels, random.integers(-500, 500, RECORDS).tolist(), strict=True)
    lines = (json.dumps(dict(zip(("auction", "channel", "bidder"), row, strict=True))) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("key", ["auction", "channel, auction, bidder"])
def test_records_of_each_task_are_those_of_flink_from_2_to_16_tasks(
    cluster: LocalCluster, bids: Path, key: str
) -> None:
    expression = f"struct({key})" if "," in key else key
    stream = RecordedStream(file=str(bids), key=expression, columns=COLUMNS)
    found = key_distribution(sketch_of(stream, PARALLELISM, None), PARALLELISM, None)
    assert records_by_task(cluster, bids, key) == {one.parallelism: list(one.records) for one in found.shares}


def test_records_of_a_datastreams_tasks_are_those_of_flink(cluster: LocalCluster, tmp_path: Path) -> None:
    keys = keys_of_the_kit(np.arange(RECORDS))
    pq.write_table(pa.table({"key": keys}), tmp_path / "keys.parquet")
    stream = RecordedStream(file=str(tmp_path / "keys.parquet"), key="key", keyed_by=KeyedBy.DATASTREAM)
    found = key_distribution(sketch_of(stream, PARALLELISM, None), PARALLELISM, None)
    parallelism = {"source": 1} | {f"tasks-{tasks}": tasks for tasks in PARALLELISM}
    rest, jar = cluster.rest, cluster.uploaded(cluster.kit)
    with SourceControl() as control:
        program = dataflow_program(
            counting_job(),
            parallelism,
            control.address,
            SETTINGS,
            payment=Payment.PACED,
            seed=SEED,
            slot_per_task=False,
        )
        control.fill({"source": 0.0}, {"source": float(RECORDS)})
        job = rest.run(jar, program)
        try:
            vertices = {v.name: v.id for v in rest.wait_until_running(job, 60).vertices}
            counted = {
                tasks: wait_for(partial(all_records, rest, job, vertices[f"tasks-{tasks}"], tasks), 60, "all records")
                for tasks in PARALLELISM
            }
        finally:
            rest.cancel(job)
    assert counted == {one.parallelism: list(one.records) for one in found.shares}


def counting_job() -> Job:
    """The kit's source, and for each parallelism an operator that counts its records by the same keys."""
    operators = [{"name": f"tasks-{tasks}", "kind": "sink", "keys": KEYS} for tasks in PARALLELISM]
    common = {"cost": {"cpu_s": 1e-7}, "figures_from": "made up"}
    return Job.model_validate(
        {
            "name": "skew",
            "description": "Counts by key.",
            "figures_from": "made up",
            "operators": [{**one, **common} for one in ({"name": "source", "kind": "source"}, *operators)],
            "edges": [{"from": "source", "to": one["name"], "partitioning": "hash"} for one in operators],
        }
    )


def keys_of_the_kit(events: np.ndarray) -> np.ndarray:
    """As `Packet.key` of the Java kit computes them, for KEYS and SEED."""
    bits = mixed(events.astype(np.uint64) << np.uint64(20) ^ mixed(np.array([SEED + 1], np.uint64)))
    hot = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 < KEYS["hot_share"]
    drawn = np.where(hot, mixed((events // KEYS["hot_period_records"]).astype(np.uint64)), mixed(bits))
    return drawn.astype(np.int64) % KEYS["distinct"]


def mixed(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def all_records(rest: FlinkRest, job: str, vertex: str, tasks: int) -> list[int] | None:
    counts = [int(one.get("numRecordsIn", 0)) for one in rest.vertex_metrics(job, vertex, ["numRecordsIn"], tasks)]
    return counts if sum(counts) == RECORDS else None


def records_by_task(cluster: LocalCluster, bids: Path, key: str) -> dict[int, list[int]]:
    """What Flink counts: one job that groups the file by the key with each parallelism."""
    rest, jar = cluster.rest, cluster.uploaded(cluster.kit)
    program = program_of({"name": "skew", "sql": script(bids, key)}, SETTINGS)
    vertices = {int(v.name.rsplit("tasks_", 1)[1].split("[")[0]): v.id for v in grouping(rest, jar, program)}
    assert sorted(vertices) == list(PARALLELISM)
    job = rest.run(jar, program.with_parallelism({vertex: tasks for tasks, vertex in vertices.items()}))
    wait_for(lambda: finished(rest, job), 120, "the job's end")
    return {tasks: records_in(rest, job, vertex) for tasks, vertex in vertices.items()}


def grouping(rest: FlinkRest, jar: str, program: JarProgram) -> list:
    return [vertex for vertex in rest.plan(jar, program)[0] if "GroupAggregate" in vertex.name]


def finished(rest: FlinkRest, job: str) -> bool | None:
    state = rest.job(job).state
    if state == "FAILED":
        raise SluiceError(rest.failure(job) or "failed")
    return state == "FINISHED" or None


def records_in(rest: FlinkRest, job: str, vertex: str) -> list[int]:
    tasks = rest.get(f"/jobs/{job}/vertices/{vertex}")["subtasks"]
    assert all(task["metrics"]["read-records-complete"] for task in tasks)
    return [task["metrics"]["read-records"] for task in sorted(tasks, key=lambda task: task["subtask"])]


def script(bids: Path, key: str) -> str:
    """Each query sums another number, so that Flink does not make one of them all."""
    sinks = "".join(
        f"CREATE TABLE tasks_{tasks} (n BIGINT) WITH ('connector' = 'blackhole');\n"
        f"INSERT INTO tasks_{tasks} SELECT SUM(bidder + {tasks}) FROM bids GROUP BY {key};\n"
        for tasks in PARALLELISM
    )
    return (
        f"CREATE TABLE bids ({COLUMNS}) "
        f"WITH ('connector' = 'filesystem', 'path' = '{bids.as_uri()}', 'format' = 'json');\n{sinks}"
    )
