"""The DAG that compares scaling policies: replays hours of workload, and chooses the best policy for each job.

Run it by hand, in an embedded Airflow: `python dags/evaluate_policies.py jobs=nexmark-q11 workloads=cosine minutes=60`.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, dag, task

from pipelines.arena.request import EvaluationRequest
from sluice_airflow.assets import POLICIES
from sluice_airflow.params import params_of
from sluice_airflow.retries import RETRYING

NAMES: dict[str, Any] = {"type": ["array", "string"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}
PARAMS = {
    "jobs": Param(
        ["nexmark-q1", "nexmark-q2", "nexmark-q3", "nexmark-q5", "nexmark-q11"],
        **NAMES,
        description="Jobs of the catalogue, or job files: a list, or names with commas between them.",
    ),
    "workloads": Param(
        ["increasing", "decreasing", "cosine", "random", "steps"],
        **NAMES,
        description="Patterns, or CSV files of rates (FILE.csv, or FILE.csv:COLUMN).",
    ),
    "policies": Param(
        ["ds2", "flink", "justin", "dhalion", "hpa-cpu", "hpa-varga", "sluice", "static"],
        **NAMES,
        description="Scaling policies to compare.",
    ),
    "rescale_modes": Param(
        ["in-place"],
        **NAMES,
        description="How rescales are made: in-place, savepoint, redeploy, or several; the choice is for the first.",
    ),
    "starts": Param(
        ["well"], **NAMES, description="Initial deployments: well, under (half) or over (twice) provisioned."
    ),
    "settings": Param({}, type="object", description="Settings by policy that differ from its defaults."),
    **params_of(
        EvaluationRequest,
        *("cluster", "seed", "seeds", "minutes", "burn_in_minutes", "peak_rate", "placement"),
        *("managed_memory_mb", "sweep", "objective_s", "attainment"),
    ),
    "spark": Param(False, type="boolean", description="Replay as a Spark job (SLUICE_SPARK_MASTER), for many cells."),
}


@dag(
    schedule="@weekly",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["sluice", "capacity", "scaling"],
    default_args=RETRYING,
    doc_md="""
### Which scaling policy serves each job best

Replays hours of workload under every policy on the simulator, and writes to the workspace (`SLUICE_WORKSPACE`) a table of
results, a page of plots, and the chosen policy of each job as a versioned document. Each evaluation is a run in MLflow.

Each finished replay is stored, so a retry replays the missing ones; with the same code and parameters nothing is replayed
again, and no second version or run is made. Asset: `sluice-policies`, one event per job.
""",
)
def evaluate_policies() -> None:
    @task(execution_timeout=timedelta(minutes=5), doc_md="Stores the validated request in the workspace.")
    def request(params: Any = None) -> str:
        from sluice_airflow.tasks.evaluation import keep_request

        return keep_request(params)

    @task(execution_timeout=timedelta(hours=12), doc_md="Replays every job, workload, policy, setting and seed.")
    def replay(request_uri: str, params: Any = None) -> str:
        from sluice_airflow.tasks.evaluation import replay as replay_all

        return replay_all(request_uri, params["spark"])

    @task(execution_timeout=timedelta(hours=1), doc_md="Writes the page of plots, and logs to MLflow.")
    def report(request_uri: str, results_uri: str) -> str:
        from sluice_airflow.tasks.evaluation import report as write_and_log

        return write_and_log(request_uri)

    @task(execution_timeout=timedelta(minutes=5), doc_md="Lists the jobs to choose a policy for.")
    def jobs(request_uri: str, report_uri: str) -> list[str]:
        from sluice_airflow.tasks.evaluation import jobs as jobs_of

        return jobs_of(request_uri)

    @task(
        execution_timeout=timedelta(hours=1),
        outlets=[POLICIES],
        doc_md="Stores the policy of one job.",
    )
    def choose(job: str, request_uri: str, outlet_events: Any = None) -> str:
        from sluice_airflow.tasks.evaluation import choose as choose_policy

        chosen = choose_policy(request_uri, job)
        outlet_events[POLICIES].extra = chosen
        return str(chosen["uri"])

    request_uri: Any = request()
    results_uri: Any = replay(request_uri)
    report_uri: Any = report(request_uri, results_uri)
    choose.partial(request_uri=request_uri).expand(job=jobs(request_uri, report_uri))


evaluating = evaluate_policies()

if __name__ == "__main__":
    from sluice_airflow.embedded.run import main

    main(evaluating, PARAMS)
