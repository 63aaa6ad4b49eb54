"""The drift DAG: compares production samples with a job's measurements, and requests new ones where they differ.

Run it by hand, in an embedded Airflow: `python dags/watch_drift.py job=nexmark-q5`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from sluice_airflow.assets import REPROFILE
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param(
        None, type=["null", "string"], minLength=1, description="Job to check; all jobs with samples if absent."
    ),
    "samples": Param(
        None,
        type=["null", "string"],
        pattern=r"^production/[A-Za-z0-9_=+@-][A-Za-z0-9_=+@./-]*$",
        description="Workspace key of a file or folder of production samples, below production/; "
        "all of the job's if absent.",
    ),
}


@dag(
    schedule="@daily",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["sluice", "capacity", "drift"],
    default_args=RETRYING,
    doc_md="""
### Do records still cost in production what was measured?

Spark extracts features from the samples below `production/JOB/` in the workspace (`SLUICE_WORKSPACE`), as from those of the
measurements. If the unit costs of an operator, its busyness, or the predicted MST leave the interval expected from the
current plan's measurements, an event of the asset `sluice-reprofile` requests a new run of `capacity_plan`, with the
reason: once per plan's measurements, and not within the cool-down in the job's file. The task is skipped without drift, or
if the request was made before.
""",
)
def watch_drift() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Lists the jobs to check.")
    def jobs(params: Any = None) -> list[str]:
        from sluice_airflow.tasks.drift import jobs_to_watch

        return jobs_to_watch(params)

    @task(
        execution_timeout=timedelta(hours=1),
        max_active_tis_per_dag=2,  # each has a Spark of its own, and hundreds of jobs have the day for it
        outlets=[REPROFILE],
        doc_md="Compares one job's production with its measurements, and requests new ones where they differ.",
    )
    def watch(job: str, params: Any = None, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks.drift import watch as look

        asked = look(job, params["samples"])
        if asked is None:
            raise AirflowSkipException("no new measurements are needed")
        outlet_events[REPROFILE].extra = asked
        return str(asked["drift"])

    watch.expand(job=jobs())


watching = watch_drift()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(watching, PARAMS)
