"""The history of a job's rescales that Flink keeps since 2.3, with the adaptive scheduler and where it is switched on."""

from dataclasses import dataclass
from typing import Any, Final

from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest

HISTORY_SIZE: Final = "web.adaptive-scheduler.rescale-history.size"
"""Setting of the cluster: how many rescales of each job are kept; Flink's default is 0."""
COMPLETED: Final = "COMPLETED"


@dataclass(frozen=True)
class RecordedRescale:
    """A rescale, as Flink recorded it; the first start of a job is one, too."""

    id: str
    cause: str
    """Flink's word: INITIAL_SCHEDULE, UPDATE_REQUIREMENT, NEW_RESOURCE_AVAILABLE, RECOVERABLE_FAILOVER."""
    state: str | None
    """COMPLETED, FAILED or IGNORED; None while it is in progress."""
    reason: str | None
    """Why it ended, in Flink's word: SUCCEEDED, EXCEPTION_OCCURRED, NO_RESOURCES_OR_PARALLELISMS_CHANGE, ..."""
    seconds: float | None
    """From its cause to its end, by Flink's clock; None while it is in progress."""


def rescales(rest: FlinkRest, job: str) -> tuple[RecordedRescale, ...] | None:
    """The recorded rescales of a job; None if the cluster keeps no history."""
    answer = rest.get_if_there(f"/jobs/{job}/rescales/history")
    if answer is None:
        return None
    with flinks_answers(rest.url):
        return tuple(map(_rescale, answer))


def _rescale(one: dict[str, Any]) -> RecordedRescale:
    begin, end = one["startTimestampInMillis"], one.get("endTimestampInMillis")
    return RecordedRescale(
        id=str(one["rescaleUuid"]),
        cause=str(one["triggerCause"]),
        state=one.get("terminalState"),
        reason=one.get("terminatedReason"),
        seconds=None if end is None else max(0, end - begin) / 1000,
    )
