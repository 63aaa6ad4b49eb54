"""Observing all running jobs of a workspace at once."""

from collections.abc import AsyncIterator

from pipelines.following.polling import Following
from pipelines.observe.continuous.observer import JobObserver, ObservedWindow, observed_jobs
from pipelines.store.workspace import Workspace


def observed_windows(workspace: Workspace, look_every_s: float) -> AsyncIterator[ObservedWindow]:
    """Every window of every job whose file says where it runs, until the generator is closed.

    Args:
        look_every_s: seconds between two searches for new jobs.
    """
    following = Following("the running job", lambda: observed_jobs(workspace), lambda job: JobObserver(workspace, job))
    return following.events(look_every_s)
