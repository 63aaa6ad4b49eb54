"""The planning DAG: one task a stage, from a job and a target rate to a published plan.

Run it by hand, in an embedded Airflow: `python dags/capacity_plan.py job=nexmark-q5 rate=2500000` (or `make plan`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, Param, dag, task

from sluice_airflow.assets import FEATURES, MODEL, PLAN, SAMPLES
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param("nexmark-q5", type="string", minLength=1, description="Job of the catalogue, or path of a job file."),
    "rate": Param(2_500_000, type="number", exclusiveMinimum=0, description="Target rate at the sources, records/s."),
    "cluster": Param("production", type="string", minLength=1, description="Cluster of the catalogue, or a file."),
    "testbed": Param("simulator", enum=["simulator", "flink", "recorded"], description="Where the job is measured."),
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


STAGES = (
    Stage("profile", "Measures each operator on a worker of its own.", timedelta(hours=6)),
    Stage("explore", "Measures the capacity of budgets chosen by Bayesian optimisation.", timedelta(hours=24)),
    Stage("check", "Stops bad samples.", timedelta(hours=1), (SAMPLES,)),
    Stage("features", "Turns samples into features of operators, on Spark.", timedelta(hours=2)),
    Stage("check_features", "Stops bad features.", timedelta(hours=1), (FEATURES,)),
    Stage("select", "Fits the candidates, selects one and registers it.", timedelta(hours=1)),
    Stage("review", "Promotes it if it is no worse than the champion.", timedelta(hours=1), (MODEL,)),
    Stage("tune", "Finds the placement thresholds for the scalings that may come.", timedelta(hours=2)),
    Stage("plan", "Slots, memory, parallelism and placement.", timedelta(hours=1)),
    Stage("publish", "Stores the plan's version and its report.", timedelta(hours=1), (PLAN,)),
)


@dag(
    schedule="@weekly",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
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

Assets: `sluice-samples`, `sluice-features`, `sluice-model`, `sluice-plan`.
""",
)
def capacity_plan() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Keeps the validated request in the workspace.")
    def request(params: Any = None, dag_run: Any = None) -> str:
        from sluice_airflow.tasks import keep_request, run_name

        return keep_request(params, run_name(dag_run.run_id) if dag_run.run_type == "scheduled" else None)

    request_uri = request()
    uri = request_uri
    for stage in STAGES:
        uri = _stage_task(stage)(request_uri, uri)


def _stage_task(stage: Stage) -> Callable[[Any, Any], Any]:
    @task(
        task_id=stage.name,
        execution_timeout=stage.timeout,
        outlets=list(stage.outlets),
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
