"""Stage `publish`: the plan becomes a version, with its report beside it and its figures in MLflow."""

from datetime import UTC, datetime

from models.plan import Plan, PlanContent
from pipelines.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.pictures import keep_pictures
from pipelines.plan_store import PlanStore
from pipelines.planning_model import planning_model
from pipelines.report import Subject, figures, render
from pipelines.run import PipelineRun
from pipelines.tracking import mlflow_errors, open_tracking
from pipelines.tuning import TunedScaling


def publish(run: PipelineRun) -> str:
    """Store the plan and its report; returns the URI of the plan. Repeating it makes no second version."""
    plan = store_version(run, run.output("plan.json", PlanContent), run.output("thresholds.json", TunedScaling))
    return PlanStore(run.workspace).uri(plan.job, plan.version)


def store_version(run: PipelineRun, content: PlanContent, tuned: TunedScaling) -> Plan:
    """Make the content the newest version of the job's plan, write its report beside it, and log it to MLflow."""
    store = PlanStore(run.workspace)
    plan = store.publish(content, datetime.now(UTC).isoformat(timespec="seconds"))
    model = planning_model(run)
    subject = Subject(
        plan=plan,
        job=run.job,
        cluster=run.cluster,
        scaling=tuned.scaling,
        exploration=run.output(EXPLORATION_FILE, ExplorationRecord),
        surrogate=model.surrogate,
        previous=None if plan.difference is None else store.get(plan.job, plan.difference.from_version),
    )
    drawn = figures(subject)
    report = render(plan, drawn)
    keep_pictures(run.workspace, plan, drawn)
    run.workspace.write_bytes(report_key(plan.job, plan.version), report.encode())
    tracking = open_tracking(run.workspace)
    with mlflow_errors(tracking):
        tracking.client.log_text(model.loaded.selection.mlflow_run_id, report, f"plans/v{plan.version:06d}.html")
    run.progress.say(f"publish: plan {plan.job}@{plan.version}")
    return plan


def report_key(job: str, version: int) -> str:
    """Workspace key of the report of a plan."""
    return f"reports/{job}/v{version:06d}.html"
