"""The drift DAG: production samples beside what a job was measured to cost; where they differ, it is measured anew.

Run it by hand, in an embedded Airflow: `python dags/watch_drift.py job=nexmark-q5`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from sluice_airflow.assets import REPROFILE
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param(None, type=["null", "string"], minLength=1, description="Job to look at; all with samples if absent."),
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
### Does production still cost what was measured?

The samples below `production/JOB/` in the workspace (`SLUICE_WORKSPACE`) become features on Spark, as those of the
measurements did. Where the unit costs of an operator, its busyness, or the predicted MST leave the interval of what the
current plan was made from, an event of the asset `sluice-reprofile` asks `capacity_plan` to measure and plan the job
anew, with the reason: once for each plan's measurements, and not again within the cool-down of the job's file. Where
nothing drifted, or it was asked for before, the task is skipped.
""",
)
def watch_drift() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Lists the jobs to look at.")
    def jobs(params: Any = None) -> list[str]:
        from sluice_airflow.drift import jobs_to_watch

        return jobs_to_watch(params)

    @task(
        execution_timeout=timedelta(hours=1),
        outlets=[REPROFILE],
        doc_md="Compares one job's production with its measurements, and asks for new ones where they differ.",
    )
    def watch(job: str, params: Any = None, outlet_events: Any = None) -> str:
        from sluice_airflow.drift import watch as look

        asked = look(job, params["samples"])
        if asked is None:
            raise AirflowSkipException("nothing is asked for")
        outlet_events[REPROFILE].extra = asked
        return str(asked["drift"])

    watch.expand(job=jobs())


watching = watch_drift()

if __name__ == "__main__":
    from sluice_airflow.embedded import main

    main(watching, PARAMS)
