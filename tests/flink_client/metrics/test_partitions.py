"""What waits in Kafka's partitions, by the broker's ends of their logs and the offsets that Flink reports."""

from collections.abc import Collection, Iterable

import pytest

from flink_client.metrics.partitions import PartitionsReader, Place
from models.errors import SluiceError

NAME = "Source__clicks.KafkaSourceReader.topic.clicks.partition.{}.currentOffset"


class Reported:
    """Flink's and the broker's answers."""

    def __init__(self, offsets: list[float], ends: list[float]) -> None:
        self.offsets, self.ends, self.away = offsets, ends, False

    def task_metrics(self, job: str, vertex: str, names: Iterable[str]) -> dict[str, float]:
        return {f"0.{NAME.format(n)}": offset for n, offset in enumerate(self.offsets)}

    def log_ends(self, places: Collection[Place]) -> dict[Place, float]:
        if self.away:
            raise SluiceError("no broker answers")
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


def test_logs_count_of_partitions_too_that_are_not_named_after_a_rescale(
    reader: PartitionsReader, answers: Reported
) -> None:
    """The second partition moves to a task that does not name it yet."""
    reader.waiting("source")
    before = reader.logs("source")
    assert before is not None and before.ends == {"clicks-0": 110.0, "clicks-1": 50.0}
    answers.offsets, answers.ends = [104.0], [115.0, 57.0]
    reader.restarted()
    reader.find("source", [f"0.{NAME.format(0)}"], tasks=2)
    reader.waiting("source")
    after = reader.logs("source")
    assert after is not None and after.ends == {"clicks-0": 115.0, "clicks-1": 57.0}
    assert reader.is_missing("source") and reader.unread("source") == {0, 1}, "what waits in the second is in no metric"


def test_what_waits_is_unknown_after_a_rescale_until_a_partition_is_named(
    reader: PartitionsReader, answers: Reported
) -> None:
    reader.waiting("source")
    reader.restarted()
    reader.find("source", [], tasks=2)
    assert reader.waiting("source") == {} and reader.number("source", 0) is None
    assert reader.unread("source") == {0, 1}
    answers.offsets = [110.0, 50.0]
    reader.find("source", [f"0.{NAME.format(0)}", f"1.{NAME.format(1)}"], tasks=2)
    reader.waiting("source")
    assert not reader.is_missing("source") and reader.unread("source") == frozenset()


def test_logs_are_unknown_while_the_broker_is_away(reader: PartitionsReader, answers: Reported) -> None:
    reader.refresh()
    reader.waiting("source")
    assert reader.logs("source") is not None
    answers.away = True
    reader.refresh()
    assert reader.waiting("source") == {0: None}
    assert reader.logs("source") is None


def test_logs_are_dated_by_when_the_broker_was_asked(answers: Reported) -> None:
    """Flink's answer comes 2 s later."""
    now = [10.0]
    reader = PartitionsReader(answers, "job", answers.log_ends, lambda: now[0])  # type: ignore[arg-type]
    reader.find("source", [f"0.{NAME.format(n)}" for n in range(2)], tasks=1)
    reader.refresh()
    now[0] = 12.0
    reader.waiting("source")
    logs = reader.logs("source")
    assert logs is not None and logs.asked_s == 10.0
