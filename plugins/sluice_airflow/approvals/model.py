"""The task in which a person approves or rejects a capacity model, unless the rule has decided."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import Param

from sluice_airflow.assets import MODEL
from sluice_airflow.notices.notifying import notify
from sluice_airflow.reporting import on_terminal, reported, task_progress
from sluice_airflow.tasks.planning import open_run, pending_review

if TYPE_CHECKING:
    from pipelines.registry.models import VersionInfo
    from pipelines.run import PipelineRun

ANSWER_WITHIN: Final = timedelta(days=7)
REASON: Final = "reason"


class ModelApproval(ApprovalOperator):
    """Asks a person to approve the run's model if its review is pending, and records the decision.

    Approving makes it the champion, rejecting keeps the champion; name and reason are stored with the model. Unlike its
    base class it continues either way: the plan follows the decision. A retry asks again only without a decision.

    Args:
        request_uri: URI of the pipeline run's request.
        review_uri: URI of its review; the result of the task.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "request_uri", "review_uri")

    def __init__(self, *, request_uri: Any, review_uri: Any, **kwargs: Any) -> None:
        reason = Param(
            "",
            type="string",
            maxLength=1000,
            title="Why",
            description="Required, and stored with the model; the question stays open after an answer without it.",
            source="task",
        )
        # Airflow passes on the DAG's parameters; the form asks only for the reason.
        own = {**kwargs, "params": {REASON: reason}}
        super().__init__(subject="Plan with the new capacity model?", response_timeout=ANSWER_WITHIN, **own)
        self.request_uri, self.review_uri = request_uri, review_uri

    def execute(self, context: Any) -> Any:
        """Ask, if the review is pending."""
        with reported("approve"):
            waiting = pending_review(self.request_uri)
            if waiting is None:
                task_progress().say("approve: no approval is pending")
                return self._reviewed(context)
            if on_terminal():
                self._refuse(waiting)
            notify("model-waiting", waiting.job, f"a capacity model of {waiting.job} waits for its review", waiting.uri)
        return self._ask(context, open_run(self.request_uri), waiting)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Record the decision; an answer without a reason decides nothing, and the question is asked again."""
        answer: Any = HITLOperator.execute_complete(self, context, event)
        with reported("approve"):
            from pipelines.registry.models import PENDING
            from pipelines.registry.review.decision import decide

            run = open_run(self.request_uri)
            approved = answer["chosen_options"] == [self.APPROVE]
            info = _reviewed(run)
            why = str(answer["params_input"].get(REASON) or "").strip()
            if info.review != PENDING:
                task_progress().say(f"approve: {info.uri} has been reviewed elsewhere; this answer is ignored")
            elif why:
                info = decide(run.workspace, info.job, info.version, approved, _responder(answer), why)
            if info.review != PENDING:
                task_progress().say(f"approve: {info.uri} is {info.review} by {info.reviewed_by}: {info.review_reason}")
                return self._reviewed(context)
            task_progress().say(
                f"approve: {_responder(answer)} gave no reason, so {info.uri} still waits for a decision"
            )
        return self._ask(context, run, info)

    def _ask(self, context: Any, run: "PipelineRun", waiting: "VersionInfo") -> Any:
        self.subject = f"Plan {waiting.job} with {waiting.uri} ({waiting.selection.model})?"
        self.body = _body(run, waiting)
        return super().execute(context)

    def _reviewed(self, context: Any) -> str:
        """Send the event of the reviewed model, and return the review's URI."""
        context["outlet_events"][MODEL].extra = {"request": self.request_uri, "uri": self.review_uri}
        return str(self.review_uri)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """No answer in time: the review stays open, but this run ends."""
        from models.errors import SluiceError

        if event["error_type"] == "timeout":
            raise SluiceError(
                f"the model was not reviewed within {ANSWER_WITHIN.days} days; decide with `sluice models approve` or "
                "`sluice models reject`, then clear this task to continue the run"
            )
        super().process_trigger_event_error(event)

    def _refuse(self, waiting: "VersionInfo") -> None:
        """Raised since the embedded Airflow has no pages for the answer."""
        from pipelines.registry.models import NotReviewed, unreviewed

        raise NotReviewed(unreviewed(waiting))


def _reviewed(run: "PipelineRun") -> "VersionInfo":
    from pipelines.stages.review import reviewed_version

    return reviewed_version(run)


def _body(run: "PipelineRun", waiting: "VersionInfo") -> str:
    """Markdown: the link to MLflow's page, then the model's description."""
    from pipelines.registry.review.decision import review_page

    return f"{review_page(run.workspace, waiting)}\n\n{waiting.description}"


def _responder(answer: Any) -> str:
    user = answer.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "a person in Airflow")
