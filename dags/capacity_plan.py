"""The planning DAG: one task per stage, from a job and a target rate to a published plan.

Run it by hand, in an embedded Airflow: `python dags/capacity_plan.py job=nexmark-q5 rate=2500000` (or `make plan`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetOrTimeSchedule, CronDataIntervalTimetable, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from pipelines.inputs.plan_request import PlanRequest
from sluice_airflow.approvals.model import ModelApproval
from sluice_airflow.assets import FEATURES, MODEL, PLAN, REPROFILE, SAMPLES
from sluice_airflow.measuring.stage import MeasuringStage
from sluice_airflow.params import params_of
from sluice_airflow.pools import MEASURING
from sluice_airflow.retries import RETRYING
from sluice_airflow.turns import JobTurn

PARAMS = params_of(PlanRequest, job="nexmark-q5", rate=2_500_000)


@dataclass(frozen=True)
class Stage:
    """A stage as a task; its implementation is in `pipelines`."""

    name: str
    does: str
    timeout: timedelta
    outlets: tuple[Asset, ...] = ()
    inlets: tuple[Asset, ...] = ()


MEASURE = (
    Stage("profile", "Measures each operator on a worker of its own.", timedelta(hours=6)),
    Stage("explore", "Measures the capacity of budgets chosen by Bayesian optimisation.", timedelta(hours=24)),
)
BEFORE_APPROVAL = (
    Stage("check", "Stops bad samples.", timedelta(hours=1), (SAMPLES,)),
    Stage("features", "Turns samples into features of operators, on Spark.", timedelta(hours=2)),
    Stage("check_features", "Stops bad features.", timedelta(hours=1), (FEATURES,), (SAMPLES,)),
    Stage("twin", "Simulates the job, as it was measured, at larger sizes.", timedelta(hours=1)),
    Stage("select", "Fits the growth laws, weighs them and registers the model.", timedelta(hours=1)),
    Stage("review", "Compares it with the champion; the rule promotes it, or a person is asked.", timedelta(hours=1)),
)
AFTER_APPROVAL = (
    Stage("size", "Task slots and memory for the target rate; binds the model's version.", timedelta(hours=1)),
    Stage("scale", "Tasks of each operator.", timedelta(hours=1)),
    Stage("place", "Tunes the placement thresholds, and finds a worker for each task.", timedelta(hours=2)),
    Stage("publish", "Stores the plan's version and its report.", timedelta(hours=1), (PLAN,), (MODEL,)),
)


@dag(
    schedule=AssetOrTimeSchedule(timetable=CronDataIntervalTimetable("@weekly", timezone="UTC"), assets=[REPROFILE]),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=16,
    params=PARAMS,
    tags=["sluice", "capacity", "planning"],
    default_args=RETRYING,
    doc_md="""
### From a job and a target rate to a plan

Measures the job's capacity on a testbed, fits and reviews a capacity model, and publishes a versioned plan:
parallelism and memory of each operator, and a worker for each task.

Each task is one stage, and passes on only the URI of its output in the workspace (`SLUICE_WORKSPACE`). A stage that finds
its output there does not repeat the work, so a retry, or the same request again, resumes where it stopped.
Errors that a person must fix are not retried.

The scheduled run repeats the last request of every job that has a plan, at the plan's target rate, with new measurements;
jobs pinned by a rollback are left out, and without any plan the run is skipped. An event of the asset `sluice-reprofile`
does the same for its jobs. Of several jobs the run takes the first, and sends an event for the others.

If the job's file asks for a person to review models, `approve` waits for one in Airflow's required actions; the plan
follows that decision. Otherwise the rule decides.

Runs for one job take turns: `turn` waits for earlier ones to end. Runs for other jobs are independent. Measurements are
made one at a time, in the pool `sluice-measuring`. `profile` and `explore` wait for them in the triggerer, and take no worker
slot meanwhile; clearing them or setting their state stops the measurement.

Assets: `sluice-samples`, `sluice-features`, `sluice-model`, `sluice-plan`.
""",
)
def capacity_plan() -> None:
    @task(
        execution_timeout=timedelta(minutes=5),
        inlets=[REPROFILE],
        doc_md="Lists the jobs to measure again: all with a plan in a scheduled run, else those of the events.",
    )
    def jobs(
        dag_run: Any = None, triggering_asset_events: Any = None, inlet_events: Any = None
    ) -> list[dict[str, Any]]:
        from sluice_airflow.tasks.drift import newest_of_each_job, planned_jobs
        from sluice_airflow.unread import events_of_run

        if dag_run.run_type == "scheduled":
            return planned_jobs()
        return newest_of_each_job(events_of_run(triggering_asset_events[REPROFILE], inlet_events[REPROFILE], dag_run))

    @task(execution_timeout=timedelta(minutes=5), doc_md="Stores the validated request in the workspace.")
    def request(asked: list[dict[str, Any]], params: Any = None, dag_run: Any = None) -> str:
        from sluice_airflow.tasks.drift import keep_reprofile_request
        from sluice_airflow.tasks.planning import keep_request, run_name

        if asked:
            return keep_reprofile_request(asked[0], run_name(dag_run.run_id))
        if dag_run.run_type == "scheduled":
            raise AirflowSkipException("no job has a plan that may be replaced")
        return keep_request(params)

    @task(
        execution_timeout=timedelta(minutes=5),
        outlets=[REPROFILE],
        doc_md="Sends the event that starts another run of this DAG, for all but the first of the jobs.",
    )
    def ask_again(asked: list[dict[str, Any]], outlet_events: Any = None) -> list[str]:
        if not (others := asked[1:]):
            raise AirflowSkipException("no other job needs new measurements")
        outlet_events[REPROFILE].extra = {"requests": others}
        return [str(one["job"]) for one in others]

    asked_for: Any = jobs()
    request_uri = request(asked_for)
    ask_again(asked_for)
    uri: Any = JobTurn(
        task_id="turn",
        request_uri=request_uri,
        execution_timeout=timedelta(minutes=5),
        doc_md="Waits for the end of earlier runs for the same job.",
    ).output
    for stage in MEASURE:
        uri = MeasuringStage(
            task_id=stage.name,
            request_uri=request_uri,
            previous_uri=uri,
            limit=stage.timeout,
            pool=MEASURING,
            doc_md=stage.does,
        ).output
    for stage in BEFORE_APPROVAL:
        uri = _stage_task(stage)(request_uri, uri)
    uri = ModelApproval(
        task_id="approve",
        request_uri=request_uri,
        review_uri=uri,
        execution_timeout=timedelta(minutes=10),
        inlets=[FEATURES],
        outlets=[MODEL],
        doc_md="Asks a person to approve the model, if the job's file requires it.",
    ).output
    for stage in AFTER_APPROVAL:
        uri = _stage_task(stage)(request_uri, uri)


def _stage_task(stage: Stage) -> Callable[[Any, Any], Any]:
    @task(
        task_id=stage.name,
        execution_timeout=stage.timeout,
        inlets=list(stage.inlets),
        outlets=list(stage.outlets),
        doc_md=stage.does,
    )
    def run(request_uri: str, previous_uri: str, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks.planning import run_stage

        uri = run_stage(stage.name, request_uri)
        for asset in stage.outlets:
            outlet_events[asset].extra = {"request": request_uri, "uri": uri}
        return uri

    return run


planning = capacity_plan()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(planning, PARAMS)
