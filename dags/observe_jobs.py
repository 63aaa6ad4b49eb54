"""The observing DAG: while it is unpaused, Airflow's triggerer observes the running jobs of the workspace.

Run it by hand, in an embedded Airflow: `python dags/observe_jobs.py` lists the jobs.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import dag, task

from sluice_airflow.assets import OBSERVED
from sluice_airflow.retries import RETRYING


@dag(
    schedule=[OBSERVED],
    catchup=False,
    max_active_runs=1,
    tags=["sluice", "capacity", "observe"],
    default_args=RETRYING,
    doc_md="""
### How do the running jobs do?

While this DAG is unpaused, the triggerer reads the counters of every running job of the workspace (`SLUICE_WORKSPACE`) or
the catalogue whose file has `operations.observe`. Nothing is changed on Flink. Once an hour (`window_s`) it stores what was
seen as `observed/JOB/`, and samples as `production/JOB/`, where `watch_drift` reads them, and sends an event of the asset
`sluice-observed`, which runs this DAG: its task says what was seen.
""",
)
def observe_jobs() -> None:
    @task(
        execution_timeout=timedelta(minutes=5),
        inlets=[OBSERVED],
        doc_md="Says what was seen in the windows that are over.",
    )
    def windows(triggering_asset_events: Any = None, inlet_events: Any = None, dag_run: Any = None) -> list[str]:
        from sluice_airflow.tasks.observing import report
        from sluice_airflow.unread import events_of_run

        return report(events_of_run(triggering_asset_events[OBSERVED], inlet_events[OBSERVED], dag_run))

    windows()


observing = observe_jobs()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(observing, {})
