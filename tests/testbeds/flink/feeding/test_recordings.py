import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.errors import InvalidInput
from testbeds.flink.feeding.recordings import Recording, as_text, recording, records_in


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_parquet_becomes_json_lines_once(tmp_path: Path, cache: Path) -> None:
    plain = datetime(2026, 1, 2, 3, 4, 5, 678000)
    zoned = datetime(2026, 1, 2, 3, 0, tzinfo=timezone(timedelta(hours=2)))
    columns = {"n": [1, 2], "name": ["a", None], "plain": [plain, plain], "zoned": [zoned, zoned.astimezone(UTC)]}
    pq.write_table(pa.table(columns), tmp_path / "events.parquet")
    text = as_text(recording(tmp_path / "events.parquet", time_column="plain"))
    assert (text.format, text.time_column, text.header_lines) == ("json", "plain", 0)
    lines = [json.loads(line) for line in text.path.read_text().splitlines()]
    times = {"plain": "2026-01-02 03:04:05.678", "zoned": "2026-01-02 01:00:00.000Z"}
    assert lines == [{"n": 1, "name": "a", **times}, {"n": 2, "name": None, **times}]
    made = text.path.stat().st_mtime_ns
    (tmp_path / "again.parquet").write_bytes((tmp_path / "events.parquet").read_bytes())
    assert as_text(recording(tmp_path / "again.parquet")).path == text.path and text.path.stat().st_mtime_ns == made


def test_numbers_that_json_does_not_have_are_null(tmp_path: Path, cache: Path) -> None:
    pq.write_table(pa.table({"x": [1.5, float("nan")], "xs": [[float("inf")], [2.0]]}), tmp_path / "events.parquet")
    assert as_text(recording(tmp_path / "events.parquet")).path.read_text().splitlines() == [
        '{"x": 1.5, "xs": [null]}',
        '{"x": null, "xs": [2.0]}',
    ]


def test_text_is_replayed_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("a,b\n1,2\n")
    found = recording(tmp_path / "events.csv", header_lines=1)
    assert as_text(found) == Recording((tmp_path / "events.csv").resolve(), "csv", None, 1)


def test_what_cannot_be_replayed_is_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        recording(tmp_path / "nowhere.jsonl")
    (tmp_path / "events.avro").write_text("x")
    with pytest.raises(InvalidInput, match=r"must end in one of \.jsonl"):
        recording(tmp_path / "events.avro")
    (tmp_path / "wrong.parquet").write_text("x")
    with pytest.raises(InvalidInput, match="must be a Parquet file"):
        as_text(recording(tmp_path / "wrong.parquet"))
    nested = pa.table({"wait": pa.array([timedelta(seconds=1)])})
    pq.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(InvalidInput, match="timedelta, which cannot be replayed"):
        as_text(recording(tmp_path / "nested.parquet"))
    assert not list(cache.rglob("*.jsonl"))


def test_records_are_counted(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("a,b\n1,2\n\n3,4")
    assert records_in(recording(tmp_path / "events.csv", header_lines=1)) == 2
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "events.parquet")
    assert records_in(recording(tmp_path / "events.parquet")) == 3
    (tmp_path / "empty.csv").write_text("a,b\n")
    with pytest.raises(InvalidInput, match="has no line of data"):
        records_in(recording(tmp_path / "empty.csv", header_lines=1))
