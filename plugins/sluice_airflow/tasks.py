"""What the tasks of the DAGs do: open the run behind a URI, call one stage, hand on a URI.

Heavy imports stand inside the functions, since Airflow imports this module whenever it parses the DAGs.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from sluice_airflow.assets import RATE_CHANGE
from sluice_airflow.places import check_places
from sluice_airflow.reporting import reported, task_progress


def keep_request(params: Mapping[str, Any], fallback_run: str | None) -> str:
    """Validate the parameters as a request, keep it in the workspace, and return its URI.

    Args:
        fallback_run: what names the run if the parameters do not; None continues the run of the same request.
    """
    from pipelines.files import validate_as
    from pipelines.run import PipelineRun, PlanRequest
    from pipelines.workspace import Workspace

    asked = {**params, "run": params.get("run") or fallback_run}
    with reported("request"):
        workspace = Workspace()
        check_places(asked, workspace)
        request = validate_as(asked, PlanRequest, origin="the parameters of the DAG run")
        return PipelineRun(request, workspace).start()


def run_name(dag_run_id: str) -> str:
    """A DAG run's id as the name of a pipeline run."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", dag_run_id)[:120]


def run_stage(name: str, request_uri: str) -> str:
    """Run one stage for the request kept at `request_uri`, and return the URI of what it leaves.

    Raises:
        InvalidInput: the job's or the cluster's file has changed since the run began.
    """
    with reported(name):
        from models.errors import InvalidInput
        from pipelines.run import PipelineRun
        from pipelines.stages import run_stage as run_one
        from pipelines.workspace import Workspace

        root, _, key = request_uri.rpartition("/runs/")
        run = PipelineRun.open(Workspace(root), f"runs/{key}", task_progress())
        if run.key("request.json") != f"runs/{key}":
            raise InvalidInput(
                f"all stages of a run must see the same job and cluster, but the file of {run.request.job!r} or of "
                f"{run.request.cluster!r} has changed since the run began; run the DAG again"
            )
        return run_one(name, run)


def rate_changes(params: Mapping[str, Any], extras: Sequence[Mapping[str, Any]], dag_run: str) -> list[str]:
    """The rate changes to plan for, as URIs: those of the asset events, the latest for each job, or the parameters'.

    A change that the trigger told, and that another DAG run plans for already, is left out.

    Raises:
        InvalidInput: there is none, or one lacks the job or the rate.
    """
    from models.errors import InvalidInput

    by_hand = {name: params.get(name) for name in ("job", "rate")}
    if any(value is not None for value in by_hand.values()):
        extras = [*extras, by_hand]
    with reported("changes"):
        if not extras:
            raise InvalidInput(
                "a replan needs a job and its new rate, but neither an asset event nor the parameters carry them; "
                'trigger the DAG with {"job": "nexmark-q5", "rate": 3000000}'
            )
        told = [_told(extra) for extra in extras]
        latest = {str(extra.get("job")): _change_uri(extra) for extra in told if _take(extra, dag_run)}
        return list(latest.values())


def _told(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an event says: itself, or the payload of the trigger that it is from."""
    payload = extra.get("payload") if extra.get("from_trigger") else None
    return payload if isinstance(payload, Mapping) else extra


def _take(extra: Mapping[str, Any], dag_run: str) -> bool:
    """Whether it is up to this DAG run to plan for the change."""
    key = extra.get("change")
    if not isinstance(key, str):
        return True
    from pipelines.rates.record import is_change, take
    from pipelines.workspace import Workspace

    workspace = Workspace()
    if not is_change(key) or not workspace.exists(key):
        return True  # told by something else, in the same form
    if take(workspace, key, dag_run):
        return True
    task_progress().say(f"   {key} is planned for by another DAG run already")
    return False


def _change_uri(extra: Mapping[str, Any]) -> str:
    from models.errors import InvalidInput

    job, rate = extra.get("job"), extra.get("rate")
    is_rate = isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf
    if not isinstance(job, str) or not job or not job.isprintable() or not is_rate:
        raise InvalidInput(
            f"a rate change must carry 'job' (a name) and 'rate' (records/s, above 0), but got {dict(extra)!r:.200}"
        )
    return f"{RATE_CHANGE.uri}?job={quote(job, safe='')}&rate={rate!r}{_cause(extra)}"


def _cause(extra: Mapping[str, Any]) -> str:
    """The key of the change that the trigger told, as the end of a URI."""
    key = extra.get("change")
    return f"&change={quote(key, safe='', errors='replace')}" if isinstance(key, str) else ""


def replan(change_uri: str) -> str | None:
    """Plan anew for the change, and return the new plan's URI; None where the plan in force serves it already."""
    with reported("replan"):
        from pipelines.plan_store import PlanStore
        from pipelines.rates.record import told_cause
        from pipelines.replan import replan as plan_anew
        from pipelines.workspace import Workspace

        change = parse_qs(urlsplit(change_uri).query)
        workspace = Workspace()
        job, rate, keys = change["job"][0], float(change["rate"][0]), change.get("change", [])
        cause = told_cause(workspace, keys[0]) if keys else None
        made = plan_anew(workspace, job, rate, task_progress(), cause=cause)
        return PlanStore(workspace).uri(made.plan.job, made.plan.version) if made.is_new else None


def jobs_with_new_plans(params: Mapping[str, Any], extras: Sequence[Mapping[str, Any]]) -> list[str]:
    """The jobs whose threshold tables are due: those of the plans in the asset events, and the parameters'.

    Raises:
        InvalidInput: there is none, or an event carries no plan's URI.
    """
    from models.errors import InvalidInput

    by_hand = [str(params["job"])] if params.get("job") else []
    with reported("jobs"):
        if not extras and not by_hand:
            raise InvalidInput(
                "a threshold table needs a job with a plan, but neither an asset event nor the parameters name one; "
                'trigger the DAG with {"job": "nexmark-q5"}'
            )
        return list(dict.fromkeys([*(_job_of_plan(extra) for extra in extras), *by_hand]))


def _job_of_plan(extra: Mapping[str, Any]) -> str:
    return plan_of(extra)[0]


def plan_of(extra: Mapping[str, Any]) -> tuple[str, int]:
    """Job and version of the plan whose URI an event carries.

    Raises:
        InvalidInput: it carries none.
    """
    from models.errors import InvalidInput

    found = re.search(r"/plans/([^/]+)/v(\d+)\.json$", str(extra.get("uri")))
    if found is None:
        raise InvalidInput(
            f"a plan's event must carry its URI, .../plans/JOB/v000001.json, but got {dict(extra)!r:.200}"
        )
    return found.group(1), int(found.group(2))


def threshold_table(job: str, params: Mapping[str, Any]) -> str:
    """Make the job's threshold table, or add what is missing, and return its URI."""
    with reported("threshold_table"):
        from pipelines.files import validate_as
        from pipelines.threshold_table import ThresholdRequest
        from pipelines.threshold_table import threshold_table as make
        from pipelines.workspace import Workspace

        asked = {name: value for name, value in params.items() if name != "job"}
        request = validate_as(asked, ThresholdRequest, origin="the parameters of the DAG run")
        return make(Workspace(), job, request, task_progress())
