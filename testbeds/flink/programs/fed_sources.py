"""Which topics each source of a job reads, and what follows for its rate and its tasks."""

from collections.abc import Sequence
from typing import Final

from flink_client.jobs.job_graph import KAFKA_TABLE, TABLE
from models.errors import InvalidInput
from models.job import Job, Operator
from testbeds.kafka.supply import FedTopic, records_of

_PREFIX: Final = "Source: "


def fed_by_kafka(job: Job, topics: Sequence[FedTopic]) -> Job:
    """The job with the rate divided among its sources by the records of their topics, and no more tasks than partitions.

    Args:
        job: as Flink plans it, its operators described by Flink.

    Raises:
        InvalidInput: a topic is read by no source, or a source reads no topic.
    """
    read = {source.name: [t for t in topics if _reads(source, t, len(job.sources) == 1)] for source in job.sources}
    _check(job, topics, read)
    records = records_of(topics)
    in_all = sum(records[t.name] for of_source in read.values() for t in of_source)
    operators = tuple(
        o.model_copy(
            update={
                "rate_share": sum(records[t.name] for t in read[o.name]) / in_all,
                "max_parallelism": sum(t.partitions for t in read[o.name]),
            }
        )
        if o.name in read
        else o
        for o in job.operators
    )
    return job.model_copy(update={"operators": operators})


def _reads(source: Operator, topic: FedTopic, is_only_one: bool) -> bool:
    if topic.source is None and is_only_one:
        return True
    return (topic.source or topic.name) in (source.name, _called(source))


def _called(source: Operator) -> str:
    """As its user knows it: its table, or its name in the program."""
    table = TABLE.search(source.description) or KAFKA_TABLE.search(source.description)
    return table[1] if table else source.description.removeprefix(_PREFIX)


def _check(job: Job, topics: Sequence[FedTopic], read: dict[str, list[FedTopic]]) -> None:
    known = ", ".join(repr(_called(source)) for source in job.sources)
    for topic in topics:
        if not any(topic in of_source for of_source in read.values()):
            raise InvalidInput(
                f"the topic {topic.name!r} must be read by a source of job {job.name!r}, which has {known}; name it in the "
                f"topic's field 'source'"
            )
    for source in job.sources:
        if not read[source.name]:
            raise InvalidInput(
                f"every source must read a topic that Sluice feeds, but {_called(source)!r} of job {job.name!r} reads none; "
                f"add its topic under 'topics', or name the source there in 'source'"
            )
