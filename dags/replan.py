"""The replanning DAG: after a rate change, a new version of the job's plan without new measurements, in seconds.

Run it by hand, in an embedded Airflow: `python dags/replan.py job=nexmark-q5 rate=3000000` (or `make replan`).
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowSkipException

from pipelines.inputs.plan_request import PlanRequest
from sluice_airflow.assets import MODEL, PLAN, RATE_CHANGE
from sluice_airflow.params import params_of
from sluice_airflow.pools import REPLANNING
from sluice_airflow.retries import RETRYING

FIRST: dict[str, Any] = {"priority_weight": 100, "weight_rule": "absolute"}
"""A rate has changed now; what other DAGs do by the day or the week can wait. Their tasks weigh as much as a chain is long."""
PARAMS = params_of(PlanRequest, "job", "rate")


@dag(
    schedule=[RATE_CHANGE],
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["sluice", "capacity", "replanning"],
    default_args=RETRYING,
    doc_md="""
### A new plan for a new rate

Triggered by an event of the asset `sluice-rate-change`: from the trigger that follows the source rates of the jobs whose
file asks for it (`operations.replan`), from the trigger that follows their calendars (`operations.calendar`) and asks for the
plan of a peak ahead of it, or with an `extra` of `{"job": "nexmark-q5", "rate": 3000000}`; or by hand with the parameters `job`
and `rate`.

A run plans for all jobs whose rate has changed since the last one, each once, the job that has waited longest first; the
latest rate counts, also if it came while the replan waited. Runs do not overlap, so a job whose rate changes often waits for
the others. Replans run in the pool `sluice-replanning`, which leaves slots to other DAGs, and before tasks of other DAGs.

The plan is made from the champion model, the profile and the threshold table, without measurements. The task is skipped if
the current plan serves the rate.
Asset: `sluice-plan`.
""",
)
def replan() -> None:
    @task(
        execution_timeout=timedelta(minutes=1),
        inlets=[RATE_CHANGE],
        doc_md="Reads the rate changes from the asset events or the parameters.",
        **FIRST,
    )
    def changes(
        params: Any = None, triggering_asset_events: Any = None, inlet_events: Any = None, dag_run: Any = None
    ) -> list[dict[str, Any]]:
        from sluice_airflow.tasks.replanning import rate_changes
        from sluice_airflow.unread import events_of_run

        extras = events_of_run(triggering_asset_events[RATE_CHANGE], inlet_events[RATE_CHANGE], dag_run)
        return rate_changes(params, extras, dag_run.run_id)

    @task(
        execution_timeout=timedelta(minutes=10),
        pool=REPLANNING,
        inlets=[MODEL, RATE_CHANGE],
        outlets=[PLAN],
        doc_md="Makes the next version of one job's plan.",
        **FIRST,
    )
    def plan_again(
        change: dict[str, Any], inlet_events: Any = None, outlet_events: Any = None, dag_run: Any = None
    ) -> str:
        from pipelines.store.pins import PinnedJob
        from sluice_airflow.tasks.replanning import newest_of_job
        from sluice_airflow.tasks.replanning import replan as make_plan

        change = newest_of_job(change, inlet_events[RATE_CHANGE], dag_run)
        try:
            uri = make_plan(change, dag_run.start_date)
        except PinnedJob as pinned:
            raise AirflowSkipException(str(pinned)) from None
        if uri is None:
            raise AirflowSkipException("the current plan serves that rate")
        outlet_events[PLAN].extra = {"change": change, "uri": uri}
        return uri

    plan_again.expand(change=changes())


replanning = replan()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(replanning, PARAMS)
