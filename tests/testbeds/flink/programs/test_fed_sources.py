"""Which topics sources read; numbers are worked out by hand."""

import json
from pathlib import Path

import pytest

from flink_client.jobs.job_graph import read_job
from flink_client.rest.answers import Vertex, VertexEdge
from models.errors import InvalidInput
from models.job import Job
from testbeds.flink.programs.fed_sources import fed_by_kafka
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.feeding.replay import TopicRecording
from testbeds.kafka.supply import FedTopic


def planned(*sources: str) -> Job:
    """As Flink plans sources that one vertex joins."""
    vertices = [Vertex(str(n), name, 1, 1) for n, name in enumerate([*sources, "join"])]
    edges = [VertexEdge(str(n), str(len(sources)), "HASH") for n in range(len(sources))]
    return read_job("shop", vertices, edges)


def made_up(name: str, partitions: int = 4, share: float = 1.0, source: str | None = None) -> FedTopic:
    return FedTopic(name, partitions, GeneratedFeed(name), share, source)


def test_a_source_gets_the_share_of_its_topics_and_no_more_tasks_than_partitions() -> None:
    topics = [
        made_up("orders", 8, 3.0, "order stream"),
        made_up("clicks", 4, 5.0),
        made_up("returns", 2, 2.0, "order stream"),
    ]
    job = fed_by_kafka(planned("Source: order stream", "Source: clicks"), topics)
    found = {o.name: (o.rate_share, o.max_parallelism) for o in job.sources}
    assert found == {"order-stream": (pytest.approx(0.5), 10), "clicks": (0.5, 4)}
    assert job.operator("join").max_parallelism is None


def test_the_only_source_reads_all_topics_that_name_none() -> None:
    job = fed_by_kafka(planned("Source: from everywhere"), [made_up("a", 3), made_up("b", 5)])
    (source,) = job.sources
    assert (source.rate_share, source.max_parallelism, source.flink_name) == (1.0, 8, "Source: from everywhere")


@pytest.mark.parametrize(
    "scan",
    [
        "Source: TableSourceScan(table=[[default_catalog, default_database, clicks]], fields=[page])",
        "Source: KafkaSource-default_catalog.default_database.clicks",
    ],
    ids=["1.20", "2.3"],
)
def test_a_table_is_known_by_its_name(scan: str) -> None:
    job = fed_by_kafka(planned(scan, "Source: b"), [made_up("clicks", 6), made_up("b")])
    assert [(o.name, o.max_parallelism) for o in job.sources] == [("clicks", 6), ("b", 4)]


def test_recorded_topics_have_their_records(tmp_path: Path) -> None:
    for name, count in (("a", 30), ("b", 10)):
        lines = (json.dumps({"at": 1000 * n}) for n in range(count))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    topics = [FedTopic(n, 2, TopicRecording(n, tmp_path / f"{n}.jsonl", "at")) for n in ("a", "b")]
    job = fed_by_kafka(planned("Source: a", "Source: b"), topics)
    assert [o.rate_share for o in job.sources] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        ([made_up("a"), made_up("c")], "topic 'c' must be read by a source of job 'shop', which has 'a', 'b'"),
        ([made_up("a")], "'b' of job 'shop' reads none; add its topic"),
        ([made_up("a"), made_up("x", source="c")], "topic 'x' must be read"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_what_there_is(topics: list[FedTopic], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        fed_by_kafka(planned("Source: a", "Source: b"), topics)
