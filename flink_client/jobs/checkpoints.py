"""How the checkpoints of a running job do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest


@dataclass(frozen=True)
class CheckpointHealth:
    """What Flink remembers of a job's last checkpoints."""

    failed: int = 0
    """Those that failed since the last one that was completed."""
    in_progress: int | None = None
    """Id of the oldest one that has not ended; None without one."""
    state_bytes: float | None = None
    """State in the last completed one; None without one."""
    by_vertex: Mapping[str, float] = field(default_factory=dict)
    """The same by vertex id; empty where Flink has forgotten the details."""


def checkpoint_health(rest: FlinkRest, job: str) -> CheckpointHealth:
    """Read it; a job that takes no checkpoints has none that fail.

    Raises:
        SluiceError: Flink does not answer.
    """
    answer = rest.get_if_there(f"/jobs/{job}/checkpoints")
    if answer is None:
        return CheckpointHealth()
    with flinks_answers(rest.url):
        history = [(int(one["id"]), str(one["status"])) for one in answer.get("history") or ()]
        completed = max((id_ for id_, status in history if status == "COMPLETED"), default=-1)
        health = CheckpointHealth(
            failed=sum(status == "FAILED" and id_ > completed for id_, status in history),
            in_progress=min((id_ for id_, status in history if status == "IN_PROGRESS"), default=None),
        )
        last = (answer.get("latest") or {}).get("completed")
        if last is None:
            return health
        details = rest.get_if_there(f"/jobs/{job}/checkpoints/details/{last['id']}") or {"tasks": {}}
        by_vertex = {vertex: float(one["state_size"]) for vertex, one in details["tasks"].items()}
        return CheckpointHealth(health.failed, health.in_progress, float(last["state_size"]), by_vertex)
