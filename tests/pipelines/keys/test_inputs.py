"""What the stage `features` keeps of keys: recorded streams exactly, other hash-partitioned inputs by bounds."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.errors import InvalidInput
from models.keys.columns import Integers, row_hash
from models.keys.groups import group_of
from models.keys.shares import KeyedInput
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.keys.inputs import KeyedInputs, keyed_operators, recorded_streams
from pipelines.run import PipelineRun
from pipelines.stages.features import features
from pipelines.store.samples import write_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

COUNTED = {"count-window": (600.0, 400.0), "join": (900.0, 300.0), "max": (5.0,)}
"""Records of each task of the keyed operators."""


@pytest.fixture
def job(root: Path, tmp_path: Path) -> Path:
    """q5, with its bids recorded beside its file."""
    shutil.copy(root / "jobs" / "nexmark-q5.sql", tmp_path)
    text = (root / "jobs" / "nexmark-q5.yaml").read_text()
    (tmp_path / "q5.yaml").write_text(f"{text}recorded:\n  count-window: [{{file: bids.parquet, key: auction}}]\n")
    record(tmp_path, seed=1)
    return tmp_path / "q5.yaml"


def record(folder: Path, seed: int) -> np.ndarray:
    keys = np.random.default_rng(seed).zipf(1.5, 2000)
    pq.write_table(pa.table({"auction": keys}), folder / "bids.parquet")
    return keys


@pytest.fixture
def run(job: Path, tmp_path: Path) -> PipelineRun:
    made = PipelineRun(PlanRequest(job=str(job), rate=1e6, cluster="testbed", run="r1"), Workspace(tmp_path / "w"))
    rows = [
        {
            **{f.name: 1.0 for f in SAMPLE_SCHEMA if not f.nullable},
            **{"run": "r1-m000", "job": "nexmark-q5", "operator": operator.name, "task": task, "worker": "w"},
            **{"phase": "observe", "time_s": 5.0, "interval_s": 5.0, "records_in": records},
        }
        for operator in made.job.operators
        for task, records in enumerate(COUNTED.get(operator.name, (1.0,)))
    ]
    write_samples(made.workspace, pa.Table.from_pylist(rows, SAMPLE_SCHEMA))
    return made


def kept(run: PipelineRun) -> dict[str, KeyedInput]:
    features(run)
    return {one.operator: one for one in run.output("keys.json", KeyedInputs).inputs}


@pytest.mark.slow
def test_recorded_keys_are_known_exactly_and_others_by_bounds(run: PipelineRun, tmp_path: Path) -> None:
    found = kept(run)
    assert list(found) == ["count-window", "max", "join"]
    keys = pq.read_table(tmp_path / "bids.parquet")["auction"].to_numpy()
    tasks = np.bincount(group_of(row_hash([Integers(keys, 8)]), 128) * 7 // 128)
    window = found["count-window"]
    share = window.fullest_share(7)
    assert (window.source, window.seen) == ("recording", ((600.0, 400.0),))
    assert share.low == share.value == share.high == tasks.max() / 2000
    assert window.distribution is not None and window.distribution.heavy_hitters[0].key == 1
    join = found["join"]
    assert (join.source, join.distribution, join.groups) == ("samples", None, ())
    four = {one.parallelism: one.share for one in join.fullest}[4]
    assert (four.low, four.high) == pytest.approx((0.375, 0.75))


@pytest.mark.slow
def test_keys_are_extracted_again_when_the_recording_changed(run: PipelineRun, tmp_path: Path) -> None:
    before = kept(run)["count-window"]
    uri = Path(run.workspace.uri(run.key("keys.json")).removeprefix("file://"))
    unchanged = uri.stat().st_mtime_ns
    assert kept(run)["count-window"] == before and uri.stat().st_mtime_ns == unchanged
    record(tmp_path, seed=2)
    assert kept(run)["count-window"].groups != before.groups


def test_a_recorded_stream_lies_beside_the_file_of_its_job(job: Path, tmp_path: Path) -> None:
    (stream,) = recorded_streams(str(job), load_job(job))["count-window"]
    assert stream.file == str(tmp_path / "bids.parquet")


def test_an_operator_without_keys_cannot_have_recorded_ones(job: Path) -> None:
    job.write_text(job.read_text().replace("count-window: [", "counts: ["))
    with pytest.raises(InvalidInput, match="names 'counts'; they are count-window, max, join"):
        recorded_streams(str(job), load_job(job))


def test_keyed_operators_are_those_that_records_are_hash_partitioned_to() -> None:
    assert keyed_operators(load_job("nexmark-q5")) == ("count-window", "max", "join")
    assert keyed_operators(load_job("nexmark-q1")) == ()


def test_recorded_streams_do_not_change_what_the_job_is(job: Path) -> None:
    assert load_job(job).model_dump() == load_job("nexmark-q5").model_dump()
