"""Thresholds tuned by Spark equal those of the models, and scalings without a placement have the reason in their row."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import Tuning, tune
from spark.code import zipped_code
from spark.threshold_table import FAILED, INFEASIBLE, PACKAGES, THRESHOLDS, tune_scalings

pytestmark = pytest.mark.slow

CLUSTER = Cluster.model_validate({"count": 4, "slots": 4, "memory_mb": 400})


def q1_sliding(*parallelism: int, memory_mb: float = 0.0) -> Dataflow:
    """CAPSys Q1-sliding; 2, 5, 8 and 1 tasks is the scaling of the paper."""
    loads = {
        "source": (0.06, 0.0, 1880.0),
        "map": (0.43, 0.0, 154.0),
        "window": (0.74, 17067.0, 361.0),
        "sink": (0.02, 0, 0),
    }
    operators = [
        {"name": name, "parallelism": p, "cpu": cpu, "io": io, "net": net, "memory_mb": memory_mb}
        for (name, (cpu, io, net)), p in zip(loads.items(), parallelism, strict=True)
    ]
    edges = [("source", "map", "rebalance"), ("map", "window", "hash"), ("window", "sink", "rebalance")]
    named = [{"from": u, "to": v, "partitioning": how} for u, v, how in edges]
    return Dataflow.model_validate({"name": "q1-sliding", "operators": operators, "edges": named})


SCALINGS = {"paper": q1_sliding(2, 5, 8, 1), "half": q1_sliding(1, 3, 4, 1), "least": q1_sliding(1, 1, 1, 1)}


def by_key(table: pa.Table) -> dict[str, dict]:
    return {row["key"]: row for row in table.to_pylist()}


def test_each_scaling_is_tuned_as_the_models_tune_it(spark: SparkSession) -> None:
    rows = by_key(tune_scalings(spark, CLUSTER, SCALINGS, seed=0, time_limit_s=60.0))
    assert rows.keys() == SCALINGS.keys()
    for key, dataflow in SCALINGS.items():
        expected, row = tune(dataflow, CLUSTER), rows[key]
        got = Tuning.model_validate_json(row["tuning"])
        assert got.model_copy(update={"seconds": None}) == expected
        assert (row["cpu"], row["io"], row["net"]) == tuple(expected.thresholds.model_dump().values())
        assert (row["status"], row["message"]) == (expected.status, None)
        assert row["seconds"] >= (got.seconds or 0) > 0


def test_a_scaling_without_placement_says_why_and_spoils_no_other(spark: SparkSession) -> None:
    hopeless = {"many": q1_sliding(2, 6, 8, 1), "large": q1_sliding(1, 1, 1, 1, memory_mb=500)}
    rows = by_key(tune_scalings(spark, CLUSTER, {**hopeless, "paper": SCALINGS["paper"]}, seed=0, time_limit_s=60.0))
    assert rows["paper"]["status"] not in (INFEASIBLE, FAILED)
    assert {rows[key]["status"] for key in hopeless} == {INFEASIBLE}
    assert "17 tasks need as many slots" in rows["many"]["message"]
    assert "needs 500 MiB" in rows["large"]["message"]
    assert [rows["many"][column] for column in ("cpu", "io", "net", "tuning")] == [None] * 4


def test_no_scalings_give_an_empty_table(spark: SparkSession) -> None:
    table = tune_scalings(spark, CLUSTER, {}, seed=0, time_limit_s=60.0)
    assert table.num_rows == 0
    assert table.column_names == THRESHOLDS.names


def test_what_executors_are_sent_is_the_code_of_models_and_spark(root: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(zipped_code(PACKAGES))) as archive:
        names = archive.namelist()
        assert archive.read("models/placement/tuning.py") == (root / "models" / "placement" / "tuning.py").read_bytes()
    assert {"models/__init__.py", "spark/__init__.py", "spark/threshold_table.py"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"models", "spark"}
    assert zipped_code(PACKAGES) == zipped_code(PACKAGES)


def job(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spark.jobs.tune_thresholds", *arguments, "--master", "local[1]"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=180, check=False)


def written(folder: Path) -> tuple[Path, Path]:
    """Files of the scalings and of the cluster."""
    scalings, cluster = folder / "scalings.parquet", folder / "cluster.json"
    rows = [{"key": key, "dataflow": d.model_dump_json(by_alias=True)} for key, d in SCALINGS.items()]
    pq.write_table(pa.Table.from_pylist(rows), scalings)
    cluster.write_text(json.dumps({"count": 4, "slots": 4, "memory_mb": 400}))
    return scalings, cluster


def test_the_job_writes_the_table(root: Path, tmp_path: Path) -> None:
    scalings, cluster = written(tmp_path)
    done = job(root, str(scalings), str(cluster), str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr[-2000:]
    rows = by_key(pq.read_table(tmp_path / "out"))
    assert {key: row["cpu"] for key, row in rows.items()} == {
        key: tune(dataflow, CLUSTER).thresholds.cpu for key, dataflow in SCALINGS.items()
    }


def test_the_job_refuses_a_file_that_is_no_cluster(root: Path, tmp_path: Path) -> None:
    scalings, cluster = written(tmp_path)
    cluster.write_text("{}")
    done = job(root, str(scalings), str(cluster), str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and "must be a JSON file of a cluster" in done.stderr
