"""Tasks of `replan`: the rate changes to plan for, and the plan for one of them."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from models.wording import amount
from sluice_airflow.embedded.stage_process import call
from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.unread import STARTED_BY_EVENTS, content_of, understood, unread, what_is_understood

if TYPE_CHECKING:
    from pipelines.store.workspace import Workspace

Change = dict[str, Any]
"""`{"job": NAME, "rate": RECORDS_PER_SECOND}`; of a followed rate or calendar also `"change"`, the workspace key of its
record."""


def rate_changes(params: Mapping[str, Any], extras: Sequence[Mapping[str, Any]], dag_run: str) -> list[Change]:
    """The rate changes to plan for: of the asset events the latest for each job, or the one in the parameters.

    A job has the place of its first event. A change of a followed rate or calendar for which another DAG run plans is left
    out. Events that are no change are logged; those of other jobs do not wait for their correction.

    Raises:
        InvalidInput: there is no change, or each lacks the job or the rate.
    """
    from models.errors import InvalidInput

    by_hand = {name: params.get(name) for name in ("job", "rate")}
    if any(value is not None for value in by_hand.values()):
        extras = [*extras, by_hand]
    with reported("changes"):
        if not extras:
            raise InvalidInput(
                "a replan needs a job and its new rate, but neither an asset event nor the parameters carry them; "
                'trigger the DAG with {"job": "nexmark-q5", "rate": 3000000}'
            )
        changes = what_is_understood(extras, _change)
        return list({change["job"]: change for change in changes if _take(change, dag_run)}.values())


def newest_of_job(change: Change, events: Any, dag_run: Any) -> Change:
    """The change to plan for now: the newest one for the job, which may have come while the replan waited for its turn.

    Args:
        events: all of the asset, as Airflow's `inlet_events` has them.
    """
    from pipelines.store.workspace import Workspace

    if dag_run.run_type != STARTED_BY_EVENTS:
        return change

    def is_of_job(content: Mapping[str, Any]) -> bool:
        return bool(content.get("job") == change["job"])

    later = events.after(dag_run.run_after)
    extras = unread(Workspace(), later, dag_run.dag_id, dag_run.run_id, is_of_job)
    newest = [change, *(later for later in understood(extras, _change)[0] if _take(later, dag_run.run_id))][-1]
    if newest != change:
        task_progress().say(f"the newest rate of {change['job']} is {amount(newest['rate'])} records/s")
    return newest


def replan(change: Mapping[str, Any], since: datetime) -> str | None:
    """Make the next plan for a change, and return its URI; None if the current plan serves the rate.

    Args:
        since: when the DAG run began: a plan that an earlier attempt of it stored is its own.
    """
    with reported("replan"):
        return call(_replan, dict(change), since)


def _replan(change: Change, since: datetime) -> str | None:
    from pipelines.planning.replan import replan
    from pipelines.store.plans import PlanStore
    from pipelines.store.workspace import Workspace

    workspace = Workspace()
    cause = _cause(workspace, change["change"]) if "change" in change else None
    made = replan(workspace, change["job"], change["rate"], task_progress(), cause=cause)
    return PlanStore(workspace).uri(made.plan.job, made.plan.version) if made.is_made_since(since) else None


def _cause(workspace: "Workspace", key: str) -> str | None:
    from pipelines.calendar.record import read_change
    from pipelines.rates.record import event_cause

    scheduled = read_change(workspace, key)
    return event_cause(workspace, key) if scheduled is None else scheduled.cause


def _change(extra: Mapping[str, Any]) -> Change:
    from models.errors import InvalidInput

    content = content_of(extra)
    job, rate, key = content.get("job"), content.get("rate"), content.get("change")
    is_rate = isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf
    if not isinstance(job, str) or not job or not job.isprintable() or not is_rate:
        raise InvalidInput(
            f"a rate change must carry 'job' (a name) and 'rate' (records/s, above 0), but got {dict(content)!r:.200}"
        )
    return {"job": job, "rate": rate} | ({"change": key} if _is_recorded(key) else {})


def _is_recorded(key: object) -> bool:
    """Whether it is the key of a change in this workspace; other senders may use other keys."""
    if not isinstance(key, str):
        return False
    from pipelines.calendar.record import is_calendar_change
    from pipelines.rates.record import is_change
    from pipelines.store.workspace import Workspace

    return (is_change(key) or is_calendar_change(key)) and Workspace().exists(key)


def _take(change: Change, dag_run: str) -> bool:
    """Whether this DAG run may plan for the change."""
    if "change" not in change:
        return True
    from pipelines.rates.record import take
    from pipelines.store.workspace import Workspace

    taken = take(Workspace(), change["change"], dag_run)
    if not taken:
        task_progress().say(f"   another DAG run plans for {change['change']}")
    return taken
