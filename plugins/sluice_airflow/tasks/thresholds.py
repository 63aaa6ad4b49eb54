"""Tasks of `threshold_table`: which jobs have new plans, and their tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.tasks.plan_events import plans_of


def jobs_with_new_plans(params: Mapping[str, Any], extras: Sequence[Mapping[str, Any]]) -> list[str]:
    """Jobs whose threshold tables are due: those of the plans in the asset events, and the one in the parameters.

    Raises:
        InvalidInput: there is no job, or an event carries no URI of a plan.
    """
    from models.errors import InvalidInput

    by_hand = [str(params["job"])] if params.get("job") else []
    with reported("jobs"):
        if not extras and not by_hand:
            raise InvalidInput(
                "a threshold table needs a job with a plan, but neither an asset event nor the parameters name one; "
                'trigger the DAG with {"job": "nexmark-q5"}'
            )
        return list(dict.fromkeys([*(job for job, _ in plans_of(extras)), *by_hand]))


def threshold_table(job: str, params: Mapping[str, Any]) -> str:
    """Make the job's threshold table or add missing rows, and return its URI."""
    with reported("threshold_table"):
        from pipelines.inputs.parsing.files import validate_as
        from pipelines.planning.threshold_request import ThresholdRequest
        from pipelines.planning.threshold_table import threshold_table as make
        from pipelines.store.workspace import Workspace

        asked = {name: value for name, value in params.items() if name != "job"}
        request = validate_as(asked, ThresholdRequest, origin="the parameters of the DAG run")
        return make(Workspace(), job, request, task_progress())
