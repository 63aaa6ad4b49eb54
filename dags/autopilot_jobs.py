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
    @task(execution_timeout=timedelta(minutes=5), inlets=[AUTOPILOT], doc_md="Reads the events that no run has read.")
    def sent(
        triggering_asset_events: Any = None, inlet_events: Any = None, dag_run: Any = None
    ) -> list[dict[str, Any]]:
        from sluice_airflow.unread import events_of_run

        return [dict(c) for c in events_of_run(triggering_asset_events[AUTOPILOT], inlet_events[AUTOPILOT], dag_run)]

    @task(execution_timeout=timedelta(minutes=5), doc_md="Says what was done, and which autopilots need permission.")
    def events(sent: list[dict[str, Any]]) -> list[dict[str, str]]:
        from sluice_airflow.tasks.piloting import report

        return report(sent)

    @task(execution_timeout=timedelta(minutes=5), doc_md="Fails if a rescale failed or was rolled back.")
    def harm(sent: list[dict[str, Any]]) -> None:
        from sluice_airflow.tasks.piloting import harm as found

        what = found(sent)
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

    unread: Any = sent()
    harm(unread)
    permission.expand(about=events(unread))


piloting = autopilot_jobs()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(piloting, {})
