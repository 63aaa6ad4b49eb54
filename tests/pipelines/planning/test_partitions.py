"""Topics in a job's file, without a broker. `tests/testbeds/kafka/test_planned_partitions.py` asks one."""

from typing import Any

import pytest
from pydantic import ValidationError

from models.errors import InvalidInput
from pipelines.inputs.job_files import JobFile
from pipelines.planning.partitions import SourcePartitions, read_partitions, with_partitions
from pipelines.store.digests import digest


def job(brokers: str | None = None, sink_topics: list[str] | None = None, **source: Any) -> JobFile:
    operators = [
        {"name": name, "kind": kind, "cost": {"cpu_s": 1e-3}, "figures_from": "made up"}
        for name, kind in (("clicks", "source"), ("sink", "sink"))
    ]
    operators[0] |= source
    operators[1] |= {"topics": sink_topics} if sink_topics else {}
    return JobFile.model_validate(
        {
            "name": "j",
            "description": "A job.",
            "figures_from": "made up",
            "brokers": brokers,
            "operators": operators,
            "edges": [{"from": "clicks", "to": "sink", "partitioning": "rebalance"}],
        }
    )


def test_no_broker_is_asked_where_none_is_needed() -> None:
    assert read_partitions(job(), None) is None
    assert read_partitions(job("127.0.0.1:1"), None) is None  # no topics
    assert read_partitions(job(topics=["clicks"], max_parallelism=12), None) is None


def test_topics_need_a_broker_or_a_number() -> None:
    with pytest.raises(InvalidInput, match=r"reads the topics a, b, so .*: name 'brokers' .*, give --kafka, or state"):
        read_partitions(job(topics=["a", "b"]), None)


def test_a_broker_without_topics_is_a_mistake() -> None:
    with pytest.raises(InvalidInput, match=r"no source of job 'j' names any; add 'topics: \[NAME\]' to the source"):
        read_partitions(job(), "127.0.0.1:1")


def test_only_sources_have_topics() -> None:
    with pytest.raises(ValidationError, match="only sources read 'topics'"):
        job(sink_topics=["clicks"])


def test_partitions_of_all_topics_limit_the_tasks() -> None:
    found = SourcePartitions(brokers="kafka:9092", topics={"clicks": {"a": 8, "b": 4}})
    read = with_partitions(job(topics=["a", "b"]), found)
    assert read.operator("clicks").max_parallelism == 12
    assert read.operator("sink").max_parallelism is None
    assert found.of("sink") is None


def test_measurements_depend_on_the_number_of_partitions_alone() -> None:
    found = SourcePartitions(brokers="kafka:9092", topics={"clicks": {"a": 8, "b": 4}})
    stated = job(max_parallelism=12)
    assert digest(with_partitions(job("kafka:9092", topics=["a", "b"]), found)) == digest(stated)
    assert digest(job(max_parallelism=8)) != digest(stated)
