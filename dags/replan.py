"""The replanning DAG: a rate has changed, so the job gets a new version of its plan from what is known, in seconds.

Run it by hand, in an embedded Airflow: `python dags/replan.py job=nexmark-q5 rate=3000000` (or `make replan`).
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task
from airflow.sdk.exceptions import AirflowSkipException

from sluice_airflow.assets import PLAN, RATE_CHANGE
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param(None, type=["null", "string"], minLength=1, description="Job to plan for, when run by hand."),
    "rate": Param(
        None, type=["null", "number"], exclusiveMinimum=0, description="Its new rate, records/s, when run by hand."
    ),
}


@dag(
    schedule=[RATE_CHANGE],
    catchup=False,
    max_active_runs=4,
    params=PARAMS,
    tags=["sluice", "capacity", "replanning"],
    default_args=RETRYING,
    doc_md="""
### A new plan for a new rate

Triggered by an event of the asset `sluice-rate-change`: from the trigger that follows the source rates of the jobs whose
file asks for it, or with an `extra` of `{"job": "nexmark-q5", "rate": 3000000}`; or by hand with the parameters `job`
and `rate`. Several events that came together give one plan a job, for its latest
rate. The plan is made from the champion model, the profile and the threshold table: nothing is measured. Where the
plan in force serves that rate already, the task is skipped. Asset: `sluice-plan`.
""",
)
def replan() -> None:
    @task(execution_timeout=timedelta(minutes=1), doc_md="Reads what changed from the asset events or the parameters.")
    def changes(params: Any = None, triggering_asset_events: Any = None, dag_run: Any = None) -> list[str]:
        from sluice_airflow.tasks import rate_changes

        events = sorted(triggering_asset_events[RATE_CHANGE], key=lambda event: event.timestamp)
        return rate_changes(params, [event.extra for event in events], dag_run.run_id)

    @task(
        execution_timeout=timedelta(minutes=10),
        outlets=[PLAN],
        doc_md="Makes the next version of one job's plan.",
    )
    def plan_again(change_uri: str, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks import replan as make_plan

        uri = make_plan(change_uri)
        if uri is None:
            raise AirflowSkipException("the plan in force serves that rate already")
        outlet_events[PLAN].extra = {"change": change_uri, "uri": uri}
        return uri

    plan_again.expand(change_uri=changes())


replanning = replan()

if __name__ == "__main__":
    from sluice_airflow.embedded import main

    main(replanning, PARAMS)
