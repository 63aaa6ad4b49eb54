"""The drift DAG: compares production samples with a job's measurements, and requests new ones where they differ.

Run it by hand, in an embedded Airflow: `python dags/watch_drift.py job=nexmark-q5`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, TriggerRule, dag, task
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
current plan's measurements, new ones are requested, with the reason: once per plan's measurements, and not within the
cool-down in the job's file.

Each task `watch` checks a batch of jobs with one Spark session, and is skipped if none needs new measurements. Its log says
what was found for each job. A job that cannot be checked does not stop the others of its batch; the task fails in the end and
names it.

`ask` sends the requests in one event of the asset `sluice-reprofile`, which starts a run of `capacity_plan`. It also sends
requests of earlier runs that were not sent. It is skipped if there are none.
""",
)
def watch_drift() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Lists the jobs to check, in batches.")
    def batches(params: Any = None) -> list[list[str]]:
        from sluice_airflow.tasks.drift import batches_to_watch

        return batches_to_watch(params)

    @task(
        execution_timeout=timedelta(hours=1),
        max_active_tis_per_dag=2,  # each has a Spark of its own, and other DAGs need the rest of the machine
        doc_md="Compares the production of the jobs of a batch with their measurements, and keeps requests for new ones.",
    )
    def watch(batch: list[str], params: Any = None) -> list[str]:
        from sluice_airflow.tasks.drift import watch as look

        if not (reports := look(batch, params["samples"])):
            raise AirflowSkipException("no job of the batch needs new measurements")
        return reports

    @task(
        execution_timeout=timedelta(minutes=5),
        trigger_rule=TriggerRule.ALL_DONE,  # a job that cannot be checked keeps no other job waiting
        inlets=[REPROFILE],
        outlets=[REPROFILE],
        doc_md="Sends the requests that no event carries yet, in one event.",
    )
    def ask(found: list[list[str]] | None, inlet_events: Any = None, outlet_events: Any = None) -> list[str]:
        from sluice_airflow.tasks.drift import requests_to_send, say_and_notify

        asked = requests_to_send(found or [], inlet_events[REPROFILE], datetime.now(UTC))
        if not asked:
            raise AirflowSkipException("no new measurements are needed")
        say_and_notify(asked)
        outlet_events[REPROFILE].extra = {"requests": asked}
        return [str(one["drift"]) for one in asked]

    @task(
        execution_timeout=timedelta(minutes=5),
        trigger_rule=TriggerRule.NONE_FAILED,  # the last task gives the run its state, and `ask` runs whatever failed
        doc_md="Fails, and the run with it, if a job could not be checked.",
    )
    def checked() -> None:
        pass

    found: Any = batches()
    watched: Any = watch.expand(batch=found)
    asked: Any = ask(found)
    watched >> asked
    [watched, asked] >> checked()


watching = watch_drift()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(watching, PARAMS)
