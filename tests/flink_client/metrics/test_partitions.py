"""What waits in Kafka's partitions, by the broker's ends of their logs and the offsets that Flink reports."""

from collections.abc import Collection, Iterable

import pytest

from flink_client.metrics.partitions import PartitionsReader, Place

NAME = "Source__clicks.KafkaSourceReader.topic.clicks.partition.{}.currentOffset"


class Reported:
    """Flink's and the broker's answers."""

    def __init__(self, offsets: list[float], ends: list[float]) -> None:
        self.offsets, self.ends = offsets, ends

    def task_metrics(self, job: str, vertex: str, names: Iterable[str]) -> dict[str, float]:
        return {f"0.{NAME.format(n)}": offset for n, offset in enumerate(self.offsets)}

    def log_ends(self, places: Collection[Place]) -> dict[Place, float]:
        return {("clicks", n): end for n, end in enumerate(self.ends)}


@pytest.fixture
def answers() -> Reported:
    return Reported([99.0, 49.0], [110.0, 50.0])


@pytest.fixture
def reader(answers: Reported) -> PartitionsReader:
    made = PartitionsReader(answers, "job", answers.log_ends)  # type: ignore[arg-type]
    made.find("source", [f"0.{NAME.format(n)}" for n in range(2)], tasks=1)
    return made


def test_what_waits_is_the_end_of_the_log_less_what_was_read(reader: PartitionsReader) -> None:
    """Of the first partition offsets 100 to 109 wait, of the second none."""
    assert reader.waiting("source") == {0: 10.0}
    assert reader.unread("source") == frozenset()


@pytest.mark.parametrize("offset", [-1.0, 99.0], ids=["none", "that of before"])
def test_after_a_start_a_partition_counts_once_it_was_read(
    reader: PartitionsReader, answers: Reported, offset: float
) -> None:
    reader.waiting("source")
    reader.restarted()
    answers.offsets = [offset, -1.0]
    reader.waiting("source")
    assert reader.unread("source") == {0}
    answers.offsets = [104.0, -1.0]  # nothing has come to the second, of which all had been read
    assert reader.waiting("source") == {0: 5.0}
    assert reader.unread("source") == frozenset()


def test_where_a_partition_begins_that_was_never_read_is_unknown_unless_it_is_empty(
    reader: PartitionsReader, answers: Reported
) -> None:
    answers.offsets = [-1.0, -1.0]
    assert reader.waiting("source") == {0: 0.0}
    assert reader.unread("source") == {0}
    empty = Reported([-1.0, -1.0], [0.0, 0.0])
    other = PartitionsReader(empty, "job", empty.log_ends)  # type: ignore[arg-type]
    other.find("source", [f"0.{NAME.format(n)}" for n in range(2)], tasks=1)
    other.waiting("source")
    assert other.unread("source") == frozenset()
