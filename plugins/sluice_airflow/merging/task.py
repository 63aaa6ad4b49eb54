"""The operator that proposes a plan in the repository that its job is deployed from, and waits for the merge."""

from typing import Any

from airflow.sdk import BaseOperator

from sluice_airflow.merging.trigger import MergeTrigger


class PlanMerge(BaseOperator):
    """Writes an approved plan into a branch, and waits in the triggerer until the branch that is deployed has it.

    Returns the URI of the proposal; None if the steps were rejected, or the job is not deployed from a repository. A task that
    is run again finds its branch, and waits again. A task that is cleared or stopped leaves the branch as it is.

    Args:
        rehearsal_uri: URI of the steps.
        approved_by: who decided, as the approval returns it.
    """

    template_fields = ("rehearsal_uri", "approved_by")

    def __init__(self, *, rehearsal_uri: Any, approved_by: Any, **options: Any) -> None:
        super().__init__(**options)
        self.rehearsal_uri, self.approved_by = rehearsal_uri, approved_by

    def execute(self, context: Any) -> str | None:
        from sluice_airflow.tasks.merging import is_stated, propose

        proposal_uri = propose(self.rehearsal_uri, self.approved_by)
        if proposal_uri is not None and not is_stated(proposal_uri):
            self.defer(trigger=MergeTrigger(proposal_uri), method_name="execute_complete")
        return proposal_uri

    def execute_complete(self, context: Any, event: dict[str, Any]) -> str:
        """Called when the wait is over.

        Raises:
            SluiceError: the plan will not be merged as it was proposed; the record says so, too.
        """
        from sluice_airflow.tasks.merging import merged

        return merged(event)
