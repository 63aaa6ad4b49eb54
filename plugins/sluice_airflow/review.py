"""The task in which a person approves or rejects a capacity model; it asks nobody where the rule has decided."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import Param

from sluice_airflow.assets import MODEL
from sluice_airflow.reporting import on_terminal, reported, task_progress

if TYPE_CHECKING:
    from pipelines.registry import VersionInfo
    from pipelines.run import PipelineRun

ANSWER_WITHIN: Final = timedelta(days=7)
REASON: Final = "reason"


class ModelApproval(ApprovalOperator):
    """Asks a person to approve the run's model, if its review waits for one, and takes the decision.

    Approving makes it the champion, rejecting keeps the champion; who and why is kept with the model. Unlike its base it
    goes on either way: the plan is made with whatever was decided. A retry asks again only where nothing was decided.

    Args:
        request_uri: URI of the pipeline run's request.
        review_uri: URI of its review; the result of the task.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "request_uri", "review_uri")

    def __init__(self, *, request_uri: Any, review_uri: Any, **kwargs: Any) -> None:
        reason = Param(
            "", type="string", maxLength=1000, title="Why", description="Kept with the model.", source="task"
        )
        # Airflow hands on the DAG's parameters; the form asks for the reason alone.
        own = {**kwargs, "params": {REASON: reason}}
        super().__init__(subject="Plan with the new capacity model?", response_timeout=ANSWER_WITHIN, **own)
        self.request_uri, self.review_uri = request_uri, review_uri

    def execute(self, context: Any) -> Any:
        """Ask, unless there is nothing to ask."""
        with reported("approve"):
            run = _open(self.request_uri)
            waiting = _pending(run)
            if waiting is None:
                task_progress().say("approve: nobody is asked, since the review waits for no person")
                return self._reviewed(context)
            if on_terminal():
                self._refuse(waiting)
            self.subject = f"Plan {waiting.job} with {waiting.uri} ({waiting.selection.model})?"
            self.body = _body(run, waiting)
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Take what the person decided."""
        answer: Any = HITLOperator.execute_complete(self, context, event)
        with reported("approve"):
            from pipelines.registry import PENDING
            from pipelines.review import decide

            run = _open(self.request_uri)
            approved = answer["chosen_options"] == [self.APPROVE]
            info = _reviewed(run)
            if info.review == PENDING:  # else somebody was faster, elsewhere
                why = str(answer["params_input"].get(REASON) or "").strip() or "no reason given"
                info = decide(run.workspace, info.job, info.version, approved, _responder(answer), why)
            task_progress().say(f"approve: {info.uri} is {info.review} by {info.reviewed_by}: {info.review_reason}")
            return self._reviewed(context)

    def _reviewed(self, context: Any) -> str:
        """Tell of the reviewed model, and hand on the review."""
        context["outlet_events"][MODEL].extra = {"request": self.request_uri, "uri": self.review_uri}
        return str(self.review_uri)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Nobody answered: the review goes on waiting, but this run does not."""
        from models.errors import SluiceError

        if event["error_type"] == "timeout":
            raise SluiceError(
                f"nobody has reviewed the model within {ANSWER_WITHIN.days} days; decide with `sluice models approve` or "
                "`sluice models reject`, and clear this task to go on"
            )
        super().process_trigger_event_error(event)

    def _refuse(self, waiting: "VersionInfo") -> None:
        """The embedded Airflow has no page to answer on."""
        from pipelines.registry import NotReviewed, unreviewed

        raise NotReviewed(unreviewed(waiting))


def _open(request_uri: str) -> "PipelineRun":
    from pipelines.run import PipelineRun
    from pipelines.workspace import Workspace

    root, _, key = request_uri.rpartition("/runs/")
    return PipelineRun.open(Workspace(root), f"runs/{key}", task_progress())


def _pending(run: "PipelineRun") -> "VersionInfo | None":
    from pipelines.review import pending_review

    return pending_review(run)


def _reviewed(run: "PipelineRun") -> "VersionInfo":
    from pipelines.review import reviewed_version

    return reviewed_version(run)


def _body(run: "PipelineRun", waiting: "VersionInfo") -> str:
    """Markdown: the link to MLflow's page, then what the model's description says."""
    from pipelines.review import review_page

    return f"{review_page(run.workspace, waiting)}\n\n{waiting.description}"


def _responder(answer: Any) -> str:
    user = answer.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "a person in Airflow")
