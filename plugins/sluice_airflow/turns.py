"""Runs for one job take turns; runs for several jobs do not wait for each other, except to measure."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from sluice_airflow.reporting import on_terminal, reported, task_progress

if TYPE_CHECKING:
    from pipelines.workspace import Workspace

LOOK_EVERY_S: Final = 10.0


class JobTurn(BaseOperator):
    """Waits until no earlier run for the same job is under way; in the triggerer, where it holds no slot.

    Args:
        request_uri: URI of the pipeline run's request; the result of the task.
    """

    template_fields = ("request_uri",)

    def __init__(self, *, request_uri: Any, **options: Any) -> None:
        super().__init__(**options)
        self.request_uri = request_uri

    def execute(self, context: Any) -> str:
        with reported("turn"):
            if on_terminal():  # one run at a time there; one that was stopped counts as running for ever
                return str(self.request_uri)
            from sluice_airflow.rows import draw, first_before

            workspace, job = _open(self.request_uri)
            dag, run = context["dag_run"].dag_id, context["dag_run"].run_id
            number = draw(workspace, job, run)
            before = first_before(workspace, job, number, _under_way(dag))
        if before is not None:
            task_progress().say(f"turn: {job} is planned by {before} at present; this run goes on when that has ended")
            self.defer(trigger=TurnTrigger(dag, self.request_uri, number), method_name="execute_complete")
        return str(self.request_uri)

    def execute_complete(self, context: Any, event: Any) -> str:
        """It is the run's turn."""
        return str(self.request_uri)


class TurnTrigger(BaseTrigger):
    """Fires when it is the turn of the run that drew a number."""

    def __init__(self, dag: str, request_uri: str, number: int, look_every_s: float = LOOK_EVERY_S) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dag, self.request_uri, self.number, self.look_every_s = dag, request_uri, number, look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {"dag": self.dag, "request_uri": self.request_uri, "number": self.number}
        return "sluice_airflow.turns.TurnTrigger", {**given, "look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.rates.threads import in_thread

        under_way = _under_way(self.dag)
        while await in_thread(lambda: self._before(under_way), f"the turn of {self.request_uri}") is not None:
            await asyncio.sleep(self.look_every_s)
        yield TriggerEvent(self.request_uri)  # type: ignore[no-untyped-call]

    def _before(self, under_way: Callable[[str], bool]) -> str | None:
        from sluice_airflow.rows import first_before

        return first_before(*_open(self.request_uri), self.number, under_way)


def _under_way(dag: str) -> Callable[[str], bool]:
    """Asks Airflow whether a run of the DAG has begun and not ended."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    return lambda run: RuntimeTaskInstance.get_dr_count(dag, run_ids=[run], states=["queued", "running"]) > 0


def _open(request_uri: str) -> "tuple[Workspace, str]":
    """The workspace that a request lies in, and its job."""
    from pipelines.workspace import Workspace

    root, _, key = request_uri.rpartition("/runs/")
    return Workspace(root), key.partition("/")[0]
