"""Where production samples are found, and which of them are read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.errors import InvalidInput
from models.metrics import SAMPLE_COLUMNS
from pipelines.drift.production import find_samples, jobs_with_samples
from pipelines.store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Samples of three hours of one job, and of one of another."""
    made = Workspace(tmp_path / "workspace")
    for name in ("q1/h01", "q1/h03", "q1/h02", "q5/job=q5/run=h01/samples"):
        made.write_table(f"production/{name}.parquet", pa.table({c.name: [] for c in SAMPLE_COLUMNS}))
    made.write_bytes("production/q1/notes.txt", b"no samples")
    made.write_bytes("production/README.parquet", b"of no job")
    return made


def names(workspace: Workspace, samples: str | None, windows: int = 9) -> list[str]:
    found = find_samples(workspace, "q1", samples, windows)
    assert all(len(digest) == 64 for digest in found.files.values())
    return [uri.rpartition("/")[2] for uri in found.files]


def test_the_newest_files_by_name_are_read(workspace: Workspace, tmp_path: Path) -> None:
    assert names(workspace, None) == ["h01.parquet", "h02.parquet", "h03.parquet"]
    assert names(workspace, None, windows=2) == ["h02.parquet", "h03.parquet"]
    assert names(workspace, "production/q1/h01.parquet") == ["h01.parquet"]
    assert names(workspace, str(tmp_path / "workspace/production/q1"), windows=1) == ["h03.parquet"]
    assert names(workspace, f"file://{tmp_path}/workspace/production/q1/h02.parquet") == ["h02.parquet"]
    assert jobs_with_samples(workspace) == ["q1", "q5"]


@pytest.mark.parametrize("samples", ["production/q1/../../secrets", "production//etc", "production/.hidden"])
def test_a_key_cannot_leave_the_workspace(workspace: Workspace, samples: str) -> None:
    with pytest.raises(InvalidInput, match="a key must be a relative path"):
        find_samples(workspace, "q1", samples, 9)


def test_no_samples_are_an_error_that_says_where_they_are_looked_for(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there are no samples in .*/production/q8; put Parquet files"):
        find_samples(workspace, "q8", None, 9)
    with pytest.raises(InvalidInput, match=r"there are no samples in .*/elsewhere"):
        find_samples(workspace, "q1", str(tmp_path / "elsewhere"), 9)


def test_a_file_beside_the_root_is_looked_for_there(workspace: Workspace) -> None:
    with pytest.raises(InvalidInput, match=r"there are no samples in file:///none\.parquet"):
        find_samples(workspace, "q1", "/none.parquet", 9)


def test_what_is_no_parquet_file_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(InvalidInput, match=r"samples must be in a file named \*\.parquet, or a folder of such files"):
        find_samples(workspace, "q1", str(tmp_path / "notes.txt"), 9)


def test_missing_columns_are_named(workspace: Workspace, tmp_path: Path) -> None:
    table = pa.table({c.name: [] for c in SAMPLE_COLUMNS if c.name not in ("task", "phase", "cpu_s")})
    pq.write_table(table, tmp_path / "hour.parquet")
    with pytest.raises(InvalidInput, match=r"hour\.parquet lacks columns of samples: task, phase, cpu_s; write them"):
        find_samples(workspace, "q1", str(tmp_path), 9)
