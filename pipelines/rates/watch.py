"""The changes of the source rates of all jobs of a workspace."""

from collections.abc import AsyncIterator

from pipelines.following.polling import Following
from pipelines.rates.follow import JobFollower, followed_jobs
from pipelines.rates.record import RateChangeEvent
from pipelines.store.workspace import Workspace


def rate_change_events(workspace: Workspace, look_every_s: float) -> AsyncIterator[RateChangeEvent]:
    """Every change of every job that has a plan and rules, until the generator is closed.

    Args:
        look_every_s: seconds between two searches for new jobs.
    """
    following = Following("the rate of", lambda: followed_jobs(workspace), lambda job: JobFollower(workspace, job))
    return following.events(look_every_s)
