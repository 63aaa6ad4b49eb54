"""The trigger that waits for the merge of a proposed plan."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from sluice_airflow.reporting import LOG
from sluice_airflow.tasks.plan_events import opened

if TYPE_CHECKING:
    from pipelines.apply.gitops.merge import MergeWatch


SETTLED_S: Final = 10.0
"""Least time before the first look: where a task resumes within seconds, Airflow's scheduler may take it for a killed one."""


class MergeTrigger(BaseTrigger):
    """Fires when the plan is merged, or will not be; each state of the wait is a line of the task's log."""

    def __init__(self, proposal_uri: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.proposal_uri = proposal_uri

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "sluice_airflow.merging.trigger.MergeTrigger", {"proposal_uri": self.proposal_uri}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.following.threads import in_thread

        what, said = f"the merge of {self.proposal_uri}", ""
        watch = await in_thread(self._watch, what)
        await asyncio.sleep(max(SETTLED_S, watch.look_every_s))
        while True:
            try:
                look = await in_thread(watch.look, what)
            except OSError as error:  # the workspace may be out of reach for a while
                state, sentence = "waiting", f"{what} is looked for again: {error}"
            else:
                state, sentence = look.state, look.sentence
            if sentence != said:
                LOG.say(f"merge: {sentence}")
                said = sentence
            if state != "waiting":
                break
            await asyncio.sleep(watch.look_every_s)
        content = {"proposal": self.proposal_uri, "state": state, "sentence": sentence}
        yield TriggerEvent(content)  # type: ignore[no-untyped-call]

    def _watch(self) -> "MergeWatch":
        from pipelines.apply.gitops.operating import watch_proposed

        return watch_proposed(*opened(self.proposal_uri))
