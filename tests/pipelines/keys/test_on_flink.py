"""Shares of tasks are those of a real Flink, record by record: the same recorded file, read by both."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from flink_client.rest import FlinkRest, JarProgram, wait_for
from models.errors import SluiceError
from models.keys.distribution import key_distribution
from pipelines.keys.recorded import sketch_of
from pipelines.keys.stream import RecordedStream
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import program_of

pytestmark = pytest.mark.slow
PARALLELISM = range(2, 17)
RECORDS = 20_000
COLUMNS = "auction BIGINT, channel STRING, bidder INT"
SETTINGS = {"state.backend.type": "hashmap"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster() as made:
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
