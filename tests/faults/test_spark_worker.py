"""Spark loses executors and workers during a job: features are still complete, and equal to those of a local run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages.profile import profile
from pipelines.store.workspace import Workspace
from servers.spark_cluster import SPARK_HOME, SparkCluster, spark_environment, wait_for

pytestmark = pytest.mark.slow

PROFILED = PlanRequest(job="nexmark-q5", rate=2_500_000.0, run="r")
RUNS = 6
A_TASK_FOR_EACH_FILE = ["--conf", "spark.sql.files.openCostInBytes=1", "--conf", "spark.sql.files.maxPartitionBytes=1k"]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Those of a profile, as if it had been taken RUNS times."""
    run = PipelineRun(PROFILED, Workspace(tmp_path / "workspace"))
    run.start()
    profile(run)
    folder = tmp_path / "workspace" / "samples" / f"job={PROFILED.job}"
    (measured,) = folder.iterdir()
    for number in range(1, RUNS):
        shutil.copytree(measured, folder / f"run=r{number}")
    return folder


def _features(folder: Path) -> pa.Table:
    return pq.read_table(folder).sort_by([("run", "ascending"), ("operator", "ascending")])


def _executor(
    cluster: SparkCluster, worker: subprocess.Popen[bytes], number: int, has_come_to: Callable[[str], bool]
) -> psutil.Process:
    """The executor of this number, once its log says that it has come so far."""

    def look() -> psutil.Process | None:
        logs, running = cluster.executor_logs(), cluster.executors(worker)
        return running[0] if len(logs) == number + 1 and running and has_come_to(logs[number]) else None

    return wait_for(look, f"executor {number} never came so far")


def test_a_job_whose_executor_and_then_whose_worker_is_killed_gives_what_a_local_run_gives(
    samples: Path, tmp_path: Path, root: Path
) -> None:
    script, made = str(root / "spark" / "jobs" / "extract_features.py"), tmp_path / "features"
    with SparkCluster(tmp_path) as cluster:
        worker = cluster.add_worker()
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url, *A_TASK_FOR_EACH_FILE]
        with (tmp_path / "job.log").open("wb") as log:
            job = subprocess.Popen(
                [*command, script, str(samples), str(made)],
                env=spark_environment(),
                stdout=log,
                stderr=log,
                cwd=tmp_path,
                start_new_session=True,
            )
        try:
            _executor(cluster, worker, 0, lambda said: "Running task 0.0" in said).kill()
            _executor(cluster, worker, 1, lambda said: "Finished task" in said)
            worker.kill()
            worker.wait()
            assert job.poll() is None, "it was in the middle of its work"
            cluster.add_worker()
            assert job.wait(180) == 0, (tmp_path / "job.log").read_text()[-3000:]
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
        finished = [log.count("Finished task") for log in cluster.executor_logs()]
    assert len(finished) == 3
    assert finished[2] >= RUNS, "what the others had done was lost, and done again"
    local = [sys.executable, script, str(samples), str(tmp_path / "local"), "--master", "local[1]"]
    subprocess.run(local, env=spark_environment(), check=True, capture_output=True, timeout=180, cwd=tmp_path)
    assert _features(made).num_rows == RUNS * len(load_job(PROFILED.job).operators)
    assert _features(made).equals(_features(tmp_path / "local"))
