"""The autopilots' DAG: while it is unpaused, Airflow's triggerer lets scaling policies act on the running jobs.

Run it by hand, in an embedded Airflow: `python dags/autopilot_jobs.py` lists the jobs.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import dag, task, task_group
from airflow.sdk.exceptions import AirflowFailException

from sluice_airflow.approvals.autopilot import AutopilotApproval
from sluice_airflow.assets import AUTOPILOT
from sluice_airflow.retries import RETRYING


@dag(
    schedule=[AUTOPILOT],
    catchup=False,
    max_active_runs=16,
    tags=["sluice", "capacity", "autopilot"],
    default_args=RETRYING,
    doc_md="""
### Scaling policies act on running jobs

While this DAG is unpaused, the triggerer runs an autopilot for every job of the workspace (`SLUICE_WORKSPACE`) or the
catalogue whose file has `operations.autopilot`: in a dry run, after a person's approval, or alone. Each rescale sends an
event of the asset `sluice-autopilot`, which runs this DAG. A run fails if a rescale failed or was rolled back. The page
*Autopilots* shows every job and has a button to stop its autopilot; pausing this DAG ends all of them.
""",
)
def autopilot_jobs() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Says what was done, and which autopilots need permission.")
    def events(triggering_asset_events: Any = None) -> list[dict[str, str]]:
        from sluice_airflow.tasks.piloting import report

        return report([event.extra for event in triggering_asset_events[AUTOPILOT]])

    @task(execution_timeout=timedelta(minutes=5), doc_md="Fails if a rescale failed or was rolled back.")
    def harm(triggering_asset_events: Any = None) -> None:
        from sluice_airflow.tasks.piloting import harm as found

        what = found([event.extra for event in triggering_asset_events[AUTOPILOT]])
        if what is not None:
            raise AirflowFailException(what)

    @task_group
    def permission(about: dict[str, str]) -> None:
        AutopilotApproval(
            task_id="approve",
            about=about,
            execution_timeout=timedelta(minutes=5),
            response_timeout=timedelta(days=1),
            doc_md="Asks a person whether the autopilot of a job may act.",
        )

    harm()
    permission.expand(about=events())


piloting = autopilot_jobs()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(piloting, {})
