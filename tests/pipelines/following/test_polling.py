"""Jobs are followed at once, but do not begin at the same moment."""

import asyncio
from collections.abc import Callable

import pytest

from pipelines.following import polling
from pipelines.following.polling import APART_S, Following


class Follower:
    """Finds the name of its job at each poll."""

    interval_s = 7.0

    def __init__(self, job: str, polled: list[str]) -> None:
        self.job, self._polled = job, polled

    def poll(self) -> str:
        self._polled.append(self.job)
        return self.job

    def close(self) -> None:
        pass


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the following sleeps, in place of sleeping: waits for turns begin at once, others never end."""
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)
        if seconds > 1.0:
            await asyncio.Event().wait()

    monkeypatch.setattr(polling.asyncio, "sleep", sleep)
    return asked


def test_each_new_job_begins_a_little_after_the_one_before(waits: list[float]) -> None:
    polled: list[str] = []
    make: Callable[[str], Follower] = lambda job: Follower(job, polled)  # noqa: E731
    following = Following("the state of", lambda: ["a", "b", "c"], make)

    async def first_of_each() -> set[str]:
        events = following.events(30.0)
        found = {await anext(events) for _ in range(3)}
        await events.aclose()
        return found

    assert asyncio.run(first_of_each()) == {"a", "b", "c"}
    assert sorted(polled) == ["a", "b", "c"]
    assert [wait for wait in waits if wait < 1.0] == [0.0, APART_S, 2 * APART_S]
