"""The MST of a consumer of a known capacity, on a real broker: by injection and by drain."""

import threading
import time
from collections.abc import Iterator

import pytest

from models.capacity.backlog.drain import DrainEnd, DrainMeasurement, DrainSettings
from models.capacity.backlog.injection import InjectionEnd, InjectionSearch, InjectionSettings
from models.capacity.mst import MstSettings
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.measuring import drain, inject
from testbeds.kafka.offsets import OffsetReader
from testbeds.kafka.topics import Topics

pytestmark = pytest.mark.long
CAPACITY = 3000.0
GROUP = "the-job"
SEARCH = MstSettings(warmup_s=30.0, cooldown_s=5.0, ramp_s=5.0, observe_s=15.0, iterations=6, bracket=0.1)


class Job:
    """Reads a topic at CAPACITY at most, and commits five times a second."""

    def __init__(self, kafka: KafkaConnection, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None

    def _run(self) -> None:
        consumer = self._kafka.consumer(GROUP, **{"auto.offset.reset": "earliest"})
        consumer.subscribe([self._topic])
        allowed, at = 0.0, time.monotonic()
        while not self._stop.is_set():
            time.sleep(0.2)
            now = time.monotonic()
            allowed, at = min(allowed + CAPACITY * (now - at), CAPACITY), now
            got = consumer.consume(int(allowed), timeout=0.01) if allowed >= 1 else []
            allowed -= len(got)
            if got:
                consumer.commit(asynchronous=False)
        consumer.close()


@pytest.fixture
def job(topics: Topics, kafka: KafkaConnection) -> Iterator[Job]:
    topics.create("orders", 1)
    made = Job(kafka, "orders")
    yield made
    made.stop()


def test_injection_and_drain_agree(job: Job, kafka: KafkaConnection) -> None:
    with KafkaFeeder(kafka, [GeneratedFeed("orders", keys=0)]) as feeder:

        def fill(records: float) -> None:
            feeder.offer({"orders": 20_000.0})
            begun = feeder.report("orders").emitted_in_all
            while feeder.report("orders").emitted_in_all < begun + records:
                time.sleep(0.1)
            feeder.offer({"orders": 0.0})

        drained = DrainMeasurement(
            DrainSettings(first_backlog=20 * CAPACITY, most_backlog=1e6, warmup_s=5.0, window_s=15.0)
        )
        drain(drained, fill, job.start, job.stop, lambda: _reader(kafka), left_share=0.05)
        assert drained.end is DrainEnd.MEASURED and drained.mst == pytest.approx(CAPACITY, rel=0.1)

        job.start()
        search = InjectionSearch(InjectionSettings(search=SEARCH, most_rate=20_000.0))
        inject(search, feeder, {"orders": 1.0}, _reader(kafka))
        assert search.end is InjectionEnd.FOUND and search.mst is not None
        assert search.mst == pytest.approx(drained.mst, rel=0.1)


def _reader(kafka: KafkaConnection) -> OffsetReader:
    """Once the group has committed for the first time."""
    until = time.monotonic() + 120
    while True:
        found = OffsetReader(kafka, ["orders"])
        if any(group == GROUP for group in Topics(kafka).groups()):
            found = OffsetReader(kafka, ["orders"], GROUP)
            if found.read().lag is not None:
                return found
        assert time.monotonic() < until
        time.sleep(0.2)
