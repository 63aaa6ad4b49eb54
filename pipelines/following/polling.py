"""Follows all jobs of a workspace at once, each in its own thread, so that a slow server delays only its own job.

Jobs begin one after the other, and so are polled one after the other from then on: hundreds at the same moment would take the
interpreter from each other, and ask a server that they share faster than it takes connections.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from models.errors import SluiceError
from pipelines.following.threads import in_thread

Event = TypeVar("Event", covariant=True)
APART_S: Final = 0.03
"""Time between the first polls of two jobs; 500 jobs begin within 15 s, the shortest usual interval."""

_logger = logging.getLogger(__name__)


class Follower(Protocol[Event]):
    """Follows one job."""

    @property
    def interval_s(self) -> float:
        """Seconds until the next poll is due."""
        ...

    def poll(self) -> Event | None:
        """Look once, in a thread; expected errors are not raised but logged."""
        ...

    def close(self) -> None:
        """Called once it is no longer polled."""
        ...


@dataclass(frozen=True)
class Following(Generic[Event]):
    """What is followed of which jobs."""

    what: str
    """In words, before the name of a job: `the rate of`."""
    jobs: Callable[[], Collection[str]]
    """Lists them."""
    follower: Callable[[str], Follower[Event]]

    async def events(self, look_every_s: float) -> AsyncIterator[Event]:
        """What the polls of all jobs return, until the generator is closed.

        Args:
            look_every_s: seconds between two listings of the jobs.
        """
        found: asyncio.Queue[Event] = asyncio.Queue()
        following: dict[str, asyncio.Task[None]] = {}
        looking = asyncio.create_task(self._keep_following(look_every_s, found, following))
        try:
            while True:
                yield await found.get()
        finally:
            for task in (looking, *following.values()):
                task.cancel()
            await asyncio.gather(looking, *following.values(), return_exceptions=True)

    async def _keep_following(
        self, look_every_s: float, found: "asyncio.Queue[Event]", following: dict[str, asyncio.Task[None]]
    ) -> None:
        while True:
            try:
                jobs = await in_thread(self.jobs, "the jobs to follow")
            except (SluiceError, OSError) as error:
                _logger.warning("the jobs to follow cannot be listed: %s", error)
                jobs = list(following)
            for job in set(following) - set(jobs):
                following.pop(job).cancel()
                _logger.info("%s %s is no longer followed", self.what, job)
            new = [job for job in jobs if job not in following or following[job].done()]
            for place, job in enumerate(new):
                following[job] = asyncio.create_task(self._follow(job, found, place * APART_S))
                _logger.info("%s %s is followed", self.what, job)
            await asyncio.sleep(look_every_s)

    async def _follow(self, job: str, found: "asyncio.Queue[Event]", after_s: float) -> None:
        await asyncio.sleep(after_s)
        follower = self.follower(job)
        try:
            while True:
                try:
                    event = await in_thread(follower.poll, f"{self.what} {job}")
                except Exception:  # an unexpected error must not end the following of this job
                    _logger.exception("%s %s could not be followed", self.what, job)
                    event = None
                if event is not None:
                    await found.put(event)
                await asyncio.sleep(follower.interval_s)
        finally:
            follower.close()
