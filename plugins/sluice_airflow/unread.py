"""The events of an asset that no run of a DAG has read.

Airflow keeps for a DAG that an asset has an event, and the time of the first one. The run that it starts is given the events
up to that time. Later ones, sent before the run was made or while `max_active_runs` held it back, start no run of their own,
and are given to the run of the next event, whenever that comes (https://github.com/apache/airflow/issues/56050): of 50 changes
at once all but the first would wait. So runs read the events themselves; each marks those that it reads, and a mark is made
once.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from models.schema import SCHEMA_VERSION, Format
from sluice_airflow.reporting import task_progress

if TYPE_CHECKING:
    from models.errors import InvalidInput
    from pipelines.store.workspace import Workspace

Content = TypeVar("Content")

FOLDER: Final = "events-read"
STARTED_BY_EVENTS: Final = "asset_triggered"
"""Airflow's type of such a run."""
WINDOW: Final = timedelta(days=1)
"""Events that are older start no run by themselves; their marks are removed later."""


class SentEvent(Protocol):
    """An event of an asset, as a task is given it."""

    id: int
    timestamp: datetime
    extra: Any
    created_dagruns: Any
    """The runs that Airflow has given it to."""


class ReadEvent(Format):
    """The mark of an event that was read."""

    schema_version: Literal[1] = SCHEMA_VERSION
    by: str
    """The DAG run."""


def events_of_run(started_by: Iterable[SentEvent], events: Any, dag_run: Any) -> list[Mapping[str, Any]]:
    """The contents of the events that a DAG run is to read; none in a run that was started otherwise.

    Args:
        started_by: the events that Airflow started the run for.
        events: all of the asset, as Airflow's `inlet_events` has them.

    Raises:
        AirflowSkipException: earlier runs have read them all.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from pipelines.store.workspace import Workspace

    if dag_run.run_type != STARTED_BY_EVENTS:
        return []
    workspace, now = Workspace(), datetime.now(UTC)
    _forget(workspace, dag_run.dag_id, now)
    since = min([now - WINDOW, *(event.timestamp for event in started_by)])
    found = unread(workspace, events.after(since), dag_run.dag_id, dag_run.run_id)
    if not found:
        raise AirflowSkipException("earlier runs have read the events that started this one")
    return found


def unread(
    workspace: "Workspace",
    events: Iterable[SentEvent],
    dag: str,
    run: str,
    wanted: Callable[[Mapping[str, Any]], bool] = lambda content: True,
) -> list[Mapping[str, Any]]:
    """The contents of the events that no other run has read, the first one first; this run has read them now.

    A task that is tried again finds what its run has read before.

    Args:
        wanted: by an event's content, whether the run wants to read it; others are left to later runs.
    """
    found = []
    for event in sorted(events, key=lambda event: (event.timestamp, event.id)):
        content = content_of(event.extra)
        elsewhere = any(given.dag_id == dag and given.run_id != run for given in event.created_dagruns)
        if not elsewhere and wanted(content) and _is_read_by(workspace, _key(dag, event), run):
            found.append(content)
    return found


def _forget(workspace: "Workspace", dag: str, now: datetime) -> None:
    """Remove marks of events that are too old to be looked at."""
    oldest = _day(now - 2 * WINDOW)
    for key in workspace.list(f"{FOLDER}/{dag}"):
        if key.split("/")[2] < oldest:
            workspace.delete(key)


def content_of(extra: Any) -> Mapping[str, Any]:
    """What the event carries; for one from a trigger, its payload."""
    if not isinstance(extra, Mapping):
        return {}
    payload = extra.get("payload") if extra.get("from_trigger") else None
    return payload if isinstance(payload, Mapping) else extra


def understood(
    extras: Iterable[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Content]
) -> "tuple[list[Content], list[InvalidInput]]":
    """What events carry, and the faults of those that `read` refuses."""
    from models.errors import InvalidInput

    found, faults = [], []
    for extra in extras:
        try:
            found.append(read(extra))
        except InvalidInput as error:
            faults.append(error)
    return found, faults


def what_is_understood(
    extras: Iterable[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], Content]
) -> list[Content]:
    """What events carry. Those that `read` refuses are logged; those of other jobs do not wait for their correction.

    Raises:
        InvalidInput: it refuses all of them.
    """
    found, faults = understood(extras, read)
    if faults and not found:
        raise faults[0]
    for fault in faults:
        task_progress().say(f"   left out: {fault}")
    return found


def _is_read_by(workspace: "Workspace", key: str, run: str) -> bool:
    from pipelines.store.workspace import to_json

    try:
        workspace.create_bytes(key, to_json(ReadEvent(by=run)))
    except FileExistsError:
        return workspace.read(key, ReadEvent).by == run
    return True


def _key(dag: str, event: SentEvent) -> str:
    # Ids begin again with a new database; together with the time they do not.
    at = event.timestamp.astimezone(UTC)
    return f"{FOLDER}/{dag}/{_day(at)}/{at:%H%M%S%f}-{event.id:09d}.json"


def _day(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d}"
