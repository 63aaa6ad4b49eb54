"""Finding what an earlier try of the stage `select` left in MLflow."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipelines.registry.models import list_versions
from pipelines.registry.selection_log import EXPLORATION, INPUTS_TAG, ROLE_TAG, RUN_TAG
from pipelines.registry.selection_record import SelectionRecord
from pipelines.registry.tracking import Tracking
from pipelines.run import PipelineRun
from pipelines.store.digests import digest

if TYPE_CHECKING:
    from mlflow.entities import Run

SUPERSEDED_TAG = "sluice.superseded"


def finished_selection(tracking: Tracking, run: PipelineRun, inputs: Mapping[str, str]) -> SelectionRecord | None:
    """The selection of these inputs that was logged to its end; None where there is none."""
    wanted = digest(dict(inputs))
    done = {
        r.info.run_id
        for r in _runs(tracking, run, EXPLORATION)
        if r.info.status == "FINISHED" and r.data.tags.get(INPUTS_TAG) == wanted
    }
    if not done:
        return None
    versions = list_versions(tracking, run.job.name)
    return next((v.selection for v in versions if v.selection.mlflow_run_id in done), None)


def replace_unfinished(tracking: Tracking, run: PipelineRun) -> None:
    """Mark what a killed process left as failed and superseded, and delete the version it may have registered."""
    client = tracking.client
    for left in _runs(tracking, run):
        if left.info.status == "FINISHED" or SUPERSEDED_TAG in left.data.tags:
            continue
        for version in client.search_model_versions(f"run_id = '{left.info.run_id}'"):
            client.delete_model_version(version.name, version.version)
        client.set_tag(left.info.run_id, SUPERSEDED_TAG, "true")
        client.set_terminated(left.info.run_id, status="FAILED")


def _runs(tracking: Tracking, run: PipelineRun, role: str | None = None) -> Iterator["Run"]:
    """MLflow runs of a pipeline run, nested ones too."""
    wanted = f"tags.`{RUN_TAG}` = '{run.run_id}'" + (f" and tags.`{ROLE_TAG}` = '{role}'" if role else "")
    token = None
    while True:
        page = tracking.client.search_runs([tracking.experiment(run.job.name)], wanted, page_token=token)
        yield from page
        if not (token := page.token):
            return
