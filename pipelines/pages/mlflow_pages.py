"""MLflow's pages of a plan's model and of the run that made it, if MLflow has an address that a browser can open."""

import re
from typing import Final
from urllib.parse import quote, urlsplit

from flink_client.access.server import server_access
from flink_client.address import connection_name
from models.errors import SluiceError
from models.plan.content import Plan
from models.schema import Format
from pipelines.registry.review.pages import pages_address
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.tracking import Tracking, named_store, without_password
from pipelines.store.workspace import Damaged, Missing, Workspace

_MODEL: Final = re.compile(r"models:/(?P<name>[^/@]+)/(?P<version>\d+)")


class MlflowPages(Format):
    """Addresses of MLflow's pages."""

    model: str | None
    run: str | None


def mlflow_pages(workspace: Workspace, plan: Plan) -> MlflowPages | None:
    """The pages of the plan's registered model, and of the run that selected it."""
    address = mlflow_address()
    model = _MODEL.fullmatch(plan.lineage.model_uri or "")
    if address is None or model is None:
        return None
    run = _run_of(workspace, plan)
    return MlflowPages(
        model=f"{address}/#/models/{quote(model['name'], safe='')}/versions/{model['version']}",
        run=None if run is None else f"{address}/#/runs/{quote(run, safe='')}",
    )


def mlflow_address() -> str | None:
    """MLflow's address for browsers, without credentials; None if its store is not a server."""
    tracking = Tracking(_store(), artifacts=None)  # it is not opened for that
    address = without_password(pages_address(tracking) or "")
    parts = urlsplit(address)
    return address if parts.scheme in {"http", "https"} and parts.hostname else None


def _store() -> str:
    """The URI of MLflow's store; empty where none is named, or the connection that is named cannot be used."""
    named = named_store() or ""
    if connection_name(named) is None:
        return named
    try:
        return server_access(named).url
    except SluiceError:
        return ""


def _run_of(workspace: Workspace, plan: Plan) -> str | None:
    """MLflow's id of the run that made the plan's model: the plan's own pipeline run, or one before it."""
    own = f"runs/{plan.job}/{plan.lineage.run}/{SELECTION_FILE}"
    others = (key for key in workspace.list(f"runs/{plan.job}") if key.endswith(f"/{SELECTION_FILE}") and key != own)
    for key in (own, *others):
        try:
            selection = workspace.read_output(key, SelectionRecord)
        except (Missing, Damaged):
            continue
        if selection.model_uri == plan.lineage.model_uri:
            return selection.mlflow_run_id
    return None
