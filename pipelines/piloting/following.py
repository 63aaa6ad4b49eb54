"""The autopilots of all jobs of a workspace at once."""

from collections.abc import AsyncIterator

from pipelines.following.polling import Following
from pipelines.piloting.events import PilotEvent
from pipelines.piloting.pilot import JobPilot, piloted_jobs
from pipelines.store.workspace import Workspace


def pilot_events(workspace: Workspace, look_every_s: float) -> AsyncIterator[PilotEvent]:
    """Run an autopilot for every job whose file asks for one, until the generator is closed; what they report.

    Args:
        look_every_s: seconds between two searches for new jobs.
    """
    following = Following("the autopilot of", lambda: piloted_jobs(workspace), lambda job: JobPilot(workspace, job))
    return following.events(look_every_s)
