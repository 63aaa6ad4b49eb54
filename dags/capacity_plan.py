"""The planning DAG: one task a stage, from a job and a target rate to a published plan.

Run it by hand, in an embedded Airflow: `python dags/capacity_plan.py job=nexmark-q5 rate=2500000` (or `make plan`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetOrTimeSchedule, CronDataIntervalTimetable, Param, dag, task

from sluice_airflow.assets import FEATURES, MODEL, PLAN, REPROFILE, SAMPLES
from sluice_airflow.measuring import POOL
from sluice_airflow.retries import RETRYING
from sluice_airflow.review import ModelApproval
from sluice_airflow.turns import JobTurn

PARAMS = {
    "job": Param("nexmark-q5", type="string", minLength=1, description="Job of the catalogue, or path of a job file."),
    "rate": Param(2_500_000, type="number", exclusiveMinimum=0, description="Target rate at the sources, records/s."),
    "cluster": Param("production", type="string", minLength=1, description="Cluster of the catalogue, or a file."),
    "testbed": Param("simulator", enum=["simulator", "flink", "recorded"], description="Where the job is measured."),
    "flink": Param(
        None,
        type=["null", "string"],
        description="URL or cluster to measure on with the testbed 'flink'; else a local one.",
    ),
    "measurements": Param(None, type=["null", "string"], description="CSV file, for the testbed 'recorded' only."),
    "measurement_rows": Param(None, type=["null", "integer"], minimum=1, description="Use only its first rows."),
    "model": Param("auto", enum=["auto", "linear", "log", "sqrt"], description="Surrogate; 'auto' selects it."),
    "headroom": Param(1.1, type="number", minimum=1, description="Factor on the rate that is planned for."),
    "memory_mb": Param(None, type=["null", "number"], exclusiveMinimum=0, description="TaskManager memory, MiB."),
    "max_task_slots": Param(48, type="integer", minimum=1, description="Most task slots to measure with."),
    "max_measurements": Param(20, type="integer", minimum=3, maximum=20, description="Most after the four corners."),
    "seed": Param(0, type="integer", minimum=0, description="Of everything random."),
    "run": Param(
        None,
        type=["null", "string"],
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        maxLength=120,
        description="Name of the run. If absent, a scheduled run gets its own and measures anew; "
        "any other goes on with the run of the same request.",
    ),
}


@dataclass(frozen=True)
class Stage:
    """A stage as Airflow sees it; how it works is the business of `pipelines`."""

    name: str
    does: str
    timeout: timedelta
    outlets: tuple[Asset, ...] = ()
    pool: str = "default_pool"


BEFORE_APPROVAL = (
    Stage("profile", "Measures each operator on a worker of its own.", timedelta(hours=6), pool=POOL),
    Stage(
        "explore", "Measures the capacity of budgets chosen by Bayesian optimisation.", timedelta(hours=24), pool=POOL
    ),
    Stage("check", "Stops bad samples.", timedelta(hours=1), (SAMPLES,)),
    Stage("features", "Turns samples into features of operators, on Spark.", timedelta(hours=2)),
    Stage("check_features", "Stops bad features.", timedelta(hours=1), (FEATURES,)),
    Stage("select", "Fits the candidates, selects one and registers it.", timedelta(hours=1)),
    Stage("review", "Compares it with the champion; the rule promotes it, or a person is asked.", timedelta(hours=1)),
)
AFTER_APPROVAL = (
    Stage("tune", "Finds the placement thresholds for the scalings that may come.", timedelta(hours=2)),
    Stage("plan", "Slots, memory, parallelism and placement.", timedelta(hours=1)),
    Stage("publish", "Stores the plan's version and its report.", timedelta(hours=1), (PLAN,)),
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

Each task is one stage, and hands on only the URI of what it left in the workspace (`SLUICE_WORKSPACE`). A stage that
finds its output there does not repeat the work, so a retry, or the same request again, goes on where it stopped.
Scheduled runs have a name of their own and measure anew. Errors that state what to mend are not retried.

An event of the asset `sluice-reprofile` starts a run as well: it repeats the job's last request with new measurements.
Events of several jobs that came together make one run for the first, and events again for the others.

Where the job's file wants a person to review models, `approve` waits for one in Airflow's required actions; whatever is
decided, the plan is made by it. Otherwise the rule has decided, and nobody is asked.

Runs for one job take turns: `turn` waits for the end of those that began before. Runs for other jobs go on meanwhile.
Measurements are made one at a time, in the pool `sluice-measuring`.

Assets: `sluice-samples`, `sluice-features`, `sluice-model`, `sluice-plan`.
""",
)
def capacity_plan() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Keeps the validated request in the workspace.")
    def request(params: Any = None, dag_run: Any = None, triggering_asset_events: Any = None) -> str:
        from sluice_airflow.drift import keep_reprofile_request, newest_of_each_job
        from sluice_airflow.tasks import keep_request, run_name

        name = run_name(dag_run.run_id)
        if asked := newest_of_each_job(_requests(triggering_asset_events)):
            return keep_reprofile_request(asked[0], name)
        return keep_request(params, name if dag_run.run_type == "scheduled" else None)

    @task(execution_timeout=timedelta(minutes=5), doc_md="Lists the other jobs that are to be measured anew.")
    def others(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        from sluice_airflow.drift import newest_of_each_job

        return newest_of_each_job(_requests(triggering_asset_events))[1:]

    @task(
        execution_timeout=timedelta(minutes=5),
        outlets=[REPROFILE],
        doc_md="Asks for another run of this DAG, for one of the other jobs.",
    )
    def ask_again(asked: dict[str, Any], outlet_events: Any = None) -> str:
        outlet_events[REPROFILE].extra = asked
        return str(asked["job"])

    request_uri = request()
    ask_again.expand(asked=others())
    uri: Any = JobTurn(
        task_id="turn",
        request_uri=request_uri,
        execution_timeout=timedelta(minutes=5),
        doc_md="Waits for the end of earlier runs for the same job.",
    ).output
    for stage in BEFORE_APPROVAL:
        uri = _stage_task(stage)(request_uri, uri)
    uri = ModelApproval(
        task_id="approve",
        request_uri=request_uri,
        review_uri=uri,
        execution_timeout=timedelta(minutes=10),
        outlets=[MODEL],
        doc_md="Asks a person to approve the model, where the job's file wants one to.",
    ).output
    for stage in AFTER_APPROVAL:
        uri = _stage_task(stage)(request_uri, uri)


def _requests(events: Any) -> list[dict[str, Any]]:
    """What the events that started the run carry, in the order they came; nothing where the clock or a person did."""
    return [event.extra for event in sorted(events.get(REPROFILE, []), key=lambda event: event.timestamp)]


def _stage_task(stage: Stage) -> Callable[[Any, Any], Any]:
    @task(
        task_id=stage.name,
        execution_timeout=stage.timeout,
        outlets=list(stage.outlets),
        pool=stage.pool,
        doc_md=stage.does,
    )
    def run(request_uri: str, previous_uri: str, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks import run_stage

        uri = run_stage(stage.name, request_uri)
        for asset in stage.outlets:
            outlet_events[asset].extra = {"request": request_uri, "uri": uri}
        return uri

    return run


planning = capacity_plan()

if __name__ == "__main__":
    from sluice_airflow.embedded import main

    main(planning, PARAMS)
