"""A broker of this machine: it keeps its records when it is killed and started again, and does not outlive its owner."""

import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from models.errors import SluiceError
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.topics import Topics

pytestmark = pytest.mark.slow
OWNER = """
import time
from testbeds.kafka.broker import LocalBroker
with LocalBroker() as broker:
    broker.start()
    print(broker.folder, flush=True)
    time.sleep(600)
"""


def _processes_of(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and str(folder).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_a_broker_that_was_killed_comes_back_at_its_address_with_its_records() -> None:
    with LocalBroker() as broker:
        with pytest.raises(SluiceError, match="was not started"):
            _ = broker.connection
        broker.start()
        Topics(broker.connection).create("orders", 1)
        producer = Producer({"bootstrap.servers": broker.connection.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(60) == 0
        before = broker.connection
        broker.kill()
        with pytest.raises(SluiceError, match="ended with code -9"):
            broker.check()
        broker.start()
        assert broker.connection == before
        consumer = before.consumer()
        assert consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=60) == (0, 1)
        consumer.close()
    assert not _processes_of(broker.folder) and not broker.folder.exists()


def test_a_broker_does_not_outlive_an_owner_that_is_killed(root: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=root)
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().strip())
    assert _processes_of(folder)
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    until = time.monotonic() + 60
    while left := _processes_of(folder):
        assert time.monotonic() < until, f"still there: {left}"
        time.sleep(0.1)
    with LocalBroker():
        assert not folder.exists(), "the next broker removes what the killed one left"


def test_a_broker_that_ends_at_its_start_is_reported_with_its_last_words() -> None:
    with LocalBroker({"node.id": "none"}) as broker:
        with pytest.raises(SluiceError, match=r"Invalid value none for configuration \w+\.id"):
            broker.start()
        assert not broker.runs


def test_a_cluster_id_may_begin_with_a_hyphen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in 64 does: 0xf8 and more as the first byte is a hyphen in base 64 for URLs."""
    monkeypatch.setattr("testbeds.kafka.broker.uuid.uuid4", lambda: uuid.UUID(bytes=b"\xf8" + bytes(15)))
    with LocalBroker() as broker:
        broker.start()
        assert broker.runs
