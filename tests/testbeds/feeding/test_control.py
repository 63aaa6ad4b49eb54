import socket
import time
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from models.errors import InvalidInput
from testbeds.feeding.control import SourceControl


@pytest.fixture
def control() -> Iterator[SourceControl]:
    with SourceControl() as made:
        yield made


@pytest.fixture
def connect(control: SourceControl) -> Iterator[Callable[[str], TextIO]]:
    """Connect as a task of a source does, and greet."""
    sockets: list[socket.socket] = []

    def connected(greeting: str) -> TextIO:
        host, port = control.address.rsplit(":", 1)
        task = socket.create_connection((host, int(port)), timeout=5)
        sockets.append(task)
        stream = task.makefile("rw", newline="\n")
        stream.write(greeting + "\n")
        stream.flush()
        return stream

    yield connected
    for one in sockets:
        one.close()


def _eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_orders_reach_tasks_that_are_there_and_those_that_come_later(
    control: SourceControl, connect: Callable[[str], TextIO]
) -> None:
    first = connect("source 0 2 bids")
    _eventually(lambda: control.tasks("bids") == 1)
    assert control.offer({"bids": 1000.0}) == "1"
    assert first.readline() == "rate 1 1000.0\n"
    assert connect("source 1 2 bids").readline() == "rate 1 1000.0\n"
    _eventually(lambda: control.tasks("bids") == 2)


def test_the_name_of_a_source_may_have_blanks(control: SourceControl, connect: Callable[[str], TextIO]) -> None:
    bids = connect("source 0 1 all my bids")
    _eventually(lambda: control.tasks("all my bids") == 1)
    control.offer({"all my bids": 10.0})
    assert bids.readline() == "rate 1 10.0\n"


def test_a_shift_ends_the_order_of_the_source_that_has_one(
    control: SourceControl, connect: Callable[[str], TextIO]
) -> None:
    bids, persons = connect("source 0 1 bids"), connect("source 0 1 persons")
    _eventually(lambda: control.tasks("bids") == control.tasks("persons") == 1)
    control.offer({"bids": 900.0, "persons": 20.0}, {"bids": 5})
    assert (bids.readline(), persons.readline()) == ("rate 1 900.0 5\n", "rate 1 20.0\n")
    control.fill({"bids": 10.0}, {"bids": 500.0}, {"bids": 7})
    assert bids.readline().split()[:4] == ["log", "2", "10.0", "500.0"] and control.tasks("bids") == 1


def test_a_lease_is_reported_before_anything_else() -> None:
    with SourceControl(lease_s=60.0) as control:
        control.offer({"bids": 10.0})
        host, port = control.address.rsplit(":", 1)
        with (
            socket.create_connection((host, int(port)), timeout=5) as task,
            task.makefile("rw", newline="\n") as stream,
        ):
            stream.write("source 0 1 bids\n")
            stream.flush()
            assert [stream.readline(), stream.readline()] == ["lease 60.0\n", "rate 1 10.0\n"]


def test_each_source_has_its_own_rate(control: SourceControl, connect: Callable[[str], TextIO]) -> None:
    control.offer({"bids": 900.0, "persons": 20.0})
    control.offer({"persons": 30.0})
    assert connect("source 0 1 bids").readline() == "rate 1 900.0\n"
    assert connect("source 0 1 persons").readline() == "rate 2 30.0\n"


def test_a_log_says_what_is_in_it_and_since_when(control: SourceControl, connect: Callable[[str], TextIO]) -> None:
    control.fill({"bids": 10.0}, {"bids": 500.0})
    kind, order, rate, arrived, at_ms = connect("source 0 1 bids").readline().split()
    assert (kind, order, rate, arrived) == ("log", "1", "10.0", "500.0")
    assert abs(int(at_ms) / 1000 - time.time()) < 5


def test_reports_are_kept_until_the_task_leaves(control: SourceControl, connect: Callable[[str], TextIO]) -> None:
    task = connect("source 3 4 bids")
    task.write("at 1 2.5 250 7 1250\n")
    task.flush()
    _eventually(lambda: 3 in control.reports("bids"))
    report = control.reports("bids")[3]
    assert (report.order, report.seconds, report.emitted) == ("1", 2.5, 250)
    assert (report.pending, report.emitted_in_all) == (7, 1250)
    assert control.reports("persons") == {}
    task.write("what?\n")
    task.flush()
    _eventually(lambda: control.tasks("bids") == 0 and control.reports("bids") == {})


def test_closing_cuts_the_tasks_off(connect: Callable[[str], TextIO], control: SourceControl) -> None:
    task = connect("source 0 1 bids")
    _eventually(lambda: control.tasks("bids") == 1)
    control.close()
    assert task.readline() == ""


@pytest.mark.parametrize("rate", [-1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(control: SourceControl, rate: float) -> None:
    with pytest.raises(InvalidInput, match="source 'bids'"):
        control.offer({"bids": rate})


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.7", "::1"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(
        InvalidInput, match=f"IPv4 address of this machine, but '{host}' is none: .*; give .* control_host"
    ):
        SourceControl(host)
