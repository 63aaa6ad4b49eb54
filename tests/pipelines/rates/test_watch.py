"""All jobs of a workspace are followed at once; a slow Prometheus delays its own job only."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from answering.prometheus import PrometheusServer
from pipelines.rates.record import RateChangeEvent
from pipelines.rates.watch import rate_change_events

FAST = {"poll_interval_s": 0.02}


async def _first(followed: Any, many: int, meanwhile: Any = None) -> list[RateChangeEvent]:
    found: list[RateChangeEvent] = []

    async def collect() -> None:
        async for event in rate_change_events(followed.workspace, look_every_s=0.05):
            found.append(event)
            if len(found) == many:
                return

    task = asyncio.create_task(collect())
    if meanwhile is not None:
        await asyncio.to_thread(meanwhile)
    await asyncio.wait_for(task, 30)
    return found


def test_a_change_is_reported_once_a_failing_prometheus_is_back(followed: Any) -> None:
    with PrometheusServer() as server:
        port = server.port
    followed.say(server.url, **FAST)

    def comes_back() -> None:
        nonlocal back
        back = PrometheusServer(port)
        back.answer = 200, b"<html>starting</html>"
        until = time.monotonic() + 20
        while len(back.queries) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        back.rates = {"q": 1700.0}
        back.answer = None

    back: PrometheusServer | None = None
    (event,) = asyncio.run(_first(followed, 1, comes_back))
    assert event.change.new_rate == 1700.0
    assert back is not None
    back.close()


@pytest.mark.slow
def test_a_slow_prometheus_delays_its_own_job_only(followed: Any, root: Path, tmp_path: Path) -> None:
    other = type(followed)(tmp_path, root, "nexmark-q1", followed.workspace)
    with PrometheusServer() as slow, PrometheusServer() as quick:
        slow.pause_s, slow.rates, quick.rates = 0.9, {"q": 5000.0}, {"q": 1700.0}
        followed.say(slow.url, **FAST)
        other.say(quick.url, **FAST)
        events = asyncio.run(_first(followed, 2))
    assert [(t.job, t.change.new_rate) for t in events] == [("nexmark-q1", 1700.0), ("wordcount", 5000.0)]


def test_a_job_that_comes_later_is_followed_and_one_that_goes_is_not(followed: Any) -> None:
    with PrometheusServer() as server:
        server.rates = {"q": 1700.0}
        followed.write(None)
        (event,) = asyncio.run(_first(followed, 1, lambda: followed.say(server.url, **FAST)))
        assert event.change.old_rate == 1000.0
