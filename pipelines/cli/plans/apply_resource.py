"""`sluice plans apply --kubernetes`: a plan on a FlinkDeployment of the Flink Kubernetes operator."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.text import Text

from flink_client.kubernetes.api import KubernetesApi
from flink_client.kubernetes.reference import parse_reference
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from models.job import Job
from models.plan.content import Plan
from pipelines.apply.applied import NOT_APPLIED, Applied
from pipelines.apply.kubernetes.applying import apply_to_resource, rehearse_on
from pipelines.apply.kubernetes.preparing import ResourcePreparation, prepare_resource, resource_steps
from pipelines.apply.record import record
from pipelines.cli.output import console, print_json, progress_console
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table


def apply_on_kubernetes(
    workspace: Workspace,
    plan: Plan,
    reference: str,
    *,
    context: str | None,
    flink: str | None,
    token_variable: str | None,
    vertices: Mapping[str, str] | None,
    job_file: Job | None,
    redeploy: bool,
    timeout_s: float,
    observe_s: float,
    dry_run: bool,
    json: bool,
) -> None:
    """Apply a plan to the FlinkDeployment NAMESPACE/NAME, or print the steps.

    Raises:
        SluiceError: the plan was not applied.
    """
    namespace, name = parse_reference(reference)
    with KubernetesApi(context) as api, _flink(flink, token_variable) as rest:
        resource = api.read(namespace, name)
        with flinks_answers(flink or api.url):
            prepared = prepare_resource(
                resource, plan, rest=rest, vertices=vertices, job_file=job_file, redeploy=redeploy
            )
        if dry_run:
            rehearse_on(api, prepared)
            _print_steps(prepared, timeout_s, json)
            return
        applied = apply_to_resource(api, prepared, rest=rest, timeout_s=timeout_s, observe_s=observe_s, say=_say)
    uri = record(workspace, applied)
    if json:
        print_json(applied)
    else:
        _print_outcome(applied)
    _say(f"recorded in {uri}")
    if applied.outcome in NOT_APPLIED:
        raise SluiceError(f"{plan.job}@{plan.version} was not applied: {applied.reason}")


def _flink(address: str | None, token_variable: str | None) -> AbstractContextManager[FlinkRest | None]:
    return nullcontext() if address is None else FlinkRest(address, token_variable=token_variable)


def _say(what: str) -> None:
    progress_console.print(what, markup=False, soft_wrap=True)


def _print_steps(prepared: ResourcePreparation, timeout_s: float, json: bool) -> None:
    plan, steps = prepared.plan, resource_steps(prepared, timeout_s)
    if json:
        print_json(_document(prepared, steps))
        return
    console.print(Text(f"{plan.job}@{plan.version} on FlinkDeployment {prepared.resource.reference}", style="bold"))
    _print_changes(prepared)
    for number, step in enumerate(steps, start=1):
        console.print(Text(f"{number}. {step}"), soft_wrap=True)
    console.print(
        "the API server accepts the change; nothing was changed" if steps else "the resource states the plan already"
    )
    _print_advice(prepared.advice)


def _document(prepared: ResourcePreparation, steps: list[str]) -> dict[str, Any]:
    return {
        "job": prepared.plan.job,
        "version": prepared.plan.version,
        "resource": prepared.resource.reference,
        "resource_version": prepared.resource.resource_version,
        "flink_job": prepared.resource.job_id,
        "method": prepared.method,
        "changes": [change.model_dump(mode="json") for change in prepared.changes],
        "patch": dict(prepared.change.spec),
        "redeploys": prepared.change.redeploys,
        "steps": steps,
        "advice": list(prepared.advice),
    }


def _print_outcome(applied: Applied) -> None:
    style = "bold" if applied.outcome in ("applied", "unchanged") else "bold red"
    console.print(Text(f"{applied.job}@{applied.version} {applied.outcome}: {applied.reason}", style=style))
    _print_changes(applied)
    _print_advice(applied.advice)


def _print_changes(of: ResourcePreparation | Applied) -> None:
    shown = table("operators", "vertex", "before", "plan", wrap=("operators", "vertex"))
    for change in of.changes:
        before = "-" if change.before is None else str(change.before)
        shown.add_row(Text(", ".join(change.operators)), Text(change.name), before, str(change.after))
    console.print(shown)


def _print_advice(advice: tuple[str, ...]) -> None:
    for one in advice:
        console.print(Text(f"not done: {one}"), soft_wrap=True)
