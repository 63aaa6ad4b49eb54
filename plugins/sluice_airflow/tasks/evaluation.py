"""Tasks of `evaluate_policies`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluice_airflow.places import check_places
from sluice_airflow.reporting import reported, task_progress

if TYPE_CHECKING:
    from pipelines.store.workspace import Workspace


def keep_request(params: Mapping[str, Any]) -> str:
    """Validate the parameters as a request, store it in the workspace, and return its URI."""
    with reported("request"):
        from pipelines.arena.stages import keep_request as keep
        from pipelines.store.workspace import Workspace

        asked = {name: value for name, value in params.items() if name != "spark"}
        workspace = Workspace()
        check_places(asked, workspace)
        return workspace.uri(keep(workspace, asked, "the parameters of the DAG run"))


def replay(request_uri: str, on_spark: bool) -> str:
    """Replay all cells, and return the URI of the table of results."""
    with reported("replay"):
        from pipelines.arena.stages import replay as replay_all

        workspace, key = _open(request_uri)
        return workspace.uri(replay_all(workspace, key, task_progress(), on_spark).results_key)


def report(request_uri: str) -> str:
    """Write the page, log to MLflow, and return the URI of the page."""
    with reported("report"):
        from pipelines.arena.stages import report as write_and_log

        workspace, key = _open(request_uri)
        return workspace.uri(write_and_log(workspace, key, task_progress()))


def jobs(request_uri: str) -> list[str]:
    """The jobs to choose a policy for."""
    from pipelines.arena.stages import jobs_of

    return jobs_of(*_open(request_uri))


def choose(request_uri: str, job: str) -> dict[str, Any]:
    """Store the job's policy, and return the content of its asset event."""
    with reported("choose"):
        from pipelines.arena.choice import choice_key
        from pipelines.arena.stages import choose_policy

        workspace, key = _open(request_uri)
        choice = choose_policy(workspace, key, job, task_progress())
        return {
            "job": job,
            "policy": choice.policy,
            "version": choice.version,
            "reason": choice.reason,
            "uri": workspace.uri(choice_key(job, choice.version)),
        }


def _open(request_uri: str) -> "tuple[Workspace, str]":
    from pipelines.store.workspace import Workspace

    root, _, key = request_uri.rpartition("/arena/requests/")
    return Workspace(root), f"arena/requests/{key}"
