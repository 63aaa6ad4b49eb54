"""Runs for one job take turns, so that a plan is never replaced by one from older measurements; other jobs do not wait.

Airflow limits active runs by DAG and tasks by pool, not runs by a parameter: `max_active_runs=1` would let one job's pending
approval hold up all jobs, and a pool for each job would be released between the tasks of a run.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from sluice_airflow.reporting import on_terminal, reported, task_progress

if TYPE_CHECKING:
    from pipelines.store.workspace import Workspace

LOOK_EVERY_S: Final = 10.0


class JobTurn(BaseOperator):
    """Waits in the triggerer, without a slot, until no earlier run for the same job is active.

    Args:
        request_uri: URI of the pipeline run's request; the result of the task.
    """

    template_fields = ("request_uri",)

    def __init__(self, *, request_uri: Any, **options: Any) -> None:
        super().__init__(**options)
        self.request_uri = request_uri

    def execute(self, context: Any) -> str:
        with reported("turn"):
            if on_terminal():  # runs are alone there; an interrupted one stays "running" in the database
                return str(self.request_uri)
            from sluice_airflow.rows import draw, first_before

            workspace, job = _open(self.request_uri)
            dag, run = context["dag_run"].dag_id, context["dag_run"].run_id
            number = draw(workspace, job, run)
            before = first_before(workspace, job, number, _is_active(dag))
        if before is not None:
            task_progress().say(f"turn: waiting for the end of the run {before} of {job}")
            self.defer(trigger=TurnTrigger(dag, self.request_uri, number), method_name="execute_complete")
        return str(self.request_uri)

    def execute_complete(self, context: Any, event: Any) -> str:
        """Called when it is the run's turn."""
        return str(self.request_uri)


class TurnTrigger(BaseTrigger):
    """Fires when it is the turn of a number."""

    def __init__(self, dag: str, request_uri: str, number: int, look_every_s: float = LOOK_EVERY_S) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dag, self.request_uri, self.number, self.look_every_s = dag, request_uri, number, look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {"dag": self.dag, "request_uri": self.request_uri, "number": self.number}
        return "sluice_airflow.turns.TurnTrigger", {**given, "look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.following.threads import in_thread

        is_active = _is_active(self.dag)
        while await in_thread(lambda: self._before(is_active), f"the turn of {self.request_uri}") is not None:
            await asyncio.sleep(self.look_every_s)
        yield TriggerEvent(self.request_uri)  # type: ignore[no-untyped-call]

    def _before(self, is_active: Callable[[str], bool]) -> str | None:
        from sluice_airflow.rows import first_before

        return first_before(*_open(self.request_uri), self.number, is_active)


def _is_active(dag: str) -> Callable[[str], bool]:
    """A function that asks Airflow whether a run of the DAG is queued or running."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return lambda run: RuntimeTaskInstance.get_dr_count(dag, run_ids=[run], states=["queued", "running"]) > 0


def _open(request_uri: str) -> "tuple[Workspace, str]":
    """The workspace of a request, and its job."""
    from pipelines.store.workspace import Workspace

    root, _, key = request_uri.rpartition("/runs/")
    return Workspace(root), key.partition("/")[0]
