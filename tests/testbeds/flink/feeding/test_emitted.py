"""Reports of source tasks, over the connection that they come by."""

import math
import time
from collections.abc import Iterator

import pytest

from flink.source_task import SourceTask
from flink_client.rest.answers import Vertex
from models.errors import SluiceError
from testbeds.feeding.control import SourceControl
from testbeds.flink.feeding.emitted import SourceMeter
from testbeds.flink.submission import Deployed

DEPLOYED = Deployed("job", {"bids": Vertex("v", "bids", 2, 2)}, {}, {"bids": "bid-table"})


@pytest.fixture
def control() -> Iterator[SourceControl]:
    with SourceControl() as made:
        yield made


@pytest.fixture
def tasks(control: SourceControl) -> Iterator[list[SourceTask]]:
    with SourceTask(control, "bid-table", 0, 2) as first, SourceTask(control, "bid-table", 1, 2) as second:
        yield [first, second]


def read_until(meter: SourceMeter, control: SourceControl, heard: int) -> None:
    """Wait until this many tasks have reported this total."""
    until = time.monotonic() + 10
    while sum(r.emitted_in_all for r in control.reports("bid-table").values()) != heard:
        assert time.monotonic() < until
        time.sleep(0.01)
    meter.read()


def test_counts_go_on_across_orders_and_only_the_order_in_force_counts(
    control: SourceControl, tasks: list[SourceTask]
) -> None:
    meter = SourceMeter.of_job(control, DEPLOYED)
    meter.follow("1")
    for task in tasks:
        task.reports("1", 0.5, 40, 3, 100)
    read_until(meter, control, 200)
    assert meter.all_follow and meter.last() == {"bids": 200.0}
    assert time.monotonic() - 10 < meter.followed_since < time.monotonic() - 0.5
    assert meter.owed() == {("bids", 0): 3, ("bids", 1): 3}
    meter.follow("2")
    tasks[0].reports("2", 0.2, 10, 0, 110)
    tasks[1].reports("1", 0.7, 50, 0, 111)
    read_until(meter, control, 221)
    assert not meter.all_follow and meter.last() == {"bids": 210.0} and meter.followed_since == math.inf
    tasks[1].reports("2", 0.2, 5, 0, 116)
    read_until(meter, control, 226)
    assert meter.all_follow and meter.last() == {"bids": 226.0}


def test_a_task_that_begins_again_is_noticed(control: SourceControl, tasks: list[SourceTask]) -> None:
    meter = SourceMeter.of_job(control, DEPLOYED)
    meter.follow("1")
    for task in tasks:
        task.reports("1", 0.5, 40, 0, 40)
    read_until(meter, control, 80)
    tasks[0].reports("1", 0.9, 2, 0, 2)
    with pytest.raises(SluiceError, match="restarted"):
        read_until(meter, control, 42)
