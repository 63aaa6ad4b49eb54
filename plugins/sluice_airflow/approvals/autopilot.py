"""The task that asks a person before an autopilot may act."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from sluice_airflow.reporting import task_progress


class AutopilotApproval(ApprovalOperator):
    """Asks whether the autopilot of a job may act, and stores the answer; no answer in time counts as a rejection, after which
    the autopilot stays in its dry run.

    Returns what follows from the answer, in words.

    Args:
        about: one of those of `tasks.piloting.report`: the `job`, and the digest of the `rules` that the question shows, for
            which alone the answer holds.
    """

    template_fields = ("subject", "body", "about")

    def __init__(self, *, about: Mapping[str, str], **options: Any) -> None:
        super().__init__(subject="Let an autopilot act?", defaults=self.REJECT, **options)
        self.about = about

    def execute(self, context: Context) -> Any:
        from sluice_airflow.tasks.piloting import question

        job = self.about["job"]
        asked = question(job, self.about["rules"])
        if asked is None:
            task_progress().say(f"   the autopilot of {job} needs no permission now")
            return "no permission is needed"
        self.subject, self.body = asked.subject, asked.body
        self.response_timeout = timedelta(seconds=asked.patience_s)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str:
        from sluice_airflow.tasks.piloting import answer

        given = super().execute_complete(context, event)
        who = (given["responded_by_user"] or {}).get("name", "no answer in time")
        said = answer(self.about["job"], self.about["rules"], given["chosen_options"] == [self.APPROVE], who)
        task_progress().say(f"   {said}")
        return said
