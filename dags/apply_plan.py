"""The applying DAG: a new plan is rehearsed on the running job, approved, applied, observed, and rolled back if it harms.

Run it by hand, in an embedded Airflow: `python dags/apply_plan.py job=nexmark-q5` (approvals need the web pages, so
this works for jobs whose file says `mode: alone`).
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import Param, dag, task, task_group
from airflow.sdk.exceptions import AirflowSkipException

from sluice_airflow.approvals.plan import PlanApproval
from sluice_airflow.assets import PLAN
from sluice_airflow.merging.task import PlanMerge
from sluice_airflow.retries import RETRYING

PARAMS = {
    "job": Param(None, type=["null", "string"], minLength=1, description="Job that has a plan, when run by hand."),
    "version": Param(
        None, type=["null", "integer"], minimum=1, description="Version of its plan; the newest if absent."
    ),
}


@dag(
    schedule=[PLAN],
    catchup=False,
    max_active_runs=16,
    params=PARAMS,
    tags=["sluice", "capacity", "applying"],
    default_args=RETRYING,
    doc_md="""
### From a plan to the running job

Triggered by each new plan (the asset `sluice-plan`), or by hand with the parameter `job`. Only jobs whose file allows it
(`operations.apply`) are changed, and only to their newest plan.

The steps are determined first, without any change. A person then approves or rejects them, unless the job's file needs no
approval; no answer in time is a rejection. Only the approved steps are taken: if the job has changed in the meantime, the
task reports that and does nothing. The job is observed before and after. If the plan does not run, or makes the job worse,
the previous state is restored, and the task fails with the reason.

Where the job's file names a git repository that the job is deployed from, the plan is written into a branch of it, and the
task `merge` waits for the merge in the triggerer, without a slot of a worker. `apply` then follows the job until it runs as
planned, and verifies it in the same way; where that fails, it writes the return from the plan into a branch, for a person to
merge. The cluster is not changed by Sluice.

The record is stored beside the plan in the workspace
(`SLUICE_WORKSPACE`).
""",
)
def apply_plan() -> None:
    @task(execution_timeout=timedelta(minutes=5), inlets=[PLAN], doc_md="Finds the new plans that may be applied.")
    def plans(
        params: Any = None, triggering_asset_events: Any = None, inlet_events: Any = None, dag_run: Any = None
    ) -> list[str]:
        from sluice_airflow.tasks.applying import plans_to_apply
        from sluice_airflow.unread import events_of_run

        extras = events_of_run(triggering_asset_events[PLAN], inlet_events[PLAN], dag_run)
        return plans_to_apply(params, extras)

    @task(execution_timeout=timedelta(minutes=5), doc_md="Determines the steps without changing anything.")
    def rehearse(plan_uri: str) -> str:
        from sluice_airflow.tasks.applying import rehearse as work_out

        uri = work_out(plan_uri)
        if uri is None:
            raise AirflowSkipException("Flink runs this plan already")
        return uri

    @task(
        execution_timeout=timedelta(hours=4),
        max_active_tis_per_dag=1,
        doc_md="Applies the plan to Flink, observes the effect, and rolls back if it harms; after a merge, follows the job.",
    )
    def apply(rehearsal_uri: str, approved_by: str, proposal_uri: str | None) -> str:
        if proposal_uri is not None:
            from sluice_airflow.tasks.merging import apply_merged

            return apply_merged(proposal_uri)
        from sluice_airflow.tasks.applying import apply_rehearsed

        uri = apply_rehearsed(rehearsal_uri, approved_by)
        if uri is None:
            raise AirflowSkipException("the steps were rejected")
        return uri

    @task_group
    def one_plan(plan_uri: str) -> None:
        rehearsal_uri: Any = rehearse(plan_uri)
        approval: Any = PlanApproval(
            task_id="approve",
            rehearsal_uri=rehearsal_uri,
            execution_timeout=timedelta(minutes=5),
            response_timeout=timedelta(days=1),
            doc_md="Asks a person, unless the job's file needs no approval.",
        )
        merge: Any = PlanMerge(
            task_id="merge",
            rehearsal_uri=rehearsal_uri,
            approved_by=approval.output,
            execution_timeout=timedelta(minutes=10),
            doc_md="For a job that is deployed from a git repository: writes the plan into a branch, and waits for its merge.",
        )
        apply(rehearsal_uri, approval.output, merge.output)

    one_plan.expand(plan_uri=plans())


applying = apply_plan()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(applying, PARAMS)
