"""The stage that makes features: from the run's own samples only, once, and again when something changed."""

from pathlib import Path

import pyarrow as pa
import pytest

from models.errors import SluiceError
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages.features import FeaturesRecord, features
from pipelines.store.samples import samples_key, write_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

pytestmark = pytest.mark.slow

OPERATORS = ("source", "calc", "sink")


def samples(run: str, records: float = 1000.0) -> pa.Table:
    """Two samples of one task of each operator of q1: half of the time busy."""
    rows = [
        {
            **{f.name: 1.0 for f in SAMPLE_SCHEMA if not f.nullable},
            **{"run": run, "job": "nexmark-q1", "operator": operator, "task": 0, "worker": "w", "phase": "observe"},
            **{"time_s": time_s, "interval_s": 5.0, "records_in": records, "records_out": records, "busy_s": 2.5},
            "lag_records": 0.0 if operator == "source" else None,
        }
        for time_s in (5.0, 10.0)
        for operator in OPERATORS
    ]
    return pa.Table.from_pylist(rows, SAMPLE_SCHEMA)


@pytest.fixture
def run(tmp_path: Path) -> PipelineRun:
    request = PlanRequest(job="nexmark-q1", rate=1e6, cluster="testbed", run="r1")
    made = PipelineRun(request, Workspace(tmp_path / "w"))
    write_samples(made.workspace, pa.concat_tables([samples("r1-profile"), samples("r1-m000"), samples("r10-m000")]))
    return made


def file_of(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def test_features_of_the_runs_of_this_pipeline_run(run: PipelineRun) -> None:
    uri = features(run)
    assert uri == run.workspace.uri("runs/nexmark-q1/r1/features.parquet")
    table = run.workspace.read_table(run.key("features.parquet"))
    got = [(row["run"], row["operator"]) for row in table.to_pylist()]
    assert got == [(r, o) for r in ("r1-m000", "r1-profile") for o in sorted(OPERATORS)]
    calc = table.to_pylist()[0]
    assert (calc["true_rate_per_task"], calc["busyness"], calc["records_in_per_source_record"]) == (400.0, 0.5, 1.0)
    assert run.output("features.json", FeaturesRecord).runs == ("r1-m000", "r1-profile")


def test_what_was_extracted_is_not_extracted_again(run: PipelineRun) -> None:
    before = file_of(features(run)).stat().st_mtime_ns
    assert file_of(features(run)).stat().st_mtime_ns == before


def test_it_is_extracted_again_when_samples_changed_or_the_table_is_gone_or_damaged(run: PipelineRun) -> None:
    path = file_of(features(run))
    content = path.read_bytes()
    path.unlink()
    assert file_of(features(run)).read_bytes() == content
    path.write_bytes(content[:100])
    assert file_of(features(run)).read_bytes() == content
    write_samples(run.workspace, samples("r1-m001"))
    features(run)
    assert run.workspace.read_table(run.key("features.parquet")).num_rows == 9


def test_without_samples_it_says_what_to_run_first(tmp_path: Path) -> None:
    request = PlanRequest(job="nexmark-q1", rate=1e6, cluster="testbed", run="r1")
    with pytest.raises(SluiceError, match="run the stages profile and explore first"):
        features(PipelineRun(request, Workspace(tmp_path / "w")))


def test_samples_that_spark_refuses_are_an_error_of_one_line(run: PipelineRun) -> None:
    bad = samples("r1-m002").drop_columns(["busy_s", "run", "job"])
    run.workspace.write_table(samples_key("nexmark-q1", "r1-m002"), bad)
    with pytest.raises(SluiceError, match=r"column 'busy_s' must not be null") as caught:
        features(run)
    assert "\n" not in str(caught.value)
