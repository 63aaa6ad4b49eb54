"""Asking a person before a plan is applied."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from sluice_airflow.reporting import task_progress

PERSON, REJECTED, JOB_FILE = "person:", "rejected:", "the job's file"


class PlanApproval(ApprovalOperator):
    """Shows the steps that were rehearsed, and goes on when a person has approved them; at once where the job's file
    allows its plans to be applied alone. Who does not answer in time has rejected.

    Returns who decided: `person:` and the name of who approved, `rejected:` and the name, or `the job's file`.

    Args:
        rehearsal_uri: where the steps lie.
    """

    template_fields = ("subject", "body", "rehearsal_uri")

    def __init__(self, *, rehearsal_uri: str, **options: Any) -> None:
        super().__init__(subject="Apply a plan?", defaults=self.REJECT, **options)
        self.rehearsal_uri = rehearsal_uri

    def execute(self, context: Context) -> Any:
        from sluice_airflow.applying import question

        asked = question(self.rehearsal_uri)
        if asked is None:
            task_progress().say("   the job's file allows its plans to be applied alone (operations.apply.mode)")
            return JOB_FILE
        self.subject, self.body = asked.subject, asked.body
        self.response_timeout = timedelta(seconds=asked.patience_s)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> str:
        answer = super().execute_complete(context, event)
        who = (answer["responded_by_user"] or {}).get("name", "nobody in time")
        # What comes after may run although it was to be skipped, so the answer itself decides.
        return f"{PERSON if answer['chosen_options'] == [self.APPROVE] else REJECTED}{who}"
