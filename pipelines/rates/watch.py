"""Follows all jobs of a workspace at once, each in its own thread, so that a slow server delays only its own job."""

import asyncio
import logging
from collections.abc import AsyncIterator

from models.errors import SluiceError
from pipelines.rates.follow import JobFollower, followed_jobs
from pipelines.rates.record import RateChangeEvent
from pipelines.rates.threads import in_thread
from pipelines.store.workspace import Workspace

_logger = logging.getLogger(__name__)


async def rate_change_events(workspace: Workspace, look_every_s: float) -> AsyncIterator[RateChangeEvent]:
    """Every change of every job that has a plan and rules, until the generator is closed.

    Args:
        look_every_s: seconds between two searches for new jobs.
    """
    found: asyncio.Queue[RateChangeEvent] = asyncio.Queue()
    following: dict[str, asyncio.Task[None]] = {}
    looking = asyncio.create_task(_keep_following(workspace, look_every_s, found, following))
    try:
        while True:
            yield await found.get()
    finally:
        for task in (looking, *following.values()):
            task.cancel()
        await asyncio.gather(looking, *following.values(), return_exceptions=True)


async def _keep_following(
    workspace: Workspace,
    look_every_s: float,
    found: asyncio.Queue[RateChangeEvent],
    following: dict[str, asyncio.Task[None]],
) -> None:
    while True:
        try:
            jobs = await in_thread(lambda: followed_jobs(workspace), "the jobs to follow")
        except (SluiceError, OSError) as error:
            _logger.warning("the jobs of %s cannot be listed: %s", workspace.url, error)
            jobs = list(following)
        for job in set(following) - set(jobs):
            following.pop(job).cancel()
            _logger.info("the rate of %s is no longer followed", job)
        for job in jobs:
            if job not in following or following[job].done():
                following[job] = asyncio.create_task(_follow(JobFollower(workspace, job), job, found))
                _logger.info("the rate of %s is followed", job)
        await asyncio.sleep(look_every_s)


async def _follow(follower: JobFollower, job: str, found: asyncio.Queue[RateChangeEvent]) -> None:
    while True:
        try:
            event = await in_thread(follower.poll, f"the rate of {job}")
        except Exception:  # an unexpected error must not end the following of this job
            _logger.exception("the rate of %s could not be followed", job)
            event = None
        if event is not None:
            await found.put(event)
        await asyncio.sleep(follower.interval_s)
