"""Stage `publish`: the decisions become a version of the plan, with its report beside it and in MLflow."""

from datetime import UTC, datetime
from typing import Final

from models.job import Job
from models.plan.content import Plan, PlanContent
from models.plan.parts import Lineage
from models.planning.assembling import Decisions, TunedPlacement, assemble
from models.planning.bounding import plan_bound
from models.planning.budget import Sizing, shortfall
from models.planning.inputs import PlanningModel
from models.planning.parallelism import Scaling
from models.planning.workers.planned import PlannedWorkers
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.planning.gathering import gather_capacity, gather_keys, operator_digests
from pipelines.progress import Progress
from pipelines.registry.selection_record import SELECTION_FILE, SelectionRecord
from pipelines.registry.tracking import mlflow_errors, open_tracking
from pipelines.report import ReportSubject, figures, render
from pipelines.run import PipelineRun
from pipelines.stages.place import PLACEMENT_FILE
from pipelines.stages.scale import SCALING_FILE
from pipelines.stages.size import SIZING_FILE
from pipelines.store.code_version import code_version
from pipelines.store.digests import digest
from pipelines.store.pictures import keep_pictures
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace

_LOGGED: Final = "plans"


def publish(run: PipelineRun) -> str:
    """Store the plan and its report; returns the URI of the plan. Repeating it makes no second version."""
    sizing, scaling = run.output(SIZING_FILE, Sizing), run.output(SCALING_FILE, Scaling)
    decisions = Decisions(
        sizing,
        scaling,
        run.output(PLACEMENT_FILE, TunedPlacement),
        PlannedWorkers.of(run.cluster, sizing, scaling, run.request.rate),
    )
    plan = store_version(run, content_of(run, decisions, trigger="plan"), decisions)
    return PlanStore(run.workspace).uri(plan.job, plan.version)


def content_of(run: PipelineRun, decisions: Decisions, trigger: str) -> PlanContent:
    """The content of the plan that deploys the decisions, with the digests of their inputs."""
    request, model, keyed = run.request, decisions.sizing.model, gather_keys(run)
    lineage = Lineage(
        run=run.run_id,
        trigger=trigger,
        testbed=request.testbed,
        model=model.capacity.name,
        model_uri=model.uri,
        policy=decisions.scaling.policy,
        code_version=code_version(),
        seed=request.seed,
        digests={
            "cluster": digest(run.cluster),
            "request": digest(request),
            **operator_digests(run),
            "selection": digest(run.output(SELECTION_FILE, SelectionRecord)),
            "sizing": digest(decisions.sizing),
            "scaling": digest(decisions.scaling),
            "placement": digest(decisions.placement),
            **({"keys": digest(keyed)} if keyed else {}),
        },
    )
    bound_by = plan_bound(
        run.job,
        decisions.workers.cluster,
        request.rate,
        decisions.scaling,
        decisions.placement.tuning.placement,
        gather_capacity(run).observations,
        keyed,
    )
    return assemble(run.job, request.rate, decisions, lineage, bound_by)


def store_version(run: PipelineRun, content: PlanContent, decisions: Decisions) -> Plan:
    """Make the content the newest version of the job's plan, write its report beside it, and log it to MLflow.

    Repeating it makes no second version, and what a killed run left undone is done.
    """
    plan, report = stored_with_report(
        run.workspace, content, run.job, decisions, run.output(EXPLORATION_FILE, ExplorationRecord)
    )
    model, tracking = decisions.sizing.model, open_tracking(run.workspace)
    with mlflow_errors(tracking):
        tracking.client.log_text(model.mlflow_run_id, report, _logged_report(plan))
    say_published(run.progress, plan, decisions)
    return plan


def lacks_report(workspace: Workspace, plan: Plan, model: PlanningModel) -> bool:
    """Whether what stored this version by the model was killed before its report was written, or before it was logged."""
    if not workspace.exists(report_key(plan.job, plan.version)):
        return True
    tracking = open_tracking(workspace)
    with mlflow_errors(tracking):
        logged = tracking.client.list_artifacts(model.mlflow_run_id, _LOGGED)
    return all(one.path != _logged_report(plan) for one in logged)


def _logged_report(plan: Plan) -> str:
    """Path in the MLflow run of the model."""
    return f"{_LOGGED}/v{plan.version:06d}.html"


def stored_with_report(
    workspace: Workspace, content: PlanContent, job: Job, decisions: Decisions, exploration: ExplorationRecord
) -> tuple[Plan, str]:
    """Make the content the newest version of the job's plan, and write its report beside it; returns both."""
    store = PlanStore(workspace)
    plan = store.publish(content, datetime.now(UTC).isoformat(timespec="seconds"))
    subject = ReportSubject(
        plan=plan,
        job=job,
        cluster=decisions.workers.cluster,
        scaling=decisions.scaling,
        exploration=exploration,
        capacity=decisions.sizing.model.capacity,
        previous=None if plan.difference is None else store.get(plan.job, plan.difference.from_version),
    )
    drawn = figures(subject)
    report = render(plan, drawn)
    keep_pictures(workspace, plan, drawn)
    workspace.write_bytes(report_key(plan.job, plan.version), report.encode())
    return plan, report


def say_published(progress: Progress, plan: Plan, decisions: Decisions) -> None:
    """The plan's version, and whether it may fall short."""
    progress.say(f"publish: plan {plan.job}@{plan.version}")
    model = decisions.sizing.model
    if (short := shortfall(model, decisions.scaling.budget, plan.target_rate)) is not None:
        progress.say(f"publish: {short}")
