"""The task that asks a person before a plan is applied."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from sluice_airflow.reporting import task_progress

JOB_FILE = "the job's file"


class PlanApproval(ApprovalOperator):
    """Shows the rehearsed steps and waits until a person approves them; does not ask if the job's file allows plans to be
    applied without an approval. No answer in time counts as a rejection.

    Returns who decided: `person:NAME`, `rejected:NAME`, or `the job's file`.

    Args:
        rehearsal_uri: URI of the steps.
    """

    template_fields = ("subject", "body", "rehearsal_uri")

    def __init__(self, *, rehearsal_uri: str, **options: Any) -> None:
        super().__init__(subject="Apply a plan?", defaults=self.REJECT, **options)
        self.rehearsal_uri = rehearsal_uri

    def execute(self, context: Context) -> Any:
        from sluice_airflow.tasks.applying import question

        asked = question(self.rehearsal_uri)
        if asked is None:
            task_progress().say("   the job's file needs no approval (operations.apply.mode)")
            return JOB_FILE
        self.subject, self.body = asked.subject, asked.body
        self.response_timeout = timedelta(seconds=asked.patience_s)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str:
        from sluice_airflow.tasks.applying import PERSON, REJECTED

        answer = super().execute_complete(context, event)
        who = (answer["responded_by_user"] or {}).get("name", "no answer in time")
        # Downstream tasks can be run even if they should be skipped, so the answer itself decides.
        return f"{PERSON if answer['chosen_options'] == [self.APPROVE] else REJECTED}{who}"
