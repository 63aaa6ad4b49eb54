"""The same job on a stand-alone Spark cluster: a real master and worker on loopback, and spark-submit."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from servers.spark_cluster import SPARK_HOME, SparkCluster, spark_environment
from spark.features import features

pytestmark = pytest.mark.slow


@pytest.fixture
def environment() -> dict[str, str]:
    return spark_environment()


@pytest.fixture
def master_url(tmp_path: Path) -> Iterator[str]:
    """URL of a master with one worker of one core."""
    with SparkCluster(tmp_path) as cluster:
        cluster.add_worker()
        yield cluster.url


def test_a_cluster_gives_the_same_features_as_local_spark(
    spark: SparkSession,
    random_samples: Callable[..., pa.Table],
    master_url: str,
    environment: dict[str, str],
    tmp_path: Path,
    root: Path,
) -> None:
    samples = random_samples(3, runs=3, intervals=20)
    folder = tmp_path / "samples"
    for run in ("r0", "r1", "r2"):
        (folder / "job=q" / f"run={run}").mkdir(parents=True)
        own = samples.filter(pa.compute.field("run") == run).drop_columns(["job", "run"])
        pq.write_table(own, folder / "job=q" / f"run={run}" / "samples.parquet")
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master_url]
    command += [str(root / "spark" / "jobs" / "extract_features.py"), str(folder), str(tmp_path / "features")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    got = pq.read_table(tmp_path / "features").sort_by([("run", "ascending"), ("operator", "ascending")])
    expected = features(spark.createDataFrame(samples)).orderBy("run", "operator").toArrow()
    assert got.num_rows == 9
    assert got.cast(expected.schema).equals(expected)
    assert "Registered app sluice" in (tmp_path / "master.log").read_text()


def test_the_job_says_what_is_wrong_with_its_input(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark.jobs.extract_features", str(tmp_path / "absent"), str(tmp_path / "out")]
    done = subprocess.run(
        [*command, "--master", "local[1]"], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the samples cannot be read") and done.stderr.count("\n") == 1


WHERE = """
import sys
from models.cluster import Cluster
from models.dataflow import Dataflow
from spark.session import session
from spark.threshold_table import tune_scalings

def code_of(_):
    import models.placement, spark.threshold_table
    return [models.placement.__file__, spark.threshold_table.__file__]

spark = session(sys.argv[1])
operators = [{"name": "a", "parallelism": 3, "cpu": 1, "io": 0, "net": 0}]
scalings = {str(p): Dataflow.model_validate({"operators": [{**operators[0], "parallelism": p}]}) for p in (3, 4)}
cluster = Cluster.model_validate({"count": 2, "slots": 2})
for _ in range(2):  # the second time the code is there already
    table = tune_scalings(spark, cluster, scalings, seed=0, time_limit_s=60.0)
print("TUNED", sorted(zip(table["key"].to_pylist(), table["status"].to_pylist())))
print("CODE", spark.sparkContext.parallelize([0], 1).map(code_of).collect())
spark.stop()
"""


def test_executors_of_a_cluster_tune_thresholds_with_the_code_they_are_sent(
    master_url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    said = _said(WHERE, master_url, environment, tmp_path)
    assert "TUNED [('3', 'optimal'), ('4', 'optimal')]" in said
    _sent(said, "models/placement/__init__.py", "spark/threshold_table.py")


KEYS = """
import sys
from models.keys.sketch import Measure
from spark.key_distribution import key_sketch
from spark.recorded import read_recorded
from spark.session import session

def code_of(_):
    import models.keys.sketch, spark.key_distribution
    return [models.keys.sketch.__file__, spark.key_distribution.__file__]

spark = session(sys.argv[1])
sketch = key_sketch(read_recorded(spark, "keys.csv", "csv"), "who", Measure())
print("COUNTED", sorted(sketch.heavy.counts.items()))
print("CODE", spark.sparkContext.parallelize([0], 1).map(code_of).collect())
spark.stop()
"""


def test_executors_of_a_cluster_count_keys_with_the_code_they_are_sent(
    master_url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "keys.csv").write_text("who\nb\na\nb\n")
    said = _said(KEYS, master_url, environment, tmp_path)
    assert "COUNTED [('a', 1), ('b', 2)]" in said
    _sent(said, "models/keys/sketch.py", "spark/key_distribution.py")


REPLAY = """
import sys
from pipelines.arena.replays.compute import run_cell
from pipelines.arena.evaluation import cells
from pipelines.arena.request import EvaluationRequest
from pipelines.arena.on_spark import replay_on_spark
from spark.session import session

def code_of(_):
    import pipelines.arena, testbeds.simulator
    return [pipelines.arena.__file__, testbeds.simulator.__file__]

spark = session(sys.argv[1])
asked = {"jobs": ["nexmark-q1"], "workloads": ["cosine"], "policies": ["ds2", "hpa-cpu"], "minutes": 3}
asked["burn_in_minutes"] = 0
wanted = {cell.policy: cell for cell in cells(EvaluationRequest.model_validate(asked))}
found = dict(replay_on_spark(wanted))
print("SAME", all(found[p].outcome == run_cell(c).outcome and found[p].trace.equals(run_cell(c).trace)
                  for p, c in wanted.items()))
print("CODE", spark.sparkContext.parallelize([0], 1).map(code_of).collect())
spark.stop()
"""


def test_executors_of_a_cluster_replay_with_the_code_they_are_sent(
    master_url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    said = _said(REPLAY, master_url, environment, tmp_path)
    assert "SAME True" in said
    _sent(said, "pipelines/arena/__init__.py", "testbeds/simulator/__init__.py")


def _said(program: str, master_url: str, environment: dict[str, str], folder: Path) -> str:
    command = [sys.executable, "-c", program, master_url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _sent(said: str, *files: str) -> None:
    """That the executors had these from the archive that was sent to them."""
    code = next(line for line in said.splitlines() if line.startswith("CODE"))
    for file in files:
        assert re.search(rf"sluice-[0-9a-f]{{12}}\.zip/{re.escape(file)}", code)
