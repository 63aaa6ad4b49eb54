"""The trigger that follows the process of a stage."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.bases.xcom import BaseXCom
from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

from sluice_airflow.reporting import LOG

if TYPE_CHECKING:
    from pipelines.detached.attempts import Attempt
    from pipelines.detached.following import News

LOOK_EVERY_S: Final = 2.0


class StageTrigger(BaseTrigger):
    """Copies an attempt's lines to the task's log, and fires when it has ended.

    A stage that is done ends its task from here. Else the task would wait, with its result, for a slot of the pool, which
    another measurement may hold for a day.
    """

    def __init__(self, request_uri: str, stage: str, number: int, look_every_s: float = LOOK_EVERY_S) -> None:
        """
        Args:
            number: of the attempt.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.request_uri, self.stage, self.number, self.look_every_s = request_uri, stage, number, look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {"request_uri": self.request_uri, "stage": self.stage, "number": self.number}
        return "sluice_airflow.measuring.trigger.StageTrigger", {**given, "look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.detached.following import AttemptFollower
        from pipelines.following.threads import in_thread

        what = f"attempt {self.number} at {self.stage}"
        follower = AttemptFollower(await in_thread(self._attempt, what))
        out_of_reach = False
        while True:
            try:
                news: News = await in_thread(follower.look, what)
            except OSError as error:  # the workspace may be out of reach for a while
                if not out_of_reach:
                    LOG.say(f"{what} cannot be followed, and is tried again: {error}")
                out_of_reach = True
            else:
                out_of_reach = False
                for line in news.lines:
                    LOG.say(line)
                if (outcome := news.outcome) is not None:
                    break
            await asyncio.sleep(self.look_every_s)
        if outcome.kind == "done":
            await in_thread(lambda: self._keep_result(outcome.text), what)
            yield TaskSuccessEvent()
        else:
            LOG.say(f"{self.stage}: {outcome.text}")
            yield TriggerEvent(self.number)  # type: ignore[no-untyped-call]

    async def on_kill(self) -> None:
        """A person has cleared the task or set its state: stop the process and what it has started."""
        from pipelines.following.threads import in_thread

        await in_thread(lambda: self._attempt().stop(), f"stopping {self.stage}")

    def _keep_result(self, uri: str) -> None:
        """Store the task's result as the end of a task in a worker does; the event's own `xcoms` would be JSON within JSON."""
        from airflow.sdk.execution_time.xcom import XCom

        task = self.task_instance
        if task is not None:  # `dag.test` has none, and lets the task end itself
            where = {"dag_id": task.dag_id, "task_id": task.task_id, "run_id": task.run_id, "map_index": task.map_index}
            XCom.set(key=BaseXCom.XCOM_RETURN_KEY, value=uri, **where)

    def _attempt(self) -> "Attempt":
        from pipelines.detached.attempts import Attempts

        return Attempts(self.request_uri, self.stage).of(self.number)
