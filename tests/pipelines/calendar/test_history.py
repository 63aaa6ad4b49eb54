"""Rates are read from a CSV file, or from what the sources of a running job emitted."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from models.errors import InvalidInput
from models.job import Job
from pipelines.calendar.history import history_from_csv, history_from_samples
from pipelines.inputs.catalogue import load_job
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

BERLIN = ZoneInfo("Europe/Berlin")


def test_times_without_an_offset_are_those_of_the_zone(tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("rate,time\n12.5,2026-11-02T18:00\n0,2026-11-02T18:00:00Z\n")
    found = history_from_csv(file, BERLIN)
    assert found.times == [datetime(2026, 11, 2, 17, tzinfo=UTC), datetime(2026, 11, 2, 18, tzinfo=UTC)]
    assert (found.rates, found.origin) == ([12.5, 0.0], "2 readings of rates.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("when,rate\n1,2\n", "must have the columns time and rate, but has when, rate"),
        ("time,rate\nyesterday,2\n", "line 2: time must be ISO 8601, such as 2026-11-02T18:00, but is 'yesterday'"),
        ("time,rate\n2026-11-02,2\n2026-11-03,fast\n", "line 3: rate must be a number of records/s, but is 'fast'"),
        ("time,rate\n2026-11-02,nan\n", "line 2: rate must be from 0 to 1e.15 records/s, but is nan"),
        ("time,rate\n2026-11-02,-1\n", "line 2: rate must be from 0"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "rates.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=said):
        history_from_csv(file, BERLIN)


def samples(job: Job, rows: list[tuple[str, int, float, float]]) -> pa.Table:
    """Of (operator, task, end of the interval, records out), over 60 s."""
    filled = {field.name: ("x" if field.type == pa.string() else 0) for field in SAMPLE_SCHEMA}
    return pa.Table.from_pylist(
        [
            filled | {"operator": operator, "task": task, "time_s": end_s, "interval_s": 60.0, "records_out": out}
            for operator, task, end_s, out in rows
        ],
        schema=SAMPLE_SCHEMA,
    )


def test_samples_of_the_sources_are_summed_by_time(tmp_path: Path) -> None:
    workspace, job = Workspace(tmp_path), load_job("wordcount")
    rows = [
        ("source", 0, 60.0, 600.0),
        ("source", 1, 60.0, 1200.0),
        ("flatmap", 0, 60.0, 9e9),
        ("source", 0, 120.0, 60.0),
    ]
    workspace.write_table(f"production/{job.name}/observed-20261102T170000Z.parquet", samples(job, rows))
    workspace.write_table(f"production/{job.name}/by-hand.parquet", samples(job, rows))  # of an unknown time
    found = history_from_samples(workspace, job)
    assert found.times == [datetime(2026, 11, 2, 17, 1, tzinfo=UTC), datetime(2026, 11, 2, 17, 2, tzinfo=UTC)]
    assert found.rates == [30.0, 1.0]
