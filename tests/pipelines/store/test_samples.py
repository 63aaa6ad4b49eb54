"""Samples in the workspace, as every reader sees them."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from models.errors import SluiceError
from pipelines.store.samples import read_samples, runs_of, samples_key, samples_uris, write_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

RUNS = ("0007-m000", "0007-m001", "00075-m000")


def samples(run: str, rows: int = 3, job: str = "q5") -> pa.Table:
    columns = {
        f.name: [7.0] * rows if pa.types.is_floating(f.type) else [0] * rows if f.type == pa.int64() else ["x"] * rows
        for f in SAMPLE_SCHEMA
    }
    named = {"run": [run] * rows, "job": [job] * rows, "time_s": [5.0 * (i + 1) for i in range(rows)]}
    return pa.table({**columns, **named}, SAMPLE_SCHEMA)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "w")
    write_samples(made, pa.concat_tables([samples(run) for run in RUNS]))
    return made


def folder(workspace: Workspace) -> Path:
    return workspace.local_folder("samples")


def test_each_run_has_its_file(workspace: Workspace) -> None:
    assert workspace.list("samples") == [samples_key("q5", run) for run in RUNS]
    assert samples_key("q5", "r1-m000") == "samples/job=q5/run=r1-m000/samples.parquet"


def test_what_is_read_is_what_was_written(workspace: Workspace) -> None:
    got = read_samples(workspace, "q5", RUNS[1])
    assert got.schema.equals(SAMPLE_SCHEMA)
    assert got.equals(samples(RUNS[1]))


def test_a_run_that_is_measured_again_replaces_its_samples(workspace: Workspace) -> None:
    write_samples(workspace, samples(RUNS[0], rows=1))
    assert read_samples(workspace, "q5", RUNS[0]).num_rows == 1
    assert read_samples(workspace, "q5", RUNS[1]).num_rows == 3


def test_the_runs_of_a_pipeline_run_are_those_that_bear_its_name(workspace: Workspace) -> None:
    assert runs_of(workspace, "q5", "0007") == list(RUNS[:2])
    assert runs_of(workspace, "q5", "00075") == [RUNS[2]]
    assert runs_of(workspace, "q8", "0007") == []


def test_a_run_has_nothing_of_one_whose_name_begins_with_its_own(workspace: Workspace) -> None:
    own = ["q5-m000", "q5-m1000", "q5-profile", "q5-single-1.04858e+06", "q5-single-8192"]
    others = ["q5-big-m000", "q5-big-profile", "q5-big-single-8192", "q5-m00-m000", "q5-profile-m000", "q5-01"]
    write_samples(workspace, pa.concat_tables([samples(run) for run in own + others]))
    assert runs_of(workspace, "q5", "q5") == own
    assert runs_of(workspace, "q5", "q5-big") == ["q5-big-m000", "q5-big-profile", "q5-big-single-8192"]


def test_pandas_reads_the_folder(workspace: Workspace) -> None:
    frame = pd.read_parquet(folder(workspace))
    assert sorted(frame["run"].astype(str).unique()) == sorted(RUNS)
    assert frame["job"].astype(str).unique().tolist() == ["q5"]


def test_pyarrow_reads_the_folder(workspace: Workspace) -> None:
    assert pq.read_table(folder(workspace)).num_rows == 9
    table = ds.dataset(folder(workspace), partitioning="hive").to_table()
    assert set(table["run"].to_pylist()) == set(RUNS)


def test_polars_reads_the_folder(workspace: Workspace) -> None:
    frame = pl.read_parquet(folder(workspace), hive_partitioning=True)
    assert set(frame["run"].to_list()) == set(RUNS)


def test_uris_lead_to_the_files(workspace: Workspace) -> None:
    uris = samples_uris(workspace, "q5", RUNS)
    assert [Path(u.removeprefix("file://")).is_file() for u in uris] == [True] * 3


@pytest.mark.parametrize("table", [samples("r").drop_columns(["run"]), samples("r").slice(0, 0)])
def test_samples_that_belong_nowhere_are_refused(workspace: Workspace, table: pa.Table) -> None:
    with pytest.raises(SluiceError, match="must have the columns job and run"):
        write_samples(workspace, table)
