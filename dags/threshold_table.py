"""The DAG of threshold tables: placement thresholds for the scalings around each new plan, tuned ahead of time.

Run it by hand, in an embedded Airflow: `python dags/threshold_table.py job=nexmark-q5 step=0.05`.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from pipelines.planning.threshold_request import ThresholdRequest
from sluice_airflow.assets import PLAN, THRESHOLDS
from sluice_airflow.params import params_of
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param(None, type=["null", "string"], minLength=1, description="Job that has a plan, when run by hand."),
    **params_of(ThresholdRequest),
}


@dag(
    schedule=[PLAN],
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["sluice", "capacity", "placement"],
    default_args=RETRYING,
    doc_md="""
### Placement thresholds ahead of time

Triggered by each new plan (the asset `sluice-plan`), or by hand with the parameter `job`. Rates around the plan's target
are scaled as a replan would scale them, and the placement thresholds of each scaling are tuned on Spark, in parallel. The
table is in the workspace (`SLUICE_WORKSPACE`); a replan whose scaling is in the table tunes nothing. Finished rows are
stored, so a retry adds the missing ones. Asset: `sluice-thresholds`.
""",
)
def threshold_table() -> None:
    @task(execution_timeout=timedelta(minutes=1), inlets=[PLAN], doc_md="Finds the jobs with new plans.")
    def jobs(
        params: Any = None, triggering_asset_events: Any = None, inlet_events: Any = None, dag_run: Any = None
    ) -> list[str]:
        from sluice_airflow.tasks.thresholds import jobs_with_new_plans
        from sluice_airflow.unread import events_of_run

        extras = events_of_run(triggering_asset_events[PLAN], inlet_events[PLAN], dag_run)
        return jobs_with_new_plans(params, extras)

    @task(
        execution_timeout=timedelta(hours=12),
        outlets=[THRESHOLDS],
        doc_md="Tunes the thresholds of one job's scalings, on Spark.",
    )
    def tune_all(job: str, params: Any = None, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks.thresholds import threshold_table as make_table

        uri = make_table(job, params)
        outlet_events[THRESHOLDS].extra = {"job": job, "uri": uri}
        return uri

    tune_all.expand(job=jobs())


tables = threshold_table()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(tables, PARAMS)
